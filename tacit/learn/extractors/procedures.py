"""Procedures: how something is done, one line per step, into the note of that procedure.

By rules: a list below a line that says how to do something ("To restore a backup:", "So packen wir:"), and a
sentence of the form "to X, first …, then …". A list by an agent counts only if it says that it was written
down, or if a person agrees right after it: agents explain things all day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tacit.learn.extractors.extractor import (
    Extractor,
    find_lists,
    item_schema,
    make_change,
    mask_sentence_quotes,
    note_name,
    parse_answer,
    spoken_turns,
    text_field,
    turn_sentences,
    turn_words,
)
from tacit.learn.model import Change, Known
from tacit.learn.patterns import is_hypothetical, is_question
from tacit.transcripts.attribution import AttributedTranscript, Utterance

_SECTION = "Steps"
_MAX_TITLE_WORDS = 8  # words
_MIN_STEPS = 2  # steps

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


def by_rules(conversation: AttributedTranscript, known: Known) -> Iterator[Change]:  # noqa: ARG001
    turns = list(spoken_turns(conversation))
    for index, turn in enumerate(turns):
        next_turn = turns[index + 1] if index + 1 < len(turns) else None
        for procedure in (*_listed_procedures(turn, next_turn, conversation), *_sentence_procedures(turn)):
            yield from _make_changes(conversation, turn, procedure)


def _make_changes(
    conversation: AttributedTranscript, turn: Utterance, procedure: _Procedure
) -> Iterator[Change]:
    name = note_name(procedure.title)
    steps = procedure.steps if name and len(procedure.steps) >= _MIN_STEPS else ()
    for step in steps:
        yield from make_change(
            conversation, turn, step, (f"knowledge/procedures/{name}.md", _SECTION), "procedure"
        )


def _listed_procedures(
    turn: Utterance, next_turn: Utterance | None, conversation: AttributedTranscript
) -> Iterator[_Procedure]:
    text = turn_words(turn)
    for listing in find_lists(text):
        title = _find_title(mask_sentence_quotes(listing.title), conversation)
        if title and (turn.role == "user" or _is_confirmed(text, next_turn)):
            yield _Procedure(title, listing.items)


def _find_title(above: str, conversation: AttributedTranscript) -> str:
    """The name of the procedure, from the line above a list; empty if that line introduces none."""
    if not above or above.endswith("?") or _NO_PROCEDURE.search(above):
        return ""
    last = re.split(r"[.!?] +", above)[-1]
    named_match = _NAMED.search(last)
    if named_match:
        return _shorten_title(named_match["what"] or named_match["one"])
    how_match = _HOW.match(last)
    if how_match:
        return _shorten_title(how_match["what"])
    return _shorten_title(conversation.title) if _LIST_OF_STEPS.search(last) else ""


def _shorten_title(words: str) -> str:
    return " ".join(words.strip(" .,:;–—").split()[:_MAX_TITLE_WORDS])


def _is_confirmed(text: str, next_turn: Utterance | None) -> bool:
    """Whether a list by an agent counts."""
    agreed = (
        next_turn is not None and next_turn.role == "user" and _AGREED.match(next_turn.text[:200]) is not None
    )
    return agreed or _WRITTEN.search(text[:400]) is not None


def _sentence_procedures(turn: Utterance) -> Iterator[_Procedure]:
    if turn.role != "user":
        return
    for sentence in turn_sentences(turn):
        plain_text = mask_sentence_quotes(sentence)
        match = _STEPS.match(plain_text)
        if match and not is_question(plain_text) and not is_hypothetical(plain_text):
            instructions = sentence[match.start("first") :].rstrip(" .")
            steps = [_FIRST.sub("", step).strip() for step in _NEXT.split(instructions)]
            yield _Procedure(_shorten_title(match["what"]), tuple(steps))


def by_model(
    item: Mapping[str, Any],
    conversation: AttributedTranscript,
    turns: tuple[Utterance, ...],
    known: Known,  # noqa: ARG001
) -> Iterator[Change]:
    answer = parse_answer(item, turns)
    name = note_name(_shorten_title(text_field(item, "name")))
    if answer and name:
        turn, text, trust = answer
        target = f"knowledge/procedures/{name}.md", _SECTION
        yield from make_change(conversation, turn, text, target, "procedure", trust)


EXTRACTOR = Extractor(
    "procedures",
    1,
    by_rules,
    """Find procedures: how something is done here, step by step, so that it can be repeated. Ignore
suggestions that were not taken up, single commands, and things done only once. Give one item for each
step, in order, each a complete instruction by itself, in the language of the turn. `name` says in two
to four words what is done, and is the same for all steps of one procedure.""",
    {**item_schema(name="of the procedure, in two to four words"), "required": ["text", "turn", "name"]},
    by_model,
)
