"""Attribute the turns of a finalized transcript: who said each, and how far it is trusted.

    a user       owner if the caller says so, else other
    a tool       agent if it shows the agent's own work; web if it reads what strangers write; else tool
    the agent    agent, unless its words may come from another source: then that source's trust

The words of an agent do not show where they come from, so the turns before them decide. What a tool or a
stranger said taints everything the agent answers until a user speaks after it. Later turns are its own again,
unless they repeat `_MIN_RUN_WORDS` tainted words in a row: an agent that read a page in the morning may quote
it in the evening. A tool that shows the agent's own work does not taint the answer, but words repeated from a
file that it read belong to that file, whose author is unknown. If the session is not the owner's, or no
person speaks in it, all its words are tainted.

Edited notes, attachments, system messages and what tacit injected are left out. The content is not judged
here, and no file is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tacit.markdown import comment
from tacit.markdown.comment import Trust, is_trusted, lowest
from tacit.privacy.strip_injected import PLACEHOLDER, remove_injected
from tacit.text.words import fold
from tacit.transcripts.attribution import AttributedTranscript, Utterance, role_of, speaker_of, text_of
from tacit.transcripts.model import Message, ToolCall, Transcript, Turn

IsOwner = Callable[[str | None], bool]

_OWN_TOOLS = ("tacit_", "memory_")  # prefixes of tools that return what the home already has
_MIN_RUN_WORDS = 6  # words in a row that are no coincidence
_MAX_TURN_CHARS = 20_000
_MAX_RESULT_CHARS = 4_000  # of a tool's result; a line of a transcript is shorter

# Words in the name of a tool that reads what strangers write.
_OUTSIDE_PARTS = frozenset(
    {"web", "www", "http", "https", "url", "uri", "fetch", "browser", "browse", "browsing", "crawl",
     "crawler", "scrape", "scraper", "curl", "wget", "download", "mail", "email", "gmail", "outlook",
     "imap", "inbox", "mailbox", "newsletter", "rss", "feed", "feeds", "news", "slack", "discord",
     "telegram", "whatsapp", "signal", "matrix", "irc", "sms", "teams", "messages", "chat", "twitter",
     "reddit", "mastodon", "bluesky", "youtube", "wikipedia", "wiki", "forum", "comments", "reviews",
     "google", "bing", "duckduckgo", "brave", "tavily", "exa", "serp", "perplexity", "github", "gitlab",
     "jira", "confluence", "issue", "issues"}
)  # fmt: skip
_LOCAL_PARTS = frozenset(
    {"file", "files", "code", "memory", "note", "notes", "local", "repo", "repository", "symbol", "symbols"}
)
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://|\bwww\.|\b(?:curl|wget|lynx)\b|\bmailto:", re.IGNORECASE)
_ADDRESS_ARGUMENT = re.compile(
    r"(?:^|=)[\"'\s]*(?:https?|ftp)://", re.IGNORECASE
)  # an argument, not a part of one
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_ITEM = re.compile(r"^\s*(?:[-*+•>]+\s+|[0-9]{1,3}[.)]\s+)*(?:\d{4}-\d\d-\d\d:\s*|\d\d:\d\d\s+)?")
_MIN_ECHO_WORDS = 3  # shorter sentences are never echoes


def attribute_turns(
    transcript: Transcript,
    *,
    is_owner: IsOwner,
    trusted_tools: Collection[str],
    purged_records: Collection[int] = (),
    agents: Trust = "agent",
    users_speak: bool = True,
) -> AttributedTranscript:
    """`is_owner` is called with the speaker of a user's message. `agents`: the highest trust of the agent.
    `purged_records` are left out but still taint the answers to them. Without `users_speak` the user messages
    came from a schedule or another agent, and are left out.
    """
    utterances = [
        Utterance(turn.number, role_of(turn), text, speaker_of(turn), turn.at, trust)
        for turn, trust, _ in _trace_trust(transcript.turns, is_owner, trusted_tools, agents=agents)
        if turn.number not in purged_records
        and (users_speak or not _is_from_user(turn))
        and (text := _own_words(turn))
    ]
    fields = transcript.fields
    return AttributedTranscript(
        transcript=transcript.path,
        session_id=str(fields.get("session_id", "")),
        session_key=str(fields.get("session_key", "")),
        agent=str(fields.get("agent", "")),
        day=_start_day(transcript),
        title=transcript.title,
        said=tuple(utterances),
    )


def find_derivations(
    transcript: Transcript, origins: Collection[int], *, is_owner: IsOwner, trusted_tools: Collection[str]
) -> tuple[int, ...]:
    """The numbers of these records and of all turns that answer or repeat them."""
    traced = _trace_trust(transcript.turns, is_owner, trusted_tools, origins)
    return tuple(turn.number for turn, _, causes in traced if not causes.isdisjoint(origins))


def assess_trust(
    turns: Sequence[Turn], text: str, *, is_owner: IsOwner, trusted_tools: Collection[str]
) -> Trust:
    """The trust of this text if the agent says it now, after these turns."""
    last = turns[-1] if turns else None
    if last is None:
        return "agent"
    now = Message(last.number + 1, last.at, "agent", text)
    *_, (_, trust, _) = _trace_trust([*turns, now], is_owner, trusted_tools)
    return trust


# Trust


def tool_trust(call: ToolCall, trusted_tools: Collection[str]) -> Trust:
    """The trust of a tool's result."""
    if _is_memory(call):
        return "agent"
    name = call.name.casefold()
    if name in {tool.casefold() for tool in trusted_tools}:
        return "web" if _ADDRESS_ARGUMENT.search(call.summary) else "agent"
    parts = {part.casefold() for part in _NAME_PART.findall(call.name)}
    searches = "search" in parts and not parts & _LOCAL_PARTS
    return "web" if searches or parts & _OUTSIDE_PARTS or _ADDRESS.search(call.summary) else "tool"


