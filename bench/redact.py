"""Redaction against finding the words of the same text; and a check that its time grows linearly with the
text, even for texts that are built to take long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time

from bench.pairs import Measured, Timed, paired, timed
from tacit import sample
from tacit.privacy.redaction import clean
from tacit.privacy.strip_injected import remove_injected

_WORD = re.compile(r"\w+")
_MESSAGE = (
    "Could you look at the pull request about the kiln's schedule? The tests pass here, but the review of "
    "the second commit is still open, and Deniz asked for it until Thursday at noon."
)
_TEXT_KB = 20  # of a text that is compared with ten copies of it
# Texts that would make a careless pattern backtrack from every position.
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
        _compare_with_words("redact: the sample's notes", notes, samples=40),
        _compare_with_words(f"redact: a message of {len(_MESSAGE)} letters", _MESSAGE, samples=400),
        _compare_tenfold("redact: ordinary text", notes),
        _pick_worst([_compare_tenfold(f"redact: {bomb!r} over and over", bomb) for bomb in _BOMBS]),
    ]


def _compare_with_words(what: str, text: str, *, samples: int) -> Measured:
    result = paired(
        what, "its words", timed(lambda: _WORD.findall(text)), timed(lambda: clean(text)), samples=samples
    )
    return replace(result, remark=f"{result.ours * 1e6 / (len(text.encode()) / 1024):.0f} µs for a KB")


def _compare_tenfold(what: str, text: str) -> Measured:
    """A ratio of one means linear time."""
    short = text * max(1, _TEXT_KB * 1024 // len(text))  # whole copies: a cut text might look like a key
    return paired(
        f"{what}, one of {len(short) // 100} KB",
        f"ten of {len(short) // 1000} KB",
        _time_redaction([short] * 10),
        _time_redaction([short * 10]),
        samples=7,
        warm=1,
        aim=1.5,
    )


def _time_redaction(texts: Sequence[str]) -> Timed:
    """In processor time, since other work on the machine would distort the clock."""

    def once() -> float:
        began = process_time()
        for text in texts:
            clean(remove_injected(text))
        return process_time() - began

    return once


def _pick_worst(results: Sequence[Measured]) -> Measured:
    worst = max(results, key=lambda result: result.ratio)
    slowest = max(result.ours for result in results)
    return replace(worst, remark=f"the worst of {len(results)}; the slowest takes {slowest * 1000:.0f} ms")
