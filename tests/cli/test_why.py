"""`tacit why`: a receipt read in ten seconds, and the two questions that follow."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.cli.dispatch import dispatch
from tacit.cli.render.receipt import render_receipt, render_receipt_list
from tacit.context import receipts
from tacit.context.model import Dropped, Receipt, Section, Slot
from tacit.context.receipt_codec import decode_line
from tacit.diagnostics import Notice
from tacit.home.layout import Home
from tacit.terminal.lines import count_cells
from tests.conftest import Ran, Tacit, on_a_terminal

DATA = Path(__file__).parent.parent / "data" / "why"
REFRESH = "TACIT_REFRESH" in os.environ  # read before the tests lose sight of the environment


def file(slot: Slot, source: str, tokens: int, reason: str, shortened: str = "") -> Section:
    name = source.rpartition("/")[2].removesuffix(".md")
    label = f"topic:{name}" if slot == "topics" else f"{slot}:{source}"
    return Section(label, slot, source, tokens, None, reason, shortened=shortened)


def passage(source: str, tokens: int, score: float, reason: str, **channels: float) -> Section:
    day = "2026-10-25"
    digest = f"{abs(tokens) * 7919:016x}"
    return Section(
        f"knowledge:{source}", "knowledge", source, tokens, score, reason, day, channels, "", digest
    )


def left_out(
    source: str,
    code: str,
    reason: str,
    score: float | None = None,
    tokens: int | None = None,
    **channels: float,
) -> Dropped:
    return Dropped(f"knowledge:{source}", "knowledge", source, code, reason, tokens, score, channels)


FIRING = Receipt(
    id="1k9x4m2q7v3fd",
    at="2026-11-02T18:42:07+01:00",
    session_key="agent:main:telegram:direct:48210011",
    session_id="ses_a1b2c3d4",
    session_type="private_dm",
    agent="main",
    message_hash="5e" * 32,
    message="Can the Reif bowls go in with Thursday's white plates, or do they need a firing of their own?",
    budget=4096,
    tokens=3711,
    characters=14120,
    sections=(
        Section("system", "system", "", 84, None, "what this text is and how to read it"),
        file("identity", "knowledge/identity/SOUL.md", 171, "always there in this kind of session"),
        file("identity", "knowledge/identity/USER.md", 512, "always there in this kind of session",
             "the last 2 of 5 sections are left out"),
        file("projects", "knowledge/projects/_active.md", 118, "always there in this kind of session"),
        file("topics", "topics/firing.md", 236, "Reif, firing; wakes by itself"),
        file("subscriptions", "knowledge/procedures/glaze-firing.md", 402, "firing subscribes to it"),
        file("subscriptions", "knowledge/reference/glazes.md", 118, "firing subscribes to it",
             "the last 2 of 3 sections are left out"),
        passage("raw/conversations/2026/10/23/1912-ses_77d0a1be-brennplan-reif.md:31", 164, 0.91,
                "words: Reif, bowls, white, plates + meaning", lexical=3.1, vector=1.9, bm25=14.2,
                cosine=0.71),
        passage("knowledge/journal/2026-10-25.md:22", 96, 0.74,
                "words: Reif, firing + meaning + recent", lexical=1.8, vector=1.4, recent=0.02, bm25=7.9,
                cosine=0.63),
        passage("knowledge/projects/shop/progress.md:14", 121, 0.58,
                "meaning", vector=1.3, cosine=0.6),
        Section("history", "history", "", 1642, None, "the last 14 of 22 messages; tool results folded"),
        Section("message", "message", "", 47, None, "what was asked"),
    ),
    dropped=(
        left_out("knowledge/reference/studio.md:18", "budget", "there is no room for it", 0.55, 431,
                 lexical=0.9, vector=1.0, bm25=4.4, cosine=0.55),
        left_out("knowledge/journal/2026-10-31.md:9", "budget", "there is no room for it", 0.51, 402),
        Dropped("subscriptions:knowledge/reference/old-kiln.md", "subscriptions",
                "knowledge/reference/old-kiln.md", "missing", "topics/firing.md subscribes to it"),
        left_out("knowledge/journal/2026-10-23.md:12", "repeated", "this session was given it already", 0.83,
                 None, lexical=2.0, vector=1.7),
        Dropped("topic:shop-orders", "topics", "topics/shop-orders.md", "gate",
                "plates; the gate said no: nobody asks about an order", None, 0.21,
                {"tfidf": 0.12, "bm25": 0.3}),
        left_out("raw/conversations/2026/10/23/1912-ses_77d0a1be-brennplan-reif.md:40", "duplicate",
                 "another passage says the same", 0.71),
        left_out("knowledge/people/tomasz-bielak.md:8", "gate", "relevance below 0.35", 0.34, None,
                 vector=0.8, cosine=0.5),
        left_out("knowledge/projects/kilnlog/notes.md:30", "gate", "relevance below 0.35", 0.29),
        left_out("knowledge/journal/2026-10-09.md:5", "gate", "relevance below 0.35", 0.27),
        left_out("knowledge/journal/2026-10-11.md:5", "gate", "relevance below 0.35", 0.22),
        left_out("knowledge/people/ruth-amsel.md:11", "gate", "relevance below 0.35", 0.19),
    ),
    notices=(Notice("identity-shortened",
                    "knowledge/identity/USER.md is cut to fit: the last 2 of 5 sections are left out."),),
    timings_ms={"topics": 2.31, "search": 21.4, "rank": 0.62, "fit": 7.9, "render": 1.1, "total": 33.6},
    slots={"system": (84, 4096), "identity": (683, 700), "projects": (118, 128), "topics": (236, 768),
           "subscriptions": (520, 768), "knowledge": (381, 4096), "history": (1642, 4096),
           "message": (47, 2048)},
    had_history=True,
    audience="owner",
    unlisted={"gate": 38},
)  # fmt: skip

GROUP = replace(
    FIRING,
    id="1k9x4m8hb0w2n",
    at="2026-11-02T19:05:00+01:00",
    session_key="agent:main:telegram:group:-100200",
    session_id="ses_0badcafe",
    session_type="group_chat",
    message="素焼きの温度は何度？ @kiesel",
    budget=2048,
    tokens=389,
    sections=(
        file("identity", "knowledge/identity/SOUL.md", 171, "always there in this kind of session"),
        passage("knowledge/reference/素焼きと釉薬の覚え書き.md:3", 171, 0.81, "words: 素焼, 温度 + meaning"),
        Section("message", "message", "", 47, None, "what was asked"),
    ),
    dropped=(),
    notices=(
        Notice("deadline", "The turn had 250 ms; what was ready by then is here. Left out: the gate."),
        Notice("vector", "The embedder did not answer, so only words were searched."),
    ),
    timings_ms={"search": 249.8},
    slots={},
    audience="group",
    unlisted={},
)

ACK = replace(
    FIRING,
    id="1k9x4mb5t9c7e",
    at="2026-11-02T19:20:44+01:00",
    message="ok danke!",
    tokens=218,
    sections=(
        file("identity", "knowledge/identity/SOUL.md", 171, "always there in this kind of session"),
        Section("message", "message", "", 47, None, "what was asked"),
    ),
    dropped=(),
    skipped="acknowledgement",
    notices=(),
    timings_ms={"total": 0.8},
    slots={},
    unlisted={},
    trial=True,
    past="4f1d2c9",
)


class Here:
    """Runs the command in this process: what is tested here is what it makes of its arguments."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._home, self._capture = home, capture

    def __call__(self, *arguments: str) -> Ran:
        self._capture.readouterr()
        code = dispatch(["--home", str(self._home), "why", *arguments])
        return Ran(code, *self._capture.readouterr())


