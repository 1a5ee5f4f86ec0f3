"""Lines that no longer hold, and marks of lines that tacit wrote: neither reaches a prompt. What it wrote
from the words of others is data there, like all that is recalled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tacit.context.request import Request
from tacit.markdown import comment
from tacit.markdown.comment import TRUSTS, Trust
from tacit.memory import Memory
from tests.memory.homes import NOW, OWNER, PATIENT, opened, settle, write
from tests.search.sample_home import copy_of_sample

SOURCE = "2026/02/16/1845-ses_a1b2-glaze#3"
ASKED = "How many coats of glaze does the bowl get?"


def given(memory: Memory, message: str = ASKED) -> str:
    return memory.services.turns.look(Request(message, OWNER)).text


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Memory:
    root, ended = copy_of_sample(tmp_path_factory)
    return opened(root, ended)


def test_who_asks_where_kilnlog_stores_its_data_hears_what_holds(studio: Memory) -> None:
    text = given(studio, "Where does kilnlog store its data?")
    assert "kilnlog stores in SQLite" in text
    assert "kilnlog stores in InfluxDB on basalt" not in text
    assert "(superseded" not in text


@pytest.mark.parametrize("message", ["When is the Reif launch?", "Which payment provider do we use?"])
def test_nothing_that_was_superseded_is_in_any_prompt(studio: Memory, message: str) -> None:
    assert "(superseded" not in given(studio, message)
    assert not [hit for hit in studio.search(message, limit=60) if "(superseded" in hit.text + hit.snippet]


def line(text: str, trust: Trust = "owner") -> str:
    return comment.attach(f"- 2026-02-16: {text}", "decisions/1", [SOURCE], trust)


def glazing(root: Path, trust: Trust = "owner", settings: str = PATIENT) -> Memory:
    settle(root, settings)
    old = comment.mark_superseded(line("the bowl gets five coats of glaze OLDWORD"), "2026-03-01")
    new = line("the bowl gets two coats of glaze NEWWORD", trust)
    write(root, "knowledge/memory/MEMORY.md", f"# Core Memory\n\n## Decisions\n\n{old}\n{new}\n")
    return opened(root, NOW)


@pytest.mark.parametrize("how", ["retrieve", "always"])
def test_a_line_that_tacit_wrote_is_given_without_its_mark_and_no_more_when_it_is_superseded(
    home: Path, how: str
) -> None:
    """Whether it is found or its file is loaded whole."""
    text = given(glazing(home, settings=f"{PATIENT}context_compiler: {{memory_md: {how}}}\n"))
    assert "- 2026-02-16: the bowl gets two coats of glaze NEWWORD\n" in text
    assert "OLDWORD" not in text
    assert SOURCE not in text


@pytest.mark.parametrize("trust", TRUSTS)
def test_what_is_recalled_is_data_whoever_said_it_first(home: Path, trust: Trust) -> None:
    text = given(glazing(home, trust))
    blocks = re.findall(r"<!-- knowledge (\w+) -->\n(.*?)<!-- /knowledge \1 -->", text, re.DOTALL)
    assert sum("NEWWORD" in block for _, block in blocks) == text.count("NEWWORD") == 1


def test_a_file_in_which_nothing_holds_any_more_is_empty(home: Path) -> None:
    settle(home, f"{PATIENT}context_compiler: {{memory_md: always}}\n")
    write(home, "knowledge/memory/MEMORY.md", "# Core Memory\n\n- all of it (superseded 2026-03-01)\n")
    compiled = opened(home, NOW).services.turns.look(Request(ASKED, OWNER))
    assert [one.code for one in compiled.dropped if one.label == "memory:MEMORY.md"] == ["empty"]
