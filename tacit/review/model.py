"""Change requests as values and as text: for notes, and for the files of a workspace that people curate.

A draft of a change for notes is a file with frontmatter, and a body that a person can read and change:

    ---
    draft: lines
    category: lessons
    ...
    ---

    ## knowledge/memory/MEMORY.md — Lessons Learned

    - 2026-10-12: Let the glaze dry for a day <!-- lessons/1 2026/10/12/0906-ses_x-y#7 web 4be0c2f7 -->

A file that a person edited is read if possible, and otherwise refused with a reason.

The draft of a curated file has no frontmatter: it is the text itself, with notes for the reviewer in a
comment below it, which is never applied. One line in the workspace's daily queue asks for the review.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from tacit.config import Policy
from tacit.markdown import notes
from tacit.markdown.comment import TRUSTS, Trust
from tacit.markdown.frontmatter import format_entry
from tacit.text.lines import scan

DraftForm: TypeAlias = Literal["lines", "text", "move"]
DecisionKind: TypeAlias = Literal[
    "proposed", "approved", "rejected", "edited", "rebased",  # notes
    "drafted", "refused", "promoting", "promoted", "undone", "changed",  # files of a workspace, and approved
]  # fmt: skip
FileState: TypeAlias = Literal["none", "waiting", "approved", "changed", "stale", "not allowed", "promoted"]

_HEADING = re.compile(r"(\S.*?\.md)(?: — (.+))?\Z")
_NOTE_REFERENCE = re.compile(r"^(?:target: |to: |## )(\S.*?\.md\b[\"']?)", re.MULTILINE)
REVIEW_NEEDED = "REVIEW NEEDED"
_COMMENT_START, _COMMENT_END = "<!-- For the reviewer. This comment is not promoted.", "-->"
_NEWLINE = re.compile(r"\r\n|\n")
_ID = re.compile(r"[a-z0-9][a-z0-9-]{2,80}\Z")


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change of notes that waits for a decision.

    `lines` are added to the notes that its headings name, as they are at approval. `text` replaces its
    target and `move` moves it, but only while the target is unchanged since the draft was made.
    """

    id: str
    form: DraftForm
    category: str  # selects the policy in `review`
    policy: Policy
    reason: str
    made: str  # ISO 8601
    trust: Trust
    sources: tuple[str, ...] = ()  # as provenance comments name them
    target: str = ""  # empty: named in its headings
    to: str = ""  # of a move
    base: str | None = None  # SHA-256 of the target it was made for; None: there was no such file
    blob: str = ""  # the git object name of the same
    body: str = ""
    notes: tuple[str, ...] = ()  # for the reviewer


