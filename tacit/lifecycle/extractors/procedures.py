"""Procedures: how something is done, one line a step, into the note of that procedure.

By rules: a list below a line that says how to ("To restore a backup:", "So packen wir:"), and one sentence
that goes "to X, first …, then …". What an agent lists counts where it says that it was written down, or
where a person agrees right after it: agents explain how to all day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tacit.lifecycle.cues import is_hypothetical, is_question
from tacit.lifecycle.extractors.extractor import Extractor
from tacit.lifecycle.extractors.lines import (
    answered,
    change,
    field,
    note_name,
    plain,
    schema,
    sentences_of,
    turns_of,
    words_of,
)
from tacit.lifecycle.extractors.lists import lists_of
from tacit.model.changes import Change, Heard, Known, Said

_SECTION = "Steps"
_MOST_TITLE = 8  # words
_FEWEST = 2  # steps

_DOING = (
    r"(?:how (?:to|we|you|i)|this is how (?:we|you|i)?|to|steps? (?:to|for)|(?:the )?steps? (?:when|of)"
    r"|(?:procedure|routine|checklist"
    r"|process|recipe|instructions) (?:for|to|of|when)|when (?:you|we|i)|before (?:you|we|i)"
    r"|every time (?:you|we|i)"
    r"|um|so|wie (?:man|wir|ich)|anleitung (?:für|zum|zur)|ablauf (?:für|beim?|zum|zur)|schritte (?:für"
    r"|zum|zur|beim)"
    r"|checkliste (?:für|zum|zur)|beim?|vor dem|nach dem)"
)
_HOW = re.compile(
    rf"\A(?:(?:ok(?:ay)?|so|and|now|also|und|gut),? )?(?:here(?:['’]s| is) |das ist "
    rf"|hier ist )?(?:the )?{_DOING} (?P<what>.+)\Z",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:the|our|my|die|der|unsere?|meine?) (?P<what>(?:[\w-]+ ){1,4}?)(?:procedure|routine|checklist"
    r"|process|recipe|steps"
    r"|anleitung|checkliste|ablauf|routine)\b|\b(?P<one>\w{3,30}?)-?(?:anleitung|checkliste|ablauf)\b",
    re.IGNORECASE,
)
_LIST_OF_STEPS = re.compile(
    r"\b(?:steps|procedure|checklist|routine|schritte|anleitung|checkliste|ablauf)\b", re.IGNORECASE
)
_NO_PROCEDURE = re.compile(
    r"\b(?:options?|choices|alternatives|proposals?|propose|suggest\w*|ideas?|questions?|could|would"
    r"|should|might|maybe|draft"
    r"|why|things|problems?|issues|errors?|reasons?|möglichkeiten|optionen|vorschl[aä]ge?|fragen"
    r"|könnten?|würden?|sollten?"
    r"|vielleicht|entwurf|probleme?|gründe)\b",
    re.IGNORECASE,
)
_WRITTEN = re.compile(
    r"\b(?:written (?:into|down|in)|added to|as we have it|noted|recorded|kept|eingetragen|notiert"
    r"|festgehalten|steht jetzt)\b",
    re.IGNORECASE,
)
_AGREED = re.compile(
    r"\W*(?:yes|yep|yeah|right|correct|exactly|perfect|great|good|ok(?:ay)?|agreed|works|that['’]s (?:it"
    r"|right|the list|the way|how)"
    r"|ja|genau|richtig|stimmt|passt|perfekt|super|gut|einverstanden|so machen wir)\b(?!\s*(?:,"
    r"|\s)\s*(?:but|aber|except|außer))",
    re.IGNORECASE,
)
_STEPS = re.compile(
    r"\A(?:to|um) (?P<what>[^,:]{3,80}?)(?: zu \w+)?[,:] (?P<first>(?:(?:you |we |i |man |wir )?(?:first"
    r"|start by|begin by|zuerst|zunächst|erst)\b)[^;]{3,}?)"
    r"(?P<rest>[,;] (?:and )?(?:then|after that|next|finally|dann|danach|anschließend|zuletzt"
    r"|zum schluss)\b.+)\Z",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"[,;] (?:and |und )?(?:then|after that|next|finally|dann|danach|anschließend|zuletzt|zum schluss)[ ,]+",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\A(?:(?:you|we|i|man|wir) )?(?:first|zuerst|zunächst|erst)[ ,]+", re.IGNORECASE)


class _Procedure(NamedTuple):
    title: str
    steps: tuple[str, ...]


def by_rules(heard: Heard, known: Known) -> Iterator[Change]:  # noqa: ARG001
    turns = list(turns_of(heard))
    for at, said in enumerate(turns):
        after = turns[at + 1] if at + 1 < len(turns) else None
        for found in (*_listed(said, after, heard), *_in_one_sentence(said)):
            yield from _changes(heard, said, found)


def _changes(heard: Heard, said: Said, found: _Procedure) -> Iterator[Change]:
    name = note_name(found.title)
    steps = found.steps if name and len(found.steps) >= _FEWEST else ()
    for step in steps:
        yield from change(
            heard, said, step, (f"knowledge/procedures/{name}.md", _SECTION), "procedure", EXTRACTOR.label
        )


def _listed(said: Said, after: Said | None, heard: Heard) -> Iterator[_Procedure]:
    text = words_of(said)
    for found in lists_of(text):
        title = _title(plain(found.title), heard)
        if title and (said.role == "user" or _counts(text, after)):
            yield _Procedure(title, found.items)


def _title(above: str, heard: Heard) -> str:
    """What is done, by the line above a list; empty where that is no way of doing something."""
    if not above or above.endswith("?") or _NO_PROCEDURE.search(above):
        return ""
    last = re.split(r"[.!?] +", above)[-1]
    named = _NAMED.search(last)
    if named:
        return _short(named["what"] or named["one"])
    how = _HOW.match(last)
    if how:
        return _short(how["what"])
    return _short(heard.title) if _LIST_OF_STEPS.search(last) else ""


def _short(words: str) -> str:
    return " ".join(words.strip(" .,:;–—").split()[:_MOST_TITLE])


def _counts(text: str, after: Said | None) -> bool:
    """What an agent lists."""
    agreed = after is not None and after.role == "user" and _AGREED.match(after.text[:200]) is not None
    return agreed or _WRITTEN.search(text[:400]) is not None


def _in_one_sentence(said: Said) -> Iterator[_Procedure]:
    if said.role != "user":
        return
    for sentence in sentences_of(said):
        bare = plain(sentence)
        found = _STEPS.match(bare)
        if found and not is_question(bare) and not is_hypothetical(bare):
            whole = sentence[found.start("first") :].rstrip(" .")
            steps = [_FIRST.sub("", step).strip() for step in _NEXT.split(whole)]
            yield _Procedure(_short(found["what"]), tuple(steps))


def by_model(
    item: Mapping[str, Any],
    heard: Heard,
    said: tuple[Said, ...],
    known: Known,  # noqa: ARG001
) -> Iterator[Change]:
    found = answered(item, said)
    name = note_name(_short(field(item, "name")))
    if found and name:
        turn, text, trust = found
        target = f"knowledge/procedures/{name}.md", _SECTION
        yield from change(heard, turn, text, target, "procedure", EXTRACTOR.label, trust)


EXTRACTOR = Extractor(
    "procedures",
    1,
    by_rules,
    """Find procedures: how something is done here, step by step, as somebody would have to follow it next
time. A suggestion that nobody took up, a single command, or what was done only once is none. Give one item
for each step, in order, each as an instruction that is complete by itself, in the language in which it was
said. `name` says in two to four words what is done, the same for all steps of one procedure.""",
    {**schema(name="of the procedure, in two to four words"), "required": ["text", "turn", "name"]},
    by_model,
)
