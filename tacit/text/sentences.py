"""Splits a message into sentences: only prose, without code, quoted lines, tables and headings.

A sentence is returned as written, on one line. Before searching it for a wording, mask quotations and code,
which are not the writer's own words. Time grows with the length of the text, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tacit.text.lines import scan
from tacit.text.words import is_unspaced

MAX_SENTENCE_CHARS = 300  # characters of a sentence that is kept
_MAX_CHARS = 1_000  # characters; what is longer is a list or a dump
_MIN_WORDS = 3
_MIN_LETTERS = 5  # where words are not apart

# Bounded, and `++` does not backtrack: a message may be a megabyte of dots or of opening marks. A run of dots
# is matched only from its beginning: from each of its dots it would take quadratic time.
_QUOTED = re.compile(
    r"`[^`\n]{0,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|„[^“”\n]{0,400}[“”]|«[^»\n]{0,400}»"
    r"|「[^」\n]{0,400}」|『[^』\n]{0,400}』"
)
_ITEM = re.compile(r"\s*(?:[-*+•]\s+(?:\[[ xX]\]\s+)?|[0-9]{1,3}[.)]\s+)?")
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++|[。！？]++[」』”）)]*+|[;；]\s++")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Za-zÄÖÜäöü]|(?<![0-9.,:])[0-9]{1,2}|\b(?:Dr|Mr|Mrs|Ms|Prof|Fr|Hr|St|Nr|No|ca|bzw|evtl|ggf|inkl|usw|vs|approx|etc))\.\s+\Z"
)

# After a number or a letter and a dot only these words begin a sentence: "17. Sie", not "17. Oktober".
_SENTENCE_BEGINNING = re.compile(
    r"(?:I|We|You|He|She|It|They|The|This|That|There|And|But|So|My|Our|Her|His|Its|Ich|Wir|Du|Er|Sie|Es|Das|Die|Der"
    r"|Und|Aber|Dann|Mein|Meine|Unser|Unsere|Ihr|Ihre|Sein|Seine)\b"
)


def split_sentences(text: str) -> Iterator[str]:
    """The sentences of the prose: no code, no quoted lines, no tables, no headings."""
    paragraph: list[str] = []
    for line in scan(text):
        is_prose = line.kind == "text" and not line.text.lstrip().startswith((">", "|"))
        item = _ITEM.match(line.text)
        is_beginning = not is_prose or (item is not None and bool(item[0].strip()))
        if is_beginning and paragraph:
            yield from _split_paragraph(" ".join(paragraph))
            paragraph = []
        if is_prose:
            paragraph.append(line.text[item.end() :].strip() if item else line.text.strip())
    yield from _split_paragraph(" ".join(paragraph))


def _split_paragraph(paragraph: str) -> Iterator[str]:
    start = 0
    writes_small = paragraph[:1].islower()  # then all sentences may begin with a small letter
    for end in _END.finditer(mask_quotes(paragraph)):
        following = paragraph[end.end() : end.end() + 1]
        if following.islower() and "." in end[0] and not writes_small:
            continue
        is_abbreviation = _ABBREVIATION.search(paragraph[max(start, end.end() - 12) : end.end()])
        if is_abbreviation and not _SENTENCE_BEGINNING.match(paragraph, end.end()):
            continue
        yield from _trim(paragraph[start : end.end()])
        start = end.end()
    yield from _trim(paragraph[start:])


def _trim(sentence: str) -> Iterator[str]:
    sentence = sentence.strip().strip("*_ ")
    if sentence:
        yield sentence


def mask_quotes(text: str) -> str:
    return _QUOTED.sub(lambda match: match[0][0] + "·" * (len(match[0]) - 2) + match[0][-1], text)


def is_informative(sentence: str) -> bool:
    if len(sentence) > _MAX_CHARS or sentence.endswith((":", "：")):  # its content comes after it
        return False
    if is_unspaced(sentence):
        return sum(map(str.isalnum, sentence[:MAX_SENTENCE_CHARS])) >= _MIN_LETTERS
    return len(sentence.split(maxsplit=_MIN_WORDS)) >= _MIN_WORDS


def shorten_sentence(sentence: str) -> str:
    if len(sentence) <= MAX_SENTENCE_CHARS:
        return sentence
    start = sentence[: MAX_SENTENCE_CHARS - 2]
    space = start.rfind(" ", MAX_SENTENCE_CHARS // 2)
    return f"{start[:space] if space > 0 else start} …"
