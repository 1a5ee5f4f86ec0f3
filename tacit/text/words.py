"""Text as the word index is fed with it, so that the same word is found however it was written.

The index folds case, takes off the accents of Latin letters, stems English and drops punctuation.
Here is what it does not do:

- one spelling for what looks the same: composed or not, full-width or not, with or without soft hyphens,
  the vowel points of Hebrew and Arabic, the accents of Greek, `ё`, `ß`;
- scripts written without spaces become overlapping pairs: `全文検索` is `全文 文検 検索`;
- names whose meaning is in a symbol get a further word at the end, `C++` and `#34` would be `c` and `34`;
- so do the parts of `camelCase`; those of `snake_case` are separate words already.

Documents go through `indexable`. What is looked for goes through `term`, which adds nothing at the end, so
that words next to each other stay so. Both must change together, and then the index must be built anew.

This runs over every passage of a vault, so ordinary prose is only searched for what would need work.
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
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
)
# The database takes no half of a surrogate pair and nothing after a NUL. And SQLite has the letters of
# Unicode 6.1: what is younger counts as one, so that "done🥳" and "₽500" would be words.
_NO_LETTERS = (
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

RUN = re.compile(f"[{UNSPACED}]+")
_NO_LETTER = re.compile(f"[{_NO_LETTERS}]")
_SEEN = re.compile(f"[{_UNSEEN}]+")
_ACCENTED = re.compile(f"[{''.join(_ACCENTS)}]")
_SPECIAL = re.compile(f"[{UNSPACED}{_NO_LETTERS}{_UNSEEN}{''.join(_ACCENTS)}]")
_ACCENT = re.compile("[\u0300-\u036f]+")
# Putting marks in order takes the square of their number in one row: 1.2 s for 40,000, 3 ms for 2,000.
_MANY = 2000
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

# Letters and digits as `a`, `A` and `1`, all else as space: looking for `aA` there is ten times faster than
# an expression that stops at every capital.
_CASES = (b"1" * 10 + b" " * 7 + b"A" * 26 + b" " * 6 + b"a" * 26).rjust(ord("z") + 1).ljust(256)
_HUMPS = (b"aA", b"AAAaa")  # fooBar, HTTPServer; not PRs and IDs
_LONGEST_CAMEL = 64  # longer ones are keys and hashes
_PART = re.compile(r"[A-Z]++(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]++|[0-9]++")


class Alias(NamedTuple):
    """One word that stands for a name with a symbol at its edge."""

    start: int
    word: str


def indexable(text: str) -> str:
    """`text` as a document for the index."""
    plain = clean(text)
    added = [alias.word for alias in aliases(plain)]
    added += camel_parts(plain)
    folded = _folded(plain)
    if not folded.isascii() and _SPECIAL.search(folded):
        added += _last_letters(folded)
        folded = _spread(folded)
    return " ".join((folded, *dict.fromkeys(added))) if added else folded


def term(text: str) -> str:
    """`text` as something to look for: as in a document, without the words added at the end."""
    folded = _folded(clean(text))
    return folded if folded.isascii() else _spread(folded)


def clean(text: str) -> str:
    """One spelling for what looks the same, and nothing that the database refuses. Capitals stay."""
    if text.isascii():
        return text.replace("\0", " ") if "\0" in text else text
    for mark in _COMMON_WIDE:
        text = text.replace(mark, " ")
    text = _normal(text)
    if _SPECIAL.search(text):
        bare = _SEEN.sub("", _NO_LETTER.sub(" ", text))
        # What is gone may have stood between a letter and its mark.
        text = _normal(bare) if bare != text else text
    return text


def fold(text: str) -> str:
    """For comparing names: clean, without case and without accents."""
    text = clean(text).casefold()
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))


def unspaced(text: str) -> bool:
    """Whether some of it is in a script that writes no spaces."""
    return not text.isascii() and RUN.search(text) is not None


def aliases(text: str) -> Iterator[Alias]:
    """The further words for names such as `C++`, `F#`, `.NET`, `#34`, `@ana`, `$HOME`, `--force`.

    A zero keeps them apart from what people write: `#tag` must not be found as "hashtag". For languages
    and files with a dot it is the other way round: "csharp" and "dotenv" are what people write.
    """
    for found in _SYMBOL.finditer(text) if _may_have_alias(text) else ():
        kind, name = found.lastgroup, found[found.lastgroup or 0]
        if kind == "plus":
            before = _name_before(text, found.start())
            yield Alias(found.start() - len(before), f"{before}plusplus".lower())
        elif kind == "sharp":
            yield Alias(found.start() - 1, f"{text[found.start() - 1]}sharp".lower())
        else:
            mark = "dot" if kind == "dot" else f"{kind}0"
            bare = name.replace("_", "").replace("-", "")
            if bare:
                yield Alias(found.start(), f"{mark}{bare}".casefold())


def camel_parts(text: str) -> Iterator[str]:
    """The parts of all words in camelCase: get, User and Name of `getUserName`."""
    cases = text.encode("ascii", "replace").translate(_CASES)
    for hump in _HUMPS:
        at = cases.find(hump)
        while at >= 0:
            start = cases.rfind(b" ", 0, at) + 1
            end = cases.find(b" ", at)
            end = end if end >= 0 else len(cases)
            if end - start <= _LONGEST_CAMEL:
                yield from (part for part in _PART.findall(text[start:end]) if len(part) > 1)
            at = cases.find(hump, end)


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
    found = _PLUS_NAMES.search(text[max(0, end - 7) : end])
    return found[0] if found else ""


def _normal(text: str) -> str:
    if len(text) > _MANY:
        text = _MANY_MARKS.sub(r"\g<0> ", text)
    return unicodedata.normalize("NFKC", text)


def _folded(text: str) -> str:
    """The index folds ASCII itself, and of the rest only letters that stay one: not `ß`."""
    return text if text.isascii() else text.casefold()


def _spread(folded: str) -> str:
    bare = _ACCENTED.sub(lambda found: _ACCENTS[found[0]], folded)
    return RUN.sub(lambda found: _pairs(_letters(found[0])), bare)


def _last_letters(text: str) -> Iterator[str]:
    """Of each run. It begins no pair, and who looks for one letter asks for all pairs that begin so."""
    for run in RUN.findall(text):
        letters = _letters(run)
        if len(letters) > 1:
            yield letters[-1]


def _letters(run: str) -> str:
    """Without vowel signs and tone marks, at which the index would cut a pair in two."""
    return run if run.isalnum() else "".join(filter(str.isalnum, run))


def _pairs(letters: str) -> str:
    if len(letters) < 2:
        return f" {letters} "
    return f" {' '.join(map(add, letters, letters[1:]))} "
