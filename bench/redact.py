"""Taking out what must not be kept, against finding the words of the same text; and that time grows with the
length of the text and no faster, also of texts that are made to take long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time

from bench.pairs import Measured, Timed, paired, timed
from tacit import sample
from tacit.text.ours import without_ours
from tacit.text.redact import clean

_WORD = re.compile(r"\w+")
_MESSAGE = (
    "Could you look at the pull request about the kiln's schedule? The tests pass here, but the review of "
    "the second commit is still open, and Deniz asked for it until Thursday at noon."
)
_KILOBYTES = 20  # of a text that is compared with one ten times as long
# What would make a careless pattern try again from every place.
_BOMBS = (
    "<private>", "</private ", "<private ", "&lt;/private ", "&amp;", "\u200b", "İ", "password", "password='",
    "api_key=", "secret: A1b2", "bearer ", "curl -ua:", "://a:b@", "eyJaaaaaaaaa.", "sk-\n", "ghp_a\n",
    "a1B2", "AAAAAAAAAAAAAAAAAAAA\n", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----\n", "$1$",
    "[private]", "<!-- knowledge e722 -->\n[e722 a]\n", "<!-- /knowledge e722 -->\n", "[e722 a]\n# a\n\n",
    "<!-- topic:x -->\n",
)  # fmt: skip


def measure(folder: Path) -> list[Measured]:
    del folder  # nothing is written
    notes = "\n".join(data.decode() for _, data in sample.notes())
    return [
        _against_words("redact: the sample's notes", notes, samples=40),
        _against_words(f"redact: a message of {len(_MESSAGE)} letters", _MESSAGE, samples=400),
        _ten_times("redact: ordinary text", notes),
        _worst([_ten_times(f"redact: {bomb!r} over and over", bomb) for bomb in _BOMBS]),
    ]


def _against_words(what: str, text: str, *, samples: int) -> Measured:
    found = paired(
        what, "its words", timed(lambda: _WORD.findall(text)), timed(lambda: clean(text)), samples=samples
    )
    return replace(found, remark=f"{found.ours * 1e6 / (len(text.encode()) / 1024):.0f} µs for a KB")


def _ten_times(what: str, text: str) -> Measured:
    """One would be a straight line."""
    short = text * max(1, _KILOBYTES * 1024 // len(text))  # whole: a cut in the middle may make a key of it
    return paired(
        f"{what}, one of {len(short) // 100} KB",
        f"ten of {len(short) // 1000} KB",
        _worked([short] * 10),
        _worked([short * 10]),
        samples=7,
        warm=1,
        aim=1.5,
    )


def _worked(texts: Sequence[str]) -> Timed:
    """Of the processor, not of the clock: what others do on the machine would bend the line."""

    def once() -> float:
        began = process_time()
        for text in texts:
            clean(without_ours(text))
        return process_time() - began

    return once


def _worst(found: Sequence[Measured]) -> Measured:
    worst = max(found, key=lambda one: one.ratio)
    slowest = max(one.ours for one in found)
    return replace(worst, remark=f"the worst of {len(found)}; the slowest takes {slowest * 1000:.0f} ms")
