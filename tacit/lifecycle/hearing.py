"""A sealed transcript as it is learned from: each turn with whose word it is.

    a user       owner, where the caller says so, else other
    a tool       agent, if it shows the agent's own work; web, if it reads what strangers write; else tool
    the agent    agent, unless its words may be somebody else's: then as little as they are trusted

Whose words an agent's may be cannot be seen in them, so it is told by what came before. What a tool or a
stranger said taints all that the agent says in answer, until a user speaks after it. Later turns are its own
again, unless they repeat `_RUN` words in a row of what was tainted: an agent that read a page in the morning
may tell it in the evening. A tool that shows the agent's own work taints no answer, but what repeats words
of a file that it read is the file's: anybody may have written that. Where the session is not the owner's, or
nobody speaks in it, all its words are.

What is no word of anybody is left out: notes that were changed, attachments, system messages, what tacit
gave. No content is judged here, and no file is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tacit.model.changes import Heard, Said, SaidBy, Trust, is_trusted, lowest
from tacit.model.turns import Message, ToolCall, Transcript, Turn
from tacit.text import marks
from tacit.text.ours import MARK, without_ours
from tacit.text.words import fold

Speaks = Callable[[str | None], bool]

_OWN_TOOLS = ("tacit_", "memory_")  # how the names of tools begin that give what the home already has
_RUN = 6  # words in a row that are no chance
_LOOKED_AT = 20_000  # characters of one turn
_LONGEST_ANSWER = 4_000  # characters of what a tool gave; a line of a transcript has less

# Words in the name of a tool that reads what strangers write.
_STRANGERS = frozenset(
    {"web", "www", "http", "https", "url", "uri", "fetch", "browser", "browse", "browsing", "crawl",
     "crawler", "scrape", "scraper", "curl", "wget", "download", "mail", "email", "gmail", "outlook",
     "imap", "inbox", "mailbox", "newsletter", "rss", "feed", "feeds", "news", "slack", "discord",
     "telegram", "whatsapp", "signal", "matrix", "irc", "sms", "teams", "messages", "chat", "twitter",
     "reddit", "mastodon", "bluesky", "youtube", "wikipedia", "wiki", "forum", "comments", "reviews",
     "google", "bing", "duckduckgo", "brave", "tavily", "exa", "serp", "perplexity", "github", "gitlab",
     "jira", "confluence", "issue", "issues"}
)  # fmt: skip
_LOCAL = frozenset(
    {"file", "files", "code", "memory", "note", "notes", "local", "repo", "repository", "symbol", "symbols"}
)
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://|\bwww\.|\b(?:curl|wget|lynx)\b|\bmailto:", re.IGNORECASE)
_IS_ADDRESS = re.compile(r"(?:^|=)[\"'\s]*(?:https?|ftp)://", re.IGNORECASE)  # an argument, not a part of one
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_ITEM = re.compile(r"^\s*(?:[-*+•>]+\s+|[0-9]{1,3}[.)]\s+)*(?:\d{4}-\d\d-\d\d:\s*|\d\d:\d\d\s+)?")
_FEWEST = 3  # words of a sentence that can be an echo


def heard(
    transcript: Transcript,
    *,
    is_owner: Speaks,
    trusted_tools: Collection[str],
    purged_records: Collection[int] = (),
    agents: Trust = "agent",
    users_speak: bool = True,
) -> Heard:
    """`is_owner` is asked with the speaker of a user's message. `agents`: how far the agent is trusted at
    best. `purged_records` are left out, and what is said in answer to them is tainted all the same. Without
    `users_speak` nobody wrote the messages of users: a schedule or another agent did, and they are left out.
    """
    said = [
        Said(turn.number, _role(turn), text, _speaker(turn), turn.at, trust)
        for turn, trust, _ in _followed(transcript.turns, is_owner, trusted_tools, agents=agents)
        if turn.number not in purged_records
        and (users_speak or not _is_users(turn))
        and (text := _words(turn))
    ]
    fields = transcript.fields
    return Heard(
        transcript=transcript.path,
        session_id=str(fields.get("session_id", "")),
        session_key=str(fields.get("session_key", "")),
        agent=str(fields.get("agent", "")),
        day=_day(transcript),
        title=transcript.title,
        said=tuple(said),
    )


def derived(
    transcript: Transcript, origins: Collection[int], *, is_owner: Speaks, trusted_tools: Collection[str]
) -> tuple[int, ...]:
    """The numbers of these records and of all that was said in answer to them or repeats them."""
    found = _followed(transcript.turns, is_owner, trusted_tools, origins)
    return tuple(turn.number for turn, _, causes in found if not causes.isdisjoint(origins))


def taint(turns: Sequence[Turn], text: str, *, is_owner: Speaks, trusted_tools: Collection[str]) -> Trust:
    """How far an agent is to be trusted that says this now, after these turns."""
    last = turns[-1] if turns else None
    if last is None:
        return "agent"
    now = Message(last.number + 1, last.at, "agent", text)
    *_, (_, trust, _) = _followed([*turns, now], is_owner, trusted_tools)
    return trust


# Whose word it is


def trust_of_tool(call: ToolCall, trusted_tools: Collection[str]) -> Trust:
    """How far what a tool gave back is to be trusted."""
    if _is_memory(call):
        return "agent"
    name = call.name.casefold()
    if name in {one.casefold() for one in trusted_tools}:
        return "web" if _IS_ADDRESS.search(call.summary) else "agent"
    parts = {part.casefold() for part in _NAME_PART.findall(call.name)}
    searches = "search" in parts and not parts & _LOCAL
    return "web" if searches or parts & _STRANGERS or _ADDRESS.search(call.summary) else "tool"


def _is_memory(call: ToolCall) -> bool:
    return call.name.casefold().startswith(_OWN_TOOLS)


@dataclass(slots=True)
class _Answer:
    """What the agent has read since a user last began to speak."""

    trust: Trust = "agent"
    causes: frozenset[int] = frozenset()
    is_given: bool = False  # the agent has spoken: the next message of a user begins another

    def add(self, turn: Turn, trust: Trust, causes: frozenset[int]) -> None:
        if isinstance(turn, Message) and turn.role == "agent":
            self.is_given = True
            return
        if _is_users(turn) and self.is_given:
            self.trust, self.causes, self.is_given = "agent", frozenset(), False
        self.causes |= causes
        if not is_trusted(trust):
            self.trust = lowest((self.trust, trust))


@dataclass(slots=True)
class _Tainted:
    """Runs of words that were not the agent's own, each with where it is from."""

    runs: dict[int, tuple[Trust, frozenset[int]]] = field(default_factory=dict)

    def add(self, text: str, trust: Trust, causes: frozenset[int]) -> None:
        for run in _runs(text):
            self.runs.setdefault(run, (trust, causes))

    def repeated(self, text: str) -> Iterator[tuple[Trust, frozenset[int]]]:
        return (self.runs[run] for run in _runs(text) if run in self.runs) if self.runs else iter(())