@dataclass(frozen=True, slots=True)
class CuratedFile:
    """A file of a workspace that changes only by an approved draft. Both paths are relative to the
    workspace."""

    name: str  # as people call it: wisdom, soul, tools
    draft: str
    target: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One line of a log of decisions. Texts are given by their SHA-256; None means that there was no file."""

    at: str
    what: DecisionKind
    request: str  # the id of a change request, or the name of a curated file
    by: str = ""
    sha256: str | None = None  # of the draft as it was decided on
    base: str | None = None  # of the target before
    result: str | None = None  # of the target after
    backup: str = ""  # where the previous target is backed up
    why: str = ""
    commit: str = ""
    key: str = ""  # the same for the same proposal, whenever it is made
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """Where the last draft of a curated file stands, and what is missing to promote it."""

    state: FileState
    why: str = ""
    todo: str = ""
    drafted: Decision | None = None
    approved: Decision | None = None
    promoted: Decision | None = None


# ---------------------------------------------------------------- drafts for notes


class UnreadableDraft(ValueError):
    """A file in drafts/ that cannot be read as a draft; the message says why."""


class Addition(NamedTuple):
    path: str
    section: str | None
    line: str


def render_draft(draft: ChangeRequest) -> str:
    fields: dict[str, object] = {
        "draft": draft.form,
        "category": draft.category,
        "policy": draft.policy,
        "reason": draft.reason,
        "made": draft.made,
        "trust": draft.trust,
    }
    optional: dict[str, object] = {
        "target": draft.target,
        "to": draft.to,
        "base": draft.base or ("none" if draft.form == "text" else ""),
        "blob": draft.blob,
        "sources": list(draft.sources),
        "notes": list(draft.notes),
        "generated": True,  # so that a draft without lines is deleted
    }
    fields |= {name: value for name, value in optional.items() if value}
    head = "".join(format_entry(name, value) for name, value in fields.items())
    return f"---\n{head}---\n{draft.body}"


def parse_draft(name: str, text: str) -> ChangeRequest:
    """Parse a draft; `name` is the file name without its extension."""
    note = notes.parse(text, name)
    fields = note.fields
    if note.problems:
        raise UnreadableDraft(str(note.problems[0]))
    form = _choice(fields, "draft", get_args(DraftForm))
    base = str(fields.get("base", ""))
    return ChangeRequest(
        id=name,
        form=form,  # type: ignore[arg-type]
        category=_text(fields, "category"),
        policy=_choice(fields, "policy", get_args(Policy)),  # type: ignore[arg-type]
        reason=str(fields.get("reason", "")),
        made=str(fields.get("made", "")),
        trust=_choice(fields, "trust", TRUSTS),  # type: ignore[arg-type]
        sources=_texts(fields.get("sources")),
        target=_text(fields, "target") if form != "lines" else "",
        to=_text(fields, "to") if form == "move" else "",
        base=None if base in ("", "none") else base,
        blob=str(fields.get("blob", "")),
        body=note.body,
        notes=_texts(fields.get("notes")),
    )


def is_draft_name(name: str) -> bool:
    return _ID.match(name) is not None


def render_additions(additions: Iterable[Addition]) -> str:
    """The lines below headings for their note and section."""
    places: dict[tuple[str, str | None], list[str]] = {}
    for addition in additions:
        places.setdefault((addition.path, addition.section), []).append(addition.line)
    parts = (
        f"\n## {path}{f' — {section}' if section else ''}\n\n" + "".join(f"{line}\n" for line in lines)
        for (path, section), lines in places.items()
    )
    return "".join(parts)


def read_additions(draft: ChangeRequest) -> list[Addition]:
    additions = list(_parse_additions(draft.body))
    if not additions:
        raise UnreadableDraft("no line stands below a heading `## NOTE.md — SECTION`")
    return additions


def find_targets(text: str) -> list[str]:
    """The notes that a draft is for. For an unreadable draft, every path that could be one."""
    try:
        draft = parse_draft("draft", text)
        named = [reference.path for reference in read_additions(draft)] if draft.form == "lines" else []
    except UnreadableDraft:
        return [reference.strip("\"'") for reference in _NOTE_REFERENCE.findall(text)]
    return [path for path in (draft.target, draft.to, *named) if path]


def _parse_additions(body: str) -> Iterator[Addition]:
    heading: re.Match[str] | None = None
    for line in scan(body):
        if line.kind == "heading":
            heading = _HEADING.match(line.title)
            if heading is None:
                raise UnreadableDraft(f"the heading {line.title!r} names no note")
        elif line.kind == "text" and heading is not None:
            yield Addition(heading[1], heading[2], line.text.rstrip())
        elif line.kind == "text":
            raise UnreadableDraft(f"{line.text[:60]!r} stands below no heading that names a note")


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise UnreadableDraft(f"its frontmatter has no {name!r}")
    return value


def _choice(fields: Mapping[str, object], name: str, known: tuple[str, ...]) -> str:
    value = _text(fields, name)
    if value not in known:
        raise UnreadableDraft(f"{name} is {value[:40]!r}, and not one of {', '.join(known)}")
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


# ---------------------------------------------------------------- drafts of curated files


def add_reviewer_notes(text: str, notes: Sequence[str]) -> str:
    """The text with the notes below it, in a comment."""
    safe = "\n".join(notes).replace("-->", "-- >").replace("<!--", "< !--")
    return f"{text.rstrip()}\n\n{_COMMENT_START}\n\n{safe.strip()}\n{_COMMENT_END}\n"


def split_notes(draft: str) -> tuple[str, str]:
    """Split a draft into the text to apply and the reviewer notes."""
    body, marker, rest = draft.partition(_COMMENT_START)
    if not marker:
        return draft, ""
    notes, _, after = rest.partition(_COMMENT_END)
    return f"{body.rstrip()}\n{after.strip()}".rstrip() + "\n", notes.strip()


def request_review(queue: str, path: str, note: str) -> str:
    """The daily queue with one line that asks for a review of the file, in its latest wording."""
    line = f"- [ ] {REVIEW_NEEDED}: {path} {note}"
    eol = _line_ending(queue)
    lines = queue.split(eol)
    for index, old in enumerate(lines):
        if _is_request_for(old, path):
            return eol.join((*lines[:index], line, *lines[index + 1 :]))
    return (
        f"{queue.rstrip()}{eol}{line}{eol}"
        if queue.strip()
        else f"# Daily execution queue{eol}{eol}{line}{eol}"
    )


def check_off(queue: str, path: str) -> str:
    """The daily queue with that line checked off."""
    eol = _line_ending(queue)
    return eol.join(
        line.replace("- [ ]", "- [x]", 1) if _is_request_for(line, path) else line
        for line in queue.split(eol)
    )


def _is_request_for(line: str, path: str) -> bool:
    return line.lstrip().startswith(f"- [ ] {REVIEW_NEEDED}: {path} ")


def _line_ending(text: str) -> str:
    match = _NEWLINE.search(text)
    return match[0] if match else "\n"
