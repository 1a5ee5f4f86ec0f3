"""Prepares text for the word index, so that the same word is found however it was written.

The index folds case, removes the accents of Latin letters, stems English and drops punctuation. This module
does the rest:

- one spelling for what looks the same: composed or not, full-width or not, with or without soft hyphens,
  the vowel points of Hebrew and Arabic, the accents of Greek, `ё`, `ß`;
- scripts written without spaces become overlapping pairs: `全文検索` is `全文 文検 検索`;
- names whose meaning is in a symbol add a word at the end, since `C++` and `#34` would become `c` and `34`;
- so do the parts of `camelCase`; those of `snake_case` are separate words already.

Documents go through `indexable`. Search terms go through `term`, which adds nothing at the end, so that
adjacent words stay adjacent. Both must change together, and then the index must be rebuilt.

This runs over every chunk of a home, so ordinary prose is only scanned for text that needs work.
Time grows with the length of the text, whatever is in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from operator import add
from typing import NamedTuple

# Letters and marks of Han, Hiragana, Katakana, Hangul, Thai, Lao, Khmer and Myanmar, without digits and
# punctuation. Compatibility forms are gone after normalising.
UNSPACED_CHARS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
)
# The database accepts no lone surrogates and nothing after a NUL. And SQLite knows the letters of Unicode
# 6.1: newer characters count as letters, so that "done🥳" and "₽500" would be words.
_NOT_LETTERS = (
    "\0\ud800-\udfff\u061c\u2066-\u2069\u20a0-\u20cf\u218a\u218b\u2190-\u2bff\u2e00-\u2e7f"
    "\U0001f000-\U0001faff\U000e0000-\U000e0fff"
)
# Soft hyphen, joiners, byte order mark, variation selectors; points of Hebrew and Arabic and the Arabic
# stroke that only makes a word wider. The index would cut words at them.
_UNSEEN = (
    "\u00ad\u200c\u200d\u2060\ufeff\ufe00-\ufe0f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
)
_ACCENTS = dict(zip("άέήίόύώϊϋΐΰё", "αεηιουωιυιυе", strict=True))
# Normalising is slow where anything needs it, and these are in every Chinese or typeset text.
_COMMON_WIDE = "，！？：；（）\u3000\u00a0…"

UNSPACED_RUN = re.compile(f"[{UNSPACED_CHARS}]+")
_NOT_LETTER = re.compile(f"[{_NOT_LETTERS}]")
_UNSEEN_RUN = re.compile(f"[{_UNSEEN}]+")
_ACCENTED = re.compile(f"[{''.join(_ACCENTS)}]")
_SPECIAL = re.compile(f"[{UNSPACED_CHARS}{_NOT_LETTERS}{_UNSEEN}{''.join(_ACCENTS)}]")
_ACCENT = re.compile("[\u0300-\u036f]+")
# Sorting combining marks takes quadratic time in the length of a run: 1.2 s for 40,000, 3 ms for 2,000.
_MAX_MARKS_CHARS = 2000
_MANY_MARKS = re.compile(r"[^\w\s\0-\x7f]{30}")

# Markdown has a space after `#` and nothing after `---`; its `](#anchor)` is left out. Each branch begins
# with its symbol, which makes the search skip from one to the next.
_SYMBOL = re.compile(
    r"""
      \+\+ (?: (?<=\b[CcGg]\+\+) | (?<=\b[Cc]lang\+\+) | (?<=\b[Nn]otepad\+\+) ) (?P<plus>) (?!\+)
    | \#   (?<=\b[CcFfJjQq]\#) (?P<sharp>) (?![^\W\d])
    | \#   (?<![\w\#&/]\#) (?<!\]\(\#) (?P<hash>\w{1,64})
    | @    (?<![\w@.]@) (?P<at>[^\W\d_]\w{1,63})
    | \$   \{? (?P<dollar>[^\W\d]\w{1,63})
    | --   (?<![\w!-]--) (?P<flag>[^\W\d_][\w-]{1,63})
    | \.   (?<![\w.*)\]]\.) (?P<dot>[^\W\d_]\w{1,63})
    """,
    re.VERBOSE,
)
_PLUS_NAMES = re.compile(r"\w+\Z")

_DOT_NAME = re.compile(r"\.(?<![\w.*)\]]\.)[^\W\d_]")

# Letters and digits as `a`, `A` and `1`, all else as space: searching `aA` there is ten times faster than a
# regular expression that stops at every capital.
_CASE_TABLE = (b"1" * 10 + b" " * 7 + b"A" * 26 + b" " * 6 + b"a" * 26).rjust(ord("z") + 1).ljust(256)
_HUMPS = (b"aA", b"AAAaa")  # fooBar, HTTPServer; not PRs and IDs
_MAX_CAMEL_CHARS = 64  # longer ones are keys and hashes
_PART = re.compile(r"[A-Z]++(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]++|[0-9]++")


class Alias(NamedTuple):
    """A word for a name with a symbol at its edge."""

    start: int
    word: str


def prepare_document(text: str) -> str:
    """`text` as a document for the index."""
    cleaned = clean(text)
    added = [alias.word for alias in find_aliases(cleaned)]
    added += split_camel_case(cleaned)
    folded = _fold_case(cleaned)
    if not folded.isascii() and _SPECIAL.search(folded):
        added += _find_last_letters(folded)
        folded = _split_unspaced(folded)
    return " ".join((folded, *dict.fromkeys(added))) if added else folded


def prepare_query(text: str) -> str:
    """`text` as a search term: as in a document, without the words added at the end."""
    folded = _fold_case(clean(text))
    return folded if folded.isascii() else _split_unspaced(folded)


def clean(text: str) -> str:
    """One spelling for what looks the same, without characters that the database refuses. Capitals stay."""
    if text.isascii():
        return text.replace("\0", " ") if "\0" in text else text
    for mark in _COMMON_WIDE:
        text = text.replace(mark, " ")
    text = _normalize(text)
    if _SPECIAL.search(text):
        bare = _UNSEEN_RUN.sub("", _NOT_LETTER.sub(" ", text))
        # A removed character may have been between a letter and its combining mark.
        text = _normalize(bare) if bare != text else text
    return text


def fold(text: str) -> str:
    """For comparing names: clean, without case and without accents."""
    text = clean(text).casefold()
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))


def is_unspaced(text: str) -> bool:
    """Whether some of it is in a script that writes no spaces."""
    return not text.isascii() and UNSPACED_RUN.search(text) is not None


def find_aliases(text: str) -> Iterator[Alias]:
    """The additional words for names such as `C++`, `F#`, `.NET`, `#34`, `@ana`, `$HOME`, `--force`.

    A zero keeps them apart from ordinary words: `#tag` must not be found as "hashtag". Languages and files
    with a dot get no zero, since people do write "csharp" and "dotenv".
    """
    for match in _SYMBOL.finditer(text) if _may_have_alias(text) else ():
        kind, name = match.lastgroup, match[match.lastgroup or 0]
        if kind == "plus":
            preceding = _name_before(text, match.start())
            yield Alias(match.start() - len(preceding), f"{preceding}plusplus".lower())
        elif kind == "sharp":
            yield Alias(match.start() - 1, f"{text[match.start() - 1]}sharp".lower())
        else:
            mark = "dot" if kind == "dot" else f"{kind}0"
            bare = name.replace("_", "").replace("-", "")
            if bare:
                yield Alias(match.start(), f"{mark}{bare}".casefold())


def split_camel_case(text: str) -> Iterator[str]:
    """The parts of all words in camelCase: get, User and Name of `getUserName`."""
    cases = text.encode("ascii", "replace").translate(_CASE_TABLE)
    for hump in _HUMPS:
        position = cases.find(hump)
        while position >= 0:
            start = cases.rfind(b" ", 0, position) + 1
            end = cases.find(b" ", position)
            end = end if end >= 0 else len(cases)
            if end - start <= _MAX_CAMEL_CHARS:
                yield from (part for part in _PART.findall(text[start:end]) if len(part) > 1)
            position = cases.find(hump, end)


def _may_have_alias(text: str) -> bool:
    return (
        "#" in text
        or "@" in text
        or "$" in text
        or "+" in text
        or "--" in text
        or _DOT_NAME.search(text) is not None
    )


def _name_before(text: str, end: int) -> str:
    match = _PLUS_NAMES.search(text[max(0, end - 7) : end])
    return match[0] if match else ""


def space_marks(text: str) -> str:
    """Put spaces into long runs of combining marks, so that normalising does not take quadratic time."""
    return text if text.isascii() or len(text) <= _MAX_MARKS_CHARS else _MANY_MARKS.sub(r"\g<0> ", text)


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", space_marks(text))


def _fold_case(text: str) -> str:
    """Fold case except in ASCII. The index itself folds only letters that stay one letter: not `ß`."""
    return text if text.isascii() else text.casefold()


def _split_unspaced(folded: str) -> str:
    bare = _ACCENTED.sub(lambda match: _ACCENTS[match[0]], folded)
    return UNSPACED_RUN.sub(lambda match: _pairs(_keep_letters(match[0])), bare)


def _find_last_letters(text: str) -> Iterator[str]:
    """The last letter of each run. It begins no pair, and a search for one letter looks for pairs with it."""
    for run in UNSPACED_RUN.findall(text):
        letters = _keep_letters(run)
        if len(letters) > 1:
            yield letters[-1]


def _keep_letters(run: str) -> str:
    """Remove vowel signs and tone marks, at which the index would split a pair."""
    return run if run.isalnum() else "".join(filter(str.isalnum, run))


def _pairs(letters: str) -> str:
    if len(letters) < 2:
        return f" {letters} "
    return f" {' '.join(map(add, letters, letters[1:]))} "
