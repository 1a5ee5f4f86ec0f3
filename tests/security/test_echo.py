"""What tacit gave to an agent does not come back as something that was said.

An agent that repeats what it was given would otherwise fill its own memory with copies: the next turn finds
the copy, gives it, and the agent repeats it once more. Fifty turns in which it does so leave no copy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tacit.context.model import Compiled
from tacit.memory import Memory
from tacit.privacy.strip_injected import remove_sections
from tacit.search.model import EVERYTHING
from tacit.transcripts.capture import Session
from tests.memory.conftest import _copy, _lived, garden
from tests.memory.homes import NOW, OWNER, OWNER_DM, OWNERS, PATIENT, QUESTION, opened, settle

__all__ = ["_lived", "garden"]

KEY = OWNER_DM
TURNS = 50
LANES = "inject: {lanes: [bootstrap, runtime, file, daily], repeat_after_turns: 1, "
SETTINGS = PATIENT.replace("inject: {", LANES) + OWNERS
MARKED = re.compile(r"[A-Z]{4,}(?:WORD|SAID|TOPIC)")  # each note, topic and old conversation has such a word
QUESTIONS = (
    QUESTION,
    "What did we say about drip hoses and litres for the tomatoes?",
    "Who waters the tomatoes on Tuesdays and how?",
    "Which tap and which hoses are right to water tomatoes?",
)


# ---------------------------------------------------------------- ways to repeat it


def whole(block: str, number: int) -> str:
    return f"{block}\n\nOWNANSWER{number}"


def in_the_middle(block: str, number: int) -> str:
    return f"You gave me this:\n\n{block}\n\nOWNANSWER{number}"


def one_fence(block: str, number: int) -> str:
    fences = re.findall(r"<!-- (\w+ \w+) -->.*?<!-- /\1 -->", block, re.DOTALL)
    found = re.search(rf"<!-- {fences[number % len(fences)]} -->.*?<!-- /\w+ \w+ -->", block, re.DOTALL)
    assert found
    return f"OWNANSWER{number}\n\n{found[0]}"


def without_its_beginning(block: str, number: int) -> str:
    first = re.search(r"^\[\w+ ", block, re.MULTILINE)
    assert first
    return f"OWNANSWER{number}\n\n{block[first.start() :]}"


def cut_off(block: str, number: int) -> str:
    return f"OWNANSWER{number}\n\n{block[: len(block) * (number % 10 + 1) // 11]}"


def quoted(block: str, number: int) -> str:
    return "\n".join(f"> {line}" for line in block.split("\n")) + f"\n\nOWNANSWER{number}"


def as_json(block: str, number: int) -> str:
    return json.dumps({"context": block, "answer": f"OWNANSWER{number}"})


def twice(block: str, number: int) -> str:
    return f"{block}\n\n{block}\n\nOWNANSWER{number}"


WAYS: tuple[Callable[[str, int], str], ...] = (
    whole, in_the_middle, one_fence, without_its_beginning, cut_off, quoted, as_json, twice,
)  # fmt: skip


# ---------------------------------------------------------------- fifty turns


class Lived:
    """A home in which an agent repeated for fifty turns what it was given."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = NOW
        settle(root, SETTINGS)
        self.before = set(root.glob("raw/conversations/**/*.md"))
        self.memory = opened(root, self.clock)
        self.session = self._begun(0)
        self.said: list[tuple[str, str]] = []
        self.copies: set[str] = set()
        self.blocks = [self._turn(number) for number in range(TURNS)]
        self.session.end()
        self.memory.commit()
        self.daily = self.page.read_text()

    def clock(self) -> datetime:
        return self.now

    def _turn(self, number: int) -> str:
        if number and number % 10 == 0:
            self.session.end()
            self.session, self.said = self._begun(number), []
        self.now += timedelta(minutes=2)
        message = f"{QUESTIONS[number % len(QUESTIONS)]} ({number})"
        name = self.session.session_id
        block = self.memory.inject(message, session_key=KEY, session_id=name, history=self.said).text
        self.copies |= {file.read_text() for file in self.root.rglob("ETHOS_CONTEXT.md")}
        reply = WAYS[number % len(WAYS)](block, number) if block else f"OWNANSWER{number}"
        self.session.message("user", message)
        self.session.tool("memory_context", message, as_json(block, number))
        self.session.message("agent", reply)
        self.said += [("user", message), ("agent", reply)]
        return block

    def _begun(self, number: int) -> Session:
        self.memory.session_ended(KEY)
        return self.memory.session(KEY, session_id=f"ses_echo_{number}")

    @property
    def transcripts(self) -> Mapping[str, str]:
        files = set(self.root.glob("raw/conversations/**/*.md")) - self.before
        return {str(file.relative_to(self.root)): file.read_text() for file in sorted(files)}

    @property
    def page(self) -> Path:
        return self.root / "knowledge/journal/2026-03-10.md"


