"""The conversations of a day → at most seven lines under `### Summary` of its journal page.

What must stay true:
- the page only grows: no line that is there changes, whoever wrote it;
- every line says from which turns it is and is trusted as little as they are; lines from the words of others
  are given apart;
- a conversation is summed up once: its session is in `summarised` of the page from then on, and no turn gives
  a second line. Another conversation of the same day adds only its own.

Without a model it is extractive: sentences that tell of a decision, a lesson or something that happened, and
where a conversation has none of those, the sentence that is most about what the day was about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from tacit.errors import StoreError
from tacit.lifecycle.apply import applied
from tacit.lifecycle.condense import asking
from tacit.lifecycle.extract import told
from tacit.lifecycle.extractors.lines import own_words, turns_of
from tacit.lifecycle.items import items
from tacit.lifecycle.wisdom.likeness import stems
from tacit.llm.chat import ChatError
from tacit.llm.items import Ask
from tacit.model.changes import Change, ChangeKind, Heard, Said, Source, Trust, is_trusted, lowest
from tacit.text import marks, notes
from tacit.text.asking import asks
from tacit.text.frontmatter import names_in
from tacit.text.sentences import sentences

LABEL = "day/1"
SECTION = "Summary"
MOST = 7  # lines of a page
MOST_OF_ONE = 3  # … of one conversation: one that comes later finds room
MOST_OF_OTHERS = 3  # lines of each kind of stranger
SUMMARISED = "summarised"
_LOOKED_AT = 20_000  # characters of one turn
_FEWEST_WORDS = 6  # of a sentence that no cue speaks for
# Of one that says what it is. "They rang her yesterday" tells nobody anything a month later.
_FEWEST: Mapping[ChangeKind, int] = {"decision": 3, "lesson": 3, "event": 4}
_QUESTIONS = 4  # to a model, for the turns of one trust; of a longer day it sees the end
# Turns that may stand in one question. The owner's and the agent's make sense only together.
_ALIKE: tuple[tuple[Trust, ...], ...] = (("owner", "agent"), ("other",), ("tool",), ("web",))
_OWNERS = 0.5  # more for a sentence of the owner's, where no cue decides
_WEIGHTS: Mapping[ChangeKind, float] = {"decision": 3.0, "lesson": 3.0, "event": 2.0}

PROMPT = f"""You write the summary of one day for a journal.
From the numbered turns below, choose what is worth remembering next month: what was decided, what was
learned, what happened. At most {MOST} lines, each one sentence of its own in the language of the turn, with
names and numbers as they were said. Leave out greetings, questions, plans that came to nothing and what is
said twice. Give for each line the numbers of the turns that say it. Nothing worth remembering: no items.
{asking.DATA}"""
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": asking.LONGEST},
        "kind": {"enum": list(_WEIGHTS)},
        "turns": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    },
    "required": ["text", "turns"],
    "additionalProperties": False,
}


class Summarised(NamedTuple):
    path: str
    changes: tuple[Change, ...]
    untrusted: tuple[Change, ...]  # words of others: for review, whatever the config says
    sessions: tuple[str, ...]  # that were looked at
    reason: str
    notes: tuple[str, ...]


class _Turn(NamedTuple):
    heard: Heard
    said: Said

    @property
    def source(self) -> str:
        return marks.source_of(self.heard.transcript, self.said.number)


class _Candidate(NamedTuple):
    turns: tuple[_Turn, ...]
    text: str
    kind: ChangeKind
    score: float


def page_of(day: str) -> str:
    return f"knowledge/journal/{day}.md"


def daily_summary(day: str, heards: Sequence[Heard], page: str | None, ask: Ask | None = None) -> Summarised:
    """Lines for the page of a day; none where there is nothing new."""
    seen = _summarised(page)
    new = [heard for heard in heards if heard.day == day and heard.session_id not in seen]
    cited, told_of = _cited(page, "day"), _cited(page)
    turns = [
        turn
        for heard in new
        for turn in (_Turn(heard, replace(said, text=own_words(said.text))) for said in turns_of(heard))
        if turn.source not in told_of
    ]
    found: list[Change] = []
    told_why: list[str] = []
    for trusts in _ALIKE:
        alike = [turn for turn in turns if turn.said.trust in trusts]
        if alike:
            candidates, why = _candidates(alike, ask, cited)
            told_why += why
            known = (*_said(page), *(change.text for change in found))
            room = _room(page, found, trusts[0])
            of_same = (_source_of(one) for one in found if is_trusted(one.trust) and is_trusted(trusts[0]))
            found += _chosen(day, candidates, known, room, _counted((*cited, *of_same)))
    return Summarised(
        page_of(day),
        tuple(change for change in found if is_trusted(change.trust)),
        tuple(change for change in found if not is_trusted(change.trust)),
        tuple(dict.fromkeys(heard.session_id for heard in new)),
        "the day's conversations, summed up by a model" if ask and not told_why
        else "the day's conversations: sentences that were said, chosen without a model",
        tuple(dict.fromkeys(told_why)),
    )  # fmt: skip


def with_summary(
    page: str | None, day: str, changes: Sequence[Change], sessions: Iterable[str]
) -> str | None:
    """The page with these lines, its fields made true. Without lines it stays as it is."""
    if not changes:
        return page
    text = applied(page, page_of(day), changes, supersede=False).text
    note = notes.parse(text)
    fields = note.fields
    ids = tuple(sessions)
    wanted: dict[str, object] = {
        "type": fields.get("type", "journal"),
        "date": fields.get("date", date.fromisoformat(day)),
        "sessions": list(dict.fromkeys((*names_in(fields.get("sessions")), *ids))),
        SUMMARISED: list(dict.fromkeys((*names_in(fields.get(SUMMARISED)), *ids))),
    }
    try:
        return notes.with_fields(note, wanted).text
    except StoreError:  # somebody's frontmatter is broken: doctor tells
        return text


# What the page says already


def _summarised(page: str | None) -> frozenset[str]:
    return frozenset(names_in(notes.parse(page or "").fields.get(SUMMARISED)))


def _said(page: str | None) -> tuple[str, ...]:
    return tuple(one.said for one in items(page or ""))


def _cited(page: str | None, by: str = "") -> frozenset[str]:
    """Turns that have their line, also where somebody has changed it since."""
    return frozenset(
        source
        for one in items(page or "")
        if one.mark is not None and by in ("", one.mark.name)
        for source in one.mark.sources
    )


def _source_of(change: Change) -> str:
    return marks.source_of(change.source.transcript, change.source.number)


def _counted(cited: Iterable[str]) -> Counter[str]:
    return Counter(marks.transcript_of(source) for source in cited)


def _room(page: str | None, found: Sequence[Change], trust: Trust) -> int:
    if not is_trusted(trust):
        return MOST_OF_OTHERS
    there = sum(one.mark is not None and one.mark.name == "day" for one in items(page or ""))
    return max(0, MOST - there - sum(is_trusted(change.trust) for change in found))


# Choosing


def _candidates(
    turns: Sequence[_Turn], ask: Ask | None, cited: frozenset[str]
) -> tuple[list[_Candidate], list[str]]:
    if ask is not None:
        done = {marks.transcript_of(source) for source in cited}
        new = [turn for turn in turns if turn.heard.transcript not in done]
        try:
            found, wrong = _by_model(new, ask)
            if found or not wrong:
                return found, []  # nothing worth remembering is an answer too
            why = f"none of its {wrong} lines says from which turns it is, and no more than they do."
        except ChatError as error:
            why = str(error)
        told_why = [f"The model gave no summary, so sentences were chosen: {why}"]
        return list(_by_rules(turns, cited)), told_why
    return list(_by_rules(turns, cited)), []


def _chosen(
    day: str, candidates: Iterable[_Candidate], known: Iterable[str], room: int, counted: Counter[str]
) -> list[Change]:
    picked: list[_Candidate] = []
    said = list(known)
    counts, used = counted.copy(), set[str]()
    for one in sorted(candidates, key=lambda one: -one.score):
        sources = {turn.source for turn in one.turns}
        transcripts = {turn.heard.transcript for turn in one.turns}
        is_full = any(counts[transcript] >= MOST_OF_ONE for transcript in transcripts)
        if len(picked) == room or is_full or sources & used or asking.echoes(one.text, said):
            continue
        picked.append(one)
        said.append(one.text)
        used |= sources
        counts.update(transcripts)
    return [_change(day, one) for one in sorted(picked, key=lambda one: _place(one.turns[0]))]


def _place(turn: _Turn) -> tuple[str, int]:
    return turn.heard.transcript, turn.said.number


def _change(day: str, one: _Candidate) -> Change:
    first = one.turns[0]
    said = first.said
    at = said.at.isoformat() if said.at else ""
    source = Source(first.heard.session_key, said.number, said.role, said.speaker, at, first.heard.transcript)
    trust = lowest(turn.said.trust for turn in one.turns)
    also = tuple(turn.source for turn in one.turns[1:])
    return Change(page_of(day), SECTION, one.text, day, one.kind, source, trust, LABEL, also)


# Without a model


def _by_rules(turns: Sequence[_Turn], cited: frozenset[str]) -> Iterator[_Candidate]:
    centrality = _centrality(turns)
    done = _counted(cited)
    for heard in dict.fromkeys(turn.heard for turn in turns):
        own = [turn for turn in turns if turn.heard is heard]
        found = [one for turn in own for one in _telling(turn, centrality)]
        if found:
            yield from found
        elif not done[heard.transcript]:
            yield from _most_central(own, centrality)


def _telling(turn: _Turn, centrality: Callable[[str], float]) -> Iterator[_Candidate]:
    """Of one turn the sentence that tells most: a line per turn is enough, and a turn is cited once."""
    found = [
        _Candidate((turn,), line, kind, _WEIGHTS[kind] + centrality(line))
        for kind, sentence in told(turn.said.text, by_agent=turn.said.role == "agent")
        if (line := asking.plain_line(sentence)) and len(stems(line)) >= _FEWEST[kind]
    ]
    return iter([max(found, key=lambda one: one.score)] if found else [])


def _most_central(turns: Sequence[_Turn], centrality: Callable[[str], float]) -> Iterator[_Candidate]:
    found = [
        _Candidate((turn,), line, "event", _OWNERS * (turn.said.trust == "owner") + centrality(line))
        for turn in turns
        for sentence in sentences(turn.said.text[:_LOOKED_AT])
        if (line := asking.plain_line(sentence)) and _stands_alone(line)
    ]
    best = max(found, key=lambda one: one.score, default=None)
    if best is not None and centrality(best.text) > 0:
        yield best


def _stands_alone(line: str) -> bool:
    return len(stems(line)) >= _FEWEST_WORDS and not asks(line) and not line.endswith((":", "?", "？", "…"))


def _centrality(turns: Sequence[_Turn]) -> Callable[[str], float]:
    """How much of a sentence is about what several turns are about, from 0 to 1."""
    counts = Counter(word for turn in turns for word in stems(turn.said.text[:_LOOKED_AT]))

    def share(sentence: str) -> float:
        words = stems(sentence)
        return sum(counts[word] > 1 for word in words) / len(words) if words else 0.0

    return share


# With a model


def _by_model(turns: Sequence[_Turn], ask: Ask) -> tuple[list[_Candidate], int]:
    """And how many of its lines were left out."""
    texts = [f"{turn.said.role}: {turn.said.text[:_LOOKED_AT]}" for turn in turns]
    found = [
        _item(item, turns, dict(part), place)
        for part in list(asking.in_parts(texts))[-_QUESTIONS:]
        for place, item in enumerate(ask("condense", PROMPT, asking.numbered(part), SCHEMA))
    ]
    good = [one for one in found if one is not None]
    return good, len(found) - len(good)


def _item(
    item: Mapping[str, Any], turns: Sequence[_Turn], shown: Mapping[int, str], place: int
) -> _Candidate | None:
    line = asking.plain_line(item.get("text"))
    named = asking.numbers_in(item.get("turns"), shown)
    if line is None or not named or not asking.grounded(line, [shown[number] for number in named]):
        return None
    said: object = item.get("kind")
    kind: ChangeKind = next((one for one in _WEIGHTS if one == said), "event")
    # In the model's order: it was asked for what matters.
    return _Candidate(tuple(turns[number - 1] for number in named), line, kind, -float(place))