@pytest.fixture
def here(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.setenv("COLUMNS", "100")
    for receipt in (GROUP, ACK, FIRING):
        assert receipts.append(Home(home), receipt) == ""
    return Here(home, capsys)


def looks_like(name: str, done: Ran) -> None:
    """tests/data/why; run with TACIT_REFRESH=1 to write it anew, and read the diff."""
    assert (done.code, done.stderr) == (0, "")
    if REFRESH:
        (DATA / f"{name}.txt").write_text(done.stdout, encoding="utf-8")
    assert done.stdout == (DATA / f"{name}.txt").read_text(encoding="utf-8")


def answer(done: Ran) -> Any:
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


# The receipt


def test_cli_why_explains_the_last_turn(here: Here) -> None:
    looks_like("last-turn", here())


def test_cli_why_tells_what_a_turn_went_on_without(here: Here) -> None:
    looks_like("group-past-its-deadline", here(GROUP.id))


def test_cli_why_tells_why_nothing_was_looked_up(here: Here) -> None:
    looks_like("acknowledgement-of-the-past", here(ACK.id))


def test_cli_why_lists_receipts(here: Here) -> None:
    looks_like("list", here("-n", "5"))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("receipt", [FIRING, GROUP, ACK], ids=["firing", "group", "ack"])
def test_no_line_is_wider_than_the_terminal(receipt: Receipt, width: int) -> None:
    lines = ["".join(piece.text for piece in line) for line in render_receipt(receipt, width)]
    assert max(map(count_cells, lines)) <= width
    assert any(line.startswith("[") and line.endswith("]") for line in lines)
    for section in receipt.sections:  # narrow or not, the end of each source can be read
        if section.source:
            path, _, number = section.source.rpartition(":")
            end = f" line {number}" if path.startswith("raw/conversations/") else section.source[-8:]
            assert any(end in line for line in lines)


slots = st.sampled_from(["system", "identity", "knowledge", "history", "message", "dreams"])


@given(
    st.lists(st.tuples(slots, st.integers(0, 100_000)), max_size=12),
    st.integers(0, 200_000),
    st.sampled_from([60, 80, 100, 120]),
)
def test_the_bar_has_one_width_and_shows_every_slot(
    parts: list[tuple[Any, int]], budget: int, width: int
) -> None:
    sections = tuple(Section(slot, slot, "", tokens, None, "x") for slot, tokens in parts)
    total = sum(tokens for _, tokens in parts)
    receipt = replace(ACK, sections=sections, tokens=total, budget=budget)
    lines = ["".join(piece.text for piece in line) for line in render_receipt(receipt, width)]
    [bar] = [line for line in lines if line.startswith("[")]
    assert len(bar) == min(60, width - 2) + 2
    letters = {"dreams": "?", "message": "Q"}
    assert set(bar) - set("[].") == {
        letters.get(slot, slot[0].upper())
        for slot in {slot for slot, _ in parts}
        if sum(tokens for name, tokens in parts if name == slot)
    }


def test_the_files_of_a_session_are_told_against_what_the_host_would_have_loaded() -> None:
    begun = replace(
        GROUP, message="", lane="bootstrap", rule="sessions.group_chat", tokens=116, host_tokens=2290
    )
    lines = ["".join(piece.text for piece in line) for line in render_receipt(begun, 100)]
    assert lines[0] == "The files of a session that begins"
    assert "116 tokens, where the host by itself would load 2,290" in lines
    assert "lane bootstrap  rule sessions.group_chat" in "  ".join(lines[:4])
    [row] = ["".join(piece.text for piece in line) for line in render_receipt_list([begun], 120)]
    assert row.endswith("(bootstrap)")


def test_cli_why_takes_the_last_receipt_of_a_session(here: Here) -> None:
    assert answer(here("--session-key", GROUP.session_key, "--json"))["id"] == GROUP.id
    done = here("--session-key", "agent:nobody:main")
    assert (done.code, done.stdout) == (1, "")
    assert "'agent:nobody:main' has no receipt" in done.stderr


def test_cli_why_takes_the_beginning_or_the_end_of_an_id(here: Here) -> None:
    assert answer(here(ACK.id[:9], "--json"))["id"] == ACK.id
    assert answer(here(ACK.id[-4:].upper(), "--json"))["id"] == ACK.id
    done = here("1k9x")
    assert done.code == 2
    assert "may be any of 3 receipts" in done.stderr
    assert here("zzzzzz").stderr == (
        "tacit: No receipt has the id 'zzzzzz'. `tacit why -n 20` lists the last ones.\n"
    )
    assert here("1k9").code == 2
    assert here(ACK.id, "-n", "3").code == 2


def test_cli_why_as_json_is_the_whole_receipt(here: Here) -> None:
    told = answer(here("--json"))
    assert set(told) == set(Receipt.__dataclass_fields__)
    assert decode_line(json.dumps(told).encode()) == FIRING
    assert [receipt["id"] for receipt in answer(here("-n", "2", "--json"))] == [FIRING.id, ACK.id]


def test_cli_why_without_receipts_says_what_to_do(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = Here(home, capsys)
    for arguments in ([], ["--block", "x"], ["--not", "SOUL.md"], ["-n", "3"], ["--json"]):
        done = empty(*arguments)
        assert (done.code, done.stdout) == (1, "")
        assert done.stderr == 'tacit: There is no receipt yet. `tacit compile "…"` makes one.\n'


def test_what_stands_in_a_receipt_cannot_move_the_cursor(here: Here, home: Path) -> None:
    evil = "\x1b[2J\x9b31m\u202e\r\nforged"
    section = Section(evil, "knowledge", evil, 1, 0.5, evil, shortened=evil)
    drop = Dropped(evil, "knowledge", evil, evil, evil)
    receipt = replace(
        FIRING,
        message=evil,
        session_type=evil,
        agent=evil,
        sections=(section,),
        dropped=(drop,),
        notices=(Notice(evil, evil),),
        skipped=evil,
        timings_ms={evil: 1.0},
        past=evil,
    )
    assert receipts.append(Home(home), receipt) == ""
    for arguments in ([], ["--block", "forged"], ["-n", "9"], ["--not", "forged"]):
        done = here(*arguments)
        assert not {"\x1b", "\x9b", "\u202e", "\r"} & set(done.stdout + done.stderr)
        assert not any(line.startswith("forged") for line in done.stdout.splitlines())


def test_a_terminal_gets_colour_and_a_pipe_does_not(home: Path, tacit: Tacit) -> None:
    assert receipts.append(Home(home), FIRING) == ""
    assert "\x1b" not in tacit("why").stdout
    shown = on_a_terminal(home, "why", TERM="xterm-256color", COLUMNS="100")
    assert b"\x1b[32mKKKK" in shown


# One block


def test_cli_why_block_tells_everything_about_a_block(here: Here) -> None:
    looks_like("block-kept", here("--block", "2026-10-25"))


def test_cli_why_block_tells_what_dropped_ones_needed(here: Here) -> None:
    wanted = {
        "studio.md": "431 tokens of the budget of 4,096; 385 were left in the end",
        "old-kiln.md": "the file, or a subscription that names another",
        "2026-10-23.md": "another text: the session has this one",
        "tomasz-bielak.md": "more relevance: the least that came in has 0.58",
        "topic:shop-orders": "`tacit gate report`",
    }
    for part, needed in wanted.items():
        one = here("--block", part)
        assert needed in " ".join(one.stdout.split()), part
    looks_like("block-dropped", here("--block", "studio.md"))


def test_a_block_that_found_its_slot_full_is_told_how_full(here: Here, home: Path) -> None:
    drop = Dropped("topic:x", "topics", "topics/x.md", "slot", "there is no room for it", 600)
    receipts.append(Home(home), replace(FIRING, dropped=(drop,)))
    assert "600 tokens in its slot, topics, which had 532 left of 768" in here("--block", "topic:x").stdout


def test_cli_why_block_as_json(here: Here) -> None:
    told = answer(here("--block", "GLAZES", "--json"))
    assert told["receipt"] == FIRING.id
    [block] = told["blocks"]
    assert (block["kept"], block["source"]) == (True, "knowledge/reference/glazes.md")
    [block] = answer(here("--block", "studio", "--json"))["blocks"]
    assert (block["kept"], block["code"], block["channels"]["bm25"]) == (False, "budget", 4.4)
    assert block["needed"].startswith("431 tokens")


def test_cli_why_block_that_is_nowhere_says_so(here: Here) -> None:
    done = here("--block", "unicorn")
    assert (done.code, done.stdout) == (1, "")
    assert "has 'unicorn' in its name. It was cut and does not list everything." in done.stderr
    assert "cut" not in here(GROUP.id, "--block", "unicorn").stderr


# Why a file is not there


def write(home: Path, path: str, text: str, at: datetime | None = datetime(2026, 10, 1, tzinfo=UTC)) -> None:
    (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / path).write_text(text, encoding="utf-8")
    if at is not None:
        os.utime(home / path, (at.timestamp(), at.timestamp()))


def why_not(here: Here, path: str, *arguments: str) -> list[str]:
    told = answer(here(*arguments, "--not", path, "--json"))
    assert not told["in_prompt"]
    return [reason["code"] for reason in told["reasons"]]


def test_a_file_that_was_dropped_is_explained_by_what_was_dropped(here: Here) -> None:
    looks_like("not-dropped", here("--not", "knowledge/people/tomasz-bielak.md"))
    told = answer(here("--not", "studio.md", "--json"))
    assert told["file"] == "knowledge/reference/studio.md"
    assert [block["code"] for block in told["blocks"]] == ["budget"]


def test_a_file_that_is_there_is_said_to_be_there(here: Here) -> None:
    done = here("--not", "knowledge/reference/glazes.md")
    assert done.code == 0
    assert done.stdout.startswith("knowledge/reference/glazes.md is in the prompt.\n")
    done = here("--not", "1912-ses_77d0a1be-brennplan-reif.md")
    assert "is in the prompt in part: 1 of its 2 blocks." in " ".join(done.stdout.split())


def test_a_file_in_which_nothing_matched_is_told_with_a_command(here: Here, home: Path) -> None:
    write(home, "knowledge/reference/basalt-ports.md", "# Ports\n\n8417 is kilnlog.\n")
    looks_like("not-matched", here("--not", "basalt-ports.md"))
    assert why_not(here, "knowledge/reference/basalt-ports.md") == ["unmatched"]


def test_all_that_kept_a_file_out_is_told(here: Here, home: Path) -> None:
    note = "---\nagent: werkbank\naudience: owner\n---\n# Salary\n\n40 hours.\n"
    write(home, "archive/people/deniz-kaya.md", note)
    assert why_not(here, "archive/people/deniz-kaya.md", GROUP.id)[:3] == ["archived", "audience", "agent"]
    looks_like("not-for-this-session", here(GROUP.id, "--not", "archive/people/deniz-kaya.md"))
    assert why_not(here, "archive/people/deniz-kaya.md")[:2] == ["archived", "agent"]


def test_a_group_may_see_its_own_transcripts(here: Here, home: Path) -> None:
    path = "raw/conversations/2026/10/01/0900-ses_x-plates.md"
    body = "# plates\n\n## 09:00 — user\n\nHow many plates?\n"
    head = "---\nsession_id: ses_x\nsession_key: {}\nstarted: 2026-10-01T09:00:00+02:00\n---\n"
    write(home, path, head.format(f"'{GROUP.session_key}'") + body)
    assert "audience" not in why_not(here, path, GROUP.id)
    write(home, path, head.format("agent:main:main") + body)
    assert "audience" in why_not(here, path, GROUP.id)


def test_a_turn_that_looked_nothing_up_did_not_look_at_the_file(here: Here, home: Path) -> None:
    write(home, "knowledge/reference/studio.md", "# Studio\n")
    assert why_not(here, "knowledge/reference/studio.md", ACK.id) == ["skipped"]
    done = here(ACK.id, "--not", "studio.md")
    assert "Nothing was looked up: it is only an acknowledgement." in done.stdout


def test_a_file_that_search_does_not_see_is_told_so(here: Here, home: Path) -> None:
    write(home, "drafts/plan.md", "# Plan\n\nText.\n")
    write(home, "knowledge/reference/table.csv", "a,b\n")
    (home / "knowledge/reference/link.md").symlink_to("../identity/SOUL.md")
    assert why_not(here, "drafts/plan.md")[0] == "unindexed"
    assert why_not(here, "knowledge/reference/table.csv")[0] == "unindexed"
    assert why_not(here, "knowledge/reference/link.md") == ["unreadable"]


def test_an_empty_file_and_one_that_came_later_are_told_so(here: Here, home: Path) -> None:
    write(home, "knowledge/reference/nothing.md", "\n")
    assert why_not(here, "knowledge/reference/nothing.md")[0] == "empty"
    write(home, "knowledge/reference/later.md", "# Later\n", datetime(2026, 11, 2, 17, 43, tzinfo=UTC))
    assert "newer" in why_not(here, "knowledge/reference/later.md")
    write(home, "knowledge/reference/later.md", "# Later\n", datetime(2026, 11, 2, 17, 42, tzinfo=UTC))
    assert "newer" not in why_not(here, "knowledge/reference/later.md")


def test_a_topic_that_slept_is_told_and_so_is_what_it_would_have_brought(here: Here, home: Path) -> None:
    write(
        home, "topics/packing-day.md", "---\nsubscriptions: [knowledge/procedures/packing.md]\n---\n# Pack\n"
    )
    write(home, "topics/broken.md", "---\nsubscriptions: {: [\n---\n")
    write(home, "knowledge/procedures/packing.md", "# Packing\n\nStraw.\n")
    assert why_not(here, "topics/packing-day.md")[0] == "asleep"
    assert why_not(here, "knowledge/procedures/packing.md") == ["subscribed", "unmatched"]
    done = here("--not", "packing.md")
    assert "It comes with topics/packing-day.md, which was not awake." in done.stdout


def test_a_file_that_is_nowhere_is_told_so(here: Here) -> None:
    done = here("--not", "knowledge/people/nobody.md")
    assert (done.code, done.stdout) == (1, "")
    assert "There is no file 'knowledge/people/nobody.md' in the home" in done.stderr
    assert here("--not", "../outside.md").code == 2


def test_a_name_that_several_files_have_is_refused(here: Here, home: Path) -> None:
    write(home, "knowledge/projects/one/notes.md", "x\n")
    write(home, "knowledge/projects/two/notes.md", "x\n")
    write(home, "archive/projects/kilnlog/context.md", "x\n")
    assert answer(here("--not", "kilnlog/context.md", "--json"))["file"].startswith("archive/")
    done = here(GROUP.id, "--not", "notes.md")
    assert done.code == 2
    assert "may be any of: knowledge/projects/one/notes.md, knowledge/projects/two/notes.md" in done.stderr
