"""A question set of a few lines, in the form of the public ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

# Two homes that have nothing to do with each other.
SAID = {
    "pottery": [
        ("s1", "Ana", "2026-03-01T09:00:00", "The kiln is called Berta and stands in the cellar."),
        ("s1", "assistant", "2026-03-01T09:01:00", "Noted: Berta, in the cellar."),
        ("s1", "Ana", "2026-03-01T09:02:00", "She fires at 1240 degrees with the night tariff."),
        ("s2", "Ana", "2026-03-05T10:00:00", "The glaze Reif needs two coats of cobalt."),
        ("s2", "assistant", "2026-03-05T10:01:00", "Two coats, then dry for a day."),
    ],
    "sailing": [
        ("t1", "Bo", "2026-04-01T09:00:00", "The boat Möwe has a torn mainsail."),
        ("t1", "assistant", "2026-04-01T09:01:00", "A sailmaker in Kiel could mend the mainsail."),
        ("t1", "Bo", "2026-04-01T09:02:00", "The harbour fee is 38 euros a night."),
        ("t2", "Bo", "2026-04-09T08:00:00", "The anchor chain is 40 metres long."),
    ],
}
ASKED = [
    ("q1", "pottery", "What is the kiln called?", "name", ["pottery-0"], ["s1"]),
    ("q2", "pottery", "How many coats of cobalt does the glaze need?", "number", ["pottery-3"], ["s2"]),
    ("q3", "pottery", "Which tariff does she fire with?", "name", ["pottery-2"], ["s1"]),
    ("q4", "pottery", "What does the dentist cost?", "absent", [], []),
    ("q5", "sailing", "Which sail of the Möwe is torn?", "name", ["sailing-0"], ["t1"]),
    ("q6", "sailing", "How long is the anchor chain?", "number", ["sailing-3"], ["t2"]),
    ("q7", "sailing", "What is the harbour fee?", "number", ["sailing-2"], ["t1"]),
]


def messages() -> list[dict[str, object]]:
    return [
        {
            "id": f"{collection}-{seq}",
            "collection": collection,
            "session": session,
            "seq": seq,
            "speaker": speaker,
            "date": date,
            "text": text,
        }
        for collection, lines in SAID.items()
        for seq, (session, speaker, date, text) in enumerate(lines)
    ]


def questions() -> list[dict[str, object]]:
    names = ("id", "collection", "text", "category", "gold", "gold_sessions")
    return [dict(zip(names, line, strict=True)) for line in ASKED]


def write(
    folder: Path,
    said: Iterable[Mapping[str, object]] | None = None,
    asked: Iterable[Mapping[str, object]] | None = None,
) -> Path:
    folder.mkdir(exist_ok=True)
    write_lines(folder / "docs.jsonl", messages() if said is None else said)
    write_lines(folder / "queries.jsonl", questions() if asked is None else asked)
    return folder


def write_lines(file: Path, lines: Iterable[object]) -> Path:
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return file
