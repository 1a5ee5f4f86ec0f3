"""The pre-compaction flush: turns that no longer fit into the history are offered for extraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tacit.context.home_view import HomeView
from tacit.context.request import sanitize
from tacit.context.situation import Situation
from tacit.context.stage import StepResult
from tacit.context.state import CompilerState
from tacit.diagnostics import Notice
from tacit.learn import window_proposals
from tacit.learn.window_proposals import extract
from tacit.transcripts.attribution import Utterance


def flush_turns(
    situation: Situation, left: Sequence[Utterance], state: CompilerState, view: HomeView
) -> StepResult[None]:
    """Extract proposals from turns that leave the window. This writes no note."""
    fresh = state.turns_to_flush(situation.session_id, left)
    extraction = extract(
        [replace(turn, text=sanitize(turn.text)) for turn in fresh],
        session_key=situation.key,
        session_id=situation.session_id,
        made_at=situation.now,
        projects=view.projects(),
        users="owner" if situation.listener.audience == "owner" else "other",
    )
    if not fresh:
        return StepResult(None)
    number = "1 turn" if len(fresh) == 1 else f"{len(fresh)} turns"
    if extraction is None:
        return StepResult(None, (Notice("flush-ok", f"{number} left the window; nothing in them to keep."),))
    if problem := window_proposals.offer(state.home, extraction):
        return StepResult(None, (Notice("flush-failed", problem),))
    text = f"{number} left the window; {len(extraction.changes)} lines were proposed."
    return StepResult(None, (Notice("flushed", text),))
