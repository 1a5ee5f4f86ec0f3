"""What is to be forgotten, and what each file, name, message and line of a log is without it.

Two kinds. A passage is a text, wherever it stands. Sessions are transcripts, by the id or the key in their
heads: they go altogether, and with them every place that names one of them.

First all files that may change are shown to `learn`; from then on everything is a function of its input.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from tacit.errors import UsageError
from tacit.model.turns import Attachment
from tacit.store import files, lfs
from tacit.store.forget_transcript import Count, new_path, redacted, slug_of
from tacit.store.forget_words import WORD, Words
from tacit.store.home import CONVERSATIONS
from tacit.text import notes
from tacit.text import transcript as form

_PATH = re.compile(rb"raw/conversations/\d{4}/\d\d/\d\d/[^\s\"'<>()\[\]`,;\\]+?\.md")
_STEM = re.compile(rb"(?<![\w-])\d{4}-[\w.\x80-\xff-]+")
_SHA256 = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_TRAILER = re.compile(rb"^Session: (.*?)\r?$", re.MULTILINE)
_HEAD = 64 * 1024
_BEGINNING = 70  # characters of a message that every log has, unless it is shorter


class Forgetting(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def secret(self) -> str:
        """What tells two of them apart."""

    @property
    def drops_commits(self) -> bool:
        """Those that hold nothing any more."""

    @property
    def mentions(self) -> Mentions: ...

    def is_limited_to(self, path: str) -> bool:
        """Whether a file may change; of what is no file, the path is empty."""

    def learn(self, path: str, data: bytes) -> None: ...

    def learn_large(self, data: bytes) -> bool:
        """The bytes of an attachment that git-lfs keeps; whether it goes."""

    def holds(self, data: bytes) -> bool:
        """A file, or an object of git."""

    def path(self, path: str) -> str: ...

    def file(self, path: str, data: bytes) -> bytes | None: ...

    def message(self, data: bytes) -> bytes:
        """Of a commit or a tag."""

    def name(self, name: str) -> str:
        """Of a ref, or of somebody."""

    def line(self, value: object, by: str) -> object:
        """A line of a log, read as JSON; None when it goes altogether."""

    def text(self, data: bytes) -> bytes:
        """A line of any other kind."""


def is_transcript(path: str) -> bool:
    return path.startswith(f"{CONVERSATIONS}/") and path.endswith(".md")


class Mentions:
    """Places where a file or its hash is named that is now called otherwise, or (None) is gone."""

    def __init__(self) -> None:
        self.paths: dict[str, str | None] = {}
        self.names: dict[str, str] = {}  # as the subject of the commit has it, by the path of the transcript
        self.digests: dict[str, str | None] = {}
        self._known: dict[bytes, bytes | None] = {}
        self._other_names: list[bytes] = []
        self._others: re.Pattern[bytes] | None = None

    def add(self, old: str, new: str | None) -> None:
        if old in self.paths:
            return
        self.paths[old] = new
        self._keep(old, new)
        if is_transcript(old):
            self._keep(_stem(old), None if new is None else _stem(new))
        if not _PATH.fullmatch(notes.encode(old)):
            self._other_names.append(notes.encode(old))
            names = b"|".join(re.escape(path) for path in sorted(self._other_names, key=len, reverse=True))
            self._others = re.compile(rb"(?<![\w/])(?:%s)(?![\w/])" % names)

    def add_digest(self, old: bytes, new: bytes | None) -> None:
        if new != old:
            self.digests[files.digest(old)] = None if new is None else files.digest(new)

    def _keep(self, old: str, new: str | None) -> None:
        self._known[notes.encode(old)] = None if new is None else notes.encode(new)

    def are_in(self, data: bytes) -> bool:
        return bool(self.paths) and self.replaced(data) != data

    def replaced(self, data: bytes, by: str = WORD) -> bytes:
        if not self.paths and not self.digests:
            return data

        def new(found: re.Match[bytes]) -> bytes:
            known = self._known.get(found[0], found[0])
            return by.encode() if known is None else known

        for pattern in (_PATH, _STEM, *([self._others] if self._others else [])):
            data = pattern.sub(new, data)
        return _SHA256.sub(lambda found: self._digest(found[0], by), data)

    def _digest(self, digest: bytes, by: str) -> bytes:
        known = self.digests.get(digest.decode(), digest.decode())
        return by.encode() if known is None else known.encode()


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


class Passage:
    kind = "passage"
    drops_commits = False

    def __init__(self, text: str, *, lines: bool, under: str, count: Count) -> None:
        self.words = Words(text)
        self.mentions = Mentions()
        self._lines, self._under, self._count = lines, under, count
        self._large: set[str] = set()  # objects of git-lfs that hold it
        self._places: dict[str, tuple[object, ...]] = {}  # of what is renamed, which session it is

    @property
    def secret(self) -> str:
        return f"{self.words.text}\0{self._under}"

    @property
    def limit(self) -> str:
        return self._under

    def is_limited_to(self, path: str) -> bool:
        return not self._under or path == self._under or path.startswith(f"{self._under}/")

    def learn(self, path: str, data: bytes) -> None:
        """A transcript has words of it in its name, and other files may have them too."""
        if not self.is_limited_to(path) or self._under:
            return
        new = self.words.renamed(path)
        if is_transcript(path) and self.words.are_in(data):
            after = self._redacted(path, data)
            new = self._free(new_path(path, data, after, self.words), path, data)
            was, now = (slug_of(side, path) for side in (data, after))
            if was != now:
                self.mentions.names[path] = now
        if new != path:
            self.mentions.add(path, new)

    def _free(self, new: str, path: str, data: bytes) -> str:
        """Two transcripts that differed in what is forgotten only must not become one."""
        place = _place(path, data)
        known = self.mentions.paths.get(path)
        if known:
            return known
        stem, number = new.removesuffix(".md"), 1
        while self._places.setdefault(new, place) != place:
            number += 1
            new = f"{stem}-{number}.md"
        return new

    def learn_large(self, data: bytes) -> bool:
        if self.words.are_in(data):
            self._large.add(files.digest(data))
            return True
        return False

    def holds(self, data: bytes) -> bool:
        if self.words.are_in(data) or self.mentions.are_in(data):
            return True
        return bool(self._large) and lfs.is_pointer(data) and self._is_gone(data)

    def _is_gone(self, pointer: bytes) -> bool:
        found = re.search(rb"oid sha256:([0-9a-f]{64})", pointer)
        return found is not None and found[1].decode() in self._large

    def path(self, path: str) -> str:
        if self._under:
            return path
        return self.mentions.paths.get(path) or self.words.renamed(path)

    def name(self, name: str) -> str:
        return name if self._under else self.words.renamed(name)

    def file(self, path: str, data: bytes) -> bytes | None:
        if not self.is_limited_to(path) or (lfs.is_pointer(data) and self._is_gone(data)):
            return None if self.is_limited_to(path) else data
        if not is_transcript(path):
            return self.words.without(path, self.mentions.replaced(data), lines=self._lines)
        new = self._redacted(path, data) if self.holds(data) else data
        self.mentions.add_digest(data, new)
        return new

    def _redacted(self, path: str, data: bytes) -> bytes:
        return redacted(data, path, self._erased, turns=self._lines, count=self._count)

    def _erased(self, text: str, by: str) -> str:
        return self.words.erased_text(_mapped(self.mentions, text), by)

    def message(self, data: bytes) -> bytes:
        if self._under:
            return self.mentions.replaced(data)
        return self.words.erased(_renamed_subject(data, self.mentions))

    def may_be_in_log(self, data: bytes) -> bool:
        """A quick look at a line, or a file, of JSON."""
        return not self._under and (self.words.may_begin_in(data) or self.holds(data))

    def text(self, data: bytes) -> bytes:
        return data if self._under else self.words.erased(self.mentions.replaced(data), "")

    def line(self, value: object, by: str) -> object:
        if self._under:
            return value
        return _each_text(value, lambda text: self.words.erased_log(_mapped(self.mentions, text), by))


def _renamed_subject(data: bytes, mentions: Mentions) -> bytes:
    """`conversation: name` is made from the name of the transcript."""
    found = _TRAILER.search(data)
    new = mentions.names.get(notes.decode(found[1])) if found else None
    if new and data.startswith(b"conversation: "):
        data = b"conversation: " + new.encode() + data[data.find(b"\n") :]
    return mentions.replaced(data)


def _mapped(mentions: Mentions, text: str) -> str:
    return notes.decode(mentions.replaced(notes.encode(text)))


def _place(path: str, data: bytes) -> tuple[object, ...]:
    fields = notes.parse(notes.decode(data[:_HEAD]), path).fields
    return path.rpartition("/")[0], fields.get("session_id"), fields.get("started"), fields.get("continues")


def _each_text(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {change(str(key)): _each_text(item, change) for key, item in value.items()}
    return value


class Sessions:
    """`meant(session_id, session_key)` says which."""

    drops_commits = True

    def __init__(self, kind: str, given: str, meant: Callable[[str, str], bool], count: Count) -> None:
        self.kind, self.secret, self._meant, self._count = kind, f"{kind}\0{given}", meant, count
        # Without these letters in its head a file need not be parsed. What YAML would escape is none of them.
        self._probe = max(re.findall(r"[A-Za-z0-9]+", given), key=len, default="").encode()
        self.mentions = Mentions()
        self.keys: set[str] = set()
        self.attachments: set[str] = set()
        self._ids: set[str] = set()
        self._said: set[str] = set()

    def is_limited_to(self, path: str) -> bool:  # noqa: ARG002 - they are where they are
        return True

    def _is_meant(self, data: bytes) -> bool:
        if not data.startswith((b"---", b"\xef\xbb\xbf---")) or self._probe not in data[:_HEAD]:
            return False
        fields = notes.parse(notes.decode(data[:_HEAD]), "").fields
        return self._meant(str(fields.get("session_id", "")), str(fields.get("session_key", "")))

    def is_meant(self, session_id: str, session_key: str) -> bool:
        return self._meant(session_id, session_key)

    def learn(self, path: str, data: bytes) -> None:
        if not is_transcript(path) or not self._is_meant(data):
            return
        self.mentions.add(path, None)
        self.mentions.add_digest(data, None)
        parsed = form.parse(notes.decode(data), path)
        self._ids.add(str(parsed.fields.get("session_id", "")))
        self.keys.add(str(parsed.fields.get("session_key", "")))
        self._said |= {_beginning(turn.text) for turn in parsed.messages}
        self.attachments |= {turn.path for turn in parsed.turns if isinstance(turn, Attachment)}

    def learn_large(self, data: bytes) -> bool:  # noqa: ARG002 - attachments stay
        return False

    def holds(self, data: bytes) -> bool:
        return self._is_meant(data) or self.mentions.are_in(data)

    def path(self, path: str) -> str:
        return path

    def name(self, name: str) -> str:
        return name

    def file(self, path: str, data: bytes) -> bytes | None:
        if not is_transcript(path):
            return self.mentions.replaced(data)
        if self._is_meant(data):
            return None
        if not self.mentions.are_in(data):
            return data
        new = redacted(data, path, self._erased, turns=False, count=self._count)
        self.mentions.add_digest(data, new)
        return new

    def _erased(self, text: str, by: str) -> str:
        return notes.decode(self.mentions.replaced(notes.encode(text), by))

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
        return _each_text(self._without_keys(value), lambda text: self._erased(text, by))

    def _is_of_them(self, value: object) -> bool:
        if isinstance(value, list):
            return any(map(self._is_of_them, value))
        if not isinstance(value, dict):
            return False
        named = self._meant(str(value.get("session_id", "")), str(value.get("session_key", "")))
        with suppress(ValueError, RecursionError):  # a line of the spool that was set aside
            named = named or self._is_of_them(json.loads(str(value.get("line", "null"))))
        said = value.get("message")
        return (
            named
            or (isinstance(said, str) and _beginning(said) in self._said)
            or any(map(self._is_of_them, value.values()))
        )

    def _without_keys(self, value: object) -> object:
        """A table by session key."""
        if not isinstance(value, dict):
            return value
        return {
            key: item for key, item in value.items() if not (":" in str(key) and self._meant("", str(key)))
        }


def _beginning(message: str) -> str:
    return " ".join(message[: 4 * _BEGINNING].rstrip("…").split())[:_BEGINNING]


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
