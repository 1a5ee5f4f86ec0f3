"""Forget sessions by id or key: their transcripts, and everything that mentions them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from tacit.erase.spellings import MIN_TEXT_CHARS, PLACEHOLDER_WORD
from tacit.erase.target import HEAD_BYTES, Erasure, is_transcript, map_text
from tacit.erase.transcript import CountTokens, hint_of, redact
from tacit.errors import UsageError
from tacit.markdown import notes
from tacit.transcripts import format as form
from tacit.transcripts.model import Attachment

_BEGINNING_CHARS = 70  # of a message, which every log has
_MIN_SLUG_WORDS = 3  # a shorter slug does not identify a session
_QUOTATION_WORDS = 5  # this many words in a row count as a quotation
_WORD_PATTERN = re.compile(r"\w+")


class SessionErasure(Erasure):
    """`meant(session_id, session_key)` decides which sessions."""

    drops_commits = True

    def __init__(self, kind: str, given: str, meant: Callable[[str, str], bool], count: CountTokens) -> None:
        super().__init__()
        self.kind, self.secret, self.is_meant, self._count = kind, f"{kind}\0{given}", meant, count
        # A file without these letters in its head need not be parsed. YAML does not escape any of them.
        self._probe = max(re.findall(r"[A-Za-z0-9]+", given), key=len, default="").encode()
        self.keys: set[str] = set()
        self._ids: set[str] = set()
        self._message_beginnings: set[str] = set()  # as in logs
        self._quotations: set[tuple[str, ...]] = set()
        self._names: set[bytes] = set()  # that branches, notes and messages may use for them

    def _is_target(self, data: bytes) -> bool:
        if not data.startswith((b"---", b"\xef\xbb\xbf---")) or self._probe not in data[:HEAD_BYTES]:
            return False
        fields = notes.parse(notes.decode(data[:HEAD_BYTES]), "").fields
        return self.is_meant(str(fields.get("session_id", "")), str(fields.get("session_key", "")))

    def learn(self, path: str, data: bytes) -> None:
        if not is_transcript(path) or not self._is_target(data):
            return
        self.mentions.add(path, None)
        self.mentions.add_digest(data, None)
        parsed = form.parse(notes.decode(data), path)
        self._ids.add(str(parsed.fields.get("session_id", "")))
        self.keys.add(str(parsed.fields.get("session_key", "")))
        self._learn_names(form.make_slug(hint_of(parsed.turns)), str(parsed.fields.get("session_id", "")))
        for turn in parsed.messages:
            self._message_beginnings.add(_message_beginning(turn.text))
            self._quotations.update(_find_quotations(turn.text))
        self.attachments |= {turn.path for turn in parsed.turns if isinstance(turn, Attachment)}

    def _learn_names(self, slug: str, session_id: str) -> None:
        """Only distinctive names: a session may be called `main`."""
        if slug.count("-") >= _MIN_SLUG_WORDS - 1:
            self._names.add(slug.encode())
        if len(session_id) >= MIN_TEXT_CHARS and re.search(r"\d", session_id):
            self._names.add(session_id.encode())

    def spellings(self, data: bytes) -> Iterator[str]:
        for name in sorted(self._names):
            if name in data and re.search(rb"(?<![\w-])%s(?![\w-])" % re.escape(name), data):
                yield name.decode()

    def holds(self, data: bytes) -> bool:
        return self._is_target(data) or self.mentions.are_in(data)

    def is_like(self, path: str, data: bytes) -> bool:
        return path != "" and not self._quotations.isdisjoint(_find_quotations(notes.decode(data)))

    # ------------------------------------------------------------ erasing

    def file(self, path: str, data: bytes) -> bytes | None:
        if not is_transcript(path):
            return self.mentions.replaced(data)
        if self._is_target(data):
            return None
        if not self.mentions.are_in(data):
            return data
        new = redact(data, path, self.mentions.replaced_text, turns=False, count=self._count)
        self.mentions.add_digest(data, new)
        return new

    def message(self, data: bytes) -> bytes:
        """Drop lines that mention one of the sessions; the subject keeps the kind of the commit."""
        subject, *lines = data.split(b"\n")
        remaining = [line for line in lines if not self._names_erased(line)]
        if len(remaining) < len(lines) and subject.startswith(b"conversation: "):
            subject = b"conversation: " + PLACEHOLDER_WORD.encode()
        return self.mentions.replaced(
            b"\n".join([subject, *remaining]).rstrip(b"\n") + b"\n" * data.endswith(b"\n")
        )

    def _names_erased(self, line: bytes) -> bool:
        return (
            PLACEHOLDER_WORD.encode() in self.mentions.replaced(line)
            and PLACEHOLDER_WORD.encode() not in line
        )

    def text(self, data: bytes) -> bytes:
        is_erased = any(name and name.encode() in data for name in self._ids)
        return b"" if is_erased else self.mentions.replaced(data)

    def line(self, value: object, by: str) -> object:
        if self._is_about_target(value):
            return None
        return map_text(self._drop_keys(value), lambda text: self.mentions.replaced_text(text, by))

    def _is_about_target(self, value: object) -> bool:
        if isinstance(value, list):
            return any(self._is_session_id(item) or self._is_about_target(item) for item in value)
        if not isinstance(value, dict):
            return False
        is_match = self.is_meant(str(value.get("session_id", "")), str(value.get("session_key", "")))
        with suppress(ValueError, RecursionError):  # a quarantined line of the spool
            is_match = is_match or self._is_about_target(json.loads(str(value.get("line", "null"))))
        message = value.get("message")
        return (
            is_match
            or (isinstance(message, str) and _message_beginning(message) in self._message_beginnings)
            or any(map(self._is_about_target, value.values()))
        )

    def _is_session_id(self, value: object) -> bool:
        """Lists of record ids contain session ids as plain strings."""
        return isinstance(value, str) and value != "" and (value in self._ids or self.is_meant(value, ""))

    def _drop_keys(self, value: object) -> object:
        """Drop entries of a table that is keyed by session key."""
        if not isinstance(value, dict):
            return value
        return {
            key: item for key, item in value.items() if not (":" in str(key) and self.is_meant("", str(key)))
        }


def _message_beginning(message: str) -> str:
    return " ".join(message[: 4 * _BEGINNING_CHARS].rstrip("…").split())[:_BEGINNING_CHARS]


def _find_quotations(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD_PATTERN.findall(text.casefold())
    return zip(*(words[start:] for start in range(_QUOTATION_WORDS)), strict=False)


def match_session(session_id: str) -> Callable[[str, str], bool]:
    return lambda candidate, _: candidate == session_id


def match_origin(origin: str) -> Callable[[str, str], bool]:
    """Match session keys that equal this one or are below it, by segments. The part after the agent is
    enough: a channel, or a channel and a peer. An account between the two must be given as well."""
    prefix = origin.split(":")
    if not origin or "" in prefix:
        raise UsageError(f"{origin!r} is not a session key. Give one such as telegram:direct:99.")

    def is_below(_: str, key: str) -> bool:
        segments = key.split(":")
        return segments[: len(prefix)] == prefix or (
            segments[0] == "agent" and segments[2 : 2 + len(prefix)] == prefix
        )

    return is_below
