"""A buffer for notes while many conversations are learned from: read once, written on flush."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tacit.home.files import Tree, make_directories, write_unsynced
from tacit.learn.model import Change
from tacit.learn.note_lines import (
    MEMORY,
    AddResult,
    NotePage,
    add_changes,
    apply_changes,
    format_line,
    line_count,
    skeleton,
    update_head,
)
from tacit.markdown import notes

_NOTHING = AddResult((), (), ())


class NoteBuffer:
    """For a caller that is the only writer of these files. Changes are on disk after `flush`."""

    def __init__(self, tree: Tree, cap: int) -> None:
        """`cap`: maximum number of lines in MEMORY.md."""
        self._tree, self._cap = tree, cap
        self._pages: dict[str, NotePage] = {}
        self._added: dict[str, list[Change]] = {}  # since the page was read
        self._dirty: set[str] = set()

    def head(self, path: str) -> bytes | None:
        """The frontmatter of a note; None if there is no note yet."""
        if path in self._pages:
            return notes.encode(self._pages[path].head)
        data = self._read(path)
        return None if data is None else notes.encode(notes.split(notes.decode(data))[0])

    def says(self, change: Change) -> bool:
        """Whether its note has the line or a similar one."""
        page = self._load_page(change.path)
        return page.has(format_line(change)) or page.says(change.text)

    def add(self, path: str, changes: Sequence[Change], *, supersede: bool) -> AddResult | None:
        """None if MEMORY.md has no room for them."""
        page = self._load_page(path)
        if path == MEMORY:
            outcome = apply_changes(page.text(), path, changes, supersede=supersede)
            if not outcome.added:
                return _NOTHING
            if line_count(outcome.text) > self._cap:
                return None
            self._pages[path] = NotePage(outcome.text)
            result = AddResult(*outcome[1:])
        else:
            result = add_changes(page, changes, supersede=supersede)
        if result.added:
            self._added.setdefault(path, []).extend(result.added)
            self._dirty.add(path)
        return result

    def flush(self, paths: Collection[str] | None = None) -> None:
        """Write the added lines of all notes or of these, without fsync."""
        for path in sorted(self._dirty if paths is None else self._dirty.intersection(paths)):
            text = update_head(self._pages[path].text(), path, self._added[path])
            file = self._tree.root / path
            make_directories(file.parent, synced=False)
            write_unsynced(file, notes.encode(text))
            self._dirty.discard(path)

    def drop(self, path: str) -> None:
        """Forget a page that was written elsewhere, so that it is read again."""
        self._pages.pop(path, None)
        self._added.pop(path, None)

    def clear(self) -> None:
        """Flush, then forget all pages, so that everything is read again."""
        self.flush()
        self._pages.clear()
        self._added.clear()

    def _load_page(self, path: str) -> NotePage:
        if path not in self._pages:
            data = self._read(path)
            self._pages[path] = NotePage(skeleton(path) if data is None else notes.decode(data))
        return self._pages[path]

    def _read(self, path: str) -> bytes | None:
        try:
            return self._tree.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
