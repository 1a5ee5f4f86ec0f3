"""Notes of a home while many conversations are learned from: read once, written when it is time."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tacit.lifecycle.apply import MEMORY, Added, Page, add_to, applied, line_of, lines_of, skeleton, with_head
from tacit.model.changes import Change
from tacit.store.files import Tree
from tacit.text import notes

_NOTHING = Added((), (), ())


class Pages:
    """For one who works alone in these files. What is added is on disk after `flush`."""

    def __init__(self, tree: Tree, cap: int) -> None:
        """`cap`: lines that MEMORY.md may have."""
        self._tree, self._cap = tree, cap
        self._pages: dict[str, Page] = {}
        self._added: dict[str, list[Change]] = {}  # since the page was read
        self._dirty: set[str] = set()

    def head(self, path: str) -> bytes | None:
        """The frontmatter of a note; None: there is none yet."""
        if path in self._pages:
            return notes.encode(self._pages[path].head)
        data = self._read(path)
        return None if data is None else notes.encode(notes.split(notes.decode(data))[0])

    def says(self, change: Change) -> bool:
        """Whether its note has the line, or one like it."""
        page = self._page(change.path)
        return page.has(line_of(change)) or page.says(change.text)

    def add(self, path: str, changes: Sequence[Change], *, supersede: bool) -> Added | None:
        """None: MEMORY.md has no room for them."""
        page = self._page(path)
        if path == MEMORY:
            made = applied(page.text(), path, changes, supersede=supersede)
            if not made.added:
                return _NOTHING
            if lines_of(made.text) > self._cap:
                return None
            self._pages[path] = Page(made.text)
            done = Added(*made[1:])
        else:
            done = add_to(page, changes, supersede=supersede)
        if done.added:
            self._added.setdefault(path, []).extend(done.added)
            self._dirty.add(path)
        return done

    def flush(self, paths: Collection[str] | None = None) -> None:
        """Write what was added, to all notes or to these. Not synced."""
        for path in sorted(self._dirty if paths is None else self._dirty.intersection(paths)):
            text = with_head(self._pages[path].text(), path, self._added[path])
            file = self._tree.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(notes.encode(text))
            self._dirty.discard(path)

    def drop(self, path: str) -> None:
        """Somebody else wrote it: it is read again."""
        self._pages.pop(path, None)
        self._added.pop(path, None)

    def clear(self) -> None:
        """Read everything again, as one would who begins here."""
        self.flush()
        self._pages.clear()
        self._added.clear()

    def _page(self, path: str) -> Page:
        if path not in self._pages:
            data = self._read(path)
            self._pages[path] = Page(skeleton(path) if data is None else notes.decode(data))
        return self._pages[path]

    def _read(self, path: str) -> bytes | None:
        try:
            return self._tree.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
