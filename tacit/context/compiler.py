"""Compiles one turn, step by step. If a step fails or misses the deadline, the turn goes on without it, and
the receipt says why.

    profile      session key and sender → who listens, and the rule for such sessions
    guard        query filter: is there anything to search for, and does the question come from tacit itself?
    again        is this the same turn again, with nothing changed since? Then return the same answer
    fixed        identity, and the files that the session always has
    watch        topics that the message activates, and corrections of the agent's last message
    search       chunks, within what this session may see
    rank         which of them pass, and in which order
    assemble     blocks and budget → text
    flush        turns that leave the window are first offered for extraction
    receipt      kept, dropped, why, how long

The prompt lane returns the whole prompt. The runtime lane returns only what the host lacks: `standing` is the
static prefix, `text` is for this turn, and both may be empty.

If a turn finishes after its host was answered without it, nobody received it: its receipt says so, and the
turn does not count.

Nothing here writes durable memory: receipts, the gate log and proposals are all in .tacit. Private text and
secrets reach none of them, nor the model that is asked about topics.
"""

from __future__ import annotations

import posixpath
import re
import secrets
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from typing import NamedTuple

from tacit.context import receipts
from tacit.context.blocks import Block, compute_slot_limits
from tacit.context.budget import NO_LIMITS, FittedPrompt, KnowledgeLimits, PromptCandidates
from tacit.context.cache import CachedAnswer, SearchKey
from tacit.context.delivery.files import clear_context_file
from tacit.context.delivery.modes import write_delivery_files
from tacit.context.history_window import normalize_history
from tacit.context.home_view import HomeView
from tacit.context.injection_log import NEUTRAL_SKIPS, LastTurn
from tacit.context.loaded_files import (
    PROJECTS_FILE,
    FileLoader,
    Listener,
    LoadedBlock,
    block_label,
    identity_files,
)
from tacit.context.model import Compiled, Dropped, Notice, Quote, Receipt
from tacit.context.ranking import MAX_HITS_WITH_NEIGHBOURS, RankedBlocks, RankingRules, rank
from tacit.context.receipt_sections import build_sections, slot_usage
from tacit.context.rendering import SYSTEM_TEXT, assemble
from tacit.context.request import Request, normalize_request, preview, sanitize, text_digest
from tacit.context.shorten import shorten_middle
from tacit.context.stage import StageRunner
from tacit.context.state import CompilerState
from tacit.home.categories import CATEGORIES
from tacit.learn import window_proposals
from tacit.learn.model import Said
from tacit.learn.window_extract import extract
from tacit.privacy import redaction
from tacit.privacy.delimiters import strip_invisible
from tacit.search.index import ChunkLocation, StoredChunk
from tacit.search.model import Found, Hit, Scope
from tacit.search.query_filter import FilterResult, filter_query, is_own_tool
from tacit.search.weights import NEAR_BEST_MARGIN, SECONDARY_GATE_SHARE
from tacit.sessions.agents import find_excluded_agent
from tacit.text import tokens
from tacit.topics.model import Activation, Stimulus, Topic, TopicDecision
from tacit.topics.pipeline import Moment, WatchResult

_MODEL_GATE_TIME_SHARE = 0.5  # of the time left: a slow gate must leave time for the search
# Topics are not retrieved: their triggers activate them.
_RETRIEVED_CATEGORIES = tuple(category for category in CATEGORIES if category != "topic")
_DEFAULT_CANDIDATES = 60  # chunks to ask the search for
_MAX_CANDIDATES = 400
_SHORT_TURN_TOKENS = 20  # tokens of a short turn
_MAX_TOPIC_KEYWORDS = 12  # keywords of active topics that are added to the query
_MAX_CACHED_CHARS = 20_000  # longer texts are counted anew each time
_PATH_PATTERN = re.compile(r"[\w.@~+-]*(?:/[\w.@~+-]+)+|[\w@~+-]+\.[A-Za-z]\w{0,7}\b")
_MAX_PATHS = 100
_RETRYABLE_SKIPS = ("search", "deadline")  # a host that asks again may get a better answer
_NO_ACTIVATIONS: list[Activation] = []
_NO_NOTICES: tuple[Notice, ...] = ()


