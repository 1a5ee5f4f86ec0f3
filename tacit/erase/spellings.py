"""Find a text in files in all the forms it may have, and erase it.

The same words may be written in several ways: wrapped differently, escaped as in JSON, YAML, URLs or our
transcripts, composed or decomposed, joined by hyphens as in names of files and branches. All of these count
as the text. Other capitals, and missing accents outside such names, are other spellings: they stay, and the
user is told. Everything here depends on the bytes only, so a file on disk and the same file in a commit
change in the same way.
"""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

from tacit.errors import UsageError
from tacit.home.layout import CONFIG
from tacit.markdown import notes
from tacit.transcripts.format import make_slug

PLACEHOLDER_WORD = "forgotten"  # in names, and wherever brackets have a meaning
PLACEHOLDER = f"[{PLACEHOLDER_WORD}]"
MIN_TEXT_CHARS = 4  # characters
_MIN_CUT_CHARS = 8  # of the text, at the end of a truncated line
_MIN_CUT_LINE_CHARS = 70  # no log line is truncated earlier
_MAX_NAME_CHARS = 400  # of a text that a name is made from
_MAX_LOOSE_CHARS = 200  # of a longer text, compared to find other spellings
_MAX_PROBES = 4  # runs of letters
_MIN_NAME_DIGITS = 9  # a name of digits only is not a date if it has this many

# A space in the text matches any run of spaces and line breaks, literal or escaped, and the `>` of a quote.
_SPACE = rb"[ \t\r\n]|\xc2\xa0|\\[nrt]|&#x(?:A|D|9);|%20|%(?:C2|c2)%(?:A0|a0)|(?<=\n)>|(?<=\n>)>|(?<=\n> )>"
_GAP = rb"(?:" + _SPACE + rb")++"
_JOINT = rb"[-_]"  # joins the words of a name
_ANY_GAP = rb"(?:" + _SPACE + rb"|[-_+.])++"
_ENTITY = re.compile(r"&#x([0-9A-Fa-f]{1,6});")
_UNICODE_ESCAPE = re.compile(r"(?:\\u[0-9A-Fa-f]{4})+")
_HEX = re.compile(r"[0-9a-f]+")
# Removing words changes what a line in these files means: `zoe*` would match every file.
_PATTERN_FILES = re.compile(
    r"(?:\A|/)\.(?:git|docker|npm|rg)?(?:ignore|attributes|modules|lfsconfig)\Z|(?:\A|/)\.mailmap\Z"
)
_BOMS = (  # longest first: the shorter ones are their prefixes
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_MIN_HASH_DIGITS = 32  # a run of this many hex digits is a hash
_FRONTMATTER = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?:.*?\n)??---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_MARKERS = re.compile(rb"[\s>*+#|-]*(?:\d+[.)]\s*)?(?:\[[ xX]\]\s*)?")  # of a list, a quote, a heading
_SETTING = re.compile(rb"\s*(?:- )?[\w.-]+:(?=\s|\Z)(?:[ \t]+(?:true|false|null)\b)?")
_WRAP = re.compile(rb"\r?\n[ \t>]*")
_PUNCTUATION_ONLY = re.compile(rb"[\s.,;:!?|]*")


