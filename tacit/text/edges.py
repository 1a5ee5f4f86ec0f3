r"""Whole words at the edges of patterns that people write.

`email|inbox|mail` is not meant to find "blackmail". So a pattern gets word boundaries, unless it says itself
where it may stand: with `\b`, `\B`, `^` or `$`, or between slashes as in `/mail/`.

RE2 knows ASCII words only: its `\b` sees a boundary before the last letter of "café", and none anywhere in
"почта". Testing for letters of all scripts instead makes a pattern a hundred times larger. So there are two
forms of each pattern. `loose` has `\b` where the edge is an ASCII letter and nothing where it is another; it
is small and finds everything that `exact` finds. `exact` is right, and is only needed where a loose match
has a letter next to it.

No boundary is asked for next to a script written without spaces, nor where the edge is no letter at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tacit.text.words import RUN

DEEPEST = 50  # groups in groups

# What may stand next to a word: no letter, digit or mark, or one of a script written without spaces. In
# ranges as wide as possible, since each one makes an exact pattern larger. Python and RE2 both read it.
OUTSIDE = (
    r"\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf\xd7\xf7"
    "\u037e\u0387\u055a-\u055f\u0589-\u058f\u05be\u05c0\u05c3\u05c6\u05f3-\u060f\u061b-\u061f\u066a-\u066d"
    "\u06d4\u0700-\u070f\u0964\u0965\u0e00-\u0eff\u0f08-\u0f14\u1000-\u109f\u10fb\u1100-\u11ff\u1360-\u1368"
    "\u1680\u1780-\u17ff\u1800-\u180a\u2000-\u206f\u207a-\u207e\u208a-\u208e\u20a0-\u20cf\u2100-\u214f\u2190-\u2bff\u2e00-\ua4cf"
    "\ua960-\ua97f\uac00-\ud7ff\ue000-\ufaff\ufd3e\ufd3f\ufe00-\ufe6f\ufeff\uff00-\uff0f\uff1a-\uff20"
    "\uff3b-\uff40\uff5b-\uffff\U0001f000-\U0010ffff"
)
_OUTSIDE = re.compile(f"[{OUTSIDE}]")
# Without case, the sign for Kelvin among them would be a k.
_BEFORE = rf"(?:\A|(?-i:[{OUTSIDE}]))"
_AFTER = rf"(?:\z|(?-i:[{OUTSIDE}]))"


def is_outside(character: str) -> bool:
    """Whether a word ends here; also at the edge of a text, where there is no character."""
    return not character or _OUTSIDE.match(character) is not None


class Edged(NamedTuple):
    loose: str
    exact: str
    left: bool = False  # whether a match must have nothing of a word before it
    right: bool = False


def edged(pattern: str) -> Edged:
    """Both forms of a pattern. One that we cannot read is given back: the engine says what is wrong."""
    slashed = _SLASHED.fullmatch(pattern)
    if slashed:
        pattern = f"(?{slashed['flags']}){slashed['inner']}" if slashed["flags"] else slashed["inner"]
    try:
        tree = _Reader(pattern).whole()
        if len(tree.rows) > 1:  # one boundary for all alternatives
            pattern = f"(?:{pattern})"
            tree = _Reader(pattern).whole()
    except _Unreadable:
        return Edged(pattern, pattern)
    explicit = slashed is not None or tree.has_edges
    changes = [*_edges(tree, "left", not explicit), *_edges(tree, "right", not explicit)]
    return Edged(
        _spliced(pattern, [(change.start, change.end, change.loose) for change in changes]),
        _spliced(pattern, [(change.start, change.end, change.exact) for change in changes]),
        any(change.exact == _BEFORE for change in changes),
        any(change.exact == _AFTER for change in changes),
    )


_SLASHED = re.compile(r"/(?P<inner>.+)/(?:(?P<flags>[ims]+)|[gimsuy]*)", re.DOTALL)


def _spliced(pattern: str, changes: Iterable[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, text in sorted(changes):
        parts += [pattern[at:start], text]
        at = max(at, end)
    return "".join((*parts, pattern[at:]))


# Reading a pattern, as far as its edges need it

# ascii: an ASCII letter or digit; word: maybe another letter; unspaced: of a script without spaces; other:
# no letter, or anything; mixed: differs from one alternative to the next.
_Kind: TypeAlias = Literal["ascii", "word", "unspaced", "other", "mixed"]
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
    """Atoms one after the other."""

    start: int
    end: int
    atoms: list[_Atom]


@dataclass(slots=True)
class _Tree:
    rows: list[_Row]
    has_edges: bool


class _Unreadable(Exception):
    """Never leaves this module."""


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
_NO_TIMES = re.compile(r"[*?]|\{0")


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    for token in _TOKEN.finditer(pattern):
        if token[0] == "[":
            raise _Unreadable  # never closed; looking for the end of each further one would take long
        yield token


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._tokens = list(_tokens(pattern))
        self._at = 0
        self._has_edges = False

    def whole(self) -> _Tree:
        rows = self._rows(0, 0)
        if self._at != len(self._tokens):
            raise _Unreadable
        return _Tree(rows, self._has_edges)

    def _rows(self, start: int, depth: int) -> list[_Row]:
        if depth > DEEPEST:
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
                self._take(token, rows[-1], depth)
                rows[-1].end = self._tokens[self._at - 1].end()
        return rows

    def _take(self, token: re.Match[str], row: _Row, depth: int) -> None:
        end, text = token.end(), token[0]
        if token.lastgroup == "count":
            self._count(text, row)
        elif token.lastgroup == "open":
            inner = self._rows(end, depth + 1)
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

    def _count(self, text: str, row: _Row) -> None:
        if not row.atoms:
            raise _Unreadable
        row.atoms[-1].repeated = True
        row.atoms[-1].optional |= _NO_TIMES.match(text) is not None


def _kind_of(token: re.Match[str], side: _Side) -> _Kind:
    text = token[0]
    if token.lastgroup == "plain":
        return "other" if text == "." else _kind_of_letter(text[0 if side == "left" else -1])
    if token.lastgroup == "escape":
        return _kind_of_escape(text)
    if token.lastgroup == "set":
        return _kind_of_set(text)
    return "word" if token.lastgroup == "quoted" else "other"


def _kind_of_letter(letter: str) -> _Kind:
    if RUN.match(letter):
        return "unspaced"
    if is_outside(letter):
        return "other"
    return "ascii" if letter.isascii() else "word"


def _kind_of_escape(text: str) -> _Kind:
    if text in (r"\w", r"\d"):
        return "ascii"
    if text[1] == "x":
        code = int(text[2:].strip("{}"), 16)
        return _kind_of_letter(chr(code)) if code <= 0x10FFFF else "other"
    if text[1] == "p":
        name = text[2:].strip("{}")
        return "word" if name[:1] in ("L", "N") or name in _SPACED else "other"
    return _kind_of_letter(text[1]) if not text[1].isalnum() else "other"


_SPACED = {"Latin", "Greek", "Cyrillic", "Armenian", "Hebrew", "Arabic", "Devanagari", "Georgian"}
_WORD_IN_SET = re.compile(r"\\[wd]|\[:(?:alpha|alnum|word|digit|lower|upper):\]|\\p\{?[LN]|[^\W_]")
_ASCII_SET = re.compile(
    r"\[(?:\\[wd]|\[:(?:alpha|alnum|word|digit|lower|upper):\]|\w|(?<=\w)-(?=\w))+\]", re.ASCII
)


def _kind_of_set(text: str) -> _Kind:
    if text.startswith("[^"):
        return "other"
    if RUN.search(text):
        return "unspaced"
    if _ASCII_SET.fullmatch(text):
        return "ascii"
    return "word" if _WORD_IN_SET.search(re.sub(r"\\[WDSsnrtfv]", "", text)) else "other"


# Where boundaries go


class _Change(NamedTuple):
    start: int
    end: int  # what stands there until here is replaced
    loose: str
    exact: str


def _edges(tree: _Tree, side: _Side, always: bool) -> Iterator[_Change]:
    for row in tree.rows:
        yield from _edge(row, side, always)


def _edge(row: _Row, side: _Side, always: bool) -> Iterator[_Change]:
    """For one alternative: where it has no `\\b` of its own, only if boundaries are wanted `always`."""
    atoms = row.atoms if side == "left" else row.atoms[::-1]
    here = row.start if side == "left" else row.end
    if not atoms:
        return
    first = atoms[0]
    if first.boundary and not first.repeated:
        yield from _own_boundary(first, atoms[1:], side)
    elif always:
        yield from _boundary(here, here, atoms, side)
    elif first.inner is not None and not first.repeated:
        for inner in first.inner:
            yield from _edge(inner, side, always)


def _own_boundary(own: _Atom, atoms: Sequence[_Atom], side: _Side) -> Iterator[_Change]:
    r"""A `\b` that someone wrote: made to work for all letters, left alone where there are none."""
    if _kind(atoms, side) != "other" and not any(atom.boundary for atom in atoms[:1]):
        yield from _boundary(own.start, own.end, atoms, side)


def _boundary(start: int, end: int, atoms: Sequence[_Atom], side: _Side) -> Iterator[_Change]:
    kind = _kind(atoms, side)
    exact = _BEFORE if side == "left" else _AFTER
    if kind == "ascii":
        yield _Change(start, end, r"\b", exact)
    elif kind == "word":
        yield _Change(start, end, "", exact)
    elif start != end:
        yield _Change(start, end, "", "")
    if kind == "mixed" and atoms[0].inner is not None and not atoms[0].repeated:
        for inner in atoms[0].inner:
            yield from _edge(inner, side, True)


def _kind(atoms: Sequence[_Atom], side: _Side) -> _Kind:
    """What stands at the edge. Something optional there can make an ASCII letter any letter, no less."""
    plain = True
    for atom in atoms:
        kind = _kind_of_atom(atom, side)
        if not atom.optional:
            return "word" if kind == "ascii" and not plain else kind
        plain = plain and kind == "ascii"
    return "other"


def _kind_of_atom(atom: _Atom, side: _Side) -> _Kind:
    if atom.inner is None:
        return _kind_of(atom.token, side)
    kinds = {_kind(row.atoms if side == "left" else row.atoms[::-1], side) for row in atom.inner}
    if kinds == {"ascii", "word"}:
        return "word"
    return kinds.pop() if len(kinds) == 1 else "mixed"
