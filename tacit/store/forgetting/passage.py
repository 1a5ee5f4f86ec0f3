"""A text, wherever it stands."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tacit.store import files, lfs
from tacit.store.forgetting.transcript import Count, new_path, redacted, slug_of
from tacit.store.forgetting.what import HEAD, Forgetting, Mentions, each_text, is_transcript, numbered
from tacit.store.forgetting.words import WORD, Words
from tacit.text import notes

_TRAILER = re.compile(rb"^Session: (.*?)\r?$", re.MULTILINE)


class Passage(Forgetting):
    kind = "passage"

    def __init__(self, text: str, *, lines: bool, under: str, count: Count) -> None:
        super().__init__()
        self.words = Words(text)
        self.secret = f"{self.words.text}\0{under}"
        self._lines, self._under, self._count = lines, under, count
        self._large: set[str] = set()  # objects of git-lfs that hold it
        self._held: set[str] = set()  # files that hold it
        self._beside: dict[str, set[str]] = {}  # names that are taken where a file is called otherwise
        self._names: dict[str, str] = {}  # and what it is called then
        self._places: dict[str, tuple[object, ...]] = {}  # of a new transcript, which session it is

    # ------------------------------------------------------------ learning

    def learn(self, path: str, data: bytes) -> None:
        """A transcript has words of it in its name, and other files may have them too."""
        if self._under:
            return
        self._held.add(path)
        if is_transcript(path) and self.words.are_in(data):
            self._learn_transcript(path, data)

    def _learn_transcript(self, path: str, data: bytes) -> None:
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
        return known or next(name for name in numbered(new) if self._places.setdefault(name, place) == place)

    def learn_names(self, folder: str, names: Collection[str]) -> None:
        if self._under:
            return
        for name in names:
            if self.words.renamed(name) != name:
                self._beside.setdefault(folder + name, set()).update(names)

    def learn_large(self, data: bytes) -> bool:
        if self.words.are_in(data):
            self._large.add(files.digest(data))
            return True
        return False

    def settle(self) -> None:
        """Two files that differed in what is forgotten only must not become one."""
        for path in sorted(self._beside):
            folder, slash, name = path.rpartition("/")
            others = {other: f"{folder}{slash}{other}" for other in self._beside[path] if other != name}
            taken = {self._names.get(at, other) for other, at in others.items()}
            self._names[path] = next(new for new in numbered(self.words.renamed(name)) if new not in taken)
        for path in sorted({*self._beside, *self._held}):
            if (new := self.path(path)) != path:
                self.mentions.add(path, new)

    # ------------------------------------------------------------ asking

    def may_change(self, path: str) -> bool:
        return not self._under or path == self._under or path.startswith(f"{self._under}/")

    def holds(self, data: bytes) -> bool:
        return self.words.are_in(data) or self.mentions.are_in(data) or self._is_gone(data)

    def _is_gone(self, data: bytes) -> bool:
        """Whether this stands for an object of git-lfs that holds it."""
        if not self._large or not lfs.is_pointer(data):
            return False
        found = re.search(rb"oid sha256:([0-9a-f]{64})", data)
        return found is not None and found[1].decode() in self._large

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        return self.words.spans(data)

    def is_like(self, path: str, data: bytes) -> bool:
        return self.words.are_like(path, data)

    def may_be_in_log(self, data: bytes) -> bool:
        return not self._under and (
            self.words.may_begin_in(data)
            or self.holds(data)
            or any(notes.encode(path) in data for path in self._held)
        )

    # ------------------------------------------------------------ without it

    def path(self, path: str) -> str:
        if self._under:
            return path
        if is_transcript(path) and (known := self.mentions.paths.get(path)):
            return known
        if self.words.renamed(path) == path:
            return path
        folder, slash, name = path.rpartition("/")
        return f"{self.path(folder)}{slash}{self._names.get(path) or self.words.renamed(name)}"

    def ref(self, name: str) -> str:
        return name if self._under else "/".join(map(self.words.renamed, name.split("/")))

    def person(self, name: str) -> str:
        return name if self._under else self.words.renamed(name)

    def file(self, path: str, data: bytes) -> bytes | None:
        if not self.may_change(path):
            return data
        if self._is_gone(data):
            return None
        if not is_transcript(path):
            return self.words.without(path, self.mentions.replaced(data), lines=self._lines)
        new = self._redacted(path, data) if self.holds(data) else data
        self.mentions.add_digest(data, new)
        return new

    def _redacted(self, path: str, data: bytes) -> bytes:
        return redacted(data, path, self._erased, turns=self._lines, count=self._count)

    def _erased(self, text: str, by: str) -> str:
        return self.words.erased_text(self.mentions.replaced_text(text), by)

    def message(self, data: bytes) -> bytes:
        if self._under:
            return self.mentions.replaced(data)
        return self.words.erased(_renamed_subject(data, self.mentions))

    def text(self, data: bytes) -> bytes:
        return data if self._under else self.words.erased(self.mentions.replaced(data), "")

    def line(self, value: object, by: str) -> object:
        if self._under:
            return value
        return each_text(self._without_hashes(value), lambda text: self._logged(text, by))

    def _logged(self, text: str, by: str) -> str:
        return self.words.erased_log(self.mentions.replaced_text(text), by)

    def _without_hashes(self, value: object) -> object:
        """Who has the rest of a message and its hash can find out a short text by trying."""
        if isinstance(value, list):
            return [self._without_hashes(item) for item in value]
        if not isinstance(value, dict):
            return value
        new = {key: self._without_hashes(item) for key, item in value.items()}
        said, source = str(value.get("message", "")), str(value.get("source", ""))
        if value.get("message_hash") and self._logged(said, WORD) != said:
            new["message_hash"] = ""
        if value.get("digest") and source.partition(":")[0] in self._held:
            new["digest"] = ""
        return new


def _renamed_subject(data: bytes, mentions: Mentions) -> bytes:
    """`conversation: name` is made from the name of the transcript."""
    found = _TRAILER.search(data)
    new = mentions.names.get(notes.decode(found[1])) if found else None
    if new and data.startswith(b"conversation: "):
        data = b"conversation: " + new.encode() + data[data.find(b"\n") :]
    return mentions.replaced(data)


def _place(path: str, data: bytes) -> tuple[object, ...]:
    fields = notes.parse(notes.decode(data[:HEAD]), path).fields
    return path.rpartition("/")[0], fields.get("session_id"), fields.get("started"), fields.get("continues")
