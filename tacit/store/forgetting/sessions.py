"""Transcripts, by the id or the key in their heads: they go altogether, and so does what names them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from tacit.errors import UsageError
from tacit.model.turns import Attachment
from tacit.store.forgetting.transcript import Count, redacted
from tacit.store.forgetting.what import HEAD, Forgetting, each_text, is_transcript
from tacit.store.forgetting.words import WORD
from tacit.text import notes
from tacit.text import transcript as form

_BEGINNING = 70  # characters of a message that every log has, unless it is shorter
_QUOTED = 5  # words in a row that are taken for a quotation
_WORDS = re.compile(r"\w+")


class Sessions(Forgetting):
    """`meant(session_id, session_key)` says which."""

    drops_commits = True

    def __init__(self, kind: str, given: str, meant: Callable[[str, str], bool], count: Count) -> None:
        super().__init__()
        self.kind, self.secret, self.is_meant, self._count = kind, f"{kind}\0{given}", meant, count
        # Without these letters in its head a file need not be parsed. What YAML would escape is none of them.
        self._probe = max(re.findall(r"[A-Za-z0-9]+", given), key=len, default="").encode()
        self.keys: set[str] = set()
        self._ids: set[str] = set()
        self._said: set[str] = set()  # the beginning of each message, as logs have it
        self._quotations: set[tuple[str, ...]] = set()

    def _is_theirs(self, data: bytes) -> bool:
        if not data.startswith((b"---", b"\xef\xbb\xbf---")) or self._probe not in data[:HEAD]:
            return False
        fields = notes.parse(notes.decode(data[:HEAD]), "").fields
        return self.is_meant(str(fields.get("session_id", "")), str(fields.get("session_key", "")))

    def learn(self, path: str, data: bytes) -> None:
        if not is_transcript(path) or not self._is_theirs(data):
            return
        self.mentions.add(path, None)
        self.mentions.add_digest(data, None)
        parsed = form.parse(notes.decode(data), path)
        self._ids.add(str(parsed.fields.get("session_id", "")))
        self.keys.add(str(parsed.fields.get("session_key", "")))
        for turn in parsed.messages:
            self._said.add(_beginning(turn.text))
            self._quotations.update(_quotations(turn.text))
        self.attachments |= {turn.path for turn in parsed.turns if isinstance(turn, Attachment)}

    def holds(self, data: bytes) -> bool:
        return self._is_theirs(data) or self.mentions.are_in(data)

    def is_like(self, path: str, data: bytes) -> bool:
        return path != "" and not self._quotations.isdisjoint(_quotations(notes.decode(data)))

    # ------------------------------------------------------------ without them

    def file(self, path: str, data: bytes) -> bytes | None:
        if not is_transcript(path):
            return self.mentions.replaced(data)
        if self._is_theirs(data):
            return None
        if not self.mentions.are_in(data):
            return data
        new = redacted(data, path, self.mentions.replaced_text, turns=False, count=self._count)
        self.mentions.add_digest(data, new)
        return new

    def message(self, data: bytes) -> bytes:
        """Lines that name one of them go; the subject says at least what kind of commit it was."""
        subject, *lines = data.split(b"\n")
        kept = [line for line in lines if not self._names_gone(line)]
        if len(kept) < len(lines) and subject.startswith(b"conversation: "):
            subject = b"conversation: " + WORD.encode()
        return self.mentions.replaced(
            b"\n".join([subject, *kept]).rstrip(b"\n") + b"\n" * data.endswith(b"\n")
        )

    def _names_gone(self, line: bytes) -> bool:
        return WORD.encode() in self.mentions.replaced(line) and WORD.encode() not in line

    def text(self, data: bytes) -> bytes:
        gone = any(name and name.encode() in data for name in self._ids)
        return b"" if gone else self.mentions.replaced(data)

    def line(self, value: object, by: str) -> object:
        if self._is_of_them(value):
            return None
        return each_text(self._without_keys(value), lambda text: self.mentions.replaced_text(text, by))

    def _is_of_them(self, value: object) -> bool:
        if isinstance(value, list):
            return any(self._is_id(item) or self._is_of_them(item) for item in value)
        if not isinstance(value, dict):
            return False
        named = self.is_meant(str(value.get("session_id", "")), str(value.get("session_key", "")))
        with suppress(ValueError, RecursionError):  # a line of the spool that was set aside
            named = named or self._is_of_them(json.loads(str(value.get("line", "null"))))
        said = value.get("message")
        return (
            named
            or (isinstance(said, str) and _beginning(said) in self._said)
            or any(map(self._is_of_them, value.values()))
        )

    def _is_id(self, value: object) -> bool:
        """Among the ids of records a session stands by itself."""
        return isinstance(value, str) and value != "" and (value in self._ids or self.is_meant(value, ""))

    def _without_keys(self, value: object) -> object:
        """A table by session key."""
        if not isinstance(value, dict):
            return value
        return {
            key: item for key, item in value.items() if not (":" in str(key) and self.is_meant("", str(key)))
        }


def _beginning(message: str) -> str:
    return " ".join(message[: 4 * _BEGINNING].rstrip("…").split())[:_BEGINNING]


def _quotations(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORDS.findall(text.casefold())
    return zip(*(words[at:] for at in range(_QUOTED)), strict=False)


def one_session(session_id: str) -> Callable[[str, str], bool]:
    return lambda found, _: found == session_id


def sessions_of(origin: str) -> Callable[[str, str], bool]:
    """Keys that are this one or lie below it, by segments. What follows the agent is enough: a channel, or a
    channel and whom it was with. An account between the two must be named as well."""
    wanted = origin.split(":")
    if not origin or "" in wanted:
        raise UsageError(f"{origin!r} is not a session key. Give one such as telegram:direct:99.")

    def meant(_: str, key: str) -> bool:
        segments = key.split(":")
        return segments[: len(wanted)] == wanted or (
            segments[0] == "agent" and segments[2 : 2 + len(wanted)] == wanted
        )

    return meant
