"""Drafts of changes that wait for review: new lines, contradicted lines, and new texts of notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tacit.clock import Clock
from tacit.config import Config, Policy
from tacit.git.attributes import find_blocking_filters
from tacit.git.conflicts import NoteTree
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home
from tacit.learn.model import Change
from tacit.learn.note_changes import format_line, line_sources
from tacit.markdown import comment, notes
from tacit.markdown.comment import is_trusted, lowest
from tacit.review.format import Addition, render_additions
from tacit.review.model import Draft
from tacit.review.policies import find_policy, waiting_policy


class DraftMaker:
    def __init__(self, home: Home, config: Config, git: Git, clock: Clock) -> None:
        self._home, self._config, self._git, self._clock = home, config, git, clock

    def drafts_of(self, changes: Sequence[Change], reason: str = "") -> Iterator[Draft]:
        """One draft per conversation, category and trust."""

        def kind(change: Change) -> tuple[str, str, str]:
            return change.source.transcript, change.extractor.partition("/")[0], change.trust

        for (transcript, category, _), group in groupby(sorted(changes, key=kind), key=kind):
            lines = list(group)
            trust = lowest(change.trust for change in lines)
            yield Draft(
                id="",
                form="lines",
                category=category,
                policy=waiting_policy(policy_for_change(self._config, lines[0])),
                reason=reason or self._review_reason(lines[0]),
                made=self._clock.now().isoformat(timespec="seconds"),
                trust=trust,
                sources=(comment.source_name(transcript),),
                body=render_additions(
                    Addition(line.path, line.section, format_line(line).text) for line in lines
                ),
            )

    def _review_reason(self, change: Change) -> str:
        reasons = {
            "other": "said by somebody who is not the owner",
            "tool": "said after a tool had told it, and tools are no owners",
            "web": "said after reading what strangers write",
        }
        if change.trust in reasons:
            return reasons[change.trust]
        category = change.extractor.partition("/")[0]
        return f"review.{category} is {policy_for_change(self._config, change)}"

    def contradictions(self, path: str, found: Iterable[tuple[str, Change]]) -> Iterator[Draft]:
        """Propose to mark lines that people wrote as superseded: only a person may do that."""
        found = list(found)
        filtered = find_blocking_filters(self._git, [path] if found else [])
        for line, change in found:
            data = NoteTree(self._home.root).read(path)
            old, new = notes.decode(data), comment.mark_superseded(line, change.day)
            if f"{line}\n" not in old:
                continue
            yield self.text_draft(
                path,
                data,
                old.replace(f"{line}\n", f"{new}\n", 1),
                category="supersede",
                # The review log stores the reason, and the note's git filter does not apply to it.
                reason=f"contradicted on {change.day}" + (f": {change.text}" if not filtered else ""),
                sources=line_sources(change),
            )

    def text_draft(
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
    ) -> Draft:
        """A draft that replaces the note's current text."""
        return Draft(
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
