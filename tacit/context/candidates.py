"""Candidates for a prompt: the files of the session and active topics, loaded whole, and chunks of notes and
conversations that the session may see, which are searched for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tacit.config import ContextCompilerSettings
from tacit.context.home_view import HomeView
from tacit.context.injection_log import InjectionLog
from tacit.context.loaded_files import PROJECTS_FILE, FileLoader, LoadedBlock, block_label, identity_files
from tacit.context.model import Block, Dropped
from tacit.context.ranking import MAX_HITS_WITH_NEIGHBOURS, RankedBlocks, RankingRules, rank
from tacit.context.repeat import Repeat
from tacit.context.request import sanitize, text_digest
from tacit.context.situation import Situation
from tacit.context.stage import StageRunner, StepResult
from tacit.context.state import CompilerState, SearchKey
from tacit.diagnostics import Notice
from tacit.search.model import Found, Hit
from tacit.topics.model import Activation, Stimulus, Topic, TopicDecision
from tacit.topics.pipeline import Moment, WatcherPipeline, WatchResult
from tacit.transcripts.attribution import Utterance

_PATH_PATTERN = re.compile(r"[\w.@~+-]*(?:/[\w.@~+-]+)+|[\w@~+-]+\.[A-Za-z]\w{0,7}\b")
_MAX_PATHS = 100
_DEFAULT_CANDIDATES = 60  # chunks to ask the search for
_MAX_CANDIDATES = 400
_SHORT_TURN_TOKENS = 20  # tokens of a short turn
_MAX_TOPIC_KEYWORDS = 12  # keywords of active topics that are added to the query


@dataclass(frozen=True, slots=True)
class TopicSelection:
    activations: tuple[Activation, ...] = ()
    decisions: tuple[TopicDecision, ...] = ()  # for the gate log


NO_BLOCKS: tuple[Block, ...] = ()
NO_TOPICS = TopicSelection()


def load_fixed_files(
    situation: Situation, config: ContextCompilerSettings, loader: FileLoader
) -> StepResult[tuple[Block, ...]]:
    """Identity, and the files that the session always has."""
    names: Sequence[str] = ()
    if situation.is_runtime and "bootstrap" in situation.delivery_modes:  # the host loads its files itself
        config = replace(config, projects="retrieve")
    else:
        rule = situation.profile.rule
        names = identity_files(rule.files, config.profile, rule.audience)
    return _separate((*loader.identity(names), *loader.session(config, situation.now.date())))


def load_topics(loader: FileLoader, topics: TopicSelection) -> StepResult[tuple[Block, ...]]:
    return _separate(tuple(loader.topics(topics.activations)))


def _separate(loaded: Sequence[LoadedBlock]) -> StepResult[tuple[Block, ...]]:
    return StepResult(
        tuple(block for block in loaded if isinstance(block, Block)),
        dropped=tuple(block for block in loaded if isinstance(block, Dropped)),
    )


# ---------------------------------------------------------------- topics


def may_activate_topics(situation: Situation) -> bool:
    """Not if the session gets nothing, and not for tacit's own tools, whose calls are no turns of the
    conversation."""
    return not situation.blocked and situation.skip != "own-tool"


def activate_topics(
    situation: Situation, pipeline: WatcherPipeline, injections: InjectionLog, gate_deadline: float | None
) -> StepResult[TopicSelection]:
    """Topics that correct the agent's last message, and topics that the message activates."""
    request, moment = situation.request, Moment(situation.now.isoformat(), gate_deadline)

    def is_allowed(topic: Topic) -> bool:
        return not situation.listener.may_hear(topic.audience, topic.agents)

    corrected = pipeline.corrections(
        next((sanitize(turn.text) for turn in reversed(situation.history) if turn.role == "agent"), ""),
        moment,
        spoken=lambda: _recent_corrections(situation, injections),
        allowed=is_allowed,
    )
    watched = WatchResult()
    if not situation.skip or request.event or request.wake:
        paths = (*request.paths, *_tool_paths(situation.history))
        stimulus = Stimulus(situation.query, "input", paths, request.event)
        watched = pipeline.process(stimulus, moment, allowed=is_allowed, woken=request.wake)
    decisions = (*corrected.decisions, *watched.decisions)
    unknown = [name for name in request.wake if not pipeline.knows(name, is_allowed)]
    return StepResult(
        TopicSelection((*corrected.activations, *watched.activations), decisions),
        tuple(_topic_notices(situation, pipeline, decisions)),
        (*map(_drop_unknown, unknown), *_drop_inactive(pipeline, decisions)),
    )


