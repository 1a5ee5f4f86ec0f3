"""A host that repeats a turn, such as for a retry, gets the same answer again."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from hashlib import sha256

from tacit.context.delivery.modes import TurnCopy, write_delivery_files
from tacit.context.home_view import HomeView
from tacit.context.model import Compiled, Quote
from tacit.context.situation import Situation
from tacit.context.state import CachedAnswer, CompilerState
from tacit.diagnostics import Notice

_RETRYABLE_SKIPS = ("search", "deadline")  # a host that asks again may get a better answer


@dataclass(frozen=True, slots=True)
class Repeat:
    """What the last answer of the session means for this turn."""

    answer: Compiled | None = None  # it answers this turn too
    digests: Collection[str] = ()  # of chunks in an outdated answer to this turn: they may be injected again
    generation: Hashable = None  # of the index and the topics


NO_REPEAT = Repeat()


def find_repeat(situation: Situation, state: CompilerState, view: HomeView, began_ns: int) -> Repeat:
    """The cached answer if the host repeats this turn. If the host passes the history, equal requests are
    the same turn as long as answers are cached; without it, only within the debounce, since a person may
    say the same thing twice."""
    inject = state.config.inject
    if not situation.is_runtime or situation.is_dry_run:
        return NO_REPEAT
    generation = view.generation()
    seconds = inject.cache_seconds if situation.history else inject.debounce_ms / 1000
    cached = state.recent.answers.get(situation.key, seconds)
    if cached is None or cached.turn != _digest_turn(situation):
        return Repeat(generation=generation)
    if generation is None or cached.state != generation:
        digests = [section.digest for section in cached.compiled.sections if section.digest]
        return Repeat(digests=digests, generation=generation)
    # A failed turn in between may have cleared the copies.
    write_copies(situation, cached.compiled.receipt.session_id, cached.quotes, state, began_ns)
    return Repeat(cached.compiled, generation=generation)


def cache_answer(
    compiled: Compiled,
    quotes: tuple[Quote, ...],
    situation: Situation,
    generation: Hashable,
    state: CompilerState,
) -> None:
    """`quotes`: for the session's files; the host may get nothing."""
    if situation.is_runtime and compiled.receipt.skipped not in _RETRYABLE_SKIPS:
        answer = CachedAnswer(_digest_turn(situation), generation, compiled, quotes)
        state.recent.answers.put(situation.key, answer)


def _digest_turn(situation: Situation) -> str:
    """Equal for the same turn asked again."""
    request = situation.request
    turns = [(turn.role, turn.text) for turn in situation.history]
    parts = (
        situation.query, turns, request.budget, request.wake, request.paths, request.event,
        situation.profile.kind, request.session_id, request.trigger, request.tool,
    )  # fmt: skip
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def write_copies(
    situation: Situation, session_id: str, quotes: tuple[Quote, ...], state: CompilerState, began_ns: int
) -> tuple[Notice, ...]:
    """Write the files that the session's delivery modes ask for."""
    session_ids = state.injections.session_ids(situation.key, session_id, situation.since)
    copy = TurnCopy(quotes, situation.query, situation.now, session_ids, situation.is_new, began_ns)
    return write_delivery_files(state.home, state.config, situation.profile, copy)
