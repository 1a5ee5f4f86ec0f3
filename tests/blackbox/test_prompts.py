"""Compiled prompts and receipts of the sample home, byte for byte, as files that people can read.

The sample home comes from `tacit demo`. situations.json has eleven believable turns, questions.jsonl has
questions of many kinds; some are asked by the owner at the desk or on the phone, some in a group, most with a
small budget. Prompts keep their words here: a change of wording shows, and is then refreshed on purpose.
compare.py does the same for two checkouts and larger sets.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.outside import HERE, Commands, copy_home, work
from tests.blackbox.small_home import set_times
from tests.blackbox.snapshots import Snapshots, normalize

NOW = "2026-11-02T08:30:00+01:00"
SITUATIONS: list[dict[str, Any]] = json.loads((HERE / "situations.json").read_text(encoding="utf-8"))
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
PER_FILE = 7


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    commands = Commands(tmp_path_factory.mktemp("sample") / "home", now=NOW)
    commands.checked("demo", "--home", str(commands.home), "--quiet")
    set_times(commands.home, NOW)
    config = commands.home / "memory-config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("#deadline_ms: 250", "deadline_ms: 60000"))
    return commands


@pytest.fixture(scope="module")
def answers(sample: Commands) -> dict[str, Any]:
    job = {"do": "ask", "home": str(sample.home), "how": "look", "questions": [*SITUATIONS, *QUESTIONS]}
    return {answer["id"]: answer for answer in work(sample.home.parent, job, now=NOW)}


def shown(question: dict[str, Any], answer: dict[str, Any]) -> str:
    """The question, the prompt, and the receipt with one line for each section and each dropped block."""
    receipt = normalize(answer["receipt"])
    sections, dropped = receipt.pop("sections"), receipt.pop("dropped")
    named = {key: value for key, value in question["named"].items() if key != "history"}
    lines = [f"# {question['id']}", "", f"asked: {_line(question['message'])}", f"named: {_line(named)}"]
    lines += ["", "## Prompt", "", answer["text"], "", f"## Receipt ({answer['tokens']} tokens)", ""]
    lines += [f"{key}: {_line(value)}" for key, value in receipt.items()]
    lines += ["", *(f"+ {_line(section)}" for section in sections)]
    lines += ["", *map(_dropped_line, dropped), ""]
    return "\n".join(lines)


def _dropped_line(block: dict[str, Any]) -> str:
    """Shorter than JSON: there are many of them. Every key is told but the score of each channel."""
    label = "" if block["label"] == f"{block['slot']}:{block['source']}" else f" {block['label']}"
    source = block["source"].replace("raw/conversations/", "…/")
    numbers = " ".join(f"{key}={block[key]}" for key in ("score", "tokens") if key in block)
    rest = set(block) - {"label", "slot", "source", "code", "reason", "score", "tokens", "channels"}
    more = f" {_line({key: block[key] for key in sorted(rest)})}" if rest else ""
    return f"- {block['code']} {block['slot']}{label} {source} {numbers} {block['reason']}{more}"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation["id"])
def test_a_situation_gets_the_prompt_and_the_receipt_it_always_got(
    answers: dict[str, Any], snapshots: Snapshots, situation: dict[str, Any]
) -> None:
    name = situation["id"]
    snapshots.check(f"situations/{name}.md", shown(situation, answers[name]))


@pytest.mark.parametrize("first", range(0, len(QUESTIONS), PER_FILE))
def test_questions_get_the_prompts_and_the_receipts_they_always_got(
    answers: dict[str, Any], snapshots: Snapshots, first: int
) -> None:
    questions = QUESTIONS[first : first + PER_FILE]
    text = "\n".join(shown(question, answers[question["id"]]) for question in questions)
    snapshots.check(f"questions/{questions[0]['id']}-{questions[-1]['id']}.md", text)


def test_the_command_compiles_the_same_prompt_as_the_library(
    sample: Commands, answers: dict[str, Any], tmp_path: Path
) -> None:
    for name in ("02-brennplan", "10-long-night"):
        situation = next(entry for entry in SITUATIONS if entry["id"] == name)
        named = situation["named"]
        history = tmp_path / "history.json"
        history.write_text(json.dumps(named.get("history", [])), encoding="utf-8")
        options = ["--session-key", named["session_key"], "--history", str(history)]
        if "budget" in named:
            options += ["--budget", str(named["budget"])]
        printed = sample.checked("compile", situation["message"], *options, "--json").json
        assert printed["text"] == answers[name]["text"]
        assert printed["tokens"] == answers[name]["tokens"]


def test_a_copied_home_compiles_the_same_prompt(
    sample: Commands, answers: dict[str, Any], tmp_path: Path
) -> None:
    """Nothing in a prompt depends on where the home is or when it was indexed."""
    copied = copy_home(sample.home, tmp_path / "copy")
    set_times(copied.home, NOW)
    job = {"do": "ask", "home": str(copied.home), "how": "look", "questions": SITUATIONS[:3]}
    for answer in work(copied.home.parent, job, now=NOW):
        assert answer["text"] == answers[answer["id"]]["text"]
