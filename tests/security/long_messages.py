"""Messages that try to make their reader slow: all on one line, no spaces, one sign again and again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

_SENTENCE = (
    "Quentin decided the harbour deploy budget goes to lantern on Tuesday because we never use staging and"
    " I prefer tea"
)

# What stands in them again and again.
_REPEATED = {
    "no spaces": "a", "digits": "1", "dashed digits": "1-", "spaces": " ", "tabs": "\t", "newlines": "\n",
    "carriage returns": "\r\n", "a letter on each line": "x\n", "paragraphs": "x\n\n", "dots": ".",
    "dots apart": ". ", "ellipses": "…", "question marks": "? ", "brackets": "[", "links": "[a](b)",
    "open links": "[a](", "wiki links": "[[a]]", "parentheses": "(", "private": "<private>",
    "private and not": "<private></private>", "not private": "</private>", "angles": "<", "comments": "<!-- ",
    "comment ends": "-->", "backticks": "`", "fences": "```\n", "pipes": "|", "headings": "# \n",
    "rules": "---\n", "items": "- x\n", "quotations": "> x\n", "tools": "> [tool:x] y\n", "stars": "*",
    "quotation marks": '"', "open quotation marks": "“a", "at signs": "a@", "addresses": "a@a.",
    "urls": "http://a:b", "slashes": "/a", "backslashes": "\\", "entities": "&#x41;",
    "passwords": "password=",
    "keys": "-----BEGIN PRIVATE KEY-----", "tokens": "eyJa.", "combining": "\u0301", "joiners": "👩\u200d",
    "points": "\u05b0", "tones": "\u0e48", "jamo": "\u1100\u1161", "marks out of order": "\u0f72\u0f71",
    "one for eighteen": "\ufdfa", "halves": "\ud800",
    "nul": "\0", "right to left": "\u202e", "humps": "aB", "days": "2026-01-01 ", "cues": "I prefer ",
    "json": '{"a":[1,', "tags": "<div ",
}  # fmt: skip


def _again(text: str) -> Callable[[int], str]:
    return lambda size: (text * (size // len(text) + 1))[:size]


def prose(size: int) -> str:
    """Of words, on one line."""
    return " ".join(Random(1).choices(_SENTENCE.split(), k=size // 4))[:size]


def in_lines(size: int) -> str:
    """The same text in lines."""
    text = prose(size)
    return "\n".join(text[at : at + 80] for at in range(0, size, 80))


def _base64(size: int) -> str:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return "".join(Random(3).choices(letters, k=size))


def _chinese(size: int) -> str:
    return "".join(map(chr, Random(4).choices(range(0x4E00, 0x9000), k=size)))


SHAPES: dict[str, Callable[[int], str]] = {
    "words": prose,
    "base64": _base64,
    "chinese": _chinese,
    **{name: _again(text) for name, text in _REPEATED.items()},
}
