"""A text as it may stand in files, and files without it.

The same words may be written in several ways: wrapped at another place, escaped as JSON, YAML or our
transcripts escape them, composed or decomposed. All of them are the text; other capitals are not. Everything
here is a function of the bytes alone, so a file on disk and the same file in a commit change in the same way.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

from tacit.errors import UsageError
from tacit.text import notes
from tacit.text.transcript import slug

WORD = "forgotten"  # in names, and wherever brackets would mean something
SHOWN = f"[{WORD}]"
LEAST = 4  # characters
_CUT = 8  # characters of the text at the end of a line that was cut
_LOGGED = 70  # no line of a log is cut earlier

# A space of the text: any run of spaces and line breaks, written out or escaped, with the `>` of a quotation.
_GAP = rb"(?:[ \t\r\n]|\xc2\xa0|\\[nrt]|&#x(?:A|D|9);|(?<=\n)>|(?<=\n>)>|(?<=\n> )>)++"
_HEX = re.compile(r"[0-9a-f]+")
_HASH = 32  # digits in a row from which on they are one
_HEAD = re.compile(rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?:.*?\n)??---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_MARKERS = re.compile(rb"[\s>*+#|-]*(?:\d+[.)]\s*)?(?:\[[ xX]\]\s*)?")  # of a list, a quotation, a heading
_WRAP = re.compile(rb"\r?\n[ \t>]*")
_NOTHING = re.compile(rb"[\s.,;:!?|]*")


class Words:
    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        if len(self.text) < LEAST:
            raise UsageError(
                f"A text of fewer than {LEAST} characters stands in too many places. Give more of it."
            )
        self.slug = slug(self.text)
        composed = unicodedata.normalize("NFC", self.text)
        self._pattern = re.compile(b"|".join(_pattern(form) for form in dict.fromkeys((self.text, composed))))
        self._loose = re.compile(self._pattern.pattern, re.IGNORECASE)
        # Of the composed form: letters that stand there stand in the decomposed one too.
        self._probe = max(re.findall(r"[A-Za-z0-9]{3,}", composed), key=len, default="").encode()
        self._wide = [self.text.encode(form, "surrogatepass") for form in ("utf-16-le", "utf-16-be")]
        self._is_hex = _HEX.fullmatch(self.text) is not None

    def are_in(self, data: bytes) -> bool:
        return next(self.spans(data), None) is not None or self._are_wide_in(data)

    def _are_wide_in(self, data: bytes) -> bool:
        return b"\0" in data and any(wide in data for wide in self._wide)

    def spans(self, data: bytes, start: int = 0) -> Iterator[tuple[int, int]]:
        if self._probe not in data:
            return
        for found in self._pattern.finditer(data, start):
            if not self._is_hex or not _is_in_hash(data, *found.span()):
                yield found.span()

    def erased(self, data: bytes, by: str = SHOWN) -> bytes:
        """With other words in its place, also where it came about only by this."""
        new = by.encode()
        while spans := list(self.spans(data)):
            pieces = [
                data[a:b] for (_, a), (b, _) in zip([(0, 0), *spans], [*spans, (len(data), 0)], strict=True)
            ]
            data = new.join(pieces)
            if self.are_in(new):
                break
        return data

    def erased_text(self, text: str, by: str = SHOWN) -> str:
        return notes.decode(self.erased(notes.encode(text), by))

    def erased_log(self, text: str, by: str = SHOWN) -> str:
        """Of a line that may have been cut in the middle of the text."""
        text = self.erased_text(text, by)
        line = text.rstrip("…")
        if len(line) >= _LOGGED or line != text:
            for size in range(len(self.text) - 1, _CUT - 1, -1):
                if line.endswith(self.text[:size]):
                    return line[:-size] + by + text[len(line) :]
        return text

    def are_like(self, path: str, data: bytes) -> bool:
        """Whether a file says it in another spelling."""
        is_name = len(self.slug) >= LEAST and f"-{self.slug}-" in f"-{slug(path.rpartition('/')[2], 200)}-"
        return is_name or (self._probe.lower() in data.lower() and self._loose.search(data) is not None)

    def may_begin_in(self, data: bytes) -> bool:
        """Whether a line of JSON can hold the text, or the beginning of it where it was cut."""
        begin = self.text[:_CUT]
        return begin.encode("utf-8", "replace") in data or json.dumps(begin)[1:-1].encode() in data

    def renamed(self, name: str) -> str:
        """Of a file, a ref or somebody."""
        return self.erased_text(name, WORD)

    # ------------------------------------------------------------ files

    def without(self, path: str, data: bytes, *, lines: bool = False) -> bytes | None:
        """A file of any kind that is no transcript. None: nothing is left of it, or it is not text and
        cannot be changed in part."""
        if self._are_wide_in(data):
            return self._without_wide(data)
        if next(self.spans(data), None) is None:
            return data
        if b"\0" in data:
            return None
        head, body = _parted(path, data)
        left = self._from_head(head, lines) + self._from_body(body, lines)
        return _recounted(data, left) if left.strip() else None

    def _without_wide(self, data: bytes) -> bytes | None:
        if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return None
        for wide in self._wide:
            data = data.replace(wide, b"")
        return data

    def _from_head(self, head: bytes, lines: bool) -> bytes:
        """A line that says nothing else goes; elsewhere a word stays, since YAML needs one there."""
        kept = []
        for line in head.splitlines(keepends=True):
            bare = line.strip().removeprefix(b"- ").strip(b"\"'")
            whole = next(self.spans(bare), None) == (0, len(bare))
            hit = next(self.spans(line), None) is not None
            if not (hit and (whole or lines)):
                kept.append(self.erased(line, WORD))
        return self.erased(b"".join(kept), WORD)  # what stands in two lines

    def _from_body(self, body: bytes, lines: bool) -> bytes:
        start = 0
        while (span := next(self.spans(body, start), None)) is not None:
            begin, end = span
            first = body.rfind(b"\n", 0, begin) + 1
            last = body.find(b"\n", end) + 1 or len(body)
            kept = b"" if lines else _joined(body[first:begin], body[begin:end], body[end:last])
            body = body[:first] + kept + body[last:]
            start = first
        return body


def _pattern(text: str) -> bytes:
    parts = re.split(r"( )", text)
    return b"".join(_GAP if part == " " else b"".join(map(_character, part)) for part in parts)


def _character(character: str) -> bytes:
    """As it is, or with its accents behind it."""
    apart = unicodedata.normalize("NFD", character)
    if apart == character:
        return _written(character)
    return b"(?:" + _written(character) + b"|" + b"".join(map(_written, apart)) + b")"


def _written(character: str) -> bytes:
    if character.isascii() and character.isalnum():
        return character.encode()
    plain = re.escape(notes.encode(character))
    escaped = json.dumps(character)[1:-1]
    forms = {re.escape(f"&#x{ord(character):X};".encode())}
    if escaped != character:
        forms.add(
            b"(?i:%s)" % re.escape(escaped.encode()) if len(escaped) > 2 else re.escape(escaped.encode())
        )
    if 0x7F < ord(character) < 0x100:
        forms.add(re.escape(character.encode("latin-1")))
    return b"(?:" + b"|".join([*sorted(forms, key=len, reverse=True), plain]) + b")"


def _is_in_hash(data: bytes, start: int, end: int) -> bool:
    """Whether these digits are a part of a longer number that git or we have made."""
    digits = b"0123456789abcdef"
    while start > 0 and data[start - 1] in digits:
        start -= 1
    while end < len(data) and data[end] in digits:
        end += 1
    return end - start >= _HASH


def _parted(path: str, data: bytes) -> tuple[bytes, bytes]:
    if path.endswith((".yaml", ".yml")):
        return data, b""
    found = _HEAD.match(data) if path.endswith((".md", ".markdown")) else None
    end = found.end() if found else 0
    return data[:end], data[end:]


def _joined(before: bytes, text: bytes, after: bytes) -> bytes:
    """The rest of the line, or nothing when there is none."""
    ending = after[len(after.rstrip(b"\r\n")) :]
    after = after[: len(after) - len(ending)]
    left, right = _MARKERS.fullmatch(before) is None, _NOTHING.fullmatch(after) is None
    if not left and not right:
        return b""
    if not left:
        return before + after.lstrip(b" \t") + ending
    if not right:
        return before.rstrip(b" \t") + after.strip() + ending
    if wrap := _WRAP.search(text):
        return before.rstrip(b" \t") + wrap[0] + after.lstrip(b" \t") + ending
    return before + (after[1:] if before.endswith(b" ") and after.startswith(b" ") else after) + ending


def _recounted(old: bytes, new: bytes) -> bytes:
    """MEMORY.md says how many lines it has."""
    found = re.search(rb"^line_count: (\d+)[ \t]*\r?$", _parted(".md", new)[0], re.MULTILINE)
    if found is None or int(found[1]) != _lines(old):
        return new
    return new[: found.start(1)] + b"%d" % _lines(new) + new[found.end(1) :]


def _lines(data: bytes) -> int:
    return data.count(b"\n") + bool(data and not data.endswith(b"\n"))
