"""The sentences of a message: prose, without code, quoted lines, tables and headings.

A sentence comes as it was written, on one line. Who looks for wordings in it masks first what stands in
quotation marks or is code: that was said by somebody else, or by nobody. Time grows with the length of the
text, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tacit.text.lines import scan
from tacit.text.words import unspaced

LONGEST = 300  # characters of a sentence that is kept
_NO_SENTENCE = 1_000  # characters; what is longer is a list or a dump
_FEWEST_WORDS = 3
_FEWEST_LETTERS = 5  # where words are not apart

# Bounded, and `++` gives nothing back: a message may be a megabyte of dots or of opening marks.
_QUOTED = re.compile(
    r"`[^`\n]{0,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|„[^“”\n]{0,400}[“”]|«[^»\n]{0,400}»"
    r"|「[^」\n]{0,400}」|『[^』\n]{0,400}』"
)
_ITEM = re.compile(r"\s*(?:[-*+•]\s+(?:\[[ xX]\]\s+)?|[0-9]{1,3}[.)]\s+)?")
_END = re.compile(r"[.!?…]++[\"'”’)\]]*+\s++|[。！？]++[」』”）)]*+|[;；]\s++")
_NO_END = re.compile(
    r"(?:\b[A-Za-zÄÖÜäöü]|(?<![0-9.,:])[0-9]{1,2}|\b(?:Dr|Mr|Mrs|Ms|Prof|Fr|Hr|St|Nr|No|ca|bzw|evtl|ggf|inkl|usw|vs|approx|etc))\.\s+\Z"
)

# After a number or a letter and a dot only these tell that a sentence begins: "17. Sie", not "17. Oktober".
_BEGINS = re.compile(
    r"(?:I|We|You|He|She|It|They|The|This|That|There|And|But|So|My|Our|Her|His|Its|Ich|Wir|Du|Er|Sie|Es|Das|Die|Der"
    r"|Und|Aber|Dann|Mein|Meine|Unser|Unsere|Ihr|Ihre|Sein|Seine)\b"
)


def sentences(text: str) -> Iterator[str]:
    """Of prose: no code, no quoted lines, no tables, no headings."""
    paragraph: list[str] = []
    for line in scan(text):
        prose = line.kind == "text" and not line.text.lstrip().startswith((">", "|"))
        item = _ITEM.match(line.text)
        begins = not prose or (item is not None and bool(item[0].strip()))
        if begins and paragraph:
            yield from _split(" ".join(paragraph))
            paragraph = []
        if prose:
            paragraph.append(line.text[item.end() :].strip() if item else line.text.strip())
    yield from _split(" ".join(paragraph))


def _split(paragraph: str) -> Iterator[str]:
    start = 0
    writes_small = paragraph[:1].islower()  # who begins small goes on small
    for end in _END.finditer(masked(paragraph)):
        following = paragraph[end.end() : end.end() + 1]
        if following.islower() and "." in end[0] and not writes_small:
            continue
        is_short = _NO_END.search(paragraph[max(start, end.end() - 12) : end.end()])
        if is_short and not _BEGINS.match(paragraph, end.end()):
            continue
        yield from _bare(paragraph[start : end.end()])
        start = end.end()
    yield from _bare(paragraph[start:])


def _bare(sentence: str) -> Iterator[str]:
    sentence = sentence.strip().strip("*_ ")
    if sentence:
        yield sentence


def masked(text: str) -> str:
    return _QUOTED.sub(lambda found: found[0][0] + "·" * (len(found[0]) - 2) + found[0][-1], text)


def says_enough(sentence: str) -> bool:
    if len(sentence) > _NO_SENTENCE or sentence.endswith((":", "：")):  # what it tells comes after it
        return False
    if unspaced(sentence):
        return sum(map(str.isalnum, sentence[:LONGEST])) >= _FEWEST_LETTERS
    return len(sentence.split(maxsplit=_FEWEST_WORDS)) >= _FEWEST_WORDS


def shortened(sentence: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    start = sentence[: LONGEST - 2]
    space = start.rfind(" ", LONGEST // 2)
    return f"{start[:space] if space > 0 else start} …"
