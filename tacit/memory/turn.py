"""One turn, step by step. Whatever goes wrong, the turn goes on with less, and the receipt says why.

    profile      session key and sender → who listens, and the rule for such sessions
    guard        is there anything to look for, and is it not ourselves who ask?
    again        is it the same turn once more, and nothing changed since? Then the same answer
    fixed        identity, and what the session always has
    watch        topics that the message wakes, and corrections of what the agent said last
    search       passages, in what this session may see
    rank         which of them pass, in which order
    assemble     blocks and budget → text
    flush        what leaves the window is offered to the lifecycle first
    receipt      kept, dropped, why, how long

In the prompt lane that is the whole prompt. In the runtime lane it is only what the host lacks: `standing` is
what stays the same from turn to turn, `text` is for this turn, and where there is nothing both are empty.

A turn that nobody waits for any more, because it was late and its host was answered without it, was given to
nobody: it leaves a receipt that says so, and nothing that counts.

Nothing here writes durable memory: receipts, the gate log and proposals are all in .tacit. Private text and
secrets reach none of them, nor a model that is asked about topics.
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

from tacit.context.account import sections, slots
from tacit.context.blocks import Block, room
from tacit.context.fit import FULL, Appetite, Fitted, Wanted
from tacit.context.fit import NEAR as NEAR_BEST
from tacit.context.history import normal
from tacit.context.rank import NEAR, Ranked, Rules, rank
from tacit.context.render import SYSTEM, assemble
from tacit.context.shorten import middle_out
from tacit.context.sources import PROJECTS, Listener, Loaded, Sources, identity_files, label
from tacit.index.protocol import Place, Stored
from tacit.lifecycle.extract import extract
from tacit.memory.carried import Carried
from tacit.memory.lanes import write_lanes
from tacit.memory.recent import Answer, Question
from tacit.memory.request import Request, digest, keepable, sane, shown
from tacit.memory.steps import Steps
from tacit.memory.views import View
from tacit.model.changes import Said
from tacit.model.context import Compiled, Dropped, Notice, Quote, Receipt
from tacit.model.search import CATEGORIES, Found, Hit, Scope
from tacit.model.topics import Activation, Decision, Stimulus, Topic
from tacit.sessions.agents import excluded_agent
from tacit.sessions.guard import Guarded, is_own_tool, look
from tacit.store import proposals, receipts
from tacit.store.given import UNDECIDED, Before
from tacit.store.mirrors import empty_mirror
from tacit.text import redact, tokens
from tacit.text.fence import visible
from tacit.watch.pipeline import Moment, Watched

_BESIDE = 1 / 3  # of the gate: what a passage beside a better one needs
_GATE_SHARE = 0.5  # of the time: a slow gate must not cost the turn what the notes say
_RETRIEVED = tuple(category for category in CATEGORIES if category != "topic")  # these wake by their triggers
_CANDIDATES = 60  # passages that are asked for
_MOST_CANDIDATES = 400
_SHORT = 20  # tokens of a short turn
_TOPIC_WORDS = 12  # keywords of awake topics that are looked for besides
_CACHED = 20_000  # characters of a text whose tokens are remembered
_PATH = re.compile(r"[\w.@~+-]*(?:/[\w.@~+-]+)+|[\w@~+-]+\.[A-Za-z]\w{0,7}\b")
_MOST_PATHS = 100
_UNMADE = ("search", "deadline")  # what a host that asks again may have better
_ASLEEP: list[Activation] = []
_UNTOLD: tuple[Notice, ...] = ()


class ContextCompiler(Carried):
    """Compiles the turns of one home."""

    def compile(self, request: Request, view: View, now: datetime) -> Compiled:
        return _Turn(self, sane(request), view, now).compiled()


class Assembled(NamedTuple):
    """What was made for the lane."""

    text: str
    standing: str
    tokens: int
    fitted: tuple[Fitted, ...]  # of the standing part, and of the rest

    @property
    def left(self) -> Sequence[Said]:
        """Turns that no longer fit."""
        return [turn for fitted in self.fitted for turn in fitted.history.left]


_NOTHING = Assembled("", "", 0, ())


class _Turn:
    """One turn while it is compiled."""

    def __init__(self, carried: Carried, request: Request, view: View, now: datetime) -> None:
        self.carried, self.request, self.view, self.now = carried, request, view, now
        self.config = carried.config
        self.message = request.message
        self.asked = keepable(request.message)  # what may leave the turn, and is looked for
        self.steps = Steps(request.seconds)
        self.began = time.time_ns()
        self.history: list[Said] = []
        self.is_new = False  # the session has just begun
        self.skipped = ""
        self.state: Hashable = None  # of what can be found, as the view has it
        self.retried: Collection[str] = ()  # digests of what this very turn was given before
        self.claimed = False  # the search of the first-message mode is ours
        self.profile = carried.profile_of(
            request.session_key,
            agent=request.agent,
            sender=request.sender,
            trigger=request.trigger,
            trial=self._is_trial,
        )
        self.kind, self.rule = self.profile.kind, self.profile.rule
        self.steps.notices += self.profile.notices
        self.listener = Listener(self.rule.audience, self.kind.agent)
        self.sources = Sources(view.read, self.listener, view.agents_of)
        self.dropped: list[Dropped] = []
        self.decisions: list[Decision] = []
        self._told = 0  # notices that are in the receipt

    def compiled(self) -> Compiled:
        steps, off = self.steps, self._off()
        history = self.history = steps.run("history", lambda: normal(self.request.history), [])
        if _is_in_private(self.message, history):
            self.asked = keepable(f"<private>{self.message}")
        guarded = steps.run("guard", self._guarded, Guarded())
        again = None if off else steps.run("again", self._again, None)
        if again is not None:
            return again
        fixed = () if off else self._blocks("fixed", self._fixed)
        self.skipped = off or self._own() or guarded.skip
        awake = steps.run("watch", lambda: self._awake(history), _ASLEEP) if self._watches else []
        topics = self._blocks("topics", lambda: self.sources.topics(awake))
        knowledge = self._knowledge(awake, guarded)
        wanted = Wanted(self.message, SYSTEM, fixed, topics, knowledge, tuple(history))
        made = steps.run("assemble", lambda: self._assembled(wanted), _NOTHING, always=True)
        session = steps.run("session", lambda: self._session_id, self.request.session_id, always=True)
        if made.left and not self._is_trial:
            steps.run("flush", lambda: self._flush(session, made.left), None, always=True)
        return self._finished(session, made)

    def _finished(self, session: str, made: Assembled) -> Compiled:
        if not made.text and not self._is_runtime:  # nothing could be assembled: the message at least
            text = middle_out(visible(self.message), self.budget, count).text
            made = made._replace(text=text, tokens=count(text))
        receipt = self._receipt(session, made)
        quotes = tuple(_given(made.fitted))
        compiled = Compiled(
            made.text, made.tokens, receipt.sections, receipt.dropped, receipt, made.standing, quotes
        )
        if self._is_runtime and not self._is_trial and not self.steps.is_answered():
            compiled = self._in_lanes(compiled)
        is_late = not self._is_trial and self.steps.is_answered()  # once more: files may take their time
        if is_late:
            compiled = self._for_nobody(compiled)
        if not self.view.past and not self.request.quiet:
            self.carried.keep(compiled.receipt, self.decisions)
        if self.claimed and (is_late or self.skipped):
            self.carried.recent.searched.drop(lambda key: key == self.request.session_key)
        if self._is_trial:
            return compiled
        told = receipts.for_host(compiled.receipt)
        compiled = replace(compiled, receipt=told, dropped=told.dropped)
        if self._is_runtime and not is_late and self.skipped not in _UNMADE:
            answer = Answer(self._digest, self.state, compiled, quotes)
            self.carried.recent.answers.put(self.request.session_key, answer)
        return compiled

    def _for_nobody(self, compiled: Compiled) -> Compiled:
        """Who asked was answered before it was done."""
        if self._is_runtime:
            directory = self.config.sessions.directory
            empty_mirror(self.carried.home, directory, self.request.session_key, self.began)
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

    def _in_lanes(self, compiled: Compiled) -> Compiled:
        """Written where a lane wants a copy; and nothing for the host where its own lane is off."""
        told = self.steps.run("lanes", lambda: self._lanes_written(compiled), _UNTOLD, always=True)
        if "runtime" not in self.lanes:
            self._notice("lane", f"{self.profile.won} has no runtime lane.")
            compiled = replace(compiled, text="", standing="", tokens=0, sections=(), given=())
        notices = (*compiled.receipt.notices, *told, *self.steps.notices[self._told :])
        receipt = replace(
            compiled.receipt,
            notices=notices,
            sections=compiled.sections,
            tokens=compiled.tokens,
            characters=len(compiled.text) + len(compiled.standing),
        )
        return replace(compiled, receipt=receipt)

    def _lanes_written(self, compiled: Compiled) -> tuple[Notice, ...]:
        key, session = self.request.session_key, compiled.receipt.session_id
        return write_lanes(
            self.carried.home, self.config, self.profile, compiled, self.asked, self.now,
            is_first=self.is_new,
            names=self.carried.given.names(key, session, self._since),
            began=self.began,
        )  # fmt: skip

    # ------------------------------------------------------------ what the session is

    @property
    def _is_trial(self) -> bool:
        return self.request.trial or bool(self.view.past)

    @property
    def _is_runtime(self) -> bool:
        return self.request.lane == "runtime"

    @property
    def lanes(self) -> Sequence[str]:
        return self.rule.lanes or ()

    def _off(self) -> str:
        inject = self.config.inject
        if not inject.enabled:
            self._notice("disabled", "inject.enabled is false, so turns get no context.")
            return "disabled"
        if agent := excluded_agent(self.profile.agents, inject.exclude_agents):
            self._notice("excluded", f"The agent {agent} is in inject.exclude_agents.")
            return "excluded"
        if self._is_runtime and not {"runtime", "file", "daily"}.intersection(self.lanes):
            return "lane"
        return ""

    def _own(self) -> str:
        """Whether it is ourselves who ask: a tool of ours, or a message that is only what we gave."""
        if is_own_tool(self.request.tool):
            return "own-tool"
        return "own-block" if self.message.strip() and not self.asked.strip() else ""

    @cached_property
    def _digest(self) -> str:
        """Equal for the same turn asked once more."""
        request = self.request
        said = [(turn.role, turn.text) for turn in self.history]
        parts = (
            self.asked, said, request.budget, request.wake, request.paths, request.event, self.kind,
            request.session_id, request.trigger, request.tool,
        )  # fmt: skip
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _again(self) -> Compiled | None:
        """The answer to the very same turn. With the conversation given, it is the same turn for as long as
        answers are kept; without, a person may say the same twice, but hardly within the debounce."""
        inject = self.config.inject
        if not self._is_runtime or self._is_trial:
            return None
        self.state = self.view.generation()
        seconds = inject.cache_seconds if self.history else inject.debounce_ms / 1000
        before = self.carried.recent.answers.get(self.request.session_key, seconds)
        if before is None or before.turn != self._digest:
            return None
        if self.state is None or before.state != self.state:
            # It is made anew, and may have again what it still may see.
            self.retried = [part.digest for part in before.compiled.sections if part.digest]
            return None
        self._lanes_written(replace(before.compiled, given=before.quotes))  # a turn between may have failed
        return before.compiled

    def _asked_before(self) -> str:
        """In the first-message mode, whether this session had its search."""
        if self.config.inject.mode != "first" or self._is_trial or self.retried:
            return ""
        if not self._is_runtime and self.history:
            return "not-first"
        key, debounce = self.request.session_key, self.config.inject.debounce_ms / 1000
        searched = self.carried.recent.searched
        if self._is_runtime and debounce and searched.get(key, debounce):
            return "debounced"
        session = self._session_id
        if not self.is_new and self.carried.given.searches(key, session, self._since):
            return "not-first"
        # Before the search: the next message may come while it is at it.
        self.claimed = self._is_runtime and searched.claim(key, True, debounce)
        return "debounced" if self._is_runtime and not self.claimed else ""

    def _scope(self) -> Scope:
        scope = self.profile.scope
        without = (self.request.transcript,) if self.request.transcript else ()
        return replace(scope, archived=False, without=without, categories=_RETRIEVED)

    def _fixed(self) -> Iterator[Loaded]:
        compiler = self.config.context_compiler
        if self._is_runtime and "bootstrap" in self.lanes:  # the host loads its files by that lane
            compiler = replace(compiler, projects="retrieve")
        else:
            yield from self.sources.identity(
                identity_files(self.rule.files, compiler.profile, self.rule.audience)
            )
        yield from self.sources.session(compiler, self.now.date())

    def _guarded(self) -> Guarded:
        names = self.view.names(self._scope(), self.steps.deadline)  # files that changed are looked at here
        if self.request.trigger == "heartbeat" or self.kind.form == "heartbeat":
            return Guarded("heartbeat", "the host says that it is a heartbeat")
        return look(self.asked, names)

    @cached_property
    def _session_id(self) -> str:
        """Given, or that of the turn before as long as it goes on: a turn without history after one that had
        some begins a new session, and so does one after a long pause."""
        key, name = self.request.session_key, self.request.session_id
        if self._is_trial or (name and not self.request.joins):
            return name
        if name:
            self.carried.join(key, name, self._since, self.now, self._goes_on)
            return name
        name, self.is_new = self.carried.session_of(
            key, self._since, self.now, self._goes_on, had_history=bool(self.history)
        )
        return name

    def _goes_on(self, last: Before) -> bool:
        """What a host says by itself, without the conversation, does not begin another one."""
        pause = self.now - datetime.fromisoformat(last.at)
        idle = timedelta(hours=self.config.capture.idle_seal_hours)
        return pause < idle and (bool(self.history) or not last.had_history or self.skipped in UNDECIDED)

    @property
    def _since(self) -> datetime:
        """Receipts from before are of no session that could still go on."""
        return self.now - timedelta(hours=max(48, self.config.capture.idle_seal_hours))

    # ------------------------------------------------------------ topics

    @property
    def _watches(self) -> bool:
        """Whether topics may wake at all: not for who gets nothing, nor for a tool of ours, which is no turn
        of the conversation."""
        return self.skipped not in ("disabled", "excluded", "lane", "own-tool")

    def _awake(self, history: Sequence[Said]) -> list[Activation]:
        pipeline = self.carried.pipeline(self.view)
        if self.rule.audience == "owner":  # what is wrong with a topic may tell what is in it
            for problem in pipeline.problems:
                self._notice("topic", str(problem))
        for name in self.request.wake:
            if not pipeline.knows(name, self._allows):
                self.dropped.append(
                    Dropped(label("topic", name), "topics", "", "missing", "there is no such topic")
                )
        moment = Moment(self.now.isoformat(), self.steps.share(_GATE_SHARE))
        corrected = pipeline.corrections(
            _last_said(history), moment, spoken=self._spoken, allowed=self._allows
        )
        watched = Watched()
        if not self.skipped or self.request.event or self.request.wake:
            paths = (*self.request.paths, *_paths(history))
            stimulus = Stimulus(self.asked, "input", paths, self.request.event)
            watched = pipeline.process(stimulus, moment, allowed=self._allows, woken=self.request.wake)
        self.decisions += [*corrected.decisions, *watched.decisions]
        for one in self.decisions:
            if one.by == "error":
                self._notice("gate-error", f"{one.topic_name} stayed asleep: {one.reason}")
        self.dropped += [
            _asleep(pipeline.topic(one.topic_name), one)
            for one in self.decisions
            if one.outcome != "activated"
        ]
        return [*corrected.activations, *watched.activations]

    def _spoken(self) -> dict[str, int]:
        """How many turns ago each topic corrected the agent in this session."""
        labels = self.carried.given.labels(self.request.session_key, self._session_id, self._since)
        return {
            name: ago
            for label, ago in labels.items()
            for kind, _, name in [label.partition(":")]
            if kind == "correction"
        }

    def _allows(self, topic: Topic) -> bool:
        return not self.listener.may_hear(topic.audience, topic.agents)

    # ------------------------------------------------------------ knowledge

    def _knowledge(self, awake: Sequence[Activation], guarded: Guarded) -> tuple[Block, ...]:
        self.skipped = self.skipped or self.steps.run("mode", self._asked_before, "")
        if self.skipped:
            return ()
        ranked = self._ranked(awake, guarded)
        if ranked is None:  # not searched, so it must not count as a search either
            self.skipped = "deadline" if "search" in self.steps.untimely else "search"
        return ranked.blocks if ranked else ()

    def _ranked(self, awake: Sequence[Activation], guarded: Guarded) -> Ranked | None:
        found = self.steps.run("search", lambda: self._found(awake), None)
        if found is None:
            return None
        for note in found.degraded:
            self._notice(note.partition(":")[0] if ":" in note[:12] else "index", note)
        ranked = self.steps.run("rank", lambda: self._passing(found, guarded), None, always=True)
        self.dropped += ranked.dropped if ranked else ()
        return ranked

    def _found(self, awake: Sequence[Activation]) -> Found:
        words = dict.fromkeys(word for one in awake for word in one.topic.keywords)
        query = "\n".join(filter(None, [self.asked, " ".join(list(words)[:_TOPIC_WORDS])]))
        scope, limit = self._scope(), self._candidates
        state = None if self._is_trial else self.view.generation()
        question = Question(
            self.kind.agent, self.kind.type, scope, digest(query), limit, self.now.date().isoformat(), state
        )
        if not self._is_trial:
            self.carried.recent.agents.put(self.request.session_key, self.kind.agent)
        kept = self.carried.recent.found
        if state is not None and (before := kept.get(question, self.config.inject.cache_seconds)):
            self._notice("cache", "The same question was searched for a moment ago.")
            return before
        found = self.view.find(query, scope, limit, self.now, self.steps.deadline)
        if state is not None and not found.degraded:
            kept.put(question, found)
        return found

    @property
    def _candidates(self) -> int:
        """How many passages to ask for: enough to fill a budget that is there to be filled."""
        if self.request.budget is None or self._is_runtime:
            return _CANDIDATES
        return min(_MOST_CANDIDATES, max(2 * _CANDIDATES, self.budget // _SHORT))

    def _passing(self, found: Found, guarded: Guarded) -> Ranked:
        inject = self.config.inject
        rules = Rules(
            self.asked,
            inject.confidence_gate,
            inject.strong,
            self.config.context_compiler.half_life_days,
            self.now.date(),
            guarded.technical,
        )
        return rank(
            found.hits,
            rules,
            near=self._near(found.hits),
            given=self._already_given(),
            excluded=self._excluded,
        )

    def _near(self, hits: Sequence[Hit]) -> Mapping[Place, Sequence[Stored]]:
        """The best turns as a whole, each with the next one."""
        turns = [(hit.path, hit.lines[0]) for hit in hits[:NEAR] if hit.turn]
        return self.view.around(turns, 0, 1) if turns else {}

    def _already_given(self) -> Collection[str]:
        """What the model has in view from turns before. A host that keeps no text of ours has none of it."""
        if self._is_trial or not self.request.keeps_text:
            return ()
        session = self._session_id
        if self.is_new:
            return ()
        before = self.carried.given.seen(self.request.session_key, session, self._since)
        after = self.config.inject.repeat_after_turns
        return [
            digest
            for digest, ago in before.items()
            if digest not in self.retried and (after is None or ago <= after)
        ]

    def _excluded(self, hit: Hit) -> str:
        compiler = self.config.context_compiler
        if hit.turn and hit.speaker == "system":
            return "it is what a system said to an agent"
        if hit.path in self._bootstrapped:
            return "the host loads it whole"
        settings = {"memory": compiler.memory_md, "journal": compiler.journal}
        if settings.get(hit.category) == "never" or (hit.path == PROJECTS and compiler.projects == "never"):
            return "the config says never"
        return ""

    @cached_property
    def _bootstrapped(self) -> Collection[str]:
        """Files that the host loaded whole when the session began: their passages would be there twice."""
        if not self._is_runtime:
            return ()
        loaded = self.carried.given.loaded(self.request.session_key, self._since)
        return {self.view.path_of(file) if posixpath.isabs(file) else file for file in loaded}

    # ------------------------------------------------------------ the prompt

    @property
    def budget(self) -> int:
        compiler = self.config.context_compiler
        given = (self.request.budget, self.rule.token_budget, compiler.token_budget)
        return max(0, next(tokens for tokens in given if tokens is not None))

    def _assembled(self, wanted: Wanted) -> Assembled:
        if not self._is_runtime:
            text, used, fitted = self._made(wanted, self.budget)
            return Assembled(text, "", used, (fitted,))
        standing, stood, first = self._made(
            replace(wanted, message="", topics=(), knowledge=(), history=()), self.budget
        )
        said = "\n".join(turn.text for turn in wanted.history)
        passing = replace(wanted, message="", fixed=(), history=(), asked=self.asked, said=said)
        text, used, second = self._made(passing, self.budget - stood)
        return Assembled(text, standing, stood + used, (first, second))

    def _made(self, wanted: Wanted, budget: int) -> tuple[str, int, Fitted]:
        compiler = self.config.context_compiler
        return assemble(wanted, partial(room, compiler), budget, count, self._appetite)

    @property
    def _appetite(self) -> Appetite:
        """A budget that somebody named is there to be used: for the conversation, and where there is none for
        knowledge. Without one every passage must be worth its tokens."""
        compiler = self.config.context_compiler
        least = self.config.inject.confidence_gate * _BESIDE
        if self.request.budget is None or self._is_runtime:
            return Appetite(least, NEAR_BEST, compiler.max_injected_chars, compiler.max_snippet_chars)
        return Appetite(least, NEAR_BEST) if self.history else FULL

    def _blocks(self, step: str, load: Callable[[], Iterator[Loaded]]) -> tuple[Block, ...]:
        loaded: list[Loaded] = self.steps.run(step, lambda: list(load()), [], always=True)
        self.dropped += [one for one in loaded if isinstance(one, Dropped)]
        return tuple(one for one in loaded if isinstance(one, Block))

    # ------------------------------------------------------------ what is kept of it

    def _flush(self, session: str, left: Sequence[Said]) -> None:
        """Offer what leaves the window to the lifecycle; nothing is written to a note."""
        fresh = [replace(turn, text=keepable(turn.text)) for turn in self.carried.newly_left(session, left)]
        found = extract(
            fresh,
            session_key=self.request.session_key,
            session_id=session,
            made_at=self.now,
            projects=self.view.projects(),
            users="owner" if self.rule.audience == "owner" else "other",
        )
        code, told = ("flush-ok", f"{_turns(len(fresh))} left the window; nothing in them to keep.")
        if found is not None:
            trouble = proposals.offer(self.carried.home, found)
            code = "flush-failed" if trouble else "flushed"
            told = (
                trouble or f"{_turns(len(fresh))} left the window; {len(found.changes)} lines were proposed."
            )
        if fresh:
            self._notice(code, told)

    def _notice(self, code: str, text: str) -> None:
        self.steps.notices.append(Notice(code, text))

    def _receipt(self, session: str, made: Assembled) -> Receipt:
        found = tuple(section for fitted in made.fitted for section in sections(fitted, count))
        dropped = [one for fitted in made.fitted for one in fitted.dropped]
        notices = [one for fitted in made.fitted for one in fitted.notices]
        self._told = len(self.steps.notices)
        return Receipt(
            id=receipts.new_id(self.now, secrets.randbits(20)),
            at=self.now.isoformat(),
            session_key=self.request.session_key,
            session_id=session,
            session_type=self.kind.type,
            agent=self.kind.agent,
            audience=self.rule.audience,
            message_hash=digest(self.asked),
            message=shown(self.asked),
            budget=self.budget,
            tokens=made.tokens,
            characters=len(made.text) + len(made.standing),
            sections=found,
            dropped=(*self.dropped, *dropped),
            skipped=self.skipped,
            notices=(*self.steps.notices, *notices),
            timings_ms=self.steps.timings,
            slots=slots(found, room(self.config.context_compiler, self.budget)),
            had_history=bool(self.history),
            trial=self.request.trial,
            past=self.view.past,
            lane=self.request.lane,
            rule=self.profile.won,
        )


def _given(fitted: Sequence[Fitted]) -> Iterator[Quote]:
    for one in fitted:
        for kept in one.kept:
            if kept.block.slot == "knowledge":
                yield Quote(kept.text, kept.block.source, kept.block.day, kept.block.score or 0.0)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> int:
    return tokens.count(text)


def count(text: str) -> int:
    """Tokens. Identity, topics and passages come again and again."""
    return _remembered(text) if len(text) <= _CACHED else tokens.count(text)


def _asleep(topic: Topic, decision: Decision) -> Dropped:
    return Dropped(
        label("topic", topic.name),
        "topics",
        topic.path,
        "gate" if decision.outcome == "rejected" else "asleep",
        decision.reason,
        score=decision.tier2_score,
        channels=decision.channels,
    )


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"


def _last_said(history: Sequence[Said]) -> str:
    """What the agent said last."""
    return next((keepable(turn.text) for turn in reversed(history) if turn.role == "agent"), "")


def _is_in_private(message: str, history: Sequence[Said]) -> bool:
    """Whether the message before it, of the same person, left a private tag open: hosts cut long ones."""
    last = history[-1] if history else None
    return (
        last is not None and last.role == "user" and last.text != message and redact.is_left_open(last.text)
    )


def _paths(history: Sequence[Said]) -> Iterator[str]:
    """Of files that tools were called with since the user spoke last."""
    found: dict[str, None] = {}
    for turn in reversed(history):
        if turn.role == "user" or len(found) >= _MOST_PATHS:
            break
        if turn.role == "tool":
            found |= dict.fromkeys(_PATH.findall(keepable(turn.text[:4000])[:2000]))
    yield from list(found)[:_MOST_PATHS]