def _is_memory(call: ToolCall) -> bool:
    return call.name.casefold().startswith(_OWN_TOOLS)


@dataclass(slots=True)
class _AnswerState:
    """What the agent has read since a user last began to speak."""

    trust: Trust = "agent"
    causes: frozenset[int] = frozenset()
    is_given: bool = False  # the agent has spoken: the next user message starts a new answer

    def add(self, turn: Turn, trust: Trust, causes: frozenset[int]) -> None:
        if isinstance(turn, Message) and turn.role == "agent":
            self.is_given = True
            return
        if _is_from_user(turn) and self.is_given:
            self.trust, self.causes, self.is_given = "agent", frozenset(), False
        self.causes |= causes
        if not is_trusted(trust):
            self.trust = lowest((self.trust, trust))


@dataclass(slots=True)
class _TaintedRuns:
    """Runs of words that were not the agent's own, each with its source."""

    runs: dict[int, tuple[Trust, frozenset[int]]] = field(default_factory=dict)

    def add(self, text: str, trust: Trust, causes: frozenset[int]) -> None:
        for run in _hash_runs(text):
            self.runs.setdefault(run, (trust, causes))

    def find_repeats(self, text: str) -> Iterator[tuple[Trust, frozenset[int]]]:
        return (self.runs[run] for run in _hash_runs(text) if run in self.runs) if self.runs else iter(())


def _trace_trust(
    turns: Iterable[Turn],
    is_owner: IsOwner,
    trusted_tools: Collection[str],
    origins: Collection[int] = (),
    *,
    agents: Trust = "agent",
) -> Iterator[tuple[Turn, Trust, frozenset[int]]]:
    """Each turn with words, its trust, and the records that its words may come from. `origins` count as such
    records, also if the owner said them."""
    answer, tainted = _AnswerState(), _TaintedRuns()
    for turn in turns:
        if not isinstance(turn, Message | ToolCall) or _is_from_system(turn):
            continue
        own = frozenset((turn.number,))
        trust, causes = _direct_trust(turn, is_owner, trusted_tools), frozenset[int]()
        if isinstance(turn, Message) and turn.role == "agent":
            trust, causes = _agent_trust(turn, answer, tainted)
            trust = lowest((trust, agents))
        elif not is_trusted(trust):
            causes = own
        if turn.number in origins:
            causes |= own
        if causes:
            tainted.add(text_of(turn, _MAX_RESULT_CHARS), trust, causes)
        elif isinstance(turn, ToolCall) and not _is_memory(turn):
            tainted.add(turn.result[:_MAX_RESULT_CHARS], "tool", own)
        answer.add(turn, trust, causes)
        yield turn, trust, causes


