"""Drafts as files: frontmatter, and a body that a person can read and change.

    ---
    draft: lines
    category: lessons
    ...
    ---

    ## knowledge/memory/MEMORY.md — Lessons Learned

    - 2026-10-12: Let the glaze dry for a day <!-- lessons/1 2026/10/12/0906-ses_x-y#7 web 4be0c2f7 -->

Whatever a person does to such a file, it is read as far as it can be, and else refused with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, get_args

from tacit.config import Policy
from tacit.model.changes import TRUSTS
from tacit.model.review import Draft, Form
from tacit.text import notes
from tacit.text.lines import scan
from tacit.text.yaml_values import entry

_HEADING = re.compile(r"(\S+\.md)(?: — (.+))?\Z")
_ID = re.compile(r"[a-z0-9][a-z0-9-]{2,80}\Z")


class Unreadable(ValueError):
    """A file in drafts/ that cannot be read as a draft; the message says why."""


class Addition(NamedTuple):
    path: str
    section: str | None
    line: str


def written(draft: Draft) -> str:
    fields: dict[str, object] = {
        "draft": draft.form,
        "category": draft.category,
        "policy": draft.policy,
        "reason": draft.reason,
        "made": draft.made,
        "trust": draft.trust,
    }
    more: dict[str, object] = {
        "target": draft.target,
        "to": draft.to,
        "base": draft.base or ("none" if draft.form == "text" else ""),
        "blob": draft.blob,
        "sources": list(draft.sources),
        "notes": list(draft.notes),
        "generated": True,  # what is left without a line is nobody's
    }
    fields |= {name: value for name, value in more.items() if value}
    head = "".join(entry(name, value) for name, value in fields.items())
    return f"---\n{head}---\n{draft.body}"


def read(name: str, text: str) -> Draft:
    """The draft of a file; `name` is its own without the ending."""
    note = notes.parse(text, name)
    fields = note.fields
    if note.problems:
        raise Unreadable(str(note.problems[0]))
    form = _one_of(fields, "draft", get_args(Form))
    base = str(fields.get("base", ""))
    return Draft(
        id=name,
        form=form,  # type: ignore[arg-type]
        category=_text(fields, "category"),
        policy=_one_of(fields, "policy", get_args(Policy)),  # type: ignore[arg-type]
        reason=str(fields.get("reason", "")),
        made=str(fields.get("made", "")),
        trust=_one_of(fields, "trust", TRUSTS),  # type: ignore[arg-type]
        sources=_texts(fields.get("sources")),
        target=_text(fields, "target") if form != "lines" else "",
        to=_text(fields, "to") if form == "move" else "",
        base=None if base in ("", "none") else base,
        blob=str(fields.get("blob", "")),
        body=note.body,
        notes=_texts(fields.get("notes")),
    )


def is_name(name: str) -> bool:
    return _ID.match(name) is not None


def body_of(additions: Iterable[Addition]) -> str:
    """Lines below the note and the section that they belong into."""
    places: dict[tuple[str, str | None], list[str]] = {}
    for one in additions:
        places.setdefault((one.path, one.section), []).append(one.line)
    parts = (
        f"\n## {path}{f' — {section}' if section else ''}\n\n" + "".join(f"{line}\n" for line in lines)
        for (path, section), lines in places.items()
    )
    return "".join(parts)


def additions_in(draft: Draft) -> list[Addition]:
    found = list(_additions(draft.body))
    if not found:
        raise Unreadable("no line stands below a heading `## NOTE.md — SECTION`")
    return found


def _additions(body: str) -> Iterator[Addition]:
    place: re.Match[str] | None = None
    for line in scan(body):
        if line.kind == "heading":
            place = _HEADING.match(line.title)
            if place is None:
                raise Unreadable(f"the heading {line.title!r} names no note")
        elif line.kind == "text" and place is not None:
            yield Addition(place[1], place[2], line.text.rstrip())
        elif line.kind == "text":
            raise Unreadable(f"{line.text[:60]!r} stands below no heading that names a note")


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise Unreadable(f"its frontmatter has no {name!r}")
    return value


def _one_of(fields: Mapping[str, object], name: str, known: tuple[str, ...]) -> str:
    value = _text(fields, name)
    if value not in known:
        raise Unreadable(f"{name} is {value[:40]!r}, and not one of {', '.join(known)}")
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