def _followed(
    turns: Iterable[Turn],
    is_owner: Speaks,
    trusted_tools: Collection[str],
    origins: Collection[int] = (),
    *,
    agents: Trust = "agent",
) -> Iterator[tuple[Turn, Trust, frozenset[int]]]:
    """Each turn that has words, its trust, and the records that its words may be from. `origins` are such
    records whoever said them."""
    answer, tainted = _Answer(), _Tainted()
    for turn in turns:
        if not isinstance(turn, Message | ToolCall) or _is_systems(turn):
            continue
        own = frozenset((turn.number,))
        trust, causes = _trust(turn, is_owner, trusted_tools), frozenset[int]()
        if isinstance(turn, Message) and turn.role == "agent":
            trust, causes = _of_agent(turn, answer, tainted)
            trust = lowest((trust, agents))
        elif not is_trusted(trust):
            causes = own
        if turn.number in origins:
            causes |= own
        if causes:
            tainted.add(_all_words(turn), trust, causes)
        elif isinstance(turn, ToolCall) and not _is_memory(turn):
            tainted.add(turn.result[:_LONGEST_ANSWER], "tool", own)
        answer.add(turn, trust, causes)
        yield turn, trust, causes


def _trust(turn: Message | ToolCall, is_owner: Speaks, trusted_tools: Collection[str]) -> Trust:
    if isinstance(turn, ToolCall):
        return trust_of_tool(turn, trusted_tools)
    if turn.role == "agent":
        return "agent"
    return "owner" if is_owner(turn.speaker) else "other"


