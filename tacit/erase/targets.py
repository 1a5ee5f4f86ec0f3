"""The two kinds of things to forget: a text wherever it occurs, and sessions by id or key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress

from tacit.erase.erasure import (
    HEAD_BYTES,
    Erasure,
    Mentions,
    is_reserved,
    is_transcript,
    iterate_numbered,
    map_text,
)
from tacit.erase.spellings import MIN_TEXT_CHARS, PLACEHOLDER_WORD, TextEraser
from tacit.erase.transcript import CountTokens, choose_path, hint_of, redact, slug_of
from tacit.errors import UsageError
from tacit.git.attributes import is_lfs_pointer
from tacit.home import files
from tacit.markdown import notes
from tacit.transcripts import format as form
from tacit.transcripts.model import Attachment

_TRAILER = re.compile(rb"^Session: (.*?)\r?$", re.MULTILINE)
_BEGINNING_CHARS = 70  # of a message, which every log has
_MIN_SLUG_WORDS = 3  # a shorter slug does not identify a session
_QUOTATION_WORDS = 5  # this many words in a row count as a quotation
_WORD_PATTERN = re.compile(r"\w+")


class TextErasure(Erasure):
    kind = "passage"

    def __init__(self, text: str, *, lines: bool, under: str, count: CountTokens) -> None:
        super().__init__()
        self.words = TextEraser(text)
        self.secret = f"{self.words.text}\0{under}"
        self._lines, self._under, self._count = lines, under, count
        self._large_digests: set[str] = set()  # objects of git-lfs that contain it
        self._holding_paths: set[str] = set()  # files that contain it
        self._taken_names: dict[str, set[str]] = {}  # names next to each file to rename
        self._new_names: dict[str, str] = {}  # of these files
        self._sessions_by_path: dict[
            str, tuple[object, ...]
        ] = {}  # session identity, by the new path of its transcript

    # ------------------------------------------------------------ learning

    def learn(self, path: str, data: bytes) -> None:
        """The name of a transcript contains words from its text, and other files may mention it."""
        if self._under:
            return
        self._holding_paths.add(path)
        if is_transcript(path) and self.words.are_in(data):
            self._learn_transcript(path, data)

    def _learn_transcript(self, path: str, data: bytes) -> None:
        after = self._redact(path, data)
        new = self._find_free_path(choose_path(path, data, after, self.words), path, data)
        old_slug, new_slug = (slug_of(side, path) for side in (data, after))
        if old_slug != new_slug:
            self.mentions.names[path] = new_slug
        if new != path:
            self.mentions.add(path, new)

    def _find_free_path(self, new: str, path: str, data: bytes) -> str:
        """Two transcripts that differ only in the forgotten text must not get the same path."""
        identity = _session_identity(path, data)
        known_path = self.mentions.paths.get(path)
        return known_path or next(
            name
            for name in iterate_numbered(new)
            if self._sessions_by_path.setdefault(name, identity) == identity
        )

    def learn_names(self, folder: str, names: Collection[str]) -> None:
        if self._under:
            return
        for name in names:
            if self.words.rename(name) != name and not is_reserved(folder + name):
                self._taken_names.setdefault(folder + name, set()).update(names)

    def learn_large(self, data: bytes) -> bool:
        if self.words.are_in(data):
            self._large_digests.add(files.digest(data))
            return True
        return False

    def settle(self) -> None:
        """Two files that differ only in the forgotten text must not get the same name."""
        for path in sorted(self._taken_names):
            folder, slash, name = path.rpartition("/")
            others = {other: f"{folder}{slash}{other}" for other in self._taken_names[path] if other != name}
            taken = {self._new_names.get(sibling, other) for other, sibling in others.items()}
            self._new_names[path] = next(
                new for new in iterate_numbered(self.words.rename(name)) if new not in taken
            )
        for path in sorted({*self._taken_names, *self._holding_paths}):
            if (new := self.path(path)) != path:
                self.mentions.add(path, new)

    # ------------------------------------------------------------ queries

    def may_change(self, path: str) -> bool:
        return not self._under or path == self._under or path.startswith(f"{self._under}/")

    def holds(self, data: bytes) -> bool:
        return self.words.are_in(data) or self.mentions.are_in(data) or self._is_erased_pointer(data)

    def _is_erased_pointer(self, data: bytes) -> bool:
        """Whether this is the pointer of a git-lfs object that contains it."""
        if not self._large_digests or not is_lfs_pointer(data):
            return False
        match = re.search(rb"oid sha256:([0-9a-f]{64})", data)
        return match is not None and match[1].decode() in self._large_digests

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        return self.words.spans(data)

    def is_like(self, path: str, data: bytes) -> bool:
        return self.words.are_like(path, data)

    def is_named(self, name: str) -> bool:
        return not self._under and self.words.are_in(notes.encode(name))

    def spellings(self, data: bytes) -> Iterator[str]:
        spellings = self.words.spellings(data)
        return (
            spelling for spelling in spellings if self._under or not self.words.are_in(notes.encode(spelling))
        )

    def may_be_in_log(self, data: bytes) -> bool:
        return not self._under and (
            self.words.may_begin_in(data)
            or self.holds(data)
            or any(notes.encode(path) in data for path in self._holding_paths)
        )

    # ------------------------------------------------------------ erasing

    def path(self, path: str) -> str:
        if self._under:
            return path
        if is_transcript(path) and (new_path := self.mentions.paths.get(path)):
            return new_path
        if self.words.rename(path) == path:
            return path
        folder, slash, name = path.rpartition("/")
        if is_reserved(path):
            return f"{self.path(folder)}{slash}{name}"
        return f"{self.path(folder)}{slash}{self._new_names.get(path) or self.words.rename(name)}"

    def ref(self, name: str) -> str:
        """Keeps the first two parts, such as refs/heads, which git needs."""
        first, kind, *rest = name.split("/")
        return name if self._under else "/".join([first, kind, *map(self.words.rename, rest)])

    def person(self, name: str) -> str:
        return name if self._under else self.words.rename(name)

    def file(self, path: str, data: bytes) -> bytes | None:
        if not self.may_change(path):
            return data
        if self._is_erased_pointer(data):
            return None
        if not is_transcript(path):
            return self.words.without(path, self.mentions.replace(data), lines=self._lines)
        new = self._redact(path, data) if self.holds(data) else data
        self.mentions.add_digest(data, new)
        return new

    def _redact(self, path: str, data: bytes) -> bytes:
        return redact(data, path, self._erase, turns=self._lines, count=self._count)

    def _erase(self, text: str, placeholder: str) -> str:
        return self.words.erase_text(self.mentions.replace_text(text), placeholder)

    def message(self, data: bytes) -> bytes:
        if self._under:
            return self.mentions.replace(data)
        return self.words.erase(_rename_subject(data, self.mentions))

    def text(self, data: bytes) -> bytes:
        return data if self._under else self.words.erase(self.mentions.replace(data), "")

    def line(self, value: object, by: str) -> object:
        if self._under:
            return value
        return map_text(self._drop_hashes(value), lambda text: self._erase_logged(text, by))

    def _erase_logged(self, text: str, placeholder: str) -> str:
        return self.words.erase_log(self.mentions.replace_text(text), placeholder)

    def _drop_hashes(self, value: object) -> object:
        """With the rest of a message and its hash, a short text could be guessed by trial."""
        if isinstance(value, list):
            return [self._drop_hashes(item) for item in value]
        if not isinstance(value, dict):
            return value
        new = {key: self._drop_hashes(item) for key, item in value.items()}
        message, source = str(value.get("message", "")), str(value.get("source", ""))
        if value.get("message_hash") and self._erase_logged(message, PLACEHOLDER_WORD) != message:
            new["message_hash"] = ""
        if value.get("digest") and source.partition(":")[0] in self._holding_paths:
            new["digest"] = ""
        return new


def _rename_subject(data: bytes, mentions: Mentions) -> bytes:
    """The subject `conversation: name` contains the name of the transcript."""
    match = _TRAILER.search(data)
    new = mentions.names.get(notes.decode(match[1])) if match else None
    if new and data.startswith(b"conversation: "):
        data = b"conversation: " + new.encode() + data[data.find(b"\n") :]
    return mentions.replace(data)


def _session_identity(path: str, data: bytes) -> tuple[object, ...]:
    fields = notes.parse(notes.decode(data[:HEAD_BYTES]), path).fields
    return path.rpartition("/")[0], fields.get("session_id"), fields.get("started"), fields.get("continues")


# ---------------------------------------------------------------- sessions


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
            return self.mentions.replace(data)
        if self._is_target(data):
            return None
        if not self.mentions.are_in(data):
            return data
        new = redact(data, path, self.mentions.replace_text, turns=False, count=self._count)
        self.mentions.add_digest(data, new)
        return new

    def message(self, data: bytes) -> bytes:
        """Drop lines that mention one of the sessions; the subject keeps the kind of the commit."""
        subject, *lines = data.split(b"\n")
        remaining = [line for line in lines if not self._names_erased(line)]
        if len(remaining) < len(lines) and subject.startswith(b"conversation: "):
            subject = b"conversation: " + PLACEHOLDER_WORD.encode()
        return self.mentions.replace(
            b"\n".join([subject, *remaining]).rstrip(b"\n") + b"\n" * data.endswith(b"\n")
        )

    def _names_erased(self, line: bytes) -> bool:
        return (
            PLACEHOLDER_WORD.encode() in self.mentions.replace(line) and PLACEHOLDER_WORD.encode() not in line
        )

    def text(self, data: bytes) -> bytes:
        is_erased = any(name and name.encode() in data for name in self._ids)
        return b"" if is_erased else self.mentions.replace(data)

    def line(self, value: object, by: str) -> object:
        if self._is_about_target(value):
            return None
        return map_text(self._drop_keys(value), lambda text: self.mentions.replace_text(text, by))

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
