"""Turn lines that were asked to be remembered in other people's sessions into drafts.

Proposals of turns that left the window are only discarded: the whole conversation is learned from when it
ends, by better extractors.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.clock import Clock
from tacit.config import Config
from tacit.git.committer import Committer
from tacit.home import files
from tacit.home.layout import REVIEWED, Home
from tacit.learn import window_proposals
from tacit.learn.drafts import policy_for_change
from tacit.learn.model import Change, ChangeSet
from tacit.markdown import comment
from tacit.markdown.comment import lowest
from tacit.markdown.note_page import NoteLine
from tacit.review.format import Addition, render_additions
from tacit.review.model import Draft
from tacit.review.policies import waiting_policy
from tacit.review.store import ReviewQueue
from tacit.transcripts import writer

_REMEMBER_PREFIX = "remember/"


class RememberInbox:
    def __init__(
        self, home: Home, config: Config, clock: Clock, reviews: ReviewQueue, committer: Committer
    ) -> None:
        self._home, self._config, self._clock = home, config, clock
        self._reviews, self._committer = reviews, committer

    def take_offers(self) -> tuple[str, ...]:
        """Returns the names of the drafts."""
        proposed: list[Draft] = []
        with files.hold_lock(self._home.lock):
            for offer in window_proposals.list_waiting(self._home):
                if offer.extractor.startswith(_REMEMBER_PREFIX):
                    proposed += self._reviews.propose([self._make_draft(offer)])
                    window_proposals.remove(self._home, offer)
                elif self._is_ended(offer):
                    window_proposals.remove(self._home, offer)
            if proposed and self._config.git.auto_commit:
                paths = [*map(self._reviews.path_of, proposed), REVIEWED]
                self._committer.commit_paths(
                    "maintenance: drafts of what was asked to be remembered\n", paths
                )
        return tuple(draft.id for draft in proposed)

    def _is_ended(self, offer: ChangeSet) -> bool:
        """Whether no session with the offer's id is open; without an id, none with its key."""
        openings = [state.opening for state in writer.list_states(self._home)]
        if offer.session_id:
            return all(opening.session_id != offer.session_id for opening in openings)
        return all(opening.session_key != offer.session_key for opening in openings)

    def _make_draft(self, offer: ChangeSet) -> Draft:
        changes = [replace(change, extractor=change.extractor or offer.extractor) for change in offer.changes]
        return Draft(
            id="",
            form="lines",
            category="remembered",
            policy=waiting_policy(policy_for_change(self._config, changes[0])),
            reason=offer.reason,
            made=self._clock.now().isoformat(timespec="seconds"),
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
