"""Candidates for a prompt that are searched for: chunks of notes and conversations the session may see."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial

from tacit.config import ContextCompilerSettings
from tacit.context.home_view import HomeView
from tacit.context.loaded_files import PROJECTS_FILE
from tacit.context.model import Block
from tacit.context.ranking import MAX_HITS_WITH_NEIGHBOURS, RankedBlocks, RankingRules, rank
from tacit.context.repeat import Repeat
from tacit.context.request import text_digest
from tacit.context.situation import Situation
from tacit.context.stage import StageRunner, StepResult
from tacit.context.state import CompilerState, SearchKey
from tacit.diagnostics import Notice
from tacit.search.model import Found, Hit
from tacit.topics.model import Activation

_DEFAULT_CANDIDATES = 60  # chunks to ask the search for
_MAX_CANDIDATES = 400
_SHORT_TURN_TOKENS = 20  # tokens of a short turn
_MAX_TOPIC_KEYWORDS = 12  # keywords of active topics that are added to the query


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
