"""Turns as they would have been: from git, and without a trace on disk."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tacit as product
from tacit.context.model import Compiled
from tacit.context.request import Request
from tacit.errors import UsageError
from tacit.home.listing import Stamp
from tacit.memory import Memory
from tacit.topics.parser import TopicLoader
from tests.conftest import Tacit
from tests.memory.homes import (
    GROUP,
    QUESTION,
    everything,
    files_of,
    in_slot,
    notice_codes,
    opened,
    settle,
    write,
)

DAYS = [datetime(2026, month, 1, 12, tzinfo=UTC) for month in (1, 2, 3)]
SOUL = "knowledge/identity/SOUL.md"
HOSES = "knowledge/reference/hoses.md"
TOPIC = "---\ntriggers: ['\\bwater\\b']\nactivation: auto\n---\n# Watering\n\n{body}\n"


@pytest.fixture(scope="module")
def three_months(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that learned something on the first of each month, in commits of those days."""
    root = tmp_path_factory.mktemp("past") / "home"
    product.init(root)
    settle(root)
    memory = opened(root, DAYS[0])
    for number, day in enumerate(DAYS, 1):
        memory = opened(root, day)
        write(root, SOUL, f"# Soul\n\nI am Moss, in month {number}. SOUL{number}\n")
        write(root, "topics/watering.md", TOPIC.format(body=f"TOPIC{number}"))
        write(root, HOSES, f"# Hoses\n\n- We water the tomatoes with hose number {number} HOSE{number}\n")
        write(
            root, f"knowledge/reference/only-{number}.md", f"# Water\n\n- Tomatoes and water: ONLY{number}\n"
        )
        session = memory.session("agent:main:main", started=day)
        session.message("user", f"Let us water the tomatoes in month {number} SAID{number}", day)
        session.end(day)
        memory.commit()
    memory.services.searcher.find("", now=DAYS[-1])
    return root


@pytest.fixture
def memory(three_months: Path) -> Memory:
    return opened(three_months, datetime(2026, 3, 10, tzinfo=UTC))


def at(memory: Memory, moment: str, key: str = "agent:main:main") -> Compiled:
    return memory.services.turns.look(Request(QUESTION, key), moment)


def months(compiled: Compiled, word: str) -> list[int]:
    return [number for number in (1, 2, 3) if f"{word}{number}" in compiled.text]


def test_a_moment_gives_what_was_known_then_and_nothing_later(memory: Memory) -> None:
    then = at(memory, "2026-02-10")
    assert months(then, "SOUL") == months(then, "TOPIC") == months(then, "HOSE") == [2]
    assert months(then, "ONLY") == months(then, "SAID") == [1, 2]
    assert "ONLY3" not in everything(then)
    assert in_slot(then, "topics") == ["topics/watering.md"]
    assert notice_codes(then) == []


def test_a_date_a_tag_and_a_commit_are_the_same_moment(memory: Memory) -> None:
    commit = memory.history.at("2026-01-15")
    assert commit is not None
    subprocess.run(["git", "-C", memory.home.root, "tag", "-f", "first-month", commit], check=True)
    texts = {at(memory, moment).text for moment in ("2026-01-15", "first-month", commit, commit[:10])}
    assert len(texts) == 1
    assert "SOUL1" in texts.pop()


def test_one_moment_after_the_other_gives_each_its_own_topics(memory: Memory) -> None:
    for _ in range(3):
        for number in (1, 2, 3):
            then = at(memory, f"2026-0{number}-20")
            assert months(then, "TOPIC") == [number]
    assert months(memory.services.turns.look(Request(QUESTION)), "TOPIC") == [3]


class _Then:
    """As much of a view as watchers need."""

    past = "then"

    def __init__(self, shelf: TopicLoader, body: str) -> None:
        self._shelf = shelf
        data = TOPIC.format(body=body).encode()
        shelf.refresh({"topics/watering.md": Stamp(0, 0, 0)}, lambda path: data)

    def shelf(self) -> TopicLoader:
        return self._shelf


def _standing_at(place: int) -> TopicLoader:
    """A new shelf in the place where another one stood, or a new one anywhere."""
    new = [TopicLoader()]
    while id(new[-1]) != place and len(new) < 100_000:
        new.append(TopicLoader())
    return new[-1]


def test_the_topics_of_one_moment_are_never_taken_for_those_of_another(memory: Memory) -> None:
    state = memory.services.turns._state
    place = 0
    for number in range(20):
        shelf = _standing_at(place) if place else TopicLoader()
        pipeline = state.pipeline(_Then(shelf, f"TOPIC{number}"))  # type: ignore[arg-type]
        assert pipeline.topic("watering").body.strip().endswith(f"TOPIC{number}")
        place = id(shelf)
        del shelf


def test_the_receipt_tells_which_past_it_was_and_is_not_kept(memory: Memory) -> None:
    then = at(memory, "2026-02-10")
    assert then.receipt.past == memory.history.at("2026-02-10")
    assert then.receipt.at.startswith("2026-02-01")
    assert then.receipt.trial


def test_looking_back_changes_no_file(memory: Memory) -> None:
    memory.services.turns.look(Request(QUESTION))
    before = files_of(memory.home.root)
    for moment in ("2026-01-15", "2026-02-15", "HEAD"):
        at(memory, moment)
        at(memory, moment, GROUP)
    assert files_of(memory.home.root) == before


def test_who_may_see_what_holds_for_the_past_too(memory: Memory) -> None:
    told = everything(at(memory, "2026-02-10", GROUP))
    assert "SAID" not in told
    assert "HOSE2" in told


def test_what_is_on_disk_and_not_committed_is_no_past(memory: Memory) -> None:
    file = memory.home.root / HOSES
    kept = file.read_text()
    try:
        file.write_text(kept.replace("HOSE3", "HOSE4"))
        assert "HOSE4" not in everything(at(memory, "HEAD"))
    finally:
        file.write_text(kept)


@pytest.mark.parametrize("moment", ["no-such-tag", "ffffffff", "", "2026-13-45", "--help"])
def test_a_moment_that_is_none_is_refused_with_what_to_give(memory: Memory, moment: str) -> None:
    with pytest.raises(UsageError):
        at(memory, moment)


def test_before_the_first_commit_there_was_nothing_and_it_says_so(memory: Memory) -> None:
    with pytest.raises(UsageError, match="There was nothing yet at 2020-01-01"):
        at(memory, "2020-01-01")


def test_the_command_line_looks_back(three_months: Path) -> None:
    tacit = Tacit(three_months)
    done = tacit("compile", QUESTION, "--at", "2026-02-10")
    assert done.code == 0
    assert "HOSE2" in done.stdout
    assert "HOSE3" not in done.stdout
    refused = tacit("compile", QUESTION, "--at", "yesteryear")
    assert refused.code == 2
    assert "yesteryear" in refused.stderr