def _of_agent(turn: Message, answer: _Answer, tainted: _Tainted) -> tuple[Trust, frozenset[int]]:
    found = list(tainted.repeated(turn.text))
    trust = lowest(("agent", answer.trust, *(one for one, _ in found if not is_trusted(one))))
    return trust, answer.causes.union(*(causes for _, causes in found))


def _runs(text: str) -> Iterator[int]:
    words = _WORD.findall(fold(text[:_LOOKED_AT]))
    return map(hash, zip(*(words[at:] for at in range(_RUN)), strict=False))


# Words


def _is_users(turn: Turn) -> bool:
    return isinstance(turn, Message) and turn.role == "user"


def _is_systems(turn: Turn) -> bool:
    return isinstance(turn, Message) and turn.role == "system"


def _role(turn: Turn) -> SaidBy:
    return turn.role if isinstance(turn, Message) else "tool"


def _speaker(turn: Turn) -> str:
    if isinstance(turn, ToolCall):
        return turn.name
    return (turn.speaker or "") if isinstance(turn, Message) else ""


def _words(turn: Turn) -> str:
    """Empty where nothing was said but what tacit gave."""
    text = without_ours(_all_words(turn)).strip()
    return "" if text == MARK else text


def _all_words(turn: Turn) -> str:
    if isinstance(turn, ToolCall):
        return f"{turn.summary} → {turn.result[:_LONGEST_ANSWER]}" if turn.result else turn.summary
    return turn.text if isinstance(turn, Message) else ""


def _day(transcript: Transcript) -> str:
    started = str(transcript.fields.get("started", ""))[:10]
    if re.fullmatch(r"\d{4}-\d\d-\d\d", started):
        return started
    return transcript.turns[0].at.date().isoformat() if transcript.turns else ""


# What was given comes back


def echoes(heard: Heard, given: Sequence[str] | Given) -> Heard:
    """Without the sentences of the agent that repeat what it was given, word by word or nearly so. `given`:
    texts, of any length; who asks for many conversations makes a Given of them once."""
    known = given if isinstance(given, Given) else Given(given)
    said = (_without_echoes(one, known) if one.role == "agent" else one for one in heard.said)
    return replace(heard, said=tuple(one for one in said if one.text))


class Given:
    """Texts, to be asked whether a sentence repeats one of them."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._whole: set[tuple[str, ...]] = set()
        self._pieces: set[tuple[str, ...]] = set()
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        for sentence in map(_plain, _SENTENCE.split(text)):
            if len(sentence) >= _FEWEST:
                self._whole.add(sentence)
            self._pieces.update(_pieces(sentence))

    def has(self, sentence: str) -> bool:
        """Whether all of it was given, or all but a few words around it ("As I noted: …")."""
        words = _plain(sentence)
        if words in self._whole:
            return True
        covered = [False] * len(words)
        for at, piece in enumerate(_pieces(words)):
            if piece in self._pieces:
                covered[at : at + len(piece)] = [True] * len(piece)
        return len(words) > _FEWEST and sum(covered) >= 0.7 * len(words)


def _pieces(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[at:] for at in range(_FEWEST + 1)), strict=False)


def _plain(sentence: str) -> tuple[str, ...]:
    """Its words, without bullet, date and mark."""
    text = marks.read(sentence)[0]
    return tuple(_WORD.findall(fold(text[_ITEM.match(text).end() :])))  # type: ignore[union-attr]


def _without_echoes(said: Said, known: Given) -> Said:
    lines = ["".join(_kept(line, known)).strip() for line in said.text.split("\n")]
    if lines == [line.strip() for line in said.text.split("\n")]:
        return said
    return replace(said, text="\n".join(lines).strip())


def _kept(line: str, known: Given) -> Iterator[str]:
    at = 0
    for end in [found.end() for found in _SENTENCE.finditer(line)] + [len(line)]:
        if not known.has(line[at:end]):
            yield line[at:end]
        at = end
