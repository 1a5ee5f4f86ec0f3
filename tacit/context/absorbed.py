"""Whether a conversation has absorbed a file: what stands in it was in use, and then for some turns no more.

The signature of a file is its sentences, each by the words that tell it: neither those that messages about
anything have, nor those that another file of the session has too. A sentence is in use where one sentence of
what was said has a third of them, and two at least: one word alone may be there by chance.

What was said is what the user, the agent and its calls of tools said since the host last cut its window. The
same conversation gives the same answer, whoever asks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from tacit.model.turns import Message, ToolCall, Turn
from tacit.text import notes
from tacit.text.forms import EVERYDAY, forms_of, words_of
from tacit.text.lines import scan
from tacit.text.words import unspaced

_LONGEST = 20_000  # characters of a file or a message that count: no host loads more of one file
_SHORT = 4_000  # characters of a text that is read once only
_WINDOW = 1_000_000  # characters of a conversation: no model has more of it in view
_END = re.compile(r"[.!?;…](?=\s)|[。！？；]")
# How much a word counts; three pairs of letters are about one word.
_WORD, _PAIR = 3, 1
_LEAST = 2 * _WORD


class Conversation(NamedTuple):
    turns: tuple[tuple[str, ...], ...]  # texts of each turn that is over, the oldest first
    newest: tuple[str, ...]  # of the one that begins


class Use(NamedTuple):
    """When something of a file was in use last."""

    ago: int  # turns; 1 is the one before
    line: int  # of the file


def absorbed(
    files: Mapping[str, str], may_go: Collection[str], said: Conversation, after: int
) -> dict[str, Use]:
    """Of the files that may go those that were used, and then not for `after` turns, by name. What the newest
    message speaks of is in use."""
    words = {name: frozenset(chain(*(one.words for one in _sentences(text)))) for name, text in files.items()}
    found: dict[str, Use] = {}
    for name in may_go:
        elsewhere = frozenset().union(*(words[other] for other in files if other != name))
        signature = _Signature(_sentences(_body(files[name])), elsewhere)
        use = signature.last_use(said)
        if use is not None and use.ago > after:
            found[name] = use
    return found


def conversation(records: Sequence[Turn], message: str, since: datetime | None) -> Conversation:
    """What the records of a transcript say since then, and the message that is not answered yet. It may stand
    in the transcript already, so what the user said last belongs to it as long as nobody answered."""
    turns: list[list[str]] = []
    is_answered = True
    for record in _in_window(records, since):
        is_users = isinstance(record, Message) and record.role == "user"
        if is_users and is_answered:
            turns.append([])
        is_answered = not is_users
        if turns:  # what the agent says before anybody asked is of no turn
            turns[-1].append(record.text if isinstance(record, Message) else record.summary)
    newest = turns.pop() if turns and not is_answered else []
    return Conversation(tuple(map(tuple, turns)), (*newest, message))


def _in_window(records: Sequence[Turn], since: datetime | None) -> list[Message | ToolCall]:
    """What the host says by itself is nobody's use of anything."""
    kept: list[Message | ToolCall] = []
    left = _WINDOW
    for record in reversed(records):
        if left < 0 or (since is not None and record.at <= since):
            break
        if isinstance(record, ToolCall) or (isinstance(record, Message) and record.role != "system"):
            left -= len(record.text if isinstance(record, Message) else record.summary)
            kept.append(record)
    return kept[::-1]


class _Sentence(NamedTuple):
    line: int
    words: tuple[str, ...]


class _Signature:
    def __init__(self, sentences: Iterable[_Sentence], elsewhere: Collection[str]) -> None:
        self._needed: list[int] = []
        self._lines: list[int] = []
        self._having: dict[str, list[int]] = {}  # which sentences, by word
        for sentence in sentences:
            telling = [word for word in sentence.words if word not in elsewhere]
            for word in telling:
                self._having.setdefault(word, []).append(len(self._lines))
            self._lines.append(sentence.line)
            self._needed.append(max(_LEAST, -(-sum(map(_weight, telling)) // 3)))

    def last_use(self, said: Conversation) -> Use | None:
        """None: nothing of it was ever used, or it is in use now."""
        if not self._having or self._line_in(said.newest):
            return None
        for ago, texts in enumerate(reversed(said.turns), 1):
            if line := self._line_in(texts):
                return Use(ago, line)
        return None

    def _line_in(self, texts: Iterable[str]) -> int:
        """The line that one of these texts speaks of; 0 for none."""
        for sentence in chain(*map(_sentences, texts)):
            shared: dict[int, int] = {}
            for word in sentence.words:
                for at in self._having.get(word, ()):
                    shared[at] = shared.get(at, 0) + _weight(word)
            for at, weight in shared.items():
                if weight >= self._needed[at]:
                    return self._lines[at]
        return 0


def _weight(word: str) -> int:
    return _PAIR if unspaced(word) else _WORD


def _body(text: str) -> str:
    """With as many lines as the file has: its head says nothing about the world."""
    head, body = notes.split(text)
    return "\n" * head.count("\n") + body


def _sentences(text: str) -> Sequence[_Sentence]:
    return _remembered(text) if len(text) <= _SHORT else list(_read(text[:_LONGEST]))


@lru_cache(maxsize=8192)  # a conversation is looked at again with every turn
def _remembered(text: str) -> tuple[_Sentence, ...]:
    return tuple(_read(text))


def _read(text: str) -> Iterator[_Sentence]:
    for line in scan(text):
        if line.kind in ("text", "code"):
            for piece in _END.split(line.text):
                forms = (form for word in words_of(piece) for form in forms_of(word))
                if words := tuple(dict.fromkeys(form for form in forms if form not in EVERYDAY)):
                    yield _Sentence(line.number, words)
