"""Whether a conversation is done with a file: it used the file, and then not for some turns.

The signature of a file is its sentences, each as a set of characteristic words: without everyday words and
without words of the session's other files. A sentence is in use if one sentence of the conversation has a
third of its words, and at least two: a single word may be there by chance.

The conversation is the messages of the user and the agent and the tool calls since the host last cut its
window. The result depends only on the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from tacit.markdown import notes
from tacit.text.lines import scan
from tacit.text.words import EVERYDAY_FORMS, is_unspaced, split_words, stem_token
from tacit.transcripts.model import Message, ToolCall, Turn

_MAX_CHARS = 20_000  # of a file or a message: no host loads more of one file
_MAX_CACHED_CHARS = 4_000  # longer texts are parsed anew each time
_MAX_WINDOW_CHARS = 1_000_000  # of a conversation: no model sees more of it
_SENTENCE_END = re.compile(r"[.!?;…](?=\s)|[。！？；]")
# Weights; in scripts without spaces, three pairs of letters are about one word.
_WORD_WEIGHT, _PAIR_WEIGHT = 3, 1
_MIN_WEIGHT = 2 * _WORD_WEIGHT


class ConversationText(NamedTuple):
    turns: tuple[tuple[str, ...], ...]  # texts of each finished turn, oldest first
    newest: tuple[str, ...]  # texts of the current turn


class LastUse(NamedTuple):
    """When a file was last used."""

    ago: int  # turns; 1 is the previous one
    line: int  # of the file


def find_unused_files(
    files: Mapping[str, str], removable: Collection[str], conversation: ConversationText, after_turns: int
) -> dict[str, LastUse]:
    """The removable files that were used, and then not for `after_turns` turns, by name. A file that the
    newest message mentions is in use."""
    words = {
        name: frozenset(chain(*(sentence.words for sentence in _split_sentences(text))))
        for name, text in files.items()
    }
    unused: dict[str, LastUse] = {}
    for name in removable:
        elsewhere = frozenset().union(*(words[other] for other in files if other != name))
        signature = _Signature(_split_sentences(_blank_head(files[name])), elsewhere)
        use = signature.last_use(conversation)
        if use is not None and use.ago > after_turns:
            unused[name] = use
    return unused


def split_conversation(records: Sequence[Turn], message: str, since: datetime | None) -> ConversationText:
    """Split the events since then into turns, with the current message. The message may be in the transcript
    already, so unanswered user messages at the end belong to it."""
    turns: list[list[str]] = []
    is_answered = True
    for record in _messages_in_window(records, since):
        is_users = isinstance(record, Message) and record.role == "user"
        if is_users and is_answered:
            turns.append([])
        is_answered = not is_users
        if turns:  # agent messages before the first question belong to no turn
            turns[-1].append(record.text if isinstance(record, Message) else record.summary)
    newest = turns.pop() if turns and not is_answered else []
    return ConversationText(tuple(map(tuple, turns)), (*newest, message))


def _messages_in_window(records: Sequence[Turn], since: datetime | None) -> list[Message | ToolCall]:
    """Recent messages and tool calls. System messages are left out: they do not use files."""
    messages: list[Message | ToolCall] = []
    chars_left = _MAX_WINDOW_CHARS
    for record in reversed(records):
        if chars_left < 0 or (since is not None and record.at <= since):
            break
        if isinstance(record, ToolCall) or (isinstance(record, Message) and record.role != "system"):
            chars_left -= len(record.text if isinstance(record, Message) else record.summary)
            messages.append(record)
    return messages[::-1]


class _Sentence(NamedTuple):
    line: int
    words: tuple[str, ...]


class _Signature:
    def __init__(self, sentences: Iterable[_Sentence], elsewhere: Collection[str]) -> None:
        self._needed_weights: list[int] = []
        self._lines: list[int] = []
        self._sentences_by_word: dict[str, list[int]] = {}  # indexes of sentences, by word
        for sentence in sentences:
            telling_words = [word for word in sentence.words if word not in elsewhere]
            for word in telling_words:
                self._sentences_by_word.setdefault(word, []).append(len(self._lines))
            self._lines.append(sentence.line)
            self._needed_weights.append(max(_MIN_WEIGHT, -(-sum(map(_weight, telling_words)) // 3)))

    def last_use(self, conversation: ConversationText) -> LastUse | None:
        """None: the file was never used, or it is in use now."""
        if not self._sentences_by_word or self._line_in(conversation.newest):
            return None
        for ago, texts in enumerate(reversed(conversation.turns), 1):
            if line := self._line_in(texts):
                return LastUse(ago, line)
        return None

    def _line_in(self, texts: Iterable[str]) -> int:
        """The line that one of these texts mentions; 0: none."""
        for sentence in chain(*map(_split_sentences, texts)):
            shared: dict[int, int] = {}
            for word in sentence.words:
                for index in self._sentences_by_word.get(word, ()):
                    shared[index] = shared.get(index, 0) + _weight(word)
            for index, weight in shared.items():
                if weight >= self._needed_weights[index]:
                    return self._lines[index]
        return 0


def _weight(word: str) -> int:
    return _PAIR_WEIGHT if is_unspaced(word) else _WORD_WEIGHT


def _blank_head(text: str) -> str:
    """Blank the frontmatter, but keep its line count: it says nothing about the world."""
    head, body = notes.split(text)
    return "\n" * head.count("\n") + body


def _split_sentences(text: str) -> Sequence[_Sentence]:
    return (
        _read_short_text(text) if len(text) <= _MAX_CACHED_CHARS else list(_read_sentences(text[:_MAX_CHARS]))
    )


@lru_cache(maxsize=8192)  # every turn reads the conversation again
def _read_short_text(text: str) -> tuple[_Sentence, ...]:
    return tuple(_read_sentences(text))


def _read_sentences(text: str) -> Iterator[_Sentence]:
    for line in scan(text):
        if line.kind in ("text", "code"):
            for piece in _SENTENCE_END.split(line.text):
                forms = (form for word in split_words(piece) for form in stem_token(word))
                if words := tuple(dict.fromkeys(form for form in forms if form not in EVERYDAY_FORMS)):
                    yield _Sentence(line.number, words)
