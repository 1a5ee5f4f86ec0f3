"""Proposals that wait: kept once, within bounds, and never in the way of a turn."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.home.files import hold_lock
from tacit.home.layout import Home
from tacit.learn import window_proposals
from tacit.learn.model import Change, ChangeSet, Source
from tests.conftest import plain_user
from tests.hostile import hostile

MEMORY = "knowledge/memory/MEMORY.md"


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path)


def change(text: str, session: str = "agent:main:main") -> Change:
    source = Source(session, 3, "user", "Ana", "2026-02-16T18:45:00+00:00")
    return Change(MEMORY, "Key Decisions", text, "2026-02-16", "decision", source, "owner")


def proposal(
    *texts: str, session: str = "agent:main:main", made_at: str = "2026-02-16T19:00:00"
) -> ChangeSet:
    found = tuple(change(text, session) for text in texts)
    return ChangeSet(session, "ses_1", made_at, "cues/1", "history left the window", found)


def files(place: Home) -> list[Path]:
    return sorted((place.private / "proposals").iterdir())


def test_an_offer_waits_unchanged_and_private(place: Home) -> None:
    assert window_proposals.list_waiting(place) == []
    assert window_proposals.offer(place, proposal("oak", "ash")) is None
    assert window_proposals.list_waiting(place) == [proposal("oak", "ash")]
    (file,) = files(place)
    assert file.name.endswith(f"-{proposal('oak', 'ash').id}.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_same_offer_twice_is_one(place: Home) -> None:
    for moment in ("2026-02-16T19:00:00", "2026-02-16T19:05:00"):
        assert window_proposals.offer(place, proposal("oak", made_at=moment)) is None
    assert window_proposals.list_waiting(place) == [proposal("oak")]


def test_of_an_offer_with_more_only_the_rest_is_kept(place: Home) -> None:
    window_proposals.offer(place, proposal("oak"))
    window_proposals.offer(place, proposal("oak", "ash", made_at="2026-02-16T19:05:00"))
    assert [[one.text for one in found.changes] for found in window_proposals.list_waiting(place)] == [
        ["oak"],
        ["ash"],
    ]


def test_the_same_words_in_another_session_are_another_offer(place: Home) -> None:
    window_proposals.offer(place, proposal("oak"))
    window_proposals.offer(place, proposal("oak", session="agent:main:telegram:direct:7"))
    assert len(window_proposals.list_waiting(place)) == 2


def test_the_oldest_wait_first(place: Home) -> None:
    for text, day in (("c", "03"), ("a", "01"), ("b", "02")):
        window_proposals.offer(place, proposal(text, made_at=f"2026-02-{day}T00:00:00"))
    assert [found.changes[0].text for found in window_proposals.list_waiting(place)] == ["a", "b", "c"]


@pytest.mark.parametrize(("limit", "most"), [("MAX_FILES", 3), ("MAX_TOTAL_BYTES", 2_000)])
def test_the_oldest_go_when_there_are_too_many(
    place: Home, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(window_proposals, limit, most)
    for number in range(9):
        window_proposals.offer(place, proposal(f"line {number}", made_at=f"2026-02-16T19:00:0{number}"))
        for age, file in enumerate(sorted(files(place), key=lambda one: one.stat().st_mtime_ns)):
            os.utime(file, (1_000_000 + number * 10 + age,) * 2)
    kept = [found.changes[0].text for found in window_proposals.list_waiting(place)]
    assert 2 <= len(kept) <= 4
    assert kept == [f"line {number}" for number in range(9 - len(kept), 9)]


def test_the_newest_stays_also_after_the_clock_was_set_back(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    window_proposals.offer(place, proposal("oak"))
    os.utime(files(place)[0], (2**32, 2**32))
    monkeypatch.setattr(window_proposals, "MAX_FILES", 1)
    window_proposals.offer(place, proposal("ash"))
    assert window_proposals.list_waiting(place) == [proposal("ash")]


def test_what_a_killed_writer_left_is_cleared_by_the_next(place: Home) -> None:
    window_proposals.offer(place, proposal("oak"))
    (place.private / "proposals" / "x.json.tmp.0123456789ab").write_text("{")
    window_proposals.offer(place, proposal("ash"))
    assert len(files(place)) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        '{"id": 1}',
        '{"id": "x", "changes": []}',
        "[" * 100_000,
        "\ud800",
        '{"id": {}}',
    ],
)
def test_what_is_no_proposal_is_passed_over(place: Home, text: str) -> None:
    window_proposals.offer(place, proposal("oak"))
    (place.private / "proposals" / "x.json").write_text(text, errors="surrogatepass")
    assert window_proposals.list_waiting(place) == [proposal("oak")]
    assert window_proposals.offer(place, proposal("ash")) is None


def test_a_proposal_that_was_changed_by_hand_is_not_believed(place: Home) -> None:
    window_proposals.offer(place, proposal("oak"))
    (file,) = files(place)
    stored = json.loads(file.read_text())
    stored["changes"][0]["trust"] = "agent"
    file.write_text(json.dumps(stored))
    assert window_proposals.list_waiting(place) == []


def test_links_are_not_followed(place: Home, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place.private.mkdir()
    (place.private / "proposals").symlink_to(outside)
    assert window_proposals.offer(place, proposal("oak"))
    assert window_proposals.list_waiting(place) == []
    assert list(outside.iterdir()) == []


def test_a_lock_that_somebody_holds_is_a_reason(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_proposals, "_LOCK_TIMEOUT_S", 0.0)
    with hold_lock(place.private / "proposals.lock"):
        reason = window_proposals.offer(place, proposal("oak"))
    assert reason is not None
    assert "proposals.lock" in reason


def test_a_disk_that_takes_nothing_is_a_reason(place: Home) -> None:
    place.private.mkdir()
    place.private.chmod(0o500)
    code = (
        "import sys; from pathlib import Path; from tacit.learn import window_proposals;"
        "from tacit.home.layout import Home;"
        "from tacit.learn.model import *;"
        "s = Source('k', 1, 'user'); c = Change('a.md', None, 'x', '2026-01-01', 'event', s, 'owner');"
        "print(window_proposals.offer(Home(Path(sys.argv[1])), ChangeSet('k', 'i', 'm', 'e', 'r', (c,))))"
    )
    done = subprocess.run(
        plain_user(sys.executable, "-c", code, place.root), capture_output=True, text=True, check=True
    )
    place.private.chmod(0o700)
    assert done.stdout.startswith("The proposal was not kept: ")


def test_a_proposal_too_large_to_keep_is_a_reason(place: Home) -> None:
    reason = window_proposals.offer(place, proposal("x" * 2**20))
    assert reason is not None
    assert window_proposals.list_waiting(place) == []


@given(st.lists(hostile, min_size=1, max_size=3, unique=True))
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    place = Home(tmp_path_factory.mktemp("home"))
    offered = replace(proposal(*texts), reason=texts[0])
    assert window_proposals.offer(place, offered) is None
    assert window_proposals.list_waiting(place) == [offered]
