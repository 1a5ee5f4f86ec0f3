"""What is to be forgotten, and what each file, name, message and line of a log is without it.

First everything that may change is shown to the `learn` functions, then `settle` is called once; from then on
all answers are functions of their input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count

from tacit.store import files
from tacit.store.forgetting.words import WORD
from tacit.store.home import CONVERSATIONS
from tacit.text import notes

HEAD = 64 * 1024  # bytes in which the head of a transcript stands
_PATH = re.compile(rb"raw/conversations/\d{4}/\d\d/\d\d/[^\s\"'<>()\[\]`,;\\]+?\.md")
_NAME = re.compile(rb"(?<![\w-])\d{4}-[\w\x80-\xff-]+(?:\.[\w\x80-\xff-]+)*")
_FEW = 32
_SHA256 = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


class Forgetting:
    """The answers of something that changes nothing; each kind says otherwise where it does."""

    kind: str
    secret: str  # what tells two of them apart
    drops_commits = False  # those that hold nothing any more

    def __init__(self) -> None:
        self.mentions = Mentions()
        self.attachments: set[str] = set()  # that were named and stay

    # ------------------------------------------------------------ learning

    def learn(self, path: str, data: bytes) -> None:
        """A file that holds it, or has it in its path."""

    def learn_names(self, folder: str, names: Collection[str]) -> None:
        """What lies beside each other in a folder, which ends in a slash or is empty."""

    def learn_large(self, data: bytes) -> bool:  # noqa: ARG002
        """The bytes of an attachment that git-lfs keeps; whether it goes."""
        return False

    def settle(self) -> None: ...

    # ------------------------------------------------------------ asking

    def may_change(self, path: str) -> bool:  # noqa: ARG002
        """Of what is no file, such as a message, the path is empty."""
        return True

    def holds(self, data: bytes) -> bool:
        """A file, or an object of git."""
        raise NotImplementedError

    def spans(self, data: bytes) -> Iterable[tuple[int, int]]:  # noqa: ARG002
        """Where it stands in a file, if it stands there literally."""
        return ()

    def is_like(self, path: str, data: bytes) -> bool:  # noqa: ARG002
        """Whether a file says the same in another way, and keeps it. In the history it has no path."""
        return False

    def may_be_in_log(self, data: bytes) -> bool:  # noqa: ARG002
        """A quick look at a line, or a file, of JSON."""
        return True

    # ------------------------------------------------------------ without it

    def path(self, path: str) -> str:
        return path

    def ref(self, name: str) -> str:
        return name

    def person(self, name: str) -> str:
        return name

    def file(self, path: str, data: bytes) -> bytes | None:
        """None: it goes."""
        raise NotImplementedError

    def message(self, data: bytes) -> bytes:
        """Of a commit or a tag."""
        raise NotImplementedError

    def line(self, value: object, by: str) -> object:
        """A line of a log, read as JSON; None when it goes altogether."""
        raise NotImplementedError

    def text(self, data: bytes) -> bytes:
        """A line of any other kind."""
        raise NotImplementedError


def is_transcript(path: str) -> bool:
    return path.startswith(f"{CONVERSATIONS}/") and path.endswith(".md")


def numbered(name: str) -> Iterator[str]:
    """The name itself, then the same with -2, -3 … before its ending."""
    yield name
    folder, slash, last = name.rpartition("/")
    stem, dot, ending = last.rpartition(".") if "." in last[1:] else (last, "", "")
    yield from (f"{folder}{slash}{stem}-{number}{dot}{ending}" for number in count(2))


def folders_of(paths: Iterable[str]) -> dict[str, set[str]]:
    """The names in each folder; a folder ends in a slash."""
    found: dict[str, set[str]] = {}
    for path in paths:
        rest = path
        while rest:
            folder, slash, name = rest.rpartition("/")
            found.setdefault(folder + slash, set()).add(name)
            rest = folder
    return found


def each_text(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [each_text(item, change) for item in value]
    if isinstance(value, dict):
        return {change(str(key)): each_text(item, change) for key, item in value.items()}
    return value


class Mentions:
    """Places where a file or its hash is named that is now called otherwise, or (None) is gone."""

    def __init__(self) -> None:
        self.paths: dict[str, str | None] = {}
        self.names: dict[str, str] = {}  # as the subject of the commit has it, by the path of the transcript
        self.digests: dict[bytes, bytes | None] = {}
        self._known: dict[bytes, bytes | None] = {}
        self._times: set[bytes] = set()  # with which names of transcripts begin
        self._other_names: list[bytes] = []
        self._others: re.Pattern[bytes] | None = None

    def add(self, old: str, new: str | None) -> None:
        if old in self.paths:
            return
        self.paths[old] = new
        self._keep(old, new)
        if is_transcript(old):
            for ending in ("", ".md"):
                self._keep(_stem(old) + ending, None if new is None else _stem(new) + ending)
            self._times.add(notes.encode(_stem(old))[:5])
        if not _PATH.fullmatch(notes.encode(old)):
            self._other_names.append(notes.encode(old))
            self._others = None

    def add_digest(self, old: bytes, new: bytes | None) -> None:
        if new != old:
            self.digests[files.digest(old).encode()] = None if new is None else files.digest(new).encode()

    def _keep(self, old: str, new: str | None) -> None:
        self._known[notes.encode(old)] = None if new is None else notes.encode(new)

    def are_in(self, data: bytes) -> bool:
        return bool(self.paths) and self.replaced(data) != data

    def replaced_text(self, text: str, by: str = WORD) -> str:
        return notes.decode(self.replaced(notes.encode(text), by))

    def replaced(self, data: bytes, by: str = WORD) -> bytes:
        if not self.paths and not self.digests:
            return data

        def new(found: re.Match[bytes]) -> bytes:
            known = self._known.get(found[0], found[0])
            return by.encode() if known is None else known

        for pattern in self._patterns(data):
            data = pattern.sub(new, data)
        if not _may_hold(data, self.digests):
            return data
        return _SHA256.sub(lambda found: self._digest(found[0], by), data)

    def _patterns(self, data: bytes) -> Iterator[re.Pattern[bytes]]:
        if b"raw/conversations/" in data:
            yield _PATH
        if _may_hold(data, self._times):
            yield _NAME
        if self._others is None and self._other_names:
            names = b"|".join(re.escape(path) for path in sorted(self._other_names, key=len, reverse=True))
            self._others = re.compile(rb"(?<![\w/])(?:%s)(?![\w/])" % names)
        if self._others:
            yield self._others

    def _digest(self, digest: bytes, by: str) -> bytes:
        known = self.digests.get(digest, digest)
        return by.encode() if known is None else known


def _may_hold(data: bytes, pieces: Collection[bytes]) -> bool:
    """A plain search is much faster than a pattern, and nearly all files hold none of them."""
    return len(pieces) > _FEW or any(piece in data for piece in pieces)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")
