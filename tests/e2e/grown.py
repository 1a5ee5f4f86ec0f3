"""A workspace as it looks after some months: a studio's agent with its tools, people, lessons and days.

Invented. Most lines are made from the lists below, so that it has the size of a real one; those that answer the
questions of the acceptance criteria are written out.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

FIRST = date(2026, 8, 1)
DAYS = 100

SOUL = """# Soul

I am Jules, the studio's assistant. Calm, brief, curious; I say what I do not know.

## Decide

- Alone: reading, searching, drafting, tidying notes.
- Then report: small changes that are easy to take back.
- Always ask: money, messages to customers, deleting anything.

## Boundaries

Private things stay private. In groups I am a guest.

## Wisdom

_Last compressed: 2026-10-01 | Source lessons: 31_

**When context feels incomplete, check your memory.** Read `memory/YYYY-MM-DD.md` and `MEMORY.md` when historical \
knowledge is needed.
**Ask before it burns.** Check the cheap thing before starting the expensive one.

For long-term memory, read MEMORY.md on demand when conversation requires historical context.
For full tool details, read TOOLS.md explicitly when needed.
"""

USER = """# User

Ines Hartwig runs a pottery studio with a web shop. Mornings are for firing, calls after two. She writes short
messages and wants short answers. Metric units, 24-hour clock, Europe/Berlin. Two children, Fridays off.
"""

IDENTITY = "# Identity\n\nName: Jules. Emoji: a small owl. Voice: plain, a little dry.\n"

HEARTBEAT = (
    "# Heartbeat\n\n- Is a firing running and past its time? Say so.\n- Anything due today in initiatives?\n"
)

COMPACT = """# Tools, in short

## Browser
| alias | opens |
|---|---|
| shop | the shop's back office |
| kiln | the controller's page |

## Mission Control
| what | port |
|---|---|
| Mission Control | 3310 |
| kiln controller | 8090 |
| print server | 631 |

## Telegram Topics
| topic | id |
|---|---|
| Ideas | 14 |
| Ops | 15 |
| Research | 75 |

## TTS
voice: river, rate 1.05

## Camera
| name | sees |
|---|---|
| cam-kiln | kiln door |
| cam-yard | delivery yard |
"""

_SERVICES = ("Mission Control", "kiln controller", "print server", "shop back office", "label printer", "stock list",
             "camera hub", "photo sorter", "backup runner", "calendar bridge", "mail sorter", "invoice maker",
             "glaze calculator", "weather feed", "door sensor", "music box", "reading list", "parcel tracker",
             "tile catalogue", "course planner", "wheel timer", "clay order form", "tax folder", "phone bridge")  # fmt: skip
_PEOPLE = ("Mira", "Tom", "Vera", "Jonas", "Lea", "Anton", "Sofie", "Karim", "Nele", "Paul", "Rosa", "Emil")
_PARTS = ("the login page", "the checkout", "the stock count", "the newsletter", "the label template", "the kiln log",
          "the photo upload", "the course calendar", "the price list", "the shipping rules")  # fmt: skip
_WORK = (
    "fixed",
    "rewrote",
    "tested",
    "measured",
    "reviewed",
    "moved",
    "renamed",
    "documented",
    "tidied",
    "rolled back",
)
_FIRINGS = ("bisque", "glaze", "raku", "test tiles", "large bowls", "cups for the market")
_THINGS = (
    "a bag of grog",
    "two shelves",
    "new cones",
    "a thermocouple",
    "packing straw",
    "wax resist",
    "sponges",
)

_DECIDED = (
    ("We decided the local model strategy: small models on the studio machine for sorting and drafts, the large "
    "remote one only for customer letters, because the studio must work when the line is down."),
    ("The APA shakedown ran on 2026-09-12: fourteen of sixteen checks passed, the two that failed were the label "
    "printer and the late-night backup; both were repeated with success on 2026-09-14."),
    "Forge's role is to build and repair the studio's own scripts; Forge was set up on 2026-08-20 and reports to Jules.",
)  # fmt: skip
_TIMEOUTS = (
    "Timeout settings: ten seconds for the kiln controller was too short, it sleeps; thirty is right.",
    "Timeout settings: never wait for the label printer without a limit; one paper jam held up a whole morning.",
    "Timeout settings: retries without a pause made the shop block us; wait longer after each one.",
)  # fmt: skip

AGENTS = """# Agents

## Who does what

- Melody mends bugs and writes tests. Spawn Melody with the repository, the module and what is wrong; Melody answers
  with a diff and waits for a yes.
