"""`tacit search`: hits that a person can read, a program can use, and nobody is fooled by."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import tacit as product
from tacit.cli.dispatch import dispatch
from tests.conftest import Ran, Tacit, on_a_terminal, plain_user

NOTES = {
    "knowledge/reference/studio.md": "---\nupdated: 2026-03-04\n---\n# Studio\n\nThe kiln is Berta.\n",
    "knowledge/reference/long.md": (
        "# Long\n\n" + "filler words here " * 30 + "the Zebra crossing " + "more filler words " * 30 + "\n"
    ),
    "knowledge/people/ana-ruiz.md": "---\nname: Ana Ruiz\n---\n# Ana\n\nAna lights the kiln on Mondays.\n",
    "knowledge/journal/2026-05-12.md": "# 12 May\n\nThe kiln cracked.\n",
    "knowledge/journal/2026-05-13.md": "# 13 May\n\nThe kiln was mended.\n",
    "archive/reference/old.md": "# Old\n\nThe kiln before was Anton.\n",
    "topics/kiln.md": "---\nagent: werkbank\n---\n# Kiln watch\n\nWakes for the kiln.\n",
    "knowledge/reference/-n.md": "# Option\n\nUse --force with okapi.\n",
    "knowledge/reference/quagga\nforged:1  here.md": "# Two lines\n\nA quagga.\n",
    "knowledge/reference/evil.md": "# Evil\n\nA tapir \x1b[2J\x1b]0;owned\x07 \x9b31m \u202e\u200b here.\n",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Path:
    root = tmp_path_factory.mktemp("search") / "home"
    memory = product.init(root)
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    session = memory.session("agent:main:main", started=datetime(2026, 5, 2, 9, tzinfo=UTC))
    session.message("user", "How hot was the kiln?", at=datetime(2026, 5, 2, 9, 1, tzinfo=UTC))
    session.message("agent", "It had 1240 degrees.", at=datetime(2026, 5, 2, 9, 2, tzinfo=UTC))
    session.end(at=datetime(2026, 5, 2, 9, 3, tzinfo=UTC))
    return root


class Here:
    """Runs the command in this process: what is tested here is what it makes of its arguments."""

    def __init__(self, home: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._home, self._capture = home, capture

    def __call__(self, *arguments: str) -> Ran:
        self._capture.readouterr()
        code = dispatch(["--home", str(self._home), *arguments])
        return Ran(code, *self._capture.readouterr())


@pytest.fixture
def here(filled: Path, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(filled, capsys)


@pytest.fixture
def tacit(filled: Path) -> Tacit:
    return Tacit(filled)


def hits(done: Ran) -> list[dict[str, Any]]:
    assert done.code == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def found(here: Here, *arguments: str) -> set[str]:
    return {hit["path"] for hit in hits(here("search", *arguments, "--json", "-n", "50"))}


# For people


def test_cli_search_shows_place_day_relevance_reason_and_snippet(tacit: Tacit) -> None:
    done = tacit("search", "Berta", "-c", "reference", "--not-archived")
    assert done.code == 0
    first, snippet, *_ = done.stdout.split("\n")
    assert re.fullmatch(
        r"knowledge/reference/studio\.md:4-6  2026-03-04  [01]\.\d\d  words: Berta; meaning: rank \d+", first
    )
    assert snippet == "  # Studio"
    assert "  The kiln is **Berta**.\n" in done.stdout


def test_cli_search_cuts_long_passages_around_the_match(here: Here) -> None:
    done = here("search", "zebra crossing", "-n", "1")
    [snippet] = [line for line in done.stdout.split("\n") if line.startswith("  ")]
    assert "the **Zebra** **crossing** more" in snippet
    assert snippet.startswith("  … ")
    assert snippet.endswith(" …")
    assert len(snippet) < 330


def test_cli_search_marks_matches_bold_on_a_terminal(filled: Path) -> None:
    shown = on_a_terminal(filled, "search", "Berta", "-n", "1")
    assert b"\033[1mBerta\033[0m" in shown
    assert b"**" not in shown


def test_cli_search_that_finds_nothing_says_so(here: Here) -> None:
    done = here("search", "--under", "nowhere", "kiln")
    assert (done.code, done.stdout) == (0, "Nothing found.\n")
    assert hits(here("search", "--under", "nowhere", "kiln", "--json")) == []


def test_cli_search_takes_several_words_as_one_question(here: Here) -> None:
    one, many = (
        here("search", "lights the kiln", "--json"),
        here("search", "lights", "the", "kiln", "--json"),
    )
    assert [hit["path"] for hit in hits(one)] == [hit["path"] for hit in hits(many)]
    assert hits(one)[0]["path"] == "knowledge/people/ana-ruiz.md"


@pytest.mark.parametrize("question", ["--force okapi", "-okapi", "-n okapi"])
def test_cli_search_takes_what_begins_with_a_hyphen_after_two(tacit: Tacit, question: str) -> None:
    assert hits(tacit("search", "--json", "--", question))[0]["path"] == "knowledge/reference/-n.md"


def test_cli_search_says_where_to_put_what_begins_with_a_hyphen(here: Here) -> None:
    done = here("search", "--really?")
    assert done.code == 2
    assert "Put -- before text that starts with a hyphen" in done.stderr


@pytest.mark.parametrize("question", ["", " ", "the", '"', "kiln AND (", "a\ufffdb", "*"])
def test_cli_search_takes_any_text(here: Here, question: str) -> None:
    assert here("search", question).code == 0


def test_cli_search_takes_bytes_that_are_no_text(filled: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tacit", "search", b"kiln \xff\xfe", "--json"],
        env={**os.environ, "TACIT_HOME": str(filled)},
        capture_output=True,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)


# What is in the files cannot do anything


def shown(done: Ran) -> str:
    return done.stdout + done.stderr


@pytest.mark.parametrize("form", [(), ("--explain",), ("--json",), ("--explain", "--json")])
def test_cli_search_sends_no_control_character_to_the_terminal(tacit: Tacit, form: tuple[str, ...]) -> None:
    done = tacit("search", "tapir quagga", *form)
    assert done.code == 0
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u200b]", shown(done))
    assert "tapir" in done.stdout


def test_cli_search_shows_a_name_with_a_line_end_on_one_line(here: Here) -> None:
    done = here("search", "quagga")
    assert not any(line.startswith("forged") for line in done.stdout.split("\n"))
    assert "quagga\ufffdforged" in done.stdout


# For programs


def test_cli_search_json_has_what_was_promised(here: Here) -> None:
    first = hits(here("search", "Berta", "--json"))[0]
    assert first.keys() >= {"path", "snippet", "score", "category", "lines", "why"}
    assert first["path"] == "knowledge/reference/studio.md"
    assert first["lines"] == [4, 6]
    assert first["category"] == "reference"
    assert "**Berta**" in first["snippet"]
    assert first["text"] == "# Studio\n\nThe kiln is Berta."
    assert 0 <= first["score"] <= 1
    why = first["why"]
    assert why["score"] == pytest.approx(
        why["lexical"] + why["vector"] + sum(size for _, size in why["boosts"])
    )
    assert why["words"] == ["Berta"]
    assert why["lexical_rank"] == 1


def test_cli_search_json_of_a_turn_says_who_said_it_and_when(here: Here) -> None:
    first = hits(here("search", "1240 degrees", "--json"))[0]
    assert (first["category"], first["speaker"], first["turn"], first["date"]) == (
        "conversation",
        "agent",
        2,
        "2026-05-02",
    )


def test_cli_search_explain_tells_the_sum_and_how_the_answer_was_made(here: Here) -> None:
    done = here("search", "when does Ana light the kiln", "--explain")
    assert done.code == 0
    assert "  | +0.30 name: Ana Ruiz\n" in done.stdout
    assert re.search(r"  \| [+-]\d\.\d\d words \(BM25 \d+\.\d, rank 1\)\n", done.stdout)
    assert re.search(r"  \| [+-]\d\.\d\d meaning \(cosine -?\d\.\d{3}, rank \d+\)\n", done.stdout)
    assert re.search(r"  \| [+-]\d\.\d\d in all, \d\.\d\d below the hit above\n", done.stdout)
    assert "asked: lexical, vector\n" in done.stdout
    assert "known names: Ana Ruiz\n" in done.stdout
    assert "vectors of: wordllama/" in done.stdout


def test_cli_search_shows_the_same_question_asked_before_and_says_so(here: Here) -> None:
    done = here("search", "how hot was the kiln", "--explain")
    assert re.search(r"\.md:\d+  2026-05-02  [01]\.\d\d  words: .*; asks the same\n", done.stdout)
    assert "  | it asks the same, so it is set apart: nothing else is measured against it\n" in done.stdout
    assert "turns that ask the same, set apart: 1\n" in done.stdout
    first, *others = hits(here("search", "how hot was the kiln", "--json"))
    assert "echo" not in first["why"]
    assert [hit["turn"] for hit in others if "echo" in hit["why"]] == [1]


def test_cli_search_explain_json_has_the_trace(here: Here) -> None:
    done = here("search", "what happened to the kiln on 2026-05-12", "--explain", "--json", "-c", "journal")
    value = json.loads(done.stdout)
    assert value.keys() == {"hits", "channels", "degraded", "trace"}
    assert value["channels"] == ["lexical", "vector"]
    assert value["degraded"] == []
    assert value["trace"]["days"][:2] == ["2026-05-12", "2026-05-12"]
    assert value["trace"]["scope"] == {"categories": "('journal',)", "audience": "owner"}
    assert value["hits"][0]["path"] == "knowledge/journal/2026-05-12.md"
    assert value["hits"][0]["why"]["boosts"] == [["day: on 2026-05-12", 0.5]]


# Filters


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        (("-c", "person"), {"knowledge/people/ana-ruiz.md"}),
        (
            ("--category", "person", "--category", "topic"),
            {"knowledge/people/ana-ruiz.md", "topics/kiln.md"},
        ),
        (("--since", "2026-05-13", "--until", "2026-05-13"), {"knowledge/journal/2026-05-13.md"}),
        (("--until", "2026-03-31"), {"knowledge/reference/studio.md"}),
        (("--archived",), {"archive/reference/old.md"}),
        (("--under", "./knowledge/journal/2026-05-12"), {"knowledge/journal/2026-05-12.md"}),
        (("--under", "topics/"), {"topics/kiln.md"}),
        (("--under", "topics/", "--agent", "main"), set()),
        (("--under", "topics/", "--agent", "main", "--agent", "werkbank"), {"topics/kiln.md"}),
        (("--audience", "group", "-c", "journal"), set()),
    ],
)
def test_cli_search_filters(here: Here, filters: tuple[str, ...], paths: set[str]) -> None:
    assert {path for path in found(here, "kiln", *filters) if path in NOTES} == paths


def test_cli_search_without_the_archive(here: Here) -> None:
    assert not any(path.startswith("archive/") for path in found(here, "kiln", "--not-archived"))


def test_cli_search_limit(here: Here) -> None:
    assert len(hits(here("search", "kiln", "-n", "2", "--json"))) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--limit", "0"), "'0' is not a number from 1 to 1000"),
        (("--limit", "-1"), "-n"),
        (("--limit", "1001"), "'1001' is not a number from 1 to 1000"),
        (("--limit", "many"), "'many' is not a number from 1 to 1000"),
        (("--since", "yesterday"), "'yesterday' is not a day; write it as 2026-02-16"),
        (("--until", "2026-02-30"), "'2026-02-30' is not a day"),
        (("--category", "notes"), "invalid choice: 'notes'"),
        (("--audience", "public"), "invalid choice: 'public'"),
        (("--archived", "--not-archived"), "not allowed with argument"),
        (("--lim", "3"), "unrecognized arguments"),
    ],
)
def test_cli_search_refuses_what_makes_no_sense(here: Here, arguments: tuple[str, ...], said: str) -> None:
    done = here("search", "kiln", *arguments)
    assert done.code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_cli_search_needs_a_question(here: Here) -> None:
    assert here("search").code == 2


# Degraded


@pytest.mark.parametrize("form", [(), ("--json",), ("--explain", "--json")])
def test_cli_search_says_what_could_not_be_used(home: Path, form: tuple[str, ...]) -> None:
    (home / "memory-config.yaml").write_text("search:\n  embedding_model: openai:m\n")
    (home / "knowledge" / "reference" / "a.md").write_text("A zebra.\n")
    done = Tacit(home)("search", "zebra", *form)
    assert done.code == 0
    assert "zebra" in done.stdout
    assert "tacit: vector: 'openai:m' needs a key in the variable OPENAI_API_KEY" in done.stderr


def test_cli_search_in_a_home_that_cannot_be_written(filled: Path, tmp_path: Path) -> None:
    """With an index that is up to date, with one that is not, and with none."""
    root = tmp_path / "home"
    shutil.copytree(filled, root, symlinks=True, ignore=shutil.ignore_patterns("memory.db*"))
    closed = [root, root / ".tacit", root / "knowledge" / "reference"]

    def ask() -> list[dict[str, Any]]:
        for folder in closed:
            folder.chmod(0o500)
        for file in (root / ".tacit").glob("memory.db*"):
            file.chmod(0o400)
        done = subprocess.run(
            plain_user(sys.executable, "-m", "tacit", "search", "Berta", "--json"),
            env={**os.environ, "TACIT_HOME": str(root)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        for folder in closed:
            folder.chmod(0o700)
        assert done.returncode == 0, done.stderr
        assert done.stderr.startswith("tacit: the index ")
        value: list[dict[str, Any]] = json.loads(done.stdout)
        return value

    assert ask()[0]["path"] == "knowledge/reference/studio.md"
    assert not (root / ".tacit" / "memory.db").exists()
    assert Tacit(root)("index", "--quiet").code == 0
    assert ask()[0]["path"] == "knowledge/reference/studio.md"
    (root / "knowledge" / "reference" / "studio.md").unlink()
    assert "knowledge/reference/studio.md" not in {hit["path"] for hit in ask()}
