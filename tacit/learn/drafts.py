"""Drafts of changes that wait for review: new lines, lines to remember, contradicted lines, new texts of
notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from tacit.clock import Clock
from tacit.config import Config, Policy
from tacit.git.attributes import find_blocking_filters
from tacit.git.conflicts import NoteTree
from tacit.git.note_committer import NoteCommitter
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import REVIEWED, Home
from tacit.learn import window_proposals
from tacit.learn.model import Change, ChangeSet
from tacit.learn.note_changes import format_line, line_sources
from tacit.markdown import comment, notes
from tacit.markdown.comment import is_trusted, lowest
from tacit.review.model import Addition, ChangeRequest, render_additions
from tacit.review.policies import find_policy, find_setting, waiting_policy
from tacit.review.store import ReviewQueue
from tacit.transcripts import writer

_REMEMBER_PREFIX = "remember/"


class DraftMaker:
    def __init__(self, home: Home, config: Config, git: Git, clock: Clock) -> None:
        self._home, self._config, self._git, self._clock = home, config, git, clock

    def draft_changes(self, changes: Sequence[Change], reason: str = "") -> Iterator[ChangeRequest]:
        """One draft per conversation, category and trust."""

        def kind(change: Change) -> tuple[str, str, str]:
            return change.source.transcript, change.extractor.partition("/")[0], change.trust

        for (transcript, category, _), group in groupby(sorted(changes, key=kind), key=kind):
            lines = list(group)
            sources = (comment.source_name(transcript),)
            yield self._draft_lines(lines, category, reason or self._review_reason(lines[0]), sources)

    def draft_offer(self, offer: ChangeSet) -> ChangeRequest:
        """The lines that a session asked to remember, without learning from its conversation."""
        changes = [replace(change, extractor=change.extractor or offer.extractor) for change in offer.changes]
        return self._draft_lines(changes, "remembered", offer.reason)

    def _draft_lines(
        self, changes: Sequence[Change], category: str, reason: str, sources: tuple[str, ...] = ()
    ) -> ChangeRequest:
        additions = (Addition(change.path, change.section, _format_change(change)) for change in changes)
        return ChangeRequest(
            id="",
            form="lines",
            category=category,
            policy=waiting_policy(policy_for_change(self._config, changes[0])),
            reason=reason,
            made=self._clock.now().isoformat(timespec="seconds"),
            trust=lowest(change.trust for change in changes),
            sources=sources,
            body=render_additions(additions),
        )

    def _review_reason(self, change: Change) -> str:
        reasons = {
            "other": "said by a person who is not the owner",
            "tool": "the agent said it after a tool returned it",
            "web": "the agent said it after reading what strangers wrote",
        }
        if change.trust in reasons:
            return reasons[change.trust]
        setting = find_setting(change.extractor.partition("/")[0])
        return f"review.{setting} is {policy_for_change(self._config, change)}"

    def draft_contradictions(
        self, path: str, contradicted: Iterable[tuple[str, Change]]
    ) -> Iterator[ChangeRequest]:
        """Propose to mark lines that people wrote as superseded: only a person may do that."""
        lines = list(contradicted)
        filtered = find_blocking_filters(self._git, [path] if lines else [])
        for line, change in lines:
            data = NoteTree(self._home.root).read(path)
            old, new = notes.decode(data), comment.mark_superseded(line, change.day)
            if f"{line}\n" not in old:
                continue
            yield self.draft_text(
                path,
                data,
                old.replace(f"{line}\n", f"{new}\n", 1),
                category="supersede",
                # The review log stores the reason, and the note's git filter does not apply to it.
                reason=f"contradicted on {change.day}" + (f": {change.text}" if not filtered else ""),
                sources=line_sources(change),
            )

    def draft_text(
        self,
        path: str,
        base: bytes | None,
        new: str,
        *,
        category: str,
        reason: str,
        sources: Sequence[str] = (),
        remarks: Sequence[str] = (),
        trust: str = "agent",
    ) -> ChangeRequest:
        """A draft that replaces the note's current text."""
        return ChangeRequest(
            id="",
            form="text",
            category=category,
            policy=waiting_policy(find_policy(self._config, category, is_own=False, path=path)),
            reason=reason,
            made=self._clock.now().isoformat(timespec="seconds"),
            trust=trust,  # type: ignore[arg-type]
            sources=tuple(sources),
            target=path,
            base=None if base is None else files.digest(base),
            blob="" if base is None else self._git.blob_name(base),
            body=new,
            notes=tuple(remarks),
        )


def policy_for_change(config: Config, change: Change) -> Policy:
    """The policy for a change, by its extractor, trust and path."""
    return find_policy(
        config, change.extractor.partition("/")[0], is_own=is_trusted(change.trust), path=change.path
    )


def _format_change(change: Change) -> str:
    """With a provenance comment if the conversation is known."""
    return format_line(change).text if change.source.transcript else change.line


class RememberInbox:
    """Turns lines that other people's sessions asked to remember into drafts.

    Proposals of turns that left the window are only discarded: the whole conversation is learned from when it
    ends, by better extractors.
    """

    def __init__(
        self, home: Home, config: Config, drafts: DraftMaker, reviews: ReviewQueue, committer: NoteCommitter
    ) -> None:
        self._home, self._config = home, config
        self._drafts, self._reviews, self._committer = drafts, reviews, committer

    def take_offers(self) -> tuple[str, ...]:
        """Returns the names of the drafts."""
        proposed: list[ChangeRequest] = []
        with files.hold_lock(self._home.lock):
            for offer in window_proposals.list_waiting(self._home):
                if offer.extractor.startswith(_REMEMBER_PREFIX):
                    proposed += self._reviews.propose([self._drafts.draft_offer(offer)])
                    window_proposals.remove(self._home, offer)
                elif self._is_ended(offer):
                    window_proposals.remove(self._home, offer)
            if proposed and self._config.git.auto_commit:
                paths = [*map(self._reviews.path_of, proposed), REVIEWED]
                self._committer.commit_paths("maintenance: drafts of lines to remember\n", paths)
        return tuple(draft.id for draft in proposed)

    def _is_ended(self, offer: ChangeSet) -> bool:
        """Whether no session with the offer's id is open; without an id, none with its key."""
        openings = [state.opening for state in writer.list_states(self._home)]
        if offer.session_id:
            return all(opening.session_id != offer.session_id for opening in openings)
        return all(opening.session_key != offer.session_key for opening in openings)