def _topic_notices(
    situation: Situation, pipeline: WatcherPipeline, decisions: Iterable[TopicDecision]
) -> Iterator[Notice]:
    if situation.listener.audience == "owner":  # the problem text may reveal what the topic says
        for problem in pipeline.problems:
            yield Notice("topic", str(problem))
    for decision in decisions:
        if decision.by == "error":
            yield Notice("gate-error", f"{decision.topic_name} stayed asleep: {decision.reason}")


def _drop_unknown(name: str) -> Dropped:
    return Dropped(block_label("topic", name), "topics", "", "missing", "there is no such topic")


def _drop_inactive(pipeline: WatcherPipeline, decisions: Iterable[TopicDecision]) -> Iterator[Dropped]:
    for decision in decisions:
        if decision.outcome != "activated":
            yield Dropped(
                block_label("topic", decision.topic_name),
                "topics",
                pipeline.topic(decision.topic_name).path,
                "gate" if decision.outcome == "rejected" else "asleep",
                decision.reason,
                score=decision.tier2_score,
                channels=decision.channels,
            )


def _recent_corrections(situation: Situation, injections: InjectionLog) -> Mapping[str, int]:
    """How many turns ago each topic corrected the agent in this session."""
    labels = injections.labels(situation.key, situation.session_id, situation.since)
    return {label.partition(":")[2]: ago for label, ago in labels.items() if label.startswith("correction:")}


def _tool_paths(history: Sequence[Utterance]) -> list[str]:
    """File paths in tool calls since the user's last message."""
    paths: dict[str, None] = {}
    for turn in reversed(history):
        if turn.role == "user" or len(paths) >= _MAX_PATHS:
            break
        if turn.role == "tool":
            paths |= dict.fromkeys(_PATH_PATTERN.findall(sanitize(turn.text[:4000])[:2000]))
    return list(paths)[:_MAX_PATHS]


@dataclass(frozen=True, slots=True)
class Retrieval:
    blocks: tuple[Block, ...] = ()  # best first
    skip: str = ""  # why nothing was searched for
    has_claim: bool = False  # this turn claimed the only search of its session


def retrieve(
    situation: Situation,
    activations: Iterable[Activation],
    repeat: Repeat,
    state: CompilerState,
    view: HomeView,
    stages: StageRunner,
) -> Retrieval:
    if situation.skip:
        return Retrieval(skip=situation.skip)
    start = stages.run("mode", lambda: StepResult(_apply_mode(situation, repeat, state)), Retrieval())
    if start.skip:
        return start
    results = stages.run("search", lambda: _search(situation, activations, state, view, stages), None)
    ranked: RankedBlocks | None = None
    if results is not None:
        stages.note(map(_degradation_notice, results.degraded))
        hits = results.hits
        ranked = stages.run("rank", lambda: _rank(hits, situation, repeat, state, view), None, always=True)
    if ranked is None:  # a search that failed must not count as one
        return replace(start, skip="deadline" if "search" in stages.omitted else "search")
    return replace(start, blocks=ranked.blocks)


def _apply_mode(situation: Situation, repeat: Repeat, state: CompilerState) -> Retrieval:
    """If `inject.mode` is first, a session has one search."""
    inject, searches = state.config.inject, state.recent.searches
    if inject.mode != "first" or situation.is_dry_run or repeat.digests:
        return Retrieval()
    if not situation.is_runtime and situation.history:
        return Retrieval(skip="not-first")
    key, debounce = situation.key, inject.debounce_ms / 1000
    if situation.is_runtime and debounce and searches.get(key, debounce):
        return Retrieval(skip="debounced")
    if not situation.is_new and state.injections.count_searches(key, situation.session_id, situation.since):
        return Retrieval(skip="not-first")
    if not situation.is_runtime:
        return Retrieval()
    # Claim it before the search: the next message may arrive during it.
    has_claim = searches.claim(key, True, debounce)
    return Retrieval(skip="" if has_claim else "debounced", has_claim=has_claim)


