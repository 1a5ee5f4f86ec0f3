"""A home that somebody lived in, small enough to know by heart.

Everything in it is about watering the tomatoes, so that one question would find all of it, and each file has
a word of its own in capitals, so that one look at a result tells which files reached it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tacit.app import create_memory, gate_factory, load_config, search_parts, zone_of
from tacit.context.model import Compiled
from tacit.home.layout import CONFIG, Home
from tacit.memory import Memory
from tacit.search.index import SearchParts

NOW = datetime(2026, 3, 10, 9, 30, tzinfo=UTC)
PATIENT = "inject: {deadline_ms: 60000}\n"  # a slow machine must not change what a turn holds
OWNERS = "owners: ['7']\n"

OWNER = "agent:main:main"
OWNER_DM = "agent:main:telegram:direct:7"
STRANGER = "agent:main:telegram:direct:99"
GROUP = "agent:main:telegram:group:-100"
OTHER_GROUP = "agent:main:telegram:group:-200"
FORUM = "agent:main:telegram:group:-100:topic:3"
SUBAGENT = "agent:main:subagent:abc"
CRON = "agent:main:cron:morning"
UNKNOWN = "whatever:this:is"

QUESTION = "How do we water the tomatoes in the greenhouse?"

NOTES: Mapping[str, str] = {
    "knowledge/identity/SOUL.md": "# Soul\n\nI am Moss. I answer plainly. SOULWORD\n",
    "knowledge/identity/USER.md": "# Ines\n\nShe waters the tomatoes at dawn. USERWORD\n",
    "knowledge/identity/TOOLS_COMPACT.md": "# Tools\n\nvalve: opens the water for the tomatoes. TOOLWORD\n",
    "knowledge/identity/HEARTBEAT.md": "# Heartbeat\n\nLook at the water of the tomatoes. BEATWORD\n",
    "knowledge/identity/AGENTS.md": "# Rules\n\nWater the tomatoes before noon. RULEWORD\n",
    "knowledge/memory/MEMORY.md": (
        "# Core Memory\n\n## Lessons Learned\n\n"
        "- 2026-02-01: tomatoes in the greenhouse split when we water them in bursts COREWORD\n"
    ),
    "knowledge/journal/2026-03-09.md": (
        "---\ndate: 2026-03-09\n---\n## 2026-03-09\n\n- Had to water the tomatoes in the greenhouse twice "
        "JOURNALWORD\n"
    ),
    "knowledge/projects/_active.md": (
        "# Active Projects\n\n- **greenhouse**: water the tomatoes until June ACTIVEWORD\n"
    ),
    "knowledge/projects/greenhouse/context.md": (
        "# Greenhouse\n\n- Drip hoses water the tomatoes, four litres each CONTEXTWORD\n"
    ),
    "knowledge/people/mira-olsen.md": (
        "# Mira Olsen\n\n- Comes on Tuesdays to water the tomatoes in the greenhouse PERSONWORD\n"
    ),
    "knowledge/procedures/watering.md": (
        "# Watering\n\n- Water the tomatoes in the greenhouse slowly, at the root PROCEDUREWORD\n"
    ),
    "knowledge/reference/hoses.md": (
        "---\naudience: anyone\n---\n# Hoses\n\n- Half an inch is right to water tomatoes with OPENWORD\n"
    ),
    "knowledge/reference/taps.md": (
        "---\naudience: anyone\n---\n# Taps\n\n- Who waters tomatoes in the greenhouse closes the tap "
        "TAPSWORD\n"
    ),
    "knowledge/reference/codes.md": (
        "---\naudience: owner\n---\n# Codes\n\n- The valve that waters the greenhouse tomatoes opens with "
        "SECRETWORD\n"
    ),
    "knowledge/reference/pump.md": (
        "---\nagent: pumpkin\n---\n# Pump\n\n- It gives water to the tomatoes in the greenhouse at six "
        "PUMPWORD\n"
    ),
}  # fmt: skip
TOPICS: Mapping[str, str] = {
    "topics/watering.md": (
        "---\ntriggers:\n  - type: pattern\n    match: '\\bwater\\b'\nsubscriptions:\n"
        "  - knowledge/procedures/watering.md\n  - knowledge/people/mira-olsen.md\nactivation: auto\n---\n"
        "# Watering\n\nName the bed first. TOPICWORD\n"
    ),
    "topics/codes.md": (
        "---\ntriggers:\n  - type: pattern\n    match: '\\bwater\\b'\nactivation: auto\naudience: owner\n"
        "---\n# Codes\n\nSay the code of the valve. CODETOPIC\n"
    ),
    "topics/pump.md": (
        "---\ntriggers:\n  - type: pattern\n    match: '\\bwater\\b'\nactivation: auto\nagent: pumpkin\n"
        "---\n# Pump\n\nListen to it. PUMPTOPIC\n"
    ),
}  # fmt: skip
SAID: Mapping[str, str] = {
    OWNER: "I want to water the tomatoes in the greenhouse with rain MAINSAID",
    GROUP: "Who can water the tomatoes in the greenhouse on Friday GROUPSAID",
    OTHER_GROUP: "We water the tomatoes in the greenhouse on Sunday ELSEWHERESAID",
    STRANGER: "Do you water the tomatoes in the greenhouse yourself STRANGERSAID",
}


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="")


def settle(root: Path, settings: str = PATIENT + OWNERS) -> None:
    """With these settings and no others."""
    (root / CONFIG).write_text(f"timezone: UTC\n{settings}")


def opened(
    root: Path,
    now: datetime | Callable[[], datetime] = NOW,
    parts: Callable[[SearchParts], SearchParts] | None = None,
) -> Memory:
    """The home at some moment, with the parts that its config names or with others."""
    clock = now if callable(now) else lambda: now
    home = Home(root)
    config = load_config(home).config
    if parts is None:
        return create_memory(home, config, clock)
    changed = parts(search_parts(config))
    return Memory(
        home, config, zone=zone_of(config), now=clock, parts=changed, gate=gate_factory(home, config, changed)
    )


def live_in(root: Path) -> None:
    """Fill a fresh home with all of the above."""
    settle(root)
    for path, text in {**NOTES, **TOPICS}.items():
        write(root, path, text)
    memory = opened(root, NOW.replace(day=2))
    for number, (key, said) in enumerate(SAID.items()):
        begun = NOW.replace(day=2, minute=number)
        session = memory.session(key, started=begun, session_id=f"ses_{number}")
        session.message("user", said, begun)
        session.end(begun)
    memory.commit()
    memory.services.searcher.find("", now=NOW)


def files_of(root: Path, *, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Every file below, with a hash of what is in it."""
    return {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(root.rglob("*"))
        if file.is_file() and not (name := str(file.relative_to(root))).startswith(without)
    }


def notice_codes(compiled: Compiled) -> list[str]:
    return [notice.code for notice in compiled.receipt.notices]


def labels(compiled: Compiled) -> list[str]:
    return [section.label for section in compiled.sections]


def in_slot(compiled: Compiled, slot: str) -> list[str]:
    return [section.source for section in compiled.sections if section.slot == slot]


def dropped_as(compiled: Compiled, label: str) -> list[str]:
    """The codes with which a block was left out."""
    return [one.code for one in compiled.dropped if one.label.startswith(label)]


def everything(compiled: Compiled) -> str:
    """All that somebody could read in a result, the moment and the names of the turn apart."""
    receipt = replace(compiled.receipt, id="", at="", timings_ms={}, session_id="")
    return repr((compiled.text, compiled.tokens, compiled.sections, compiled.dropped, receipt))