def _direct_trust(turn: Message | ToolCall, is_owner: IsOwner, trusted_tools: Collection[str]) -> Trust:
    if isinstance(turn, ToolCall):
        return tool_trust(turn, trusted_tools)
    if turn.role == "agent":
        return "agent"
    return "owner" if is_owner(turn.speaker) else "other"


def _agent_trust(turn: Message, answer: _AnswerState, tainted: _TaintedRuns) -> tuple[Trust, frozenset[int]]:
    repeats = list(tainted.find_repeats(turn.text))
    trust = lowest(
        ("agent", answer.trust, *(cause_trust for cause_trust, _ in repeats if not is_trusted(cause_trust)))
    )
    return trust, answer.causes.union(*(causes for _, causes in repeats))


def _hash_runs(text: str) -> Iterator[int]:
    words = _WORD.findall(fold(text[:_MAX_TURN_CHARS]))
    return map(hash, zip(*(words[start:] for start in range(_MIN_RUN_WORDS)), strict=False))


# Words


def _is_from_user(turn: Turn) -> bool:
    return isinstance(turn, Message) and turn.role == "user"


def _is_from_system(turn: Turn) -> bool:
    return isinstance(turn, Message) and turn.role == "system"


def _own_words(turn: Turn) -> str:
    """Empty if the turn has only text that tacit injected."""
    text = remove_injected(text_of(turn, _MAX_RESULT_CHARS)).strip()
    return "" if text == PLACEHOLDER else text


def _start_day(transcript: Transcript) -> str:
    started = str(transcript.fields.get("started", ""))[:10]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", started):
        return started
    return transcript.turns[0].at.date().isoformat() if transcript.turns else ""


# Echoes of injected text


def drop_echoes(
    conversation: AttributedTranscript, injected: Sequence[str] | InjectedTexts
) -> AttributedTranscript:
    """Drop sentences of the agent that repeat, word by word or nearly, what it was given.
    `injected`: texts of any length; for many conversations, build one InjectedTexts of them."""
    known = injected if isinstance(injected, InjectedTexts) else InjectedTexts(injected)
    utterances = (_strip_echoes(turn, known) if turn.role == "agent" else turn for turn in conversation.said)
    return replace(conversation, said=tuple(turn for turn in utterances if turn.text))


class InjectedTexts:
    """An index of texts that tells whether a sentence repeats one of them."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._whole: set[tuple[str, ...]] = set()
        self._pieces: set[tuple[str, ...]] = set()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        for sentence in map(_plain_words, _SENTENCE.split(text)):
            if len(sentence) >= _MIN_ECHO_WORDS:
                self._whole.add(sentence)
            self._pieces.update(_word_runs(sentence))

    def has(self, sentence: str) -> bool:
        """Whether all of it was given, or all but a few words around it ("As I noted: …")."""
        words = _plain_words(sentence)
        if words in self._whole:
            return True
        covered = [False] * len(words)
        for start, piece in enumerate(_word_runs(words)):
            if piece in self._pieces:
                covered[start : start + len(piece)] = [True] * len(piece)
        return len(words) > _MIN_ECHO_WORDS and sum(covered) >= 0.7 * len(words)


def _word_runs(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(_MIN_ECHO_WORDS + 1)), strict=False)


def _plain_words(sentence: str) -> tuple[str, ...]:
    """Its words, without bullet, date and provenance comment."""
    text = comment.read(sentence)[0]
    return tuple(_WORD.findall(fold(text[_ITEM.match(text).end() :])))  # type: ignore[union-attr]


def _strip_echoes(turn: Utterance, known: InjectedTexts) -> Utterance:
    lines = ["".join(_keep_new_sentences(line, known)).strip() for line in turn.text.split("\n")]
    if lines == [line.strip() for line in turn.text.split("\n")]:
        return turn
    return replace(turn, text="\n".join(lines).strip())


def _keep_new_sentences(line: str, known: InjectedTexts) -> Iterator[str]:
    start = 0
    for end in [match.end() for match in _SENTENCE.finditer(line)] + [len(line)]:
        if not known.has(line[start:end]):
            yield line[start:end]
        start = end