class TextEraser:
    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        if len(self.text) < MIN_TEXT_CHARS:
            raise UsageError(
                f"A text of fewer than {MIN_TEXT_CHARS} characters stands in too many places. "
                "Give more of it."
            )
        self.slug = make_slug(self.text)
        composed = unicodedata.normalize("NFC", self.text)
        plain = [_build_text_pattern(form) for form in dict.fromkeys((self.text, composed))]
        names = _build_name_patterns(composed)
        self._plain = re.compile(b"|".join(plain))
        self._pattern = re.compile(b"|".join(plain + names)) if names else self._plain
        beginning = (
            composed[:_MAX_LOOSE_CHARS].rpartition(" ")[0] if len(composed) > _MAX_LOOSE_CHARS else composed
        )
        beginning = beginning or composed[:_MAX_LOOSE_CHARS]
        self._loose = re.compile(b"|".join(_build_loose_patterns(beginning)))
        # Letters of the composed form also occur in the decomposed form and in names.
        self._plain_probes = _find_probes(composed)
        self._joints = _find_joints(composed) if names else ()
        self._loose_probes = _find_probes(beginning.lower())
        self._wide = [self.text.encode(form, "surrogatepass") for form in ("utf-16-le", "utf-16-be")]
        self._is_hex = _HEX.fullmatch(self.text) is not None

    def are_in(self, data: bytes) -> bool:
        if next(self.spans(data), None) is not None or self._has_wide(data):
            return True
        wide = _WideText.of(data)
        return wide is not None and self.are_in(wide.text)

    def _has_wide(self, data: bytes) -> bool:
        return any(wide in data for wide in self._wide)  # has no NUL if no letter is Latin

    def spans(self, data: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
        if any(joint in data for joint in self._joints):
            yield from self._iterate_spans(self._pattern, data, start)
        elif _contains_all(self._plain_probes, data):
            yield from self._iterate_spans(self._plain, data, start)

    def _iterate_spans(
        self, pattern: re.Pattern[bytes], data: bytes, start: int = 0
    ) -> Iterator[tuple[int, int]]:
        for match in pattern.finditer(data, start):
            if not self._is_hex or not _is_in_hash(data, *match.span()):
                yield match.span()

    def spellings(self, data: bytes) -> Iterator[str]:
        """The spellings of the text in the data, including the text itself. Each can be given as a text to
        forget."""
        lowered = data.lower()
        if _contains_all(self._loose_probes, lowered):
            spans = self._iterate_spans(self._loose, data)
            yield from dict.fromkeys(_decode_spelling(data[start:end]) for start, end in spans)
        if (wide := _WideText.of(data)) is not None:
            yield from self.spellings(wide.text)
        elif b"\0" in data and any(wide.lower() in lowered for wide in self._wide):
            yield self.text

    def erase(self, data: bytes, by: str = PLACEHOLDER) -> bytes:
        """The data with `by` instead of the text, also where the replacement produces the text again."""
        new = by.encode()
        while spans := list(self.spans(data)):
            pieces = [
                data[end:begin]
                for (_, end), (begin, _) in zip([(0, 0), *spans], [*spans, (len(data), 0)], strict=True)
            ]
            data = new.join(pieces)
            if self.are_in(new):
                break
        return data

    def erase_text(self, text: str, by: str = PLACEHOLDER) -> str:
        return notes.decode(self.erase(notes.encode(text), by))

    def erase_log(self, text: str, by: str = PLACEHOLDER) -> str:
        """Erase the text from a log line, which may be truncated in the middle of the text."""
        text = self.erase_text(text, by)
        line = text.rstrip("…")
        if len(line) >= _MIN_CUT_LINE_CHARS or line != text:
            for size in range(len(self.text) - 1, _MIN_CUT_CHARS - 1, -1):
                if line.endswith(self.text[:size]):
                    return line[:-size] + by + text[len(line) :]
        return text

    def are_like(self, path: str, data: bytes) -> bool:
        """Whether a file or its name contains another spelling of the text."""
        name = notes.encode(path.rpartition("/")[2])
        return any(next(self.spellings(side), None) is not None for side in (name, data))

    def may_begin_in(self, data: bytes) -> bool:
        """Whether a line of JSON can contain the text, or the beginning of it if truncated."""
        beginning = self.text[:_MIN_CUT_CHARS]
        return beginning.encode("utf-8", "replace") in data or json.dumps(beginning)[1:-1].encode() in data

    def rename(self, name: str) -> str:
        """Erase the text from the name of a file, a ref or a person."""
        return self.erase_text(name, PLACEHOLDER_WORD)

    # ------------------------------------------------------------ files

    def without(self, path: str, data: bytes, *, lines: bool = False) -> bytes | None:
        """A file other than a transcript, without the text. None: nothing is left, or the file is not text
        and cannot be edited."""
        if (wide := _WideText.of(data)) is not None:
            remaining = self.without(path, wide.text, lines=lines)
            return data if remaining == wide.text else wide.with_text(remaining)
        if self._has_wide(data):
            return self._erase_wide(data)
        if next(self.spans(data), None) is None:
            return data
        if b"\0" in data:
            return None
        if path == CONFIG:
            return self._erase_settings(data)
        if _PATTERN_FILES.search(path):
            return self.erase(data, PLACEHOLDER_WORD)
        head, body = _split_frontmatter(path, data)
        remaining = self._erase_frontmatter(head, lines) + self._erase_body(body, lines)
        return _update_line_count(data, remaining) if remaining.strip() else None

    def _erase_wide(self, data: bytes) -> bytes | None:
        if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return None
        for wide in self._wide:
            data = data.replace(wide, b"")
        return data

    def _erase_frontmatter(self, head: bytes, lines: bool) -> bytes:
        """Drop lines that contain only the text; elsewhere leave a placeholder, since YAML needs a value."""
        kept_lines = []
        for line in head.splitlines(keepends=True):
            value = line.strip().removeprefix(b"- ").strip(b"\"'")
            is_whole = next(self.spans(value), None) == (0, len(value))
            has_text = next(self.spans(line), None) is not None
            if not (has_text and (is_whole or lines)):
                kept_lines.append(self.erase(line, PLACEHOLDER_WORD))
        return self.erase(b"".join(kept_lines), PLACEHOLDER_WORD)  # text that spans two lines

    def _erase_settings(self, data: bytes) -> bytes:
        """Keep names of settings, true and false: without them tacit would not run."""
        lines = []
        for line in data.splitlines(keepends=True):
            key = _SETTING.match(line)
            begin = key.end() if key else 0
            lines.append(line[:begin] + self.erase(line[begin:], PLACEHOLDER_WORD))
        return b"".join(lines)

    def _erase_body(self, body: bytes, lines: bool) -> bytes:
        start = 0
        while (span := next(self.spans(body, start), None)) is not None:
            begin, end = span
            first = body.rfind(b"\n", 0, begin) + 1
            last = body.find(b"\n", end) + 1 or len(body)
            replacement = b"" if lines else _join_line(body[first:begin], body[begin:end], body[end:last])
            body = body[:first] + replacement + body[last:]
            start = first
        return body


class _WideText(NamedTuple):
    """A file in UTF-16 or UTF-32 with a byte order mark, converted to UTF-8."""

    text: bytes
    mark: bytes
    codec: str

    @classmethod
    def of(cls, data: bytes) -> _WideText | None:
        for bom, codec in _BOMS:
            if data.startswith(bom):
                with suppress(UnicodeDecodeError):
                    text = data[len(bom) :].decode(codec, "surrogatepass")
                    return cls(text.encode("utf-8", "surrogatepass"), bom, codec)
        return None

    def with_text(self, text: bytes | None) -> bytes | None:
        if text is None:
            return None
        return self.mark + text.decode("utf-8", "surrogatepass").encode(self.codec, "surrogatepass")


def _find_probes(text: str) -> tuple[bytes, ...]:
    """Runs of letters that every form of the text contains: searching them is much faster than a pattern."""
    runs = sorted(set(re.findall(r"[A-Za-z0-9]{3,}", text)), key=len, reverse=True)
    return tuple(run.encode() for run in runs[:_MAX_PROBES])


def _find_joints(text: str) -> tuple[bytes, ...]:
    """The joint between the first two words of a name, with the letters around it that never vary."""
    first, second = _split_words(text)[:2]
    end, begin = re.findall(r"[A-Za-z0-9]*\Z", first)[0], re.findall(r"\A[A-Za-z0-9]*", second)[0]
    pairs = {(end, begin), (end.lower(), begin.lower())}
    return tuple(f"{end}{sign}{begin}".encode() for end, begin in sorted(pairs) for sign in "-_")


def _contains_all(probes: tuple[bytes, ...], data: bytes) -> bool:
    return all(probe in data for probe in probes)


def _build_text_pattern(text: str) -> bytes:
    parts = re.split(r"( )", text)
    return b"".join(_GAP if part == " " else b"".join(map(_character_pattern, part)) for part in parts)


def _build_name_patterns(text: str) -> list[bytes]:
    """The words joined as in the name of a file or branch, in full and truncated as in such names. A single
    word is not a name: in other capitals it would be another word."""
    words, short = _split_words(text[:_MAX_NAME_CHARS]), make_slug(text).split("-")
    sizes = {len(words)} if len(words) < 2 or short == _fold_words(words) else {len(words), len(short)}
    return [
        _build_name_pattern(words[:size]) for size in sorted(sizes, reverse=True) if _is_name(words[:size])
    ]


def _split_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


def _fold_words(words: Iterable[str]) -> list[str]:
    return ["".join(map(_strip_accents, word)) for word in words]


def _is_name(words: list[str]) -> bool:
    letters = "".join(words)
    return len(words) > 1 and len(letters) >= (_MIN_NAME_DIGITS if letters.isdigit() else MIN_TEXT_CHARS)


def _build_name_pattern(words: list[str]) -> bytes:
    """Matches only if its first and last words are whole words."""
    inner = _JOINT.join(
        _build_word_pattern(word, lambda letter: (letter.lower(), _strip_accents(letter))) for word in words
    )
    return rb"(?<![0-9A-Za-z])" + inner + rb"(?![0-9A-Za-z])"


def _build_loose_patterns(text: str) -> list[bytes]:
    """Matches any capitals, with or without accents, and any separators between the words."""
    whole = _ANY_GAP.join(_build_word_pattern(part, _case_variants) for part in text.split(" "))
    words = _split_words(text)
    return [whole] if " ".join(words) == text or not words else [whole, _build_words_pattern(words)]


def _build_words_pattern(words: list[str]) -> bytes:
    return _ANY_GAP.join(_build_word_pattern(word, _case_variants) for word in words)


def _build_word_pattern(word: str, find_variants: Callable[[str], Iterable[str]]) -> bytes:
    """Matches each letter as it is or as one of its variants."""
    pieces = []
    for letter in word:
        variants = [variant for variant in dict.fromkeys((letter, *find_variants(letter))) if variant]
        if all(len(variant) == 1 and variant.isascii() and variant.isalnum() for variant in variants):
            pieces.append(b"[%s]" % "".join(variants).encode())
            continue
        patterns = [b"".join(map(_character_pattern, variant)) for variant in variants]
        pieces.append(patterns[0] if len(patterns) == 1 else b"(?:" + b"|".join(patterns) + b")")
    return b"".join(pieces)


def _case_variants(letter: str) -> tuple[str, ...]:
    plain = _strip_accents(letter)
    return letter.lower(), letter.upper(), letter.casefold(), plain, plain.upper()


def _strip_accents(letter: str) -> str:
    """The letter as in a slug."""
    decomposed = unicodedata.normalize("NFKD", letter).casefold()
    return unicodedata.normalize(
        "NFC", "".join(character for character in decomposed if not unicodedata.combining(character))
    )


def _decode_spelling(data: bytes) -> str:
    """Undo wrapping, escaping and URL encoding."""
    data = re.sub(rb"\\[nrt]|&#x(?:A|D|9);", b" ", data)
    try:
        text = unquote_to_bytes(data).decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    text = _UNICODE_ESCAPE.sub(lambda match: str(json.loads(f'"{match[0]}"')), text)
    text = _ENTITY.sub(lambda match: chr(int(match[1], 16)), text)
    return unicodedata.normalize("NFC", " ".join(re.sub(r"(?<=\n)[> ]+", "", text).split()))


def _character_pattern(character: str) -> bytes:
    """Matches a character as it is, or decomposed."""
    decomposed = unicodedata.normalize("NFD", character)
    if decomposed == character:
        return _escaped_pattern(character)
    return b"(?:" + _escaped_pattern(character) + b"|" + b"".join(map(_escaped_pattern, decomposed)) + b")"


def _escaped_pattern(character: str) -> bytes:
    if character.isascii() and character.isalnum():
        return character.encode()
    plain = re.escape(notes.encode(character))
    escaped = json.dumps(character)[1:-1]
    forms = {re.escape(f"&#x{ord(character):X};".encode())}
    if escaped != character:
        forms.add(
            b"(?i:%s)" % re.escape(escaped.encode()) if len(escaped) > 2 else re.escape(escaped.encode())
        )
    encoded = quote(notes.encode(character), safe="")
    if encoded != character:
        forms.add(b"(?i:%s)" % encoded.encode())
    if 0x7F < ord(character) < 0x100:
        forms.add(_latin_pattern(ord(character)))
    return b"(?:" + b"|".join([*sorted(forms, key=len, reverse=True), plain]) + b")"


def _latin_pattern(code: int) -> bytes:
    """Matches one byte, unless it begins another letter in UTF-8: `caf` and U+91D1 is not café."""
    trailing = 1 if 0xC2 <= code < 0xE0 else 2 if 0xE0 <= code < 0xF0 else 3 if 0xF0 <= code < 0xF5 else 0
    guard = rb"(?![\x80-\xbf]{%d})" % trailing if trailing else b""
    return re.escape(bytes((code,))) + guard


def _is_in_hash(data: bytes, start: int, end: int) -> bool:
    """Whether these digits are part of a hash made by git or by us.

    Stops as soon as there are enough digits: a message may be megabytes of digits."""
    digits = b"0123456789abcdef"
    while start > 0 and end - start < _MIN_HASH_DIGITS and data[start - 1] in digits:
        start -= 1
    while end < len(data) and end - start < _MIN_HASH_DIGITS and data[end] in digits:
        end += 1
    return end - start >= _MIN_HASH_DIGITS


def _split_frontmatter(path: str, data: bytes) -> tuple[bytes, bytes]:
    if path.endswith((".yaml", ".yml")):
        return data, b""
    match = _FRONTMATTER.match(data) if path.endswith((".md", ".markdown")) else None
    end = match.end() if match else 0
    return data[:end], data[end:]


def _join_line(before: bytes, text: bytes, after: bytes) -> bytes:
    """The rest of the line, or nothing if only markers and punctuation are left."""
    ending = after[len(after.rstrip(b"\r\n")) :]
    after = after[: len(after) - len(ending)]
    has_before, has_after = _MARKERS.fullmatch(before) is None, _PUNCTUATION_ONLY.fullmatch(after) is None
    if not has_before and not has_after:
        return b""
    if not has_before:
        return before + after.lstrip(b" \t") + ending
    if not has_after:
        return before.rstrip(b" \t") + after.strip() + ending
    if wrap := _WRAP.search(text):
        return before.rstrip(b" \t") + wrap[0] + after.lstrip(b" \t") + ending
    return before + (after[1:] if before.endswith(b" ") and after.startswith(b" ") else after) + ending


def _update_line_count(old: bytes, new: bytes) -> bytes:
    """Update the line count in the frontmatter of MEMORY.md."""
    match = re.search(rb"^line_count: (\d+)[ \t]*\r?$", _split_frontmatter(".md", new)[0], re.MULTILINE)
    if match is None or int(match[1]) != _count_lines(old):
        return new
    return new[: match.start(1)] + b"%d" % _count_lines(new) + new[match.end(1) :]


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))
