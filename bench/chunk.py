"""Cutting notes into chunks against cutting them into lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.pairs import Measured, paired, timed
from tacit import sample
from tacit.markdown.chunker import split_chunks


def measure(folder: Path) -> list[Measured]:
    del folder  # nothing is written
    notes = [data.decode() for _, data in sample.notes()] * 20
    size = sum(len(text.encode()) for text in notes) / 1e6

    def floor() -> None:
        for text in notes:
            text.splitlines()

    def ours() -> None:
        for text in notes:
            split_chunks(text)

    what = f"chunk: the sample's notes, {size:.2f} MB"
    result = paired(what, "`str.splitlines`", timed(floor), timed(ours), samples=40)
    return [replace(result, remark=f"{size / result.ours:.1f} MB/s")]
