"""The conversations of a day → at most seven lines under `### Summary` of its journal page.

What must stay true:
- the page only grows: no existing line changes;
- every line names the turns it comes from and has the lowest of their trusts; lines from the words of others
  are returned separately;
- a conversation is summarized once: its session is then listed in `summarised` of the page, and no turn gives
  a second line. Another conversation of the same day adds only its own lines.

Without a model the summary is extractive: sentences that state a decision, a lesson or an event, and for a
conversation without any, the sentence that is most central to the day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from tacit.errors import StoreError
from tacit.learn import model_answers
from tacit.learn.extractors.extractor import spoken_turns, strip_quotes
from tacit.learn.model import Change, ChangeKind, Source
from tacit.learn.note_changes import apply_changes
from tacit.learn.patterns import find_statements
from tacit.llm.chat import ChatError
from tacit.llm.structured import Ask
from tacit.markdown import comment, notes
from tacit.markdown.comment import Trust, is_trusted, lowest
from tacit.markdown.frontmatter import parse_names
from tacit.markdown.note_page import read_items
from tacit.text.sentences import is_question, split_sentences
from tacit.text.words import stems
from tacit.transcripts.attribution import AttributedTranscript, Utterance

LABEL = "day/1"
SECTION = "Summary"
MAX_LINES = 7  # lines of a page
MAX_LINES_PER_CONVERSATION = 3  # … of one conversation, so that later ones find room
MAX_UNTRUSTED_LINES = 3  # lines for each untrusted kind of speaker
SUMMARISED = "summarised"
_MAX_TURN_CHARS = 20_000
_MIN_WORDS = 6  # of a sentence without a cue
# Of a sentence with a cue. "They rang her yesterday" means nothing a month later.
_MIN_WORDS_BY_KIND: Mapping[ChangeKind, int] = {"decision": 3, "lesson": 3, "event": 4}
_MAX_QUESTIONS = 4  # to a model, per trust group; of a longer day it sees the end
# Turns that one question may show together. The owner's and the agent's make sense only together.
_TRUST_GROUPS: tuple[tuple[Trust, ...], ...] = (("owner", "agent"), ("other",), ("tool",), ("web",))
_OWNER_BONUS = 0.5  # added for a sentence of the owner without a cue
_WEIGHTS: Mapping[ChangeKind, float] = {"decision": 3.0, "lesson": 3.0, "event": 2.0}

PROMPT = f"""You write the summary of one day for a journal.
From the numbered turns below, choose what is worth remembering next month: decisions, lessons and events.
Write at most {MAX_LINES} lines, each one complete sentence in the language of the turn, with names and numbers copied
exactly. Ignore greetings, questions, abandoned plans and repetitions. Give the numbers of the turns behind
each line. If nothing is worth remembering, answer with no items.
{model_answers.DATA_NOTICE}"""  # noqa: E501
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": model_answers.MAX_TEXT_CHARS},
        "kind": {"enum": list(_WEIGHTS)},
        "turns": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    },
    "required": ["text", "turns"],
    "additionalProperties": False,
}


class DailySummary(NamedTuple):
    path: str
    changes: tuple[Change, ...]
    untrusted: tuple[Change, ...]  # words of others: always for review, regardless of the config
    sessions: tuple[str, ...]  # that were read
    reason: str
    notes: tuple[str, ...]


class _Turn(NamedTuple):
    conversation: AttributedTranscript
    utterance: Utterance

    @property
    def source(self) -> str:
        return comment.source_name(self.conversation.transcript, self.utterance.number)


class _Candidate(NamedTuple):
    turns: tuple[_Turn, ...]
    text: str
    kind: ChangeKind
    score: float


def journal_path(day: str) -> str:
    return f"knowledge/journal/{day}.md"


def daily_summary(
    day: str, conversations: Sequence[AttributedTranscript], page: str | None, ask: Ask | None = None
) -> DailySummary:
    """Lines for the page of a day; none if there is nothing new."""
    seen = _summarised_sessions(page)
    new = [
        conversation
        for conversation in conversations
        if conversation.day == day and conversation.session_id not in seen
    ]
    cited_today, cited_anywhere = _cited_sources(page, "day"), _cited_sources(page)
    turns = [
        turn
        for conversation in new
        for turn in (
            _Turn(conversation, replace(utterance, text=strip_quotes(utterance.text)))
            for utterance in spoken_turns(conversation)
        )
        if turn.source not in cited_anywhere
    ]
    chosen: list[Change] = []
    reasons: list[str] = []
    for trusts in _TRUST_GROUPS:
        group = [turn for turn in turns if turn.utterance.trust in trusts]
        if group:
            candidates, new_reasons = _find_candidates(group, ask, cited_today)
            reasons += new_reasons
            known_lines = (*_statements(page), *(change.text for change in chosen))
            room = _free_lines(page, chosen, trusts[0])
            same_trust = (
                _source_of(change) for change in chosen if is_trusted(change.trust) and is_trusted(trusts[0])
            )
            chosen += _choose(
                day, candidates, known_lines, room, _count_by_transcript((*cited_today, *same_trust))
            )
    return DailySummary(
        journal_path(day),
        tuple(change for change in chosen if is_trusted(change.trust)),
        tuple(change for change in chosen if not is_trusted(change.trust)),
        tuple(dict.fromkeys(conversation.session_id for conversation in new)),
        "the day's conversations, summed up by a model" if ask and not reasons
        else "the day's conversations: sentences that were said, chosen without a model",
        tuple(dict.fromkeys(reasons)),
    )  # fmt: skip


def add_summary(page: str | None, day: str, changes: Sequence[Change], sessions: Iterable[str]) -> str | None:
    """Add these lines to the page and update its fields. Without lines it stays as it is."""
    if not changes:
        return page
    text = apply_changes(page, journal_path(day), changes, supersede=False).text
    note = notes.parse(text)
    fields = note.fields
    ids = tuple(sessions)
    wanted: dict[str, object] = {
        "type": fields.get("type", "journal"),
        "date": fields.get("date", date.fromisoformat(day)),
        "sessions": list(dict.fromkeys((*parse_names(fields.get("sessions")), *ids))),
        SUMMARISED: list(dict.fromkeys((*parse_names(fields.get(SUMMARISED)), *ids))),
    }
    try:
        return notes.set_fields(note, wanted).text
    except StoreError:  # the frontmatter is broken, which `tacit doctor` reports
        return text


# What is on the page already


def _summarised_sessions(page: str | None) -> frozenset[str]:
    return frozenset(parse_names(notes.parse(page or "").fields.get(SUMMARISED)))


def _statements(page: str | None) -> tuple[str, ...]:
    return tuple(item.said for item in read_items(page or ""))


def _cited_sources(page: str | None, extractor: str = "") -> frozenset[str]:
    """Turns that have a line already, even if it was edited since."""
    return frozenset(
        source
        for item in read_items(page or "")
        if item.mark is not None and extractor in ("", item.mark.name)
        for source in item.mark.sources
    )


def _source_of(change: Change) -> str:
    return comment.source_name(change.source.transcript, change.source.number)


def _count_by_transcript(cited: Iterable[str]) -> Counter[str]:
    return Counter(comment.transcript_path(source) for source in cited)


def _free_lines(page: str | None, chosen: Sequence[Change], trust: Trust) -> int:
    if not is_trusted(trust):
        return MAX_UNTRUSTED_LINES
    existing = sum(item.mark is not None and item.mark.name == "day" for item in read_items(page or ""))
    return max(0, MAX_LINES - existing - sum(is_trusted(change.trust) for change in chosen))


# Choosing


def _find_candidates(
    turns: Sequence[_Turn], ask: Ask | None, cited: frozenset[str]
) -> tuple[list[_Candidate], list[str]]:
    if ask is not None:
        cited_transcripts = {comment.transcript_path(source) for source in cited}
        new = [turn for turn in turns if turn.conversation.transcript not in cited_transcripts]
        try:
            candidates, rejected = _by_model(new, ask)
            if candidates or not rejected:
                return candidates, []  # nothing worth remembering is an answer too
            why = f"none of its {rejected} lines says from which turns it is, and no more than they do."
        except ChatError as error:
            why = str(error)
        reasons = [f"The model gave no summary, so sentences were chosen: {why}"]
        return list(_by_rules(turns, cited)), reasons
    return list(_by_rules(turns, cited)), []


def _choose(
    day: str, candidates: Iterable[_Candidate], known: Iterable[str], room: int, counted: Counter[str]
) -> list[Change]:
    picked: list[_Candidate] = []
    statements = list(known)
    counts, used = counted.copy(), set[str]()
    for candidate in sorted(candidates, key=lambda candidate: -candidate.score):
        sources = {turn.source for turn in candidate.turns}
        transcripts = {turn.conversation.transcript for turn in candidate.turns}
        is_full = any(counts[transcript] >= MAX_LINES_PER_CONVERSATION for transcript in transcripts)
        if (
            len(picked) == room
            or is_full
            or sources & used
            or model_answers.is_echo(candidate.text, statements)
        ):
            continue
        picked.append(candidate)
        statements.append(candidate.text)
        used |= sources
        counts.update(transcripts)
    return [
        _to_change(day, candidate)
        for candidate in sorted(picked, key=lambda candidate: _order_key(candidate.turns[0]))
    ]


def _order_key(turn: _Turn) -> tuple[str, int]:
    return turn.conversation.transcript, turn.utterance.number


def _to_change(day: str, candidate: _Candidate) -> Change:
    first = candidate.turns[0]
    utterance = first.utterance
    timestamp = utterance.at.isoformat() if utterance.at else ""
    source = Source(
        first.conversation.session_key,
        utterance.number,
        utterance.role,
        utterance.speaker,
        timestamp,
        first.conversation.transcript,
    )
    trust = lowest(turn.utterance.trust for turn in candidate.turns)
    also = tuple(turn.source for turn in candidate.turns[1:])
    return Change(journal_path(day), SECTION, candidate.text, day, candidate.kind, source, trust, LABEL, also)


# Without a model


def _by_rules(turns: Sequence[_Turn], cited: frozenset[str]) -> Iterator[_Candidate]:
    centrality = _centrality(turns)
    line_counts = _count_by_transcript(cited)
    for conversation in dict.fromkeys(turn.conversation for turn in turns):
        own_turns = [turn for turn in turns if turn.conversation is conversation]
        candidates = [candidate for turn in own_turns for candidate in _best_statement(turn, centrality)]
        if candidates:
            yield from candidates
        elif not line_counts[conversation.transcript]:
            yield from _most_central(own_turns, centrality)


def _best_statement(turn: _Turn, centrality: Callable[[str], float]) -> Iterator[_Candidate]:
    """The best sentence of one turn: one line per turn is enough, and a turn is cited once."""
    candidates = [
        _Candidate((turn,), line, kind, _WEIGHTS[kind] + centrality(line))
        for kind, sentence in find_statements(turn.utterance.text, by_agent=turn.utterance.role == "agent")
        if (line := model_answers.normalize_line(sentence)) and len(stems(line)) >= _MIN_WORDS_BY_KIND[kind]
    ]
    return iter([max(candidates, key=lambda candidate: candidate.score)] if candidates else [])


def _most_central(turns: Sequence[_Turn], centrality: Callable[[str], float]) -> Iterator[_Candidate]:
    candidates = [
        _Candidate(
            (turn,), line, "event", _OWNER_BONUS * (turn.utterance.trust == "owner") + centrality(line)
        )
        for turn in turns
        for sentence in split_sentences(turn.utterance.text[:_MAX_TURN_CHARS])
        if (line := model_answers.normalize_line(sentence)) and _stands_alone(line)
    ]
    best = max(candidates, key=lambda candidate: candidate.score, default=None)
    if best is not None and centrality(best.text) > 0:
        yield best


def _stands_alone(line: str) -> bool:
    return (
        len(stems(line)) >= _MIN_WORDS and not is_question(line) and not line.endswith((":", "?", "？", "…"))
    )


def _centrality(turns: Sequence[_Turn]) -> Callable[[str], float]:
    """A function for the share of a sentence's words that occur more than once that day, from 0 to 1."""
    counts = Counter(word for turn in turns for word in stems(turn.utterance.text[:_MAX_TURN_CHARS]))

    def share(sentence: str) -> float:
        words = stems(sentence)
        return sum(counts[word] > 1 for word in words) / len(words) if words else 0.0

    return share