@pytest.fixture(scope="module")
def echoed(_lived: Path, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return Lived(_copy(_lived, tmp_path_factory.mktemp("echo") / "garden"))


def test_the_agent_had_much_to_repeat(echoed: Lived) -> None:
    """Else the tests below would say nothing."""
    repeated = [block for block in echoed.blocks if MARKED.search(block)]
    assert len(repeated) >= TURNS // 2
    assert {way.__name__ for number, way in enumerate(WAYS) if any(echoed.blocks[number :: len(WAYS)])} == {
        way.__name__ for way in WAYS
    }


def test_no_transcript_has_anything_of_what_was_given(echoed: Lived) -> None:
    assert len(echoed.transcripts) == TURNS // 10
    for path, text in echoed.transcripts.items():
        assert MARKED.findall(text) == [], path
        assert "<!-- knowledge" not in text
        assert "<!-- topic:" not in text


def test_what_the_agent_said_itself_is_all_there(echoed: Lived) -> None:
    said = "\n".join(echoed.transcripts.values())
    assert all(re.search(rf"OWNANSWER{number}\b", said) for number in range(TURNS))
    assert "You gave me this:" in said


def test_the_index_has_each_passage_only_where_it_comes_from(echoed: Lived) -> None:
    words = {word for block in echoed.blocks for word in MARKED.findall(block)}
    assert len(words) > 10
    for word in words:
        found = echoed.memory.find(word, EVERYTHING, 50).hits
        holding = {hit.path for hit in found if word in hit.text}
        assert len(holding) == 1, (word, holding)
        assert not holding & set(echoed.transcripts), word


def last_turn(memory: Memory) -> Compiled:
    return memory.inject(QUESTION, session_key=OWNER)


def test_the_answer_after_them_has_nothing_that_came_from_a_repetition(echoed: Lived, garden: Path) -> None:
    settle(garden, SETTINGS)
    fresh = MARKED.findall(last_turn(opened(garden, NOW + timedelta(hours=5))).text)
    echoed.now = NOW + timedelta(hours=5)
    given = last_turn(echoed.memory)
    found = MARKED.findall(given.text)
    assert found
    assert len(found) == len(set(found))  # nothing comes twice
    assert set(found) <= set(fresh)
    for one in given.given:
        if any(path in one.source for path in echoed.transcripts):
            assert not MARKED.search(one.text)


# ---------------------------------------------------------------- the daily lane


def test_the_section_of_the_daily_lane_is_written_and_not_indexed(echoed: Lived) -> None:
    page = echoed.daily
    assert page.count("<!-- adaptive-memory:session=") == TURNS // 10
    assert MARKED.search(page)
    assert not MARKED.search(remove_sections(page))
    path = str(echoed.page.relative_to(echoed.root))
    for word in set(MARKED.findall(page)):
        assert path not in {hit.path for hit in echoed.memory.find(word, EVERYTHING, 50).hits}
    assert path not in {one.source.partition(":")[0] for one in last_turn(echoed.memory).given}


def test_what_people_write_around_the_section_is_indexed(echoed: Lived) -> None:
    page = echoed.page.read_text()
    echoed.page.write_text(f"Aubergines arrived today.\n\n{page}\n\nZucchini follow tomorrow.\n")
    path = str(echoed.page.relative_to(echoed.root))
    try:
        for word in ("Aubergines", "Zucchini"):
            hits = [hit for hit in echoed.memory.find(word).hits if hit.path == path]
            assert hits, word
            assert not MARKED.search(hits[0].text)
            lines = echoed.page.read_text().split("\n")
            assert word in "\n".join(lines[hits[0].lines[0] - 1 : hits[0].lines[1]])
    finally:
        echoed.page.write_text(page)


def test_an_agent_that_repeats_the_section_or_the_copy_in_the_file_keeps_neither(echoed: Lived) -> None:
    page = echoed.page.read_text()
    copies = [text for text in echoed.copies if MARKED.search(text)]
    assert copies
    session = echoed.memory.session(OWNER, session_id="ses_sections")
    for text in (page, *copies):
        session.message("agent", f"I read:\n\n{text}\n\nOWNANSWER")
        session.tool("read", "the daily note", text)
    texts = [getattr(turn, "text", "") + getattr(turn, "result", "") for turn in session.turns()]
    session.end()
    assert not MARKED.search("\n".join(texts))
    assert sum("OWNANSWER" in text for text in texts) == 1 + len(copies)