# ---------------------------------------------------------------- the search


def _search(
    situation: Situation,
    activations: Iterable[Activation],
    state: CompilerState,
    view: HomeView,
    stages: StageRunner,
) -> StepResult[Found | None]:
    keywords = dict.fromkeys(word for activation in activations for word in activation.topic.keywords)
    query = "\n".join(filter(None, [situation.query, " ".join(list(keywords)[:_MAX_TOPIC_KEYWORDS])]))
    limit, kind, cache = _candidate_limit(situation), situation.profile.kind, state.recent
    generation = None if situation.is_dry_run else view.generation()
    day = situation.now.date().isoformat()
    key = SearchKey(kind.agent, kind.type, situation.scope, text_digest(query), limit, day, generation)
    if not situation.is_dry_run:
        cache.agents.put(situation.key, kind.agent)
    if generation is not None and (cached := cache.results.get(key, state.config.inject.cache_seconds)):
        return StepResult(cached, (Notice("cache", "The same question was searched for a moment ago."),))
    results = view.find(query, situation.scope, limit, situation.now, stages.deadline)
    if generation is not None and not results.degraded:
        cache.results.put(key, results)
    return StepResult(results)


def _candidate_limit(situation: Situation) -> int:
    """How many chunks to ask the search for: enough to fill an explicit budget."""
    if situation.request.budget is None or situation.is_runtime:
        return _DEFAULT_CANDIDATES
    return min(_MAX_CANDIDATES, max(2 * _DEFAULT_CANDIDATES, situation.budget // _SHORT_TURN_TOKENS))


def _degradation_notice(warning: str) -> Notice:
    return Notice(warning.partition(":")[0] if ":" in warning[:12] else "index", warning)


# ---------------------------------------------------------------- ranking


def _rank(
    hits: tuple[Hit, ...], situation: Situation, repeat: Repeat, state: CompilerState, view: HomeView
) -> StepResult[RankedBlocks | None]:
    inject, compiler = state.config.inject, state.config.context_compiler
    rules = RankingRules(
        situation.query,
        inject.confidence_gate,
        inject.strong,
        compiler.half_life_days,
        situation.now.date(),
        situation.is_technical,
    )
    best_turns = [(hit.path, hit.lines[0]) for hit in hits[:MAX_HITS_WITH_NEIGHBOURS] if hit.turn]
    ranked = rank(
        hits,
        rules,
        near=view.around(best_turns, 0, 1) if best_turns else {},  # whole turns, each with the next
        injected=_injected_digests(situation, repeat, state),
        exclusion_of=partial(_exclusion_reason, compiler, _files_of_host(situation, state, view)),
    )
    return StepResult(ranked, dropped=ranked.dropped)


def _injected_digests(situation: Situation, repeat: Repeat, state: CompilerState) -> Collection[str]:
    """Digests of what the model sees from earlier turns. Empty if the host does not keep our text."""
    if situation.is_dry_run or not situation.request.keeps_text or situation.is_new:
        return ()
    injected = state.injections.digests(situation.key, situation.session_id, situation.since)
    repeat_after = state.config.inject.repeat_after_turns
    return [
        digest
        for digest, ago in injected.items()
        if digest not in repeat.digests and (repeat_after is None or ago <= repeat_after)
    ]


def _files_of_host(situation: Situation, state: CompilerState, view: HomeView) -> Collection[str]:
    """Files that the host loaded whole when the session began: their chunks would be there twice."""
    if not situation.is_runtime:
        return ()
    files = state.injections.bootstrap_files(situation.key, situation.since)
    return {view.path_of(file) if posixpath.isabs(file) else file for file in files}


def _exclusion_reason(compiler: ContextCompilerSettings, files_of_host: Collection[str], hit: Hit) -> str:
    if hit.turn and hit.speaker == "system":
        return "it is what a system said to an agent"
    if hit.path in files_of_host:
        return "the host loads it whole"
    settings = {"memory": compiler.memory_md, "journal": compiler.journal}
    is_never = settings.get(hit.category) == "never"
    if is_never or (hit.path == PROJECTS_FILE and compiler.projects == "never"):
        return "the config says never"
    return ""