class ContextCompiler(CompilerState):
    """Compiles the turns of one home."""

    def compile(self, request: Request, view: HomeView, now: datetime) -> Compiled:
        return _TurnCompilation(self, normalize_request(request), view, now).compile()


class AssembledPrompt(NamedTuple):
    """The prompt for one lane."""

    text: str
    standing: str
    tokens: int
    fitted: tuple[FittedPrompt, ...]  # the static prefix and the rest, or the whole

    @property
    def left(self) -> Sequence[Said]:
        """Turns of the history that no longer fit."""
        return [turn for fitted in self.fitted for turn in fitted.history.left]


_EMPTY_PROMPT = AssembledPrompt("", "", 0, ())


class _TurnCompilation:
    """The compilation of one turn."""

    def __init__(self, state: CompilerState, request: Request, view: HomeView, now: datetime) -> None:
        self.state, self.request, self.view, self.now = state, request, view, now
        self.config = state.config
        self.message = request.message
        self.query = sanitize(request.message)  # the sanitized message: it is searched for and may be stored
        self.steps = StageRunner(request.seconds)
        self.started_ns = time.time_ns()
        self.history: list[Said] = []
        self.is_new = False  # the session begins with this turn
        self.skipped = ""
        self.generation: Hashable = None  # of the index and the topics
        self.retry_digests: Collection[str] = ()  # digests that an earlier answer to this turn had
        self.has_claimed_search = False  # this turn does the search of the first-message mode
        self.profile = state.profile_of(
            request.session_key,
            agent=request.agent,
            sender=request.sender,
            trigger=request.trigger,
            trial=self._is_trial,
        )
        self.kind, self.rule = self.profile.kind, self.profile.rule
        self.steps.notices += self.profile.notices
        self.listener = Listener(self.rule.audience, self.kind.agent)
        self.sources = FileLoader(view.read, self.listener, view.agents_of)
        self.dropped: list[Dropped] = []
        self.decisions: list[TopicDecision] = []
        self._notices_in_receipt = 0  # steps.notices that are in the receipt already

    def compile(self) -> Compiled:
        steps, skip_code = self.steps, self._check_disabled()
        history = self.history = steps.run("history", lambda: normalize_history(self.request.history), [])
        if _is_inside_private_tag(self.message, history):
            self.query = sanitize(f"<private>{self.message}")
        filtered = steps.run("guard", self._filter_query, FilterResult())
        repeat = None if skip_code else steps.run("again", self._find_repeat, None)
        if repeat is not None:
            return repeat
        fixed = () if skip_code else self._load_blocks("fixed", self._load_fixed)
        self.skipped = skip_code or self._check_own_tool() or filtered.skip
        activations = (
            steps.run("watch", lambda: self._activate_topics(history), _NO_ACTIVATIONS)
            if self._may_activate_topics
            else []
        )
        topics = self._load_blocks("topics", lambda: self.sources.topics(activations))
        knowledge = self._retrieve_knowledge(activations, filtered)
        candidates = PromptCandidates(self.message, SYSTEM_TEXT, fixed, topics, knowledge, tuple(history))
        prompt = steps.run("assemble", lambda: self._assemble(candidates), _EMPTY_PROMPT, always=True)
        session = steps.run("session", lambda: self._session_id, self.request.session_id, always=True)
        if prompt.left and not self._is_trial:
            steps.run("flush", lambda: self._flush(session, prompt.left), None, always=True)
        return self._finish(session, prompt)

    def _finish(self, session: str, prompt: AssembledPrompt) -> Compiled:
        if not prompt.text and not self._is_runtime:  # nothing could be assembled: return the message
            text = shorten_middle(strip_invisible(self.message), self.budget, count_tokens).text
            prompt = prompt._replace(text=text, tokens=count_tokens(text))
        receipt = self._build_receipt(session, prompt)
        quotes = tuple(_quotes_from(prompt.fitted))
        compiled = Compiled(
            prompt.text, prompt.tokens, receipt.sections, receipt.dropped, receipt, prompt.standing, quotes
        )
        if self._is_runtime and not self._is_trial and not self.steps.is_answered():
            compiled = self._deliver_lanes(compiled)
        is_late = not self._is_trial and self.steps.is_answered()  # checked again: writing takes time
        if is_late:
            compiled = self._discard_late(compiled)
        if not self.view.past and not self.request.quiet:
            self.state.keep(compiled.receipt, self.decisions)
        if self.has_claimed_search and (is_late or self.skipped):
            self.state.recent.searched.drop(lambda key: key == self.request.session_key)
        if self._is_trial:
            return compiled
        host_receipt = receipts.redact_for_host(compiled.receipt)
        compiled = replace(compiled, receipt=host_receipt, dropped=host_receipt.dropped)
        if self._is_runtime and not is_late and self.skipped not in _RETRYABLE_SKIPS:
            answer = CachedAnswer(self._turn_digest, self.generation, compiled, quotes)
            self.state.recent.answers.put(self.request.session_key, answer)
        return compiled

    def _discard_late(self, compiled: Compiled) -> Compiled:
        """The answer that came too late: the host was answered without it."""
        if self._is_runtime:
            directory = self.config.sessions.directory
            clear_context_file(self.state.home, directory, self.request.session_key, self.started_ns)
        late = Notice("deadline", "It was done too late: the host was answered without it.")
        notices = (*compiled.receipt.notices, late)
        receipt = replace(
            compiled.receipt,
            tokens=0,
            characters=0,
            sections=(),
            slots={},
            skipped="deadline",
            notices=notices,
        )
        return Compiled("", 0, (), compiled.dropped, receipt)

    def _deliver_lanes(self, compiled: Compiled) -> Compiled:
        """Write the copies that the lanes want. The host gets nothing if the runtime lane is off."""
        lane_notices = self.steps.run("lanes", lambda: self._write_lanes(compiled), _NO_NOTICES, always=True)
        if "runtime" not in self.lanes:
            self._add_notice("lane", f"{self.profile.won} has no runtime lane.")
            compiled = replace(compiled, text="", standing="", tokens=0, sections=(), given=())
        notices = (*compiled.receipt.notices, *lane_notices, *self.steps.notices[self._notices_in_receipt :])
        receipt = replace(
            compiled.receipt,
            notices=notices,
            sections=compiled.sections,
            tokens=compiled.tokens,
            characters=len(compiled.text) + len(compiled.standing),
        )
        return replace(compiled, receipt=receipt)

    def _write_lanes(self, compiled: Compiled) -> tuple[Notice, ...]:
        key, session = self.request.session_key, compiled.receipt.session_id
        return write_delivery_files(
            self.state.home, self.config, self.profile, compiled, self.query, self.now,
            is_first=self.is_new,
            names=self.state.given.names(key, session, self._since),
            began=self.started_ns,
        )  # fmt: skip

    # ------------------------------------------------------------ the session

    @property
    def _is_trial(self) -> bool:
        return self.request.trial or bool(self.view.past)

    @property
    def _is_runtime(self) -> bool:
        return self.request.lane == "runtime"

    @property
    def lanes(self) -> Sequence[str]:
        return self.rule.lanes or ()

    def _check_disabled(self) -> str:
        inject = self.config.inject
        if not inject.enabled:
            self._add_notice("disabled", "inject.enabled is false, so turns get no context.")
            return "disabled"
        if agent := find_excluded_agent(self.profile.agents, inject.exclude_agents):
            self._add_notice("excluded", f"The agent {agent} is in inject.exclude_agents.")
            return "excluded"
        if self._is_runtime and not {"runtime", "file", "daily"}.intersection(self.lanes):
            return "lane"
        return ""

    def _check_own_tool(self) -> str:
        """The skip code if tacit itself asks: by its own tool, or with a message of only injected text."""
        if is_own_tool(self.request.tool):
            return "own-tool"
        return "own-block" if self.message.strip() and not self.query.strip() else ""

    @cached_property
    def _turn_digest(self) -> str:
        """Equal for the same turn asked again."""
        request = self.request
        turns = [(turn.role, turn.text) for turn in self.history]
        parts = (
            self.query, turns, request.budget, request.wake, request.paths, request.event, self.kind,
            request.session_id, request.trigger, request.tool,
        )  # fmt: skip
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _find_repeat(self) -> Compiled | None:
        """The cached answer if the host repeats this turn. If the host passes the history, equal requests are
        the same turn as long as answers are cached; without it, only within the debounce, since a person may
        say the same thing twice."""
        inject = self.config.inject
        if not self._is_runtime or self._is_trial:
            return None
        self.generation = self.view.generation()
        seconds = inject.cache_seconds if self.history else inject.debounce_ms / 1000
        cached = self.state.recent.answers.get(self.request.session_key, seconds)
        if cached is None or cached.turn != self._turn_digest:
            return None
        if self.generation is None or cached.state != self.generation:
            # Compile it anew; chunks of the old answer that are still allowed may repeat.
            self.retry_digests = [part.digest for part in cached.compiled.sections if part.digest]
            return None
        # A failed turn in between may have cleared the copies.
        self._write_lanes(replace(cached.compiled, given=cached.quotes))
        return cached.compiled

    def _check_first_only(self) -> str:
        """The skip code if the mode is first-message and this session had its search already."""
        if self.config.inject.mode != "first" or self._is_trial or self.retry_digests:
            return ""
        if not self._is_runtime and self.history:
            return "not-first"
        key, debounce = self.request.session_key, self.config.inject.debounce_ms / 1000
        searched = self.state.recent.searched
        if self._is_runtime and debounce and searched.get(key, debounce):
            return "debounced"
        session = self._session_id
        if not self.is_new and self.state.given.searches(key, session, self._since):
            return "not-first"
        # Claim it before the search: the next message may arrive during it.
        self.has_claimed_search = self._is_runtime and searched.claim(key, True, debounce)
        return "debounced" if self._is_runtime and not self.has_claimed_search else ""

    def _scope(self) -> Scope:
        scope = self.profile.scope
        without = (self.request.transcript,) if self.request.transcript else ()
        return replace(scope, archived=False, without=without, categories=_RETRIEVED_CATEGORIES)

    def _load_fixed(self) -> Iterator[LoadedBlock]:
        compiler = self.config.context_compiler
        if self._is_runtime and "bootstrap" in self.lanes:  # that lane loads the host's files
            compiler = replace(compiler, projects="retrieve")
        else:
            yield from self.sources.identity(
                identity_files(self.rule.files, compiler.profile, self.rule.audience)
            )
        yield from self.sources.session(compiler, self.now.date())

    def _filter_query(self) -> FilterResult:
        names = self.view.names(self._scope(), self.steps.deadline)  # indexes changed files
        if self.request.trigger == "heartbeat" or self.kind.form == "heartbeat":
            return FilterResult("heartbeat", "the host says that it is a heartbeat")
        return filter_query(self.query, names)

    @cached_property
    def _session_id(self) -> str:
        """The given id, or that of the previous turn as long as its session continues: a turn without history
        after one with history begins a new session, and so does a turn after a long pause."""
        key, name = self.request.session_key, self.request.session_id
        if self._is_trial or (name and not self.request.joins):
            return name
        if name:
            self.state.join(key, name, self._since, self.now, self._continues)
            return name
        name, self.is_new = self.state.session_of(
            key, self._since, self.now, self._continues, had_history=bool(self.history)
        )
        return name

    def _continues(self, last: LastTurn) -> bool:
        """Whether this turn continues the session of the last one. A turn that the host began by itself, such
        as a heartbeat without history, does not begin another session."""
        pause = self.now - datetime.fromisoformat(last.at)
        idle = timedelta(hours=self.config.capture.idle_seal_hours)
        return pause < idle and (bool(self.history) or not last.had_history or self.skipped in NEUTRAL_SKIPS)

    @property
    def _since(self) -> datetime:
        """Sessions with no receipt since then are over."""
        return self.now - timedelta(hours=max(48, self.config.capture.idle_seal_hours))

    # ------------------------------------------------------------ topics

    @property
    def _may_activate_topics(self) -> bool:
        """Whether topics may activate: not if the session gets nothing, and not for tacit's own tools, whose
        calls are no turns of the conversation."""
        return self.skipped not in ("disabled", "excluded", "lane", "own-tool")

    def _activate_topics(self, history: Sequence[Said]) -> list[Activation]:
        pipeline = self.state.pipeline(self.view)
        if self.rule.audience == "owner":  # the problem text may reveal what the topic says
            for problem in pipeline.problems:
                self._add_notice("topic", str(problem))
        for name in self.request.wake:
            if not pipeline.knows(name, self._allows_topic):
                self.dropped.append(
                    Dropped(block_label("topic", name), "topics", "", "missing", "there is no such topic")
                )
        moment = Moment(self.now.isoformat(), self.steps.share(_MODEL_GATE_TIME_SHARE))
        corrected = pipeline.corrections(
            _last_agent_text(history), moment, spoken=self._recent_corrections, allowed=self._allows_topic
        )
        watched = WatchResult()
        if not self.skipped or self.request.event or self.request.wake:
            paths = (*self.request.paths, *_tool_paths(history))
            stimulus = Stimulus(self.query, "input", paths, self.request.event)
            watched = pipeline.process(stimulus, moment, allowed=self._allows_topic, woken=self.request.wake)
        self.decisions += [*corrected.decisions, *watched.decisions]
        for decision in self.decisions:
            if decision.by == "error":
                self._add_notice("gate-error", f"{decision.topic_name} stayed asleep: {decision.reason}")
        self.dropped += [
            _dropped_topic(pipeline.topic(decision.topic_name), decision)
            for decision in self.decisions
            if decision.outcome != "activated"
        ]
        return [*corrected.activations, *watched.activations]

    def _recent_corrections(self) -> dict[str, int]:
        """How many turns ago each topic corrected the agent in this session."""
        labels = self.state.given.labels(self.request.session_key, self._session_id, self._since)
        return {
            name: ago
            for label, ago in labels.items()
            for kind, _, name in [label.partition(":")]
            if kind == "correction"
        }

    def _allows_topic(self, topic: Topic) -> bool:
        return not self.listener.may_hear(topic.audience, topic.agents)

    # ------------------------------------------------------------ knowledge

    def _retrieve_knowledge(
        self, activations: Sequence[Activation], filtered: FilterResult
    ) -> tuple[Block, ...]:
        self.skipped = self.skipped or self.steps.run("mode", self._check_first_only, "")
        if self.skipped:
            return ()
        ranked = self._search_and_rank(activations, filtered)
        if ranked is None:  # the search failed, so it must not count as one
            self.skipped = "deadline" if "search" in self.steps.untimely else "search"
        return ranked.blocks if ranked else ()

    def _search_and_rank(
        self, activations: Sequence[Activation], filtered: FilterResult
    ) -> RankedBlocks | None:
        results = self.steps.run("search", lambda: self._search(activations), None)
        if results is None:
            return None
        for warning in results.degraded:
            self._add_notice(warning.partition(":")[0] if ":" in warning[:12] else "index", warning)
        ranked = self.steps.run("rank", lambda: self._rank_hits(results, filtered), None, always=True)
        self.dropped += ranked.dropped if ranked else ()
        return ranked

    def _search(self, activations: Sequence[Activation]) -> Found:
        keywords = dict.fromkeys(word for activation in activations for word in activation.topic.keywords)
        query = "\n".join(filter(None, [self.query, " ".join(list(keywords)[:_MAX_TOPIC_KEYWORDS])]))
        scope, limit = self._scope(), self._candidate_limit
        state = None if self._is_trial else self.view.generation()
        question = SearchKey(
            self.kind.agent,
            self.kind.type,
            scope,
            text_digest(query),
            limit,
            self.now.date().isoformat(),
            state,
        )
        if not self._is_trial:
            self.state.recent.agents.put(self.request.session_key, self.kind.agent)
        cache = self.state.recent.found
        if state is not None and (cached := cache.get(question, self.config.inject.cache_seconds)):
            self._add_notice("cache", "The same question was searched for a moment ago.")
            return cached
        results = self.view.find(query, scope, limit, self.now, self.steps.deadline)
        if state is not None and not results.degraded:
            cache.put(question, results)
        return results

    @property
    def _candidate_limit(self) -> int:
        """How many chunks to ask the search for: enough to fill an explicit budget."""
        if self.request.budget is None or self._is_runtime:
            return _DEFAULT_CANDIDATES
        return min(_MAX_CANDIDATES, max(2 * _DEFAULT_CANDIDATES, self.budget // _SHORT_TURN_TOKENS))

    def _rank_hits(self, results: Found, filtered: FilterResult) -> RankedBlocks:
        inject = self.config.inject
        rules = RankingRules(
            self.query,
            inject.confidence_gate,
            inject.strong,
            self.config.context_compiler.half_life_days,
            self.now.date(),
            filtered.technical,
        )
        return rank(
            results.hits,
            rules,
            near=self._load_neighbours(results.hits),
            given=self._injected_digests(),
            excluded=self._exclusion_reason,
        )

    def _load_neighbours(self, hits: Sequence[Hit]) -> Mapping[ChunkLocation, Sequence[StoredChunk]]:
        """The whole turns of the best hits, each with the next turn."""
        turns = [(hit.path, hit.lines[0]) for hit in hits[:MAX_HITS_WITH_NEIGHBOURS] if hit.turn]
        return self.view.around(turns, 0, 1) if turns else {}

    def _injected_digests(self) -> Collection[str]:
        """Digests of what the model sees from earlier turns. Empty if the host does not keep our text."""
        if self._is_trial or not self.request.keeps_text:
            return ()
        session = self._session_id
        if self.is_new:
            return ()
        injected = self.state.given.seen(self.request.session_key, session, self._since)
        repeat_after = self.config.inject.repeat_after_turns
        return [
            digest
            for digest, ago in injected.items()
            if digest not in self.retry_digests and (repeat_after is None or ago <= repeat_after)
        ]

    def _exclusion_reason(self, hit: Hit) -> str:
        compiler = self.config.context_compiler
        if hit.turn and hit.speaker == "system":
            return "it is what a system said to an agent"
        if hit.path in self._files_loaded_by_host:
            return "the host loads it whole"
        settings = {"memory": compiler.memory_md, "journal": compiler.journal}
        if settings.get(hit.category) == "never" or (
            hit.path == PROJECTS_FILE and compiler.projects == "never"
        ):
            return "the config says never"
        return ""

    @cached_property
    def _files_loaded_by_host(self) -> Collection[str]:
        """Files that the host loaded whole when the session began: their chunks would be there twice."""
        if not self._is_runtime:
            return ()
        loaded = self.state.given.loaded(self.request.session_key, self._since)
        return {self.view.path_of(file) if posixpath.isabs(file) else file for file in loaded}

    # ------------------------------------------------------------ the prompt

    @property
    def budget(self) -> int:
        compiler = self.config.context_compiler
        budgets = (self.request.budget, self.rule.token_budget, compiler.token_budget)
        return max(0, next(tokens for tokens in budgets if tokens is not None))

    def _assemble(self, candidates: PromptCandidates) -> AssembledPrompt:
        if not self._is_runtime:
            text, used, fitted_prompt = self._assemble_within(candidates, self.budget)
            return AssembledPrompt(text, "", used, (fitted_prompt,))
        standing, standing_tokens, standing_part = self._assemble_within(
            replace(candidates, message="", topics=(), knowledge=(), history=()), self.budget
        )
        conversation = "\n".join(turn.text for turn in candidates.history)
        turn_part = replace(candidates, message="", fixed=(), history=(), asked=self.query, said=conversation)
        text, used, fitted_turn = self._assemble_within(turn_part, self.budget - standing_tokens)
        return AssembledPrompt(text, standing, standing_tokens + used, (standing_part, fitted_turn))

    def _assemble_within(self, candidates: PromptCandidates, budget: int) -> tuple[str, int, FittedPrompt]:
        compiler = self.config.context_compiler
        return assemble(
            candidates, partial(compute_slot_limits, compiler), budget, count_tokens, self._knowledge_limits
        )

    @property
    def _knowledge_limits(self) -> KnowledgeLimits:
        """An explicit budget is filled: with the history, or with knowledge if there is no history. Without
        one, each chunk must be worth its tokens."""
        compiler = self.config.context_compiler
        min_score = self.config.inject.confidence_gate * SECONDARY_GATE_SHARE
        if self.request.budget is None or self._is_runtime:
            return KnowledgeLimits(
                min_score, NEAR_BEST_MARGIN, compiler.max_injected_chars, compiler.max_snippet_chars
            )
        return KnowledgeLimits(min_score, NEAR_BEST_MARGIN) if self.history else NO_LIMITS

    def _load_blocks(self, step: str, load: Callable[[], Iterator[LoadedBlock]]) -> tuple[Block, ...]:
        loaded: list[LoadedBlock] = self.steps.run(step, lambda: list(load()), [], always=True)
        self.dropped += [block for block in loaded if isinstance(block, Dropped)]
        return tuple(block for block in loaded if isinstance(block, Block))

    # ------------------------------------------------------------ flush and receipt

    def _flush(self, session: str, leaving: Sequence[Said]) -> None:
        """Extract proposals from turns that leave the window. This writes no note."""
        fresh = [replace(turn, text=sanitize(turn.text)) for turn in self.state.newly_left(session, leaving)]
        extraction = extract(
            fresh,
            session_key=self.request.session_key,
            session_id=session,
            made_at=self.now,
            projects=self.view.projects(),
            users="owner" if self.rule.audience == "owner" else "other",
        )
        code, text = ("flush-ok", f"{_turns_str(len(fresh))} left the window; nothing in them to keep.")
        if extraction is not None:
            problem = window_proposals.offer(self.state.home, extraction)
            code = "flush-failed" if problem else "flushed"
            text = (
                problem
                or f"{_turns_str(len(fresh))} left the window; {len(extraction.changes)} lines were proposed."
            )
        if fresh:
            self._add_notice(code, text)

    def _add_notice(self, code: str, text: str) -> None:
        self.steps.notices.append(Notice(code, text))

    def _build_receipt(self, session: str, prompt: AssembledPrompt) -> Receipt:
        entries = tuple(
            section for fitted in prompt.fitted for section in build_sections(fitted, count_tokens)
        )
        dropped = [item for fitted in prompt.fitted for item in fitted.dropped]
        notices = [item for fitted in prompt.fitted for item in fitted.notices]
        self._notices_in_receipt = len(self.steps.notices)
        return Receipt(
            id=receipts.new_id(self.now, secrets.randbits(20)),
            at=self.now.isoformat(),
            session_key=self.request.session_key,
            session_id=session,
            session_type=self.kind.type,
            agent=self.kind.agent,
            audience=self.rule.audience,
            message_hash=text_digest(self.query),
            message=preview(self.query),
            budget=self.budget,
            tokens=prompt.tokens,
            characters=len(prompt.text) + len(prompt.standing),
            sections=entries,
            dropped=(*self.dropped, *dropped),
            skipped=self.skipped,
            notices=(*self.steps.notices, *notices),
            timings_ms=self.steps.timings,
            slots=slot_usage(entries, compute_slot_limits(self.config.context_compiler, self.budget)),
            had_history=bool(self.history),
            trial=self.request.trial,
            past=self.view.past,
            lane=self.request.lane,
            rule=self.profile.won,
        )


def _quotes_from(fitted: Sequence[FittedPrompt]) -> Iterator[Quote]:
    for part in fitted:
        for selected in part.kept:
            if selected.block.slot == "knowledge":
                yield Quote(
                    selected.text, selected.block.source, selected.block.day, selected.block.score or 0.0
                )


@lru_cache(maxsize=4096)
def _count_cached(text: str) -> int:
    return tokens.count(text)


def count_tokens(text: str) -> int:
    """Count tokens, cached: identity, topics and chunks come again and again."""
    return _count_cached(text) if len(text) <= _MAX_CACHED_CHARS else tokens.count(text)


def _dropped_topic(topic: Topic, decision: TopicDecision) -> Dropped:
    return Dropped(
        block_label("topic", topic.name),
        "topics",
        topic.path,
        "gate" if decision.outcome == "rejected" else "asleep",
        decision.reason,
        score=decision.tier2_score,
        channels=decision.channels,
    )


def _turns_str(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"


def _last_agent_text(history: Sequence[Said]) -> str:
    """The agent's last message, sanitized."""
    return next((sanitize(turn.text) for turn in reversed(history) if turn.role == "agent"), "")


def _is_inside_private_tag(message: str, history: Sequence[Said]) -> bool:
    """Whether the previous message of the same person left a private tag open: hosts split long messages."""
    last = history[-1] if history else None
    return (
        last is not None
        and last.role == "user"
        and last.text != message
        and redaction.is_left_open(last.text)
    )


def _tool_paths(history: Sequence[Said]) -> Iterator[str]:
    """File paths in tool calls since the user's last message."""
    paths: dict[str, None] = {}
    for turn in reversed(history):
        if turn.role == "user" or len(paths) >= _MAX_PATHS:
            break
        if turn.role == "tool":
            paths |= dict.fromkeys(_PATH_PATTERN.findall(sanitize(turn.text[:4000])[:2000]))
    yield from list(paths)[:_MAX_PATHS]
