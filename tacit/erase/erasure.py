"""What is to be forgotten, and how each file, name, message and log line reads without it.

First the `learn` methods get everything that may change, then `settle` is called once; after that, all
results depend only on the arguments.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count
from pathlib import PurePosixPath
from urllib.parse import quote, unquote

from tacit.erase.spellings import PLACEHOLDER_WORD
from tacit.home import files
from tacit.home.generated_lines import ARCHIVED_CONVERSATIONS
from tacit.home.layout import CONVERSATIONS, FOLDERS, NOTE_FILES, REVIEWED
from tacit.hosts.base import HOSTS
from tacit.markdown import notes

HEAD_BYTES = 64 * 1024  # bytes that contain the head of a transcript
_TRANSCRIPT_PATH = re.compile(rb"raw/conversations/\d{4}/\d\d/\d\d/[^\s\"'<>()\[\]`,;\\]+?\.md")
_ARCHIVED_PATH = re.compile(_TRANSCRIPT_PATH.pattern.replace(b"raw", b"archive", 1))
_TRANSCRIPT_NAME = re.compile(rb"(?<![\w-])\d{4}-[\w\x80-\xff-]+(?:\.[\w\x80-\xff-]+)*")
_LINK = re.compile(rb"(\[\[|\]\(<?)(/?(?:\.{1,2}/)*)([^\[\]()<>|#\n]{1,400})")
_MAX_PROBES = 32
_SHA256 = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


# tacit finds these by name, so they keep their names.
RESERVED_FOLDERS = frozenset(
    str(path) for folder in FOLDERS for path in (PurePosixPath(folder), *PurePosixPath(folder).parents)
)
_RESERVED_FILES = frozenset((*NOTE_FILES, REVIEWED))
_RESERVED_NOTES = re.compile(
    r"knowledge/identity/(?:SOUL|USER|AGENTS|TOOLS|TOOLS_COMPACT|IDENTITY|HEARTBEAT)\.md"
    r"|knowledge/memory/MEMORY\.md|knowledge/[^/]+/_(?:index|active)\.md"
)


# Internal files of git and tacit: without them messages, or everything, would be lost.
_INTERNAL_PATHS = re.compile(
    r"\.git(?:/(?:branches|description|hooks|info|lfs|modules|objects(?:/(?:info|pack))?|rr-cache|shallow"
    r"|tacit-trust|worktrees))?"
    r"|\.tacit(?:/(?:README|breakers|changed|context|daemon|due|forget-|gate|git-busy|index|ledger|lifecycle|lock"
    r"|machine|memory\.db|proposals|rebuilds|receipts|records|runs|senders|sessions|spool|strays-found"
    rf"|touched|trusted|{'|'.join(HOSTS)})[^/]*)?"
)


def is_reserved(path: str) -> bool:
    """Whether tacit or git needs a file or folder to have this name."""
    is_kept = path in RESERVED_FOLDERS or path in _RESERVED_FILES
    return is_kept or any(pattern.fullmatch(path) for pattern in (_RESERVED_NOTES, _INTERNAL_PATHS))


class Erasure:
    """Something to forget. By default nothing changes; subclasses override what they erase."""

    kind: str
    secret: str  # distinguishes two of the same kind
    drops_commits = False  # whether commits that become empty are dropped

    def __init__(self) -> None:
        self.mentions = Mentions()
        self.attachments: set[str] = set()  # that were mentioned and stay

    # ------------------------------------------------------------ learning

    def learn(self, path: str, data: bytes) -> None:
        """Take in a file that contains it, or has it in its path."""

    def learn_names(self, folder: str, names: Collection[str]) -> None:
        """Take in the names in a folder; `folder` ends in a slash or is empty."""

    def learn_large(self, data: bytes) -> bool:  # noqa: ARG002
        """Take in the bytes of an attachment in git-lfs; returns whether it is removed."""
        return False

    def settle(self) -> None: ...

    # ------------------------------------------------------------ queries

    def may_change(self, path: str) -> bool:  # noqa: ARG002
        """Whether a file may change. The path is empty for anything else, such as a message."""
        return True

    def holds(self, data: bytes) -> bool:
        """Whether a file or git object contains it."""
        raise NotImplementedError

    def spans(self, data: bytes) -> Iterable[tuple[int, int]]:  # noqa: ARG002
        """The literal occurrences in a file."""
        return ()

    def is_like(self, path: str, data: bytes) -> bool:  # noqa: ARG002
        """Whether a file has the same content in another form, which stays. Empty path: in the history."""
        return False

    def is_named(self, name: str) -> bool:  # noqa: ARG002
        """Whether the name of a file or folder contains it."""
        return False

    def spellings(self, data: bytes) -> Iterable[str]:  # noqa: ARG002
        """Other spellings in the data, each of which can be given as a text to forget."""
        return ()

    def may_be_in_log(self, data: bytes) -> bool:  # noqa: ARG002
        """A quick check of a line or file of JSON."""
        return True

    # ------------------------------------------------------------ erasing

    def path(self, path: str) -> str:
        return path

    def ref(self, name: str) -> str:
        return name

    def person(self, name: str) -> str:
        return name

    def file(self, path: str, data: bytes) -> bytes | None:
        """The file's new content; None if the file is removed."""
        raise NotImplementedError

    def message(self, data: bytes) -> bytes:
        """The new message of a commit or tag."""
        raise NotImplementedError

    def line(self, value: object, by: str) -> object:
        """The new value of a parsed JSON log line; None if the whole line is removed."""
        raise NotImplementedError

    def text(self, data: bytes) -> bytes:
        """The new content of any other line."""
        raise NotImplementedError


