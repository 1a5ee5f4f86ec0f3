r"""Adds word boundaries at the edges of patterns that people write.

`email|inbox|mail` is not meant to match "blackmail". So a pattern gets word boundaries, unless it sets its
own: with `\b`, `\B`, `^` or `$`, or between slashes as in `/mail/`.

RE2 knows only ASCII words: its `\b` sees a boundary before the last letter of "café", and none anywhere in
"почта". Testing for letters of all scripts instead makes a pattern a hundred times larger. So each pattern
has two forms. `loose` has `\b` if the edge is an ASCII letter and nothing if it is another letter; it is
small and matches everything that `exact` matches. `exact` is correct, and is only needed if a loose match
has a letter next to it.

No boundary is added next to a script written without spaces, nor if the edge is not a letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tacit.text.words import UNSPACED_RUN

MAX_DEPTH = 50  # nesting of groups

# Characters that may be next to a word: not letters, digits or combining marks, except those of scripts
# written without spaces. The ranges are as wide as possible, since each one makes an exact pattern larger.
# Both Python and RE2 read them.
OUTSIDE = (
    r"\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7"
    "\u037e\u0387\u055a-\u055f\u0589-\u058f\u05be\u05c0\u05c3\u05c6\u05f3-\u060f\u061b-\u061f\u066a-\u066d"
    "\u06d4\u0700-\u070f\u0964\u0965\u0e00-\u0eff\u0f08-\u0f14\u1000-\u109f\u10fb\u1100-\u11ff\u1360-\u1368"
    "\u1680\u1780-\u17ff\u1800-\u180a\u2000-\u206f\u207a-\u207e\u208a-\u208e\u20a0-\u20cf\u2100-\u214f\u2190-\u2bff\u2e00-\ua4cf"
    "\ua960-\ua97f\uac00-\ud7ff\ue000-\ufaff\ufd3e\ufd3f\ufe00-\ufe6f\ufeff\uff00-\uff0f\uff1a-\uff20"
    "\uff3b-\uff40\uff5b-\uffff\U0001f000-\U0010ffff"
)
_OUTSIDE = re.compile(f"[{OUTSIDE}]")
# Case-sensitive, as otherwise the Kelvin sign among them would match k.
_BEFORE = rf"(?:\A|(?-i:[{OUTSIDE}]))"
_AFTER = rf"(?:\z|(?-i:[{OUTSIDE}]))"


def is_outside(character: str) -> bool:
    """Whether a character is outside words; also true for the empty text at the edge of a text."""
    return not character or _OUTSIDE.match(character) is not None


class BoundedPattern(NamedTuple):
    loose: str
    exact: str
    left: bool = False  # whether a match must not follow a word character
    right: bool = False


def add_boundaries(pattern: str) -> BoundedPattern:
    """Both forms of a pattern. An unreadable one is returned as it is: the engine reports what is wrong."""
    slashed = _SLASHED.fullmatch(pattern)
    if slashed:
        pattern = f"(?{slashed['flags']}){slashed['inner']}" if slashed["flags"] else slashed["inner"]
    try:
        tree = _PatternParser(pattern).whole()
        if len(tree.rows) > 1:  # one boundary for all alternatives
            pattern = f"(?:{pattern})"
            tree = _PatternParser(pattern).whole()
    except _Unreadable:
        return BoundedPattern(pattern, pattern)
    explicit = slashed is not None or tree.has_edges
    changes = [*_edge_changes(tree, "left", not explicit), *_edge_changes(tree, "right", not explicit)]
    return BoundedPattern(
        _splice(pattern, [(change.start, change.end, change.loose) for change in changes]),
        _splice(pattern, [(change.start, change.end, change.exact) for change in changes]),
        any(change.exact == _BEFORE for change in changes),
        any(change.exact == _AFTER for change in changes),
    )


_SLASHED = re.compile(r"/(?P<inner>.+)/(?:(?P<flags>[ims]+)|[gimsuy]*)", re.DOTALL)


def _splice(pattern: str, changes: Iterable[tuple[int, int, str]]) -> str:
    parts, position = [], 0
    for start, end, text in sorted(changes):
        parts += [pattern[position:start], text]
        position = max(position, end)
    return "".join((*parts, pattern[position:]))


# Parsing a pattern, as far as needed for its edges

# ascii: an ASCII letter or digit; word: maybe another letter; unspaced: of a script without spaces; other:
# not a letter, or anything; mixed: alternatives differ.
_EdgeKind: TypeAlias = Literal["ascii", "word", "unspaced", "other", "mixed"]
_Side: TypeAlias = Literal["left", "right"]


@dataclass(slots=True)
class _Atom:
    token: re.Match[str]
    end: int
    inner: list[_Row] | None = None  # the alternatives of a group
    boundary: bool = False  # a `\b`
    optional: bool = False
    repeated: bool = False

    @property
    def start(self) -> int:
        return self.token.start()


@dataclass(slots=True)
class _Row:
    """A sequence of atoms."""

    start: int
    end: int
    atoms: list[_Atom]


@dataclass(slots=True)
class _Tree:
    rows: list[_Row]
    has_edges: bool


class _Unreadable(Exception):
    """Internal to this module."""


_TOKEN = re.compile(
    r"""
      (?P<quoted> \\Q .*? (?:\\E|\Z) )
    | (?P<edge>   \\[bBAz] | \^ | \$ )
    | (?P<escape> \\ (?: x\{[0-9A-Fa-f]+\} | x[0-9A-Fa-f]{2} | [pP](?:\{[^}]*\}|.) | . ) )
    | (?P<set>    \[ \^? \]? (?: \[:\^?\w+:\] | \\[pP]\{[^}]*\} | \\. | [^\]\\] )*+ \] )
    | (?P<flags>  \(\? [a-zA-Z]* (?:-[a-zA-Z]+)? \) )
    | (?P<open>   \( (?: \? (?: P?<\w+> | [a-zA-Z]* (?:-[a-zA-Z]+)? : ) )? )
    | (?P<close>  \) )
    | (?P<or>     \| )
    | (?P<count>  (?: [*+?] | \{\d+(?:,\d*)?\} ) \?? )
    | (?P<plain>  [\w\ ]+ (?![*+?{]) | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_MAY_BE_ABSENT = re.compile(r"[*?]|\{0")


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    for token in _TOKEN.finditer(pattern):
        if token[0] == "[":
            raise _Unreadable  # never closed; searching for the end of each further one would take long
        yield token


class _PatternParser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._tokens = list(_tokens(pattern))
        self._at = 0
        self._has_edges = False

    def whole(self) -> _Tree:
        rows = self._parse_rows(0, 0)
        if self._at != len(self._tokens):
            raise _Unreadable
        return _Tree(rows, self._has_edges)

    def _parse_rows(self, start: int, depth: int) -> list[_Row]:
        if depth > MAX_DEPTH:
            raise _Unreadable
        rows = [_Row(start, start, [])]
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.lastgroup == "close":
                break
            self._at += 1
            if token.lastgroup == "or":
                rows.append(_Row(token.end(), token.end(), []))
            else:
                self._parse_token(token, rows[-1], depth)
                rows[-1].end = self._tokens[self._at - 1].end()
        return rows

    def _parse_token(self, token: re.Match[str], row: _Row, depth: int) -> None:
        end, text = token.end(), token[0]
        if token.lastgroup == "count":
            self._apply_count(text, row)
        elif token.lastgroup == "open":
            inner = self._parse_rows(end, depth + 1)
            if self._at == len(self._tokens):
                raise _Unreadable  # never closed
            self._at += 1
            row.atoms.append(_Atom(token, self._tokens[self._at - 1].end(), inner))
        elif token.lastgroup == "edge":
            self._has_edges = True
            row.atoms.append(_Atom(token, end, boundary=text == r"\b"))
        elif token.lastgroup == "flags":
            row.start = end if not row.atoms else row.start
        else:
            row.atoms.append(_Atom(token, end))

    def _apply_count(self, text: str, row: _Row) -> None:
        if not row.atoms:
            raise _Unreadable
        row.atoms[-1].repeated = True
        row.atoms[-1].optional |= _MAY_BE_ABSENT.match(text) is not None


def _kind_of(token: re.Match[str], side: _Side) -> _EdgeKind:
    text = token[0]
    if token.lastgroup == "plain":
        return "other" if text == "." else _kind_of_letter(text[0 if side == "left" else -1])
    if token.lastgroup == "escape":
        return _kind_of_escape(text)
    if token.lastgroup == "set":
        return _kind_of_set(text)
    return "word" if token.lastgroup == "quoted" else "other"


def _kind_of_letter(letter: str) -> _EdgeKind:
    if UNSPACED_RUN.match(letter):
        return "unspaced"
    if is_outside(letter):
        return "other"
    return "ascii" if letter.isascii() else "word"


def _kind_of_escape(text: str) -> _EdgeKind:
    if text in (r"\w", r"\d"):
        return "ascii"
    if text[1] == "x":
        code = int(text[2:].strip("{}"), 16)
        return _kind_of_letter(chr(code)) if code <= 0x10FFFF else "other"
    if text[1] == "p":
        name = text[2:].strip("{}")
        return "word" if name[:1] in ("L", "N") or name in _SPACED_SCRIPTS else "other"
    return _kind_of_letter(text[1]) if not text[1].isalnum() else "other"


_SPACED_SCRIPTS = {"Latin", "Greek", "Cyrillic", "Armenian", "Hebrew", "Arabic", "Devanagari", "Georgian"}
_WORD_IN_SET = re.compile(r"\\[wd]|\[:(?:alpha|alnum|word|digit|lower|upper):\]|\\p\{?[LN]|[^\W_]")
_ASCII_SET = re.compile(
    r"\[(?:\\[wd]|\[:(?:alpha|alnum|word|digit|lower|upper):\]|\w|(?<=\w)-(?=\w))+\]", re.ASCII
)


def _kind_of_set(text: str) -> _EdgeKind:
    if text.startswith("[^"):
        return "other"
    if UNSPACED_RUN.search(text):
        return "unspaced"
    if _ASCII_SET.fullmatch(text):
        return "ascii"
    return "word" if _WORD_IN_SET.search(re.sub(r"\\[WDSsnrtfv]", "", text)) else "other"


# Placing boundaries


class _Change(NamedTuple):
    start: int
    end: int  # the pattern from start to end is replaced
    loose: str
    exact: str


def _edge_changes(tree: _Tree, side: _Side, always: bool) -> Iterator[_Change]:
    for row in tree.rows:
        yield from _row_changes(row, side, always)


def _row_changes(row: _Row, side: _Side, always: bool) -> Iterator[_Change]:
    """The changes for one alternative. Without a `\\b` of its own it gets a boundary only if `always`."""
    atoms = row.atoms if side == "left" else row.atoms[::-1]
    position = row.start if side == "left" else row.end
    if not atoms:
        return
    first = atoms[0]
    if first.boundary and not first.repeated:
        yield from _explicit_boundary(first, atoms[1:], side)
    elif always:
        yield from _boundary_changes(position, position, atoms, side)
    elif first.inner is not None and not first.repeated:
        for inner in first.inner:
            yield from _row_changes(inner, side, always)


def _explicit_boundary(boundary: _Atom, atoms: Sequence[_Atom], side: _Side) -> Iterator[_Change]:
    r"""Make a `\b` of the author work for all letters; leave it alone next to other characters."""
    if _kind_at_edge(atoms, side) != "other" and not any(atom.boundary for atom in atoms[:1]):
        yield from _boundary_changes(boundary.start, boundary.end, atoms, side)


def _boundary_changes(start: int, end: int, atoms: Sequence[_Atom], side: _Side) -> Iterator[_Change]:
    kind = _kind_at_edge(atoms, side)
    exact = _BEFORE if side == "left" else _AFTER
    if kind == "ascii":
        yield _Change(start, end, r"\b", exact)
    elif kind == "word":
        yield _Change(start, end, "", exact)
    elif start != end:
        yield _Change(start, end, "", "")
    if kind == "mixed" and atoms[0].inner is not None and not atoms[0].repeated:
        for inner in atoms[0].inner:
            yield from _row_changes(inner, side, True)


def _kind_at_edge(atoms: Sequence[_Atom], side: _Side) -> _EdgeKind:
    """The kind of character at the edge. Optional atoms can turn an ASCII letter into any letter."""
    plain = True
    for atom in atoms:
        kind = _kind_of_atom(atom, side)
        if not atom.optional:
            return "word" if kind == "ascii" and not plain else kind
        plain = plain and kind == "ascii"
    return "other"


def _kind_of_atom(atom: _Atom, side: _Side) -> _EdgeKind:
    if atom.inner is None:
        return _kind_of(atom.token, side)
    kinds = {_kind_at_edge(row.atoms if side == "left" else row.atoms[::-1], side) for row in atom.inner}
    if kinds == {"ascii", "word"}:
        return "word"
    return kinds.pop() if len(kinds) == 1 else "mixed"
