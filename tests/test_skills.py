"""Cards and snippets say what the program does."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tacit import skills
from tacit.cli.dispatch import parser_for
from tacit.config.schema import DEFAULTS, SESSION_TYPES
from tacit.markdown import notes
from tacit.privacy.delimiters import wrap_fenced
from tacit.skills import SkillCard
from tacit.text.tokens import count
from tests.commands import commands, fault, option_fault
from tests.conftest import Tacit

ROOT = Path(__file__).parent.parent
PLUGIN = ROOT / "integrations" / "openclaw"
CARDS = {card.name: card for card in skills.load_cards()}
TEXTS = {**{name: card.text for name, card in CARDS.items()}, **skills.render_pages()}
TOOLS = json.loads((PLUGIN / "openclaw.plugin.json").read_text())["contracts"]["tools"]
MAX_CARD_TOKENS = 400  # an agent reads a card in the middle of a task
MAX_SNIPPET_TOKENS = 400  # a snippet is part of every prompt of its host


@pytest.mark.parametrize("name", TEXTS)
def test_every_command_and_option_that_is_named_exists(name: str) -> None:
    found = list(commands(TEXTS[name]))
    assert found
    assert {one: fault(one) for one in found if fault(one)} == {}


@pytest.mark.parametrize(
    "command",
    ["tacit recall x", "tacit openclaw mend", "tacit search --loud x", "tacit search --audience all x"],
)
def test_a_command_that_does_not_exist_is_noticed(command: str) -> None:
    assert fault(command)


@pytest.mark.parametrize("name", TEXTS)
def test_options_that_are_named_alone_belong_to_a_command_that_is_named_too(name: str) -> None:
    text = TEXTS[name]
    alone = [shlex.split(one) for one in re.findall(r"`(--[^`\n]+)`", text)]
    parsers = [parser_for(shlex.split(one)[1]) for one in commands(text)]
    for words in alone:
        assert any(option_fault(parser, words, 0) == "" for parser in parsers), words


def test_cards_name_the_tools_of_the_plugin_and_all_of_them() -> None:
    named = {tool for card in CARDS.values() for tool in re.findall(r"\btacit_\w+", card.text)}
    assert named == set(TOOLS)
    assert re.findall(r'name: "(tacit_\w+)"', (PLUGIN / "tools.js").read_text()) == TOOLS


def test_snippets_name_no_tool_that_only_the_plugin_has() -> None:
    assert not [name for name in skills.SNIPPETS if "tacit_" in skills.render_snippet(name)]


def test_marks_on_the_card_are_those_of_a_turn() -> None:
    text = CARDS["tacit-recall"].text
    begin, _, end = wrap_fenced("knowledge", "x123", "passage").split("\n")
    assert f"`{begin}`" in text
    assert f"`{end}`" in text


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_a_card_has_the_head_that_hosts_read_and_is_short(card: SkillCard) -> None:
    note = notes.parse(card.text)
    assert note.problems == ()
    assert set(note.fields) <= {"name", "description", "disable-model-invocation"}
    assert note.fields.get("disable-model-invocation", True) is True
    assert card.name == card.path.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", card.name)
    assert 20 < len(card.description) <= 200
    assert not set(card.description) & set("<>:\n")  # some hosts read the head line by line
    assert count(card.text) <= MAX_CARD_TOKENS


def test_the_snippets_are_what_make_docs_writes(tmp_path: Path) -> None:
    skills.main(tmp_path)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    there = {file.name: file.read_bytes() for file in (ROOT / "docs/snippets").iterdir()}
    assert made == there, "run: make docs"


@pytest.mark.parametrize("name", skills.SNIPPETS)
def test_a_snippet_is_short_and_its_page_tells_how_short(name: str) -> None:
    page, text = skills.render_page(name), skills.render_snippet(name)
    assert f"```markdown\n{text}```" in page
    assert f" {count(text)} tokens." in page
    assert count(text) <= MAX_SNIPPET_TOKENS
    assert "Made by `make docs`" in page.splitlines()[0]


def test_the_snippet_for_openclaw_names_each_type_of_session_that_is_not_the_owners() -> None:
    text = skills.render_snippet("openclaw")
    for name in SESSION_TYPES:
        audience = getattr(DEFAULTS.sessions, name).audience
        line = next((one for one in text.splitlines() if name.replace("_", " ") in one), "")
        assert line.startswith(f"- `--audience {audience}`: ") if audience != "owner" else not line


def test_cli_skills_copies_cards_and_leaves_one_that_somebody_changed(tacit: Tacit, tmp_path: Path) -> None:
    folder = tmp_path / "skills"
    for _ in range(2):
        assert tacit("skills", "--copy", str(folder)).code == 0
    assert {file.parent.name for file in folder.glob("*/SKILL.md")} == set(CARDS)
    mine = folder / "tacit-recall" / "SKILL.md"
    mine.write_text("mine")
    ran = tacit("skills", "--copy", str(folder))
    assert (ran.code, mine.read_text()) == (1, "mine")
    assert "is another card" in ran.stderr


def test_cli_skills_prints_a_snippet_as_it_is_pasted(tacit: Tacit) -> None:
    assert tacit("skills", "--snippet", "codex").stdout == skills.render_snippet("codex")
    assert [one["name"] for one in json.loads(tacit("skills", "--json").stdout)] == list(CARDS)