def is_transcript(path: str) -> bool:
    return path.startswith((f"{CONVERSATIONS}/", f"{ARCHIVED_CONVERSATIONS}/")) and path.endswith(".md")


def iterate_numbered(name: str) -> Iterator[str]:
    """The name itself, then with -2, -3 … before its extension."""
    yield name
    folder, slash, last = name.rpartition("/")
    stem, dot, ending = last.rpartition(".") if "." in last[1:] else (last, "", "")
    yield from (f"{folder}{slash}{stem}-{number}{dot}{ending}" for number in count(2))


def group_by_folder(paths: Iterable[str]) -> dict[str, set[str]]:
    """The names in each folder; a folder ends in a slash."""
    folders: dict[str, set[str]] = {}
    for path in paths:
        rest = path
        while rest:
            folder, slash, name = rest.rpartition("/")
            folders.setdefault(folder + slash, set()).add(name)
            rest = folder
    return folders


def map_text(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_text(item, change) for item in value]
    if isinstance(value, dict):
        return {change(str(key)): map_text(item, change) for key, item in value.items()}
    return value


class Mentions:
    """Replaces mentions of files that were renamed or (None) removed, and of their hashes."""

    def __init__(self) -> None:
        self.paths: dict[str, str | None] = {}
        self.names: dict[str, str] = {}  # as in the subject of the commit, by the path of the transcript
        self.digests: dict[bytes, bytes | None] = {}
        self._replacements: dict[bytes, bytes | None] = {}
        self._name_prefixes: set[bytes] = set()  # first characters of names of transcripts
        self._other_names: list[bytes] = []
        self._other_pattern: re.Pattern[bytes] | None = None
        self._links: dict[str, str] = {}  # ends of paths, as used in links
        self._link_names: set[bytes] = set()

    def add(self, old: str, new: str | None) -> None:
        if old in self.paths:
            return
        self.paths[old] = new
        self._add_replacement(old, new)
        if is_transcript(old):
            for ending in ("", ".md"):
                self._add_replacement(_stem(old) + ending, None if new is None else _stem(new) + ending)
            self._name_prefixes.add(notes.encode(_stem(old))[:5])
            if old.startswith(f"{ARCHIVED_CONVERSATIONS}/"):  # notes still mention its original path
                old_path, new_path = (
                    path and path.replace(ARCHIVED_CONVERSATIONS, CONVERSATIONS, 1) for path in (old, new)
                )
                self._add_replacement(str(old_path), new_path)
        elif new is not None:
            self._add_links(old, new)
        if not any(pattern.fullmatch(notes.encode(old)) for pattern in (_TRANSCRIPT_PATH, _ARCHIVED_PATH)):
            self._other_names.append(notes.encode(old))
            self._other_pattern = None

    def add_digest(self, old: bytes, new: bytes | None) -> None:
        if new != old:
            self.digests[files.digest(old).encode()] = None if new is None else files.digest(new).encode()

    def _add_replacement(self, old: str, new: str | None) -> None:
        self._replacements[notes.encode(old)] = None if new is None else notes.encode(new)

    def _add_links(self, old: str, new: str) -> None:
        """A link may omit the folders, and a note's extension. If two files share a name, the first wins."""
        old_parts, new_parts = (unicodedata.normalize("NFC", path).split("/") for path in (old, new))
        for size in range(1, len(old_parts) + 1):
            self._links.setdefault("/".join(old_parts[-size:]), "/".join(new_parts[-size:]))
        for name in {_strip_ending(old_parts[-1]), _strip_ending(old).rpartition("/")[2]}:
            self._link_names |= {notes.encode(name), quote(notes.encode(name)).encode()}

    def _replace_link(self, match: re.Match[bytes]) -> bytes:
        target = notes.decode(match[3])
        decoded = unquote(target, errors="surrogateescape") if "%" in target else target
        name = unicodedata.normalize("NFC", decoded.rstrip())
        new = self._links.get(name)
        if new is None or f"{name}.md" in self._links:  # a note takes precedence over a folder
            new = _strip_ending(self._links.get(f"{name}.md", ""))
        if not new:
            return match[0]
        new += decoded[len(decoded.rstrip()) :]
        return match[1] + match[2] + notes.encode(quote(new) if decoded != target else new)

    def are_in(self, data: bytes) -> bool:
        return bool(self.paths) and self.replace(data) != data

    def replace_text(self, text: str, by: str = PLACEHOLDER_WORD) -> str:
        return notes.decode(self.replace(notes.encode(text), by))

    def replace(self, data: bytes, by: str = PLACEHOLDER_WORD) -> bytes:
        if not self.paths and not self.digests:
            return data

        def replace_match(match: re.Match[bytes]) -> bytes:
            replacement = self._replacements.get(match[0], match[0])
            return by.encode() if replacement is None else replacement

        if self._links and _may_hold(data, self._link_names):
            data = _LINK.sub(self._replace_link, data)
        for pattern in self._patterns(data):
            data = pattern.sub(replace_match, data)
        if not _may_hold(data, self.digests):
            return data
        return _SHA256.sub(lambda match: self._replace_digest(match[0], by), data)

    def _patterns(self, data: bytes) -> Iterator[re.Pattern[bytes]]:
        if b"raw/conversations/" in data:
            yield _TRANSCRIPT_PATH
        if b"archive/conversations/" in data:
            yield _ARCHIVED_PATH
        if _may_hold(data, self._name_prefixes):
            yield _TRANSCRIPT_NAME
        if self._other_pattern is None and self._other_names:
            names = b"|".join(re.escape(path) for path in sorted(self._other_names, key=len, reverse=True))
            self._other_pattern = re.compile(rb"(?<![\w/])(?:%s)(?![\w/])" % names)
        if self._other_pattern:
            yield self._other_pattern

    def _replace_digest(self, digest: bytes, placeholder: str) -> bytes:
        replacement = self.digests.get(digest, digest)
        return placeholder.encode() if replacement is None else replacement


def _may_hold(data: bytes, pieces: Collection[bytes]) -> bool:
    """A plain search is much faster than a pattern, and nearly all files contain none of the pieces."""
    return len(pieces) > _MAX_PROBES or any(piece in data for piece in pieces)


def _strip_ending(path: str) -> str:
    return path.removesuffix(".md")


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")