# With a model


def _by_model(turns: Sequence[_Turn], ask: Ask) -> tuple[list[_Candidate], int]:
    """The candidates, and the number of rejected items."""
    texts = [f"{turn.utterance.role}: {turn.utterance.text[:_MAX_TURN_CHARS]}" for turn in turns]
    answers = [
        _to_candidate(item, turns, dict(part), rank)
        for part in list(model_answers.split_parts(texts))[-_MAX_QUESTIONS:]
        for rank, item in enumerate(ask("condense", PROMPT, model_answers.number_lines(part), SCHEMA))
    ]
    good = [candidate for candidate in answers if candidate is not None]
    return good, len(answers) - len(good)


def _to_candidate(
    item: Mapping[str, Any], turns: Sequence[_Turn], shown: Mapping[int, str], rank: int
) -> _Candidate | None:
    line = model_answers.normalize_line(item.get("text"))
    numbers = model_answers.parse_numbers(item.get("turns"), shown)
    if (
        line is None
        or not numbers
        or not model_answers.is_grounded(line, [shown[number] for number in numbers])
    ):
        return None
    answered_kind: object = item.get("kind")
    kind: ChangeKind = next((known for known in _WEIGHTS if known == answered_kind), "event")
    # In the model's order, because it was asked for what matters.
    return _Candidate(tuple(turns[number - 1] for number in numbers), line, kind, -float(rank))
