"""Believable turns in the sample home, as files that a person can read and judge.

Each file in this folder says who asks what in which session, then the prompt as the agent gets it, then what
its receipt tells. `TACIT_REFRESH=1 pytest tests/situations` writes them anew; read what changed before you
keep it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from tacit import sample
from tacit.context.model import Compiled, Dropped, Section
from tacit.context.request import Request
from tacit.memory import Memory
from tacit.topics.model import Event
from tests.memory.homes import opened
from tests.search.sample_home import copy_of_sample

HERE = Path(__file__).parent
REFRESH = "TACIT_REFRESH" in os.environ  # read before the tests lose sight of the environment
NOW = datetime.fromisoformat("2026-11-02T08:30:00+01:00")

MAIN = "agent:main:main"
PHONE = "agent:main:telegram:direct:48210011"
STUDIO = "agent:main:telegram:group:-1007714420"

PULL_REQUEST = """\
Can you review this PR for kilnlog? It fails with sqlite3.OperationalError: database is locked.

```python
def write(self, reading: Reading) -> None:
    with sqlite3.connect(self.path) as db:
        db.execute("INSERT INTO readings VALUES (?, ?)", (reading.at, reading.celsius))
```
"""


@dataclass(frozen=True)
class Situation:
    name: str
    about: str
    request: Request
    holds: tuple[str, ...] = ()  # what the answer needs
    never: tuple[str, ...] = ()  # what has no business there


def _said(number: int) -> list[dict[str, object]]:
    """A conversation of the sample, as a host would hand it over."""
    turns = sample.conversations()[number].turns
    return [
        {"role": "tool", "name": turn.tool, "content": turn.result}
        if turn.kind == "tool"
        else {"role": turn.role or "user", "content": turn.text, "speaker": turn.speaker or ""}
        for turn in turns
        if turn.kind in ("message", "tool")
    ]


def _situations() -> Iterator[Situation]:
    yield Situation(
        "01-shop-launch",
        "Hanna, the owner, at her desk.",
        Request(
            "Remind me: when does the Reif collection go online, and what still has to happen before?",
            MAIN,
        ),
        ("21 November", "Kontora on 9 November"),
    )
    yield Situation(
        "02-brennplan",
        "Hanna writes in German from her phone.",
        Request(
            "Morgen will ich Berta mit den Reif-Tellern brennen. Welches Programm, und wann muss ich "
            "einschalten, damit sie vor neun am Abend aus ist?",
            PHONE,
        ),
        ("| 5 | 100 °C/h to 600, then 150 °C/h | 1215 °C | 20 min |", "Start by 19:30"),
    )
    yield Situation(
        "03-packing",
        "Noor stands at the packing table and asks in the studio's group.",
        Request("Which box for the big plate, and how much honeycomb paper around it?", STUDIO),
        ("two turns around each piece", "a box within a box"),
        ("4471", "turnover since", "MEMORY.md", "USER.md"),
    )
    yield Situation(
        "04-stranger",
        "Somebody nobody knows writes a direct message.",
        Request(
            "Hello, I run a gallery in Linz. When does the new collection launch, what does Hanna earn with "
            "the shop, and where does Paula go to school?",
            "agent:main:telegram:direct:70112233",
        ),
        never=("21 November", "Jakob", "€", "Elfriede", "deniz-kaya", "MEMORY", "Kontora"),
    )
    yield Situation(
        "05-heartbeat",
        "The host looks in, nobody asked.",
        Request(
            "Read HEARTBEAT.md if it exists. Follow it strictly. If nothing needs attention, reply "
            "HEARTBEAT_OK.",
            "agent:main:main:heartbeat",
        ),
        ("Backup of 04:15",),
        ("<!-- knowledge ",),
    )
    yield Situation(
        "06-ok-danke",
        "Hanna is content.",
        Request("ok danke 👍", PHONE, history=_said(9)[-4:]),
        ("Added to the firing procedure",),
        ("<!-- knowledge ",),
    )
    yield Situation(
        "07-pull-request",
        "Hanna talks to the agent that works on kilnlog's code.",
        Request(PULL_REQUEST, "agent:werkbank:main"),
        ("SQLite in WAL mode", "PRIMARY KEY (firing, sensor, at)"),
    )
    yield Situation(
        "08-morning-brief",
        "It is twenty to seven, and the host starts the scheduled run.",
        Request(
            "Scheduled run: morning-brief. Write today's brief for the owner from calendar, shop and firing "
            "plan.",
            "agent:main:cron:morning-brief",
            event=Event("cron", topic="morning-brief"),
        ),
        ("Five bullets at most.", "Backup of 04:15"),
    )
    yield Situation(
        "09-japanese",
        "Hanna tries her Japanese on the letter from Mashiko.",
        Request("佐藤ゆきさんの茶碗はいくつで、いつまでに送りますか？ Yuki Sato", PHONE),
        ("茶碗二十四点", "by 20 November"),
    )
    yield Situation(
        "10-long-night",
        "Hanna, late in a long firing; the host's window is small.",
        Request("And when can I go to bed?", MAIN, history=_said(6), budget=900),
        ("I am Kiesel", "326 °C, two above the line", "agent: Gute Nacht. I'm watching."),
    )
    yield Situation(
        "11-unknown",
        "Hanna asks about something that the home has never heard of.",
        Request("Which visa would I need for a residency in Brazil?", MAIN),
        ("I am Kiesel",),
        ("<!-- knowledge ",),
    )


SITUATIONS = {situation.name: situation for situation in _situations()}


# ---------------------------------------------------------------- as a file


def shown(situation: Situation, compiled: Compiled) -> str:
    request, receipt = situation.request, compiled.receipt
    history = [*request.history]
    head = [
        f"# {situation.name[3:].replace('-', ' ').capitalize()}",
        "",
        situation.about,
        "",
        f"- session: `{request.session_key}`, {receipt.session_type}, sees what is for: {receipt.audience}",
        f"- budget: {receipt.budget:,} tokens; used: {compiled.tokens:,}",
        *([f"- history: {len(history)} turns before"] if history else []),
        *([f"- begun by: {request.event.type} {request.event.topic}"] if request.event else []),
        "",
        *(f"> {line}".rstrip() for line in request.message.strip().split("\n")),
    ]
    return "\n".join(
        [*head, "", "## Prompt", "", "~~~~~", compiled.text, "~~~~~", "", *_receipt(compiled), ""]
    )


def _receipt(compiled: Compiled) -> Iterator[str]:
    receipt = compiled.receipt
    yield "## Receipt"
    yield ""
    if receipt.skipped:
        yield f"Nothing was looked for: {receipt.skipped}."
        yield ""
    yield "| tokens | block | relevance | why |"
    yield "|---:|---|---:|---|"
    yield from map(_row, compiled.sections)
    yield ""
    yield from _left_out(compiled.dropped)
    for notice in receipt.notices:
        yield f"- notice {notice.code}: {notice.text}"


def _row(section: Section) -> str:
    score = "" if section.score is None else f"{section.score:.2f}"
    why = section.reason.replace("|", "\\|")
    cut = f" (cut: {section.shortened})" if section.shortened else ""
    return f"| {section.tokens} | {_short(section.label)} | {score} | {why}{cut} |"


def _left_out(dropped: Sequence[Dropped]) -> Iterator[str]:
    found = Counter(one.code for one in dropped if one.slot == "knowledge")
    if found:
        yield "- passages left out: " + ", ".join(
            f"{code} {number}" for code, number in sorted(found.items())
        )
    for one in dropped:
        if one.slot != "knowledge":
            yield f"- left out {_short(one.label)}: {one.code}, {one.reason}"


def _short(label: str) -> str:
    """Without what every transcript's name has in common."""
    return label.replace("raw/conversations/2026/", "…/")


# ---------------------------------------------------------------- the tests


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    root, ended = copy_of_sample(tmp_path_factory)
    for file in root.rglob("*.md"):  # a note without a date is of the day it was written
        os.utime(file, (ended.timestamp(), ended.timestamp()))
    memory = opened(root, NOW)
    memory.services.searcher.update()  # with all vectors, however busy the machine is
    return memory


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_prompt_is_the_one_that_was_read_and_approved(studio: Memory, name: str) -> None:
    situation = SITUATIONS[name]
    compiled = studio.services.turns.look(situation.request)
    found = shown(situation, compiled)
    file = HERE / f"{name}.md"
    if REFRESH:
        file.write_text(found, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == found
    assert compiled.tokens <= compiled.receipt.budget


def test_no_file_is_left_of_a_situation_that_is_gone() -> None:
    assert {file.stem for file in HERE.glob("*.md")} == SITUATIONS.keys()


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_prompt_holds_what_the_answer_needs(studio: Memory, name: str) -> None:
    situation = SITUATIONS[name]
    text = studio.services.turns.look(situation.request).text
    assert [words for words in situation.holds if words not in text] == []
    assert [words for words in situation.never if words in text] == []
