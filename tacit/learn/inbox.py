"""Turn lines that were asked to be remembered in other people's sessions into drafts.

Proposals of turns that left the window are only discarded: the whole conversation is learned from when it
ends, by better extractors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.home import files
from tacit.home.layout import REVIEWED
from tacit.learn import window_proposals
from tacit.learn.model import Change, ChangeSet, lowest
from tacit.learn.note_lines import NoteLine
from tacit.provenance import comment
from tacit.review.format import Addition, render_additions
from tacit.review.model import Draft
from tacit.review.policies import policy_for_change, waiting_policy

if TYPE_CHECKING:
    from tacit.memory import Memory

_REMEMBER_PREFIX = "remember/"


def take_offers(memory: Memory) -> tuple[str, ...]:
    """Returns the names of the drafts."""
    proposed: list[Draft] = []
    with files.hold_lock(memory.home.lock):
        for offer in window_proposals.list_waiting(memory.home):
            if offer.extractor.startswith(_REMEMBER_PREFIX):
                proposed += memory.reviews.propose([_make_draft(memory, offer)])
                window_proposals.remove(memory.home, offer)
            elif memory.is_ended(offer.session_id, offer.session_key):
                window_proposals.remove(memory.home, offer)
        if proposed and memory.config.git.auto_commit:
            paths = [*map(memory.reviews.path_of, proposed), REVIEWED]
            memory.commit_paths("maintenance: drafts of what was asked to be remembered\n", paths)
    return tuple(draft.id for draft in proposed)


def _make_draft(memory: Memory, offer: ChangeSet) -> Draft:
    changes = [replace(change, extractor=change.extractor or offer.extractor) for change in offer.changes]
    return Draft(
        id="",
        form="lines",
        category="remembered",
        policy=waiting_policy(policy_for_change(memory.config, changes[0])),
        reason=offer.reason,
        made=memory.moment().isoformat(timespec="seconds"),
        trust=lowest(change.trust for change in changes),
        body=render_additions(
            Addition(change.path, change.section, _format_line(change).text) for change in changes
        ),
    )


def _format_line(change: Change) -> NoteLine:
    """With a provenance comment if the conversation is known."""
    if not change.source.transcript:
        return NoteLine(change.section, change.line)
    source = comment.source_name(change.source.transcript, change.source.number or None)
    return NoteLine(change.section, comment.attach(change.line, change.extractor, [source], change.trust))
