"""Decisions: what was settled, into the notes of the project that is named, else into MEMORY.md.

By rules: sentences that say so ("we decided", "from now on", "abgemacht:"), word for word; the sentence after
a bare "decided."; and what a person says when accepting an agent's offer ("The second. We move to the
21st."). A reason that follows directly ("because …", "Grund: …") is appended after a dash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import Any

from tacit.home.layout import MEMORY
from tacit.learn.entities import NameIndex
from tacit.learn.extractors.extractor import (
    Extractor,
    clean_line,
    item_schema,
    make_change,
    mask_sentence_quotes,
    parse_answer,
    spoken_turns,
    text_field,
    turn_sentences,
    turn_statements,
    turn_words,
)
from tacit.learn.model import Change, Known
from tacit.learn.patterns import is_hypothetical, is_question
from tacit.text.sentences import MAX_SENTENCE_CHARS, is_informative, split_sentences
from tacit.text.statements import index_words
from tacit.text.words import EVERYDAY_FORMS
from tacit.transcripts.attribution import AttributedTranscript, Utterance

_SECTION = "Key Decisions"
_LABEL = re.compile(
    r"(?:[^\s:]{1,20} ){0,4}(?:decision|decided|settled|agreed|rule|entscheidung|entschieden|beschluss"
    r"|beschlossen|abgemacht|regel)"
    r"(?: made)?\s*:\s+",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:(?:the )?reasons?|because|grund|gründe|der grund(?: ist)?|weil|denn)\b\s*:?\s+", re.IGNORECASE
)
_BARE_DECISION = re.compile(
    r"\W*(?:(?:ok(?:ay)?|so|then|it['’]s|that['’]s|that is|also|gut|dann|das ist) ?,? ?)*"
    r"(?:decided|settled|agreed|decision made|entschieden|beschlossen|abgemacht|einverstanden)\W*",
    re.IGNORECASE,
)
# How an agent offers a choice.
_OFFERED = re.compile(
    r"\?\W*\Z|\b(?:two|three|both) (?:ways|options)\b|\boptions\b|\bi(?:['’]d| would)\b|\bsuggest"
    r"|\bpropos|\bzwei (?:wege|möglichkeiten)\b"
    r"|\bich würde\b|\bvorschlag\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\W*(?:ok(?:ay)?,? )?(?:(?:the |option )?(?:first|second|third|former|latter|last)(?: (?:one|option"
    r"|way))?|option [a-z0-9]|both"
    r"|(?:das |den |die )?(?:erste|zweite|dritte|letzte)[rns]?|beides?)\W*",
    re.IGNORECASE,
)
_YES = re.compile(r"\W*(?:yes|yep|agreed|right|exactly|ja|genau|einverstanden|passt)\W*", re.IGNORECASE)
_YES_FIRST = re.compile(r"\W*(?:yes|yep|agreed|ja|genau|einverstanden)[,:] ", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9][0-9.,:]*")
_MIN_COMMON_WORDS = 2  # words, or one with a digit


def by_rules(conversation: AttributedTranscript, known: Known) -> Iterator[Change]:
    names = NameIndex(known.projects)
    previous: Utterance | None = None
    for turn in spoken_turns(conversation):
        decided = [sentence for kind, sentence in turn_statements(turn) if kind == "decision"]
        decided += [sentence for sentence in _find_settlements(turn, previous) if sentence not in decided]
        previous = turn
        reasons = _find_reasons(turn) if decided else {}
        for sentence in decided:
            project = names.one_in(sentence) or names.one_in(turn_words(turn))
            text = _append_context(_LABEL.sub("", sentence, count=1), reasons.get(sentence, ""))
            yield from make_change(conversation, turn, text, _target_note(project), "decision")


def _find_settlements(turn: Utterance, previous: Utterance | None) -> Iterator[str]:
    """What a person says right after a word that settles the matter."""
    if turn.role != "user":
        return
    first, following = [*islice(split_sentences(turn_words(turn)), 2), "", ""][:2]
    offer = turn_words(previous) if previous is not None and previous.role == "agent" else ""
    sentence = _settled_sentence(first, following, offer if _OFFERED.search(offer) else "")
    plain_text = mask_sentence_quotes(sentence)
    if (
        sentence
        and is_informative(sentence)
        and not is_question(plain_text)
        and not is_hypothetical(plain_text)
    ):
        yield sentence


def _settled_sentence(first: str, following: str, offer: str) -> str:
    """Of the first two sentences of an answer, the one that says what was settled."""
    if _BARE_DECISION.fullmatch(first):
        return following
    if offer and _CHOICE.fullmatch(first):
        return following
    if offer and _YES.fullmatch(first) and _repeats(following, offer):
        return following
    return first if offer and _YES_FIRST.match(first) and _repeats(first, offer) else ""


def _repeats(sentence: str, offer: str) -> bool:
    """Whether the sentence is about the offer and not just a polite answer."""
    common = (set(index_words(sentence)) & set(index_words(offer))) - EVERYDAY_FORMS
    numbers = set(_NUMBER.findall(sentence)) & set(_NUMBER.findall(offer))
    return bool(numbers) or len(common) >= _MIN_COMMON_WORDS


def _find_reasons(turn: Utterance) -> dict[str, str]:
    """Sentences with the reason that follows them."""
    all_sentences = list(turn_sentences(turn))
    return {
        sentence: _REASON.sub("", following, count=1)
        for sentence, following in pairwise(all_sentences)
        if _REASON.match(following)
    }


def _append_context(text: str, context: str) -> str:
    """Append the context, unless both together would be too long."""
    combined = f"{text.rstrip(' .')} — {context}"
    return combined if context and len(combined) <= MAX_SENTENCE_CHARS else text


def _target_note(project: str | None) -> tuple[str, str]:
    return (f"knowledge/projects/{project}/context.md" if project else MEMORY), _SECTION


def by_model(
    item: Mapping[str, Any], conversation: AttributedTranscript, turns: tuple[Utterance, ...], known: Known
) -> Iterator[Change]:
    answer = parse_answer(item, turns)
    if answer:
        turn, text, trust = answer
        project = NameIndex(known.projects).one_in(text_field(item, "project") or text)
        text = _append_context(text, clean_line(text_field(item, "context")))
        yield from make_change(conversation, turn, text, _target_note(project), "decision", trust)


EXTRACTOR = Extractor(
    "decisions",
    1,
    by_rules,
    """Find decisions: what was settled in this conversation and applies from now on. Ignore proposals,
options, wishes, questions, plans that may still change, and decisions of other people made elsewhere.
A decision that reverses an earlier one counts. Write it so that it can be understood without the
conversation, with its values and names, in the language of the turn. `context` is the reason, if one
was given. `project` is the name of the known project that it belongs to; leave it out if there is
none.""",
    item_schema(
        context="why, in a few words, if it was said",
        project="name of a known project; left out if it is none of them",
    ),
    by_model,
)
