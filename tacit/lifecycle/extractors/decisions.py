"""Decisions: what was settled, into the project that is named, else into MEMORY.md.

By rules: sentences that say so ("we decided", "from now on", "abgemacht:"), each as it was said; what
follows a bare "decided."; and what a person says after taking up an agent's offer ("The second. We move to
the 21st."). A reason that comes at once ("because …", "Grund: …") stands behind a dash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import Any

from tacit.lifecycle.contradict import words_in
from tacit.lifecycle.cues import is_hypothetical, is_question
from tacit.lifecycle.extractors.extractor import Extractor
from tacit.lifecycle.extractors.lines import (
    MEMORY,
    answered,
    change,
    field,
    line_of,
    plain,
    schema,
    sentences_of,
    told_in,
    turns_of,
    words_of,
)
from tacit.lifecycle.named import Names
from tacit.model.changes import Change, Heard, Known, Said
from tacit.text.forms import EVERYDAY
from tacit.text.sentences import LONGEST, says_enough, sentences

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
_ONLY = re.compile(
    r"\W*(?:(?:ok(?:ay)?|so|then|it['’]s|that['’]s|that is|also|gut|dann|das ist) ?,? ?)*"
    r"(?:decided|settled|agreed|decision made|entschieden|beschlossen|abgemacht|einverstanden)\W*",
    re.IGNORECASE,
)
# What an agent says when it leaves something to a person.
_OFFERED = re.compile(
    r"\?\W*\Z|\b(?:two|three|both) (?:ways|options)\b|\boptions\b|\bi(?:['’]d| would)\b|\bsuggest"
    r"|\bpropos|\bzwei (?:wege|möglichkeiten)\b"
    r"|\bich würde\b|\bvorschlag\b",
    re.IGNORECASE,
)
_TAKEN = re.compile(
    r"\W*(?:ok(?:ay)?,? )?(?:(?:the |option )?(?:first|second|third|former|latter|last)(?: (?:one|option"
    r"|way))?|option [a-z0-9]|both"
    r"|(?:das |den |die )?(?:erste|zweite|dritte|letzte)[rns]?|beides?)\W*",
    re.IGNORECASE,
)
_YES = re.compile(r"\W*(?:yes|yep|agreed|right|exactly|ja|genau|einverstanden|passt)\W*", re.IGNORECASE)
_YES_FIRST = re.compile(r"\W*(?:yes|yep|agreed|ja|genau|einverstanden)[,:] ", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9][0-9.,:]*")
_FEWEST_COMMON = 2  # words, or one with a digit


def by_rules(heard: Heard, known: Known) -> Iterator[Change]:
    names = Names(known.projects)
    before: Said | None = None
    for said in turns_of(heard):
        decided = [sentence for kind, sentence in told_in(said) if kind == "decision"]
        decided += [sentence for sentence in _settled(said, before) if sentence not in decided]
        before = said
        reasons = _reasons(said) if decided else {}
        for sentence in decided:
            project = names.one_in(sentence) or names.one_in(words_of(said))
            text = _with(_LABEL.sub("", sentence, count=1), reasons.get(sentence, ""))
            yield from change(heard, said, text, _target(project), "decision", EXTRACTOR.label)


def _settled(said: Said, before: Said | None) -> Iterator[str]:
    """What a person says right after a word that settles it."""
    if said.role != "user":
        return
    first, following = [*islice(sentences(words_of(said)), 2), "", ""][:2]
    offer = words_of(before) if before is not None and before.role == "agent" else ""
    found = _after(first, following, offer if _OFFERED.search(offer) else "")
    bare = plain(found)
    if found and says_enough(found) and not is_question(bare) and not is_hypothetical(bare):
        yield found


def _after(first: str, following: str, offer: str) -> str:
    """Of the first two sentences of an answer the one that tells what was settled."""
    if _ONLY.fullmatch(first):
        return following
    if offer and _TAKEN.fullmatch(first):
        return following
    if offer and _YES.fullmatch(first) and _repeats(following, offer):
        return following
    return first if offer and _YES_FIRST.match(first) and _repeats(first, offer) else ""


def _repeats(sentence: str, offer: str) -> bool:
    """Whether it is about what was offered, and no more than a polite answer."""
    common = (set(words_in(sentence)) & set(words_in(offer))) - EVERYDAY
    numbers = set(_NUMBER.findall(sentence)) & set(_NUMBER.findall(offer))
    return bool(numbers) or len(common) >= _FEWEST_COMMON


def _reasons(said: Said) -> dict[str, str]:
    """Sentences with the reason that comes after them."""
    all_of = list(sentences_of(said))
    return {one: _REASON.sub("", after, count=1) for one, after in pairwise(all_of) if _REASON.match(after)}


def _with(text: str, context: str) -> str:
    """The context is left out where both together would be too long."""
    both = f"{text.rstrip(' .')} — {context}"
    return both if context and len(both) <= LONGEST else text


def _target(project: str | None) -> tuple[str, str]:
    return (f"knowledge/projects/{project}/context.md" if project else MEMORY), _SECTION


def by_model(item: Mapping[str, Any], heard: Heard, said: tuple[Said, ...], known: Known) -> Iterator[Change]:
    found = answered(item, said)
    if found:
        turn, text, trust = found
        project = Names(known.projects).one_in(field(item, "project") or text)
        text = _with(text, line_of(field(item, "context")))
        yield from change(heard, turn, text, _target(project), "decision", EXTRACTOR.label, trust)


EXTRACTOR = Extractor(
    "decisions",
    1,
    by_rules,
    """Find decisions: what was settled in this conversation and holds from now on. A proposal, an option, a
wish, a question, a plan that may still change, or what somebody else decided elsewhere is none. A decision
that takes back an earlier one is one. Write it so that it is understood without the conversation, with its
values and names, in the language in which it was said. `context` is the reason, if one was given. `project`
is the name of the known project that it belongs to; leave it out if there is none.""",
    schema(
        context="why, in a few words, if it was said",
        project="name of a known project; left out if it is none of them",
    ),
    by_model,
)
