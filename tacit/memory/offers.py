"""Lines that sessions of others asked to be remembered become drafts.

What a turn offered when it left the window is not taken up: the whole conversation is learned from when it
ends, with better means, and the offer goes then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.lifecycle.apply import Line
from tacit.memory.policies import policy_of, reviewed
from tacit.model.changes import Change, ChangeSet, lowest
from tacit.model.review import Draft
from tacit.store import files, proposals
from tacit.store.home import REVIEWED
from tacit.text import marks
from tacit.text.proposals import Addition, body_of

if TYPE_CHECKING:
    from tacit.memory.memory import Memory

_REMEMBERED = "remember/"


def take_offers(memory: Memory) -> tuple[str, ...]:
    """Names of the drafts."""
    kept: list[Draft] = []
    with files.locked(memory.home.lock):
        for offer in proposals.waiting(memory.home):
            if offer.extractor.startswith(_REMEMBERED):
                kept += memory.reviews.propose([_draft(memory, offer)])
                proposals.take(memory.home, offer)
            elif memory.is_ended(offer.session_id, offer.session_key):
                proposals.take(memory.home, offer)
        if kept and memory.config.git.auto_commit:
            paths = [*map(memory.reviews.path_of, kept), REVIEWED]
            memory.commit_paths("maintenance: drafts of what was asked to be remembered\n", paths)
    return tuple(draft.id for draft in kept)


def _draft(memory: Memory, offer: ChangeSet) -> Draft:
    changes = [replace(change, extractor=change.extractor or offer.extractor) for change in offer.changes]
    return Draft(
        id="",
        form="lines",
        category="remembered",
        policy=reviewed(policy_of(memory.config, changes[0])),
        reason=offer.reason,
        made=memory.moment().isoformat(timespec="seconds"),
        trust=lowest(change.trust for change in changes),
        body=body_of(Addition(change.path, change.section, _line(change).text) for change in changes),
    )


def _line(change: Change) -> Line:
    """With a mark where it is known from which conversation it is."""
    if not change.source.transcript:
        return Line(change.section, change.line)
    source = marks.source_of(change.source.transcript, change.source.number or None)
    return Line(change.section, marks.marked(change.line, change.extractor, [source], change.trust))