- Quinn researches and always names sources.
- Atlas looks after machines, backups and the network.
- Forge builds the studio's own scripts.

## Rhythm

Mornings: read the queue, check the kiln, answer what waits. Evenings: a line in the day's note.

## Operational Lessons (earned the hard way)

"""


def grow(folder: Path) -> None:
    """Files of an OpenClaw workspace."""
    texts = {
        "SOUL.md": SOUL,
        "USER.md": USER,
        "IDENTITY.md": IDENTITY,
        "HEARTBEAT.md": HEARTBEAT,
        "TOOLS_COMPACT.md": COMPACT,
        "TOOLS.md": _tools(),
        # The host's own doctor moves what TOOLS.md says into AGENTS.md; many keep both.
        "AGENTS.md": AGENTS
        + "".join(f"- {lesson}\n" for lesson in _lessons(18))
        + "\n"
        + _tools("## Tools", "###"),
        "MEMORY.md": _memory(),
        "LESSONS_LEARNED.md": "# Lessons\n\n"
        + "".join(f"- {lesson}\n" for lesson in (*_TIMEOUTS, *_lessons(30))),
        "initiatives/shop-launch/STATUS.md": "# Shop launch\n\nThe new shop opens on 1 December. Photos are missing.\n",
        "initiatives/kiln-two/STATUS.md": "# Second kiln\n\nWaiting for the electrician; the offer is signed.\n",
        **{f"memory/{day.isoformat()}.md": _day(day, number) for number, day in enumerate(_days())},
    }
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _days() -> list[date]:
    return [FIRST + timedelta(days=number) for number in range(DAYS)]


def _pick(options: tuple[str, ...], number: int, step: int = 1) -> str:
    return options[(number * step) % len(options)]


def _tools(title: str = "# Tools", mark: str = "##") -> str:
    """Long, as such files get: each service with its address, its start, its habits and what went wrong once."""
    parts = [f"{title}\n"]
    for number, name in enumerate(_SERVICES):
        port = 3310 if name == "Mission Control" else 8000 + 10 * number
        parts.append(
            f"{mark} {name}\n\nRuns on port {port} of the studio machine, user `studio`, started by the service manager "
            f"with `--profile {name.split()[0].lower()} --threads {1 + number % 4}`. Its page answers after about "
            f"{2 + number % 7} seconds. Logs are kept for {7 + number % 21} days. {_pick(_PEOPLE, number)} set it up and "
            f"{_pick(_PEOPLE, number, 5)} knows how to restart it. Once it hung because {_pick(_PARTS, number, 3)} was "
            f"{_pick(_WORK, number, 7)} at the same time; since then there is a pause of {5 + number} seconds before "
            "it begins. Do not run two of them. Its backup goes to the second disk every night, and the first thing to "
            f"look at when something is wrong is the line with `ready={number % 3}` in its log.\n"
        )
    return "\n".join(parts)


def _lessons(count: int) -> list[str]:
    return [
        f"When {_pick(_PEOPLE, number)} {_pick(_WORK, number, 3)} {_pick(_PARTS, number, 7)}, nobody had looked at the "
        f"{_pick(_SERVICES, number, 5)} first, and {_pick(_FIRINGS, number)} was late by {1 + number % 5} hours."
        for number in range(count)
    ]


def _memory() -> str:
    lines = ["# Memory\n", "## Decisions\n", *(f"- {line}" for line in _DECIDED), "", "## Lessons\n"]
    lines += [f"- {line}" for line in _TIMEOUTS]
    lines += ["", "## What happened\n"]
    for number, day in enumerate(_days()[::2]):
        lines.append(
            f"- {day.isoformat()}: {_pick(_PEOPLE, number)} {_pick(_WORK, number)} {_pick(_PARTS, number, 3)}; "
            f"{_pick(_FIRINGS, number, 5)} fired at {1040 + 5 * (number % 40)} degrees; {_pick(_THINGS, number)} came "
            f"from the supplier and cost {12 + number % 60} euros."
        )
    return "\n".join(lines) + "\n"


def _day(day: date, number: int) -> str:
    lines = [f"# {day.isoformat()}\n"]
    for hour in range(8, 18, 2):
        at = number * 5 + hour
        lines.append(
            f"- {hour:02}:{at % 60:02} {_pick(_PEOPLE, at)} {_pick(_WORK, at, 3)} {_pick(_PARTS, at)} and asked about "
            f"{_pick(_THINGS, at, 3)}; the {_pick(_SERVICES, at, 7)} was fine."
        )
    return "\n".join(lines) + "\n"
