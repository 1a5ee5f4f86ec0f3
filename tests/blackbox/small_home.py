"""A small home with something of everything, made by commands and by writing files."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from tests.blackbox.outside import Commands, work, write

SETTINGS = """\
timezone: Europe/Berlin
owners: ["7"]
inject: {deadline_ms: 60000}
review: {decisions: review}
"""
FILES = {
    "knowledge/identity/SOUL.md": "# Soul\n\nI am Moss. I answer plainly.\n",
    "knowledge/identity/USER.md": "# Ines\n\nShe waters the tomatoes at dawn.\n",
    "knowledge/identity/TOOLS_COMPACT.md": "# Tools\n\nvalve: opens the water.\n",
    "knowledge/memory/MEMORY.md": (
        "---\ntype: memory\nupdated: 2026-02-01\n---\n# Core Memory\n\n## Key Decisions\n\n"
        "## Lessons Learned\n\n- 2026-02-01: Tomatoes split when we water them in bursts.\n\n"
        "## Active Context\n"
    ),
    "knowledge/journal/2026-03-09.md": (
        "---\ntype: journal\ndate: 2026-03-09\n---\n## 2026-03-09\n\n### garden\n"
        "- Watered the tomatoes in the greenhouse twice.\n"
    ),
    "knowledge/projects/_active.md": "# Active Projects\n\n- **greenhouse**: drip hoses until June\n",
    "knowledge/projects/greenhouse/context.md": (
        "# Greenhouse\n\n## Current State\n\n- Drip hoses give the tomatoes four litres each. "
        "See [[watering]].\n- The frame comes from [[Nobody Here]].\n"
    ),
    "knowledge/people/mira-olsen.md": (
        "---\ntype: person\nname: Mira Olsen\n---\n# Mira Olsen\n\n"
        "- Comes on Tuesdays to water the tomatoes.\n"
    ),
    "knowledge/procedures/watering.md": (
        "---\ntype: procedure\ntags: [garden]\n---\n# Watering\n\n- Water the tomatoes slowly, at the root.\n"
    ),
    "knowledge/reference/hoses.md": "# Hoses\n\n- Half an inch is right for tomatoes.\n",
    "topics/watering.md": (
        "---\ntriggers:\n  - type: pattern\n    match: '\\bwater\\b'\n  - type: cron\n"
        "    schedule: '0 7 * * *'\nsubscriptions:\n  - knowledge/procedures/watering.md\n"
        "activation: auto\n---\n"
        "# Watering\n\n## Instructions\n\nName the bed first.\n"
    ),
}
BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
EARLY = "2026-03-01T08:00:00+00:00"
STRANGER = "agent:main:telegram:direct:99"
SESSION = "ses_0000aaaa"
OTHER_SESSION = "ses_0000bbbb"
QUESTION = "How do we water the tomatoes in the greenhouse?"


_DAY = "2026-03-08T10:{:02}:00+01:00"
_TALKS = (
    {
        "named": {"session_id": SESSION, "channel": "chat", "model": "some-model"},
        "started": _DAY.format(0),
        "ended": _DAY.format(4),
        "tags": ["garden"],
        "messages": [
            {"role": "user", "text": "Which hose do we take for the greenhouse?", "at": _DAY.format(0)},
            {
                "role": "tool",
                "name": "read",
                "summary": "knowledge/reference/hoses.md",
                "result": "3 lines",
                "at": _DAY.format(1),
            },
            {"role": "agent", "text": "Half an inch, as for the beds.", "at": _DAY.format(1)},
            {
                "role": "user",
                "text": "Decision: we take the half inch drip hose from Gardena.",
                "at": _DAY.format(2),
            },
            {"role": "agent", "text": "Noted: half inch drip hose from Gardena.", "at": _DAY.format(3)},
            {
                "role": "user",
                "text": "Lesson learned: cold water from the well makes the leaves curl.",
                "at": _DAY.format(3),
            },
        ],
    },
    {
        "named": {"session_id": OTHER_SESSION, "session_key": STRANGER},
        "started": _DAY.format(30),
        "ended": _DAY.format(31),
        "messages": [
            {
                "role": "user",
                "text": "Do you water the tomatoes yourself?",
                "at": _DAY.format(30),
                "speaker": "Kim",
            }
        ],
    },
)


def build(commands: Commands) -> None:
    home = commands.home
    commands.checked("init", "--quiet", str(home), now=EARLY, TZ=BERLIN)  # it has no config yet
    write(home, "memory-config.yaml", SETTINGS)
    for path, text in FILES.items():
        write(home, path, text)
    commands.checked("run", "commit", "--quiet", now=EARLY)
    work(home.parent, {"do": "talk", "home": str(home), "sessions": _TALKS})
    commands.checked("run", "all", "--quiet", now="2026-03-09T20:00:00+00:00")
    set_times(home, EARLY)
    commands.checked("index", "--quiet")
    commands.checked("compile", QUESTION, "--json")


def set_times(home: Path, moment: str) -> None:
    """A note without a date is of the day its file was written."""
    seconds = datetime.fromisoformat(moment).timestamp()
    for file in (home / "knowledge", home / "topics"):
        for note in file.rglob("*.md"):
            os.utime(note, (seconds, seconds))
