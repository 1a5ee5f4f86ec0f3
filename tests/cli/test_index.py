"""`tacit index`: what was read, what could not be, and what the index holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Tacit, plain_user


@pytest.fixture(autouse=True)
def _words_alone(home: Path) -> None:
    (home / "memory-config.yaml").write_text("search:\n  embedding_model: none\n")


def put(home: Path, name: str, text: str = "A zebra.\n") -> Path:
    file = home / "knowledge" / "reference" / name
    file.write_text(text)
    os.utime(file, ns=(10**18, 10**18))
    return file


def test_cli_index_says_what_it_read_and_what_it_holds(home: Path, tacit: Tacit) -> None:
    put(home, "a.md")
    first = tacit("index")
    assert first.code == 0
    assert " read, 0 unchanged; 0 new vectors\n" in first.stdout
    assert "The index holds " in first.stdout
    (home / "knowledge" / "reference" / "a.md").unlink()
    put(home, "b.md")
    second = tacit("index")
    assert second.stdout.startswith("1 file read, ")
    assert "1 gone" in second.stdout


def test_cli_index_quiet_says_nothing(tacit: Tacit) -> None:
    done = tacit("index", "--quiet")
    assert (done.code, done.stdout, done.stderr) == (0, "", "")


def test_cli_index_json_is_a_value(home: Path, tacit: Tacit) -> None:
    put(home, "a.md")
    done = json.loads(tacit("index", "--json").stdout)
    assert done["read"] >= 1
    assert done["failed"] == []
    assert done["index"]["files"] == done["read"]
    again = json.loads(tacit("index", "--json").stdout)
    assert (again["read"], again["gone"], again["unchanged"]) == (0, 0, done["read"])
    assert done.keys() == {
        "read", "unchanged", "gone", "embedded", "notes", "failed", "problems", "index"
    }  # fmt: skip


def test_cli_index_makes_vectors(home: Path, tacit: Tacit) -> None:
    (home / "memory-config.yaml").write_text("")
    put(home, "a.md")
    done = json.loads(tacit("index", "--json").stdout)
    assert done["embedded"] > 0
    assert done["index"]["embedder"].startswith("wordllama/")
    assert json.loads(tacit("index", "--json").stdout)["embedded"] == 0


def test_cli_index_rebuild_starts_from_nothing_and_keeps_the_old_one_aside(home: Path, tacit: Tacit) -> None:
    put(home, "a.md")
    first = json.loads(tacit("index", "--json").stdout)
    second = json.loads(tacit("index", "--rebuild", "--json").stdout)
    assert second["read"] == first["read"]
    assert (home / ".tacit" / "memory.db.aside").is_file()
    assert json.loads(tacit("search", "zebra", "--json").stdout)[0]["path"] == "knowledge/reference/a.md"


def test_cli_index_rebuild_takes_the_place_of_a_damaged_one(home: Path, tacit: Tacit) -> None:
    put(home, "a.md")
    (home / ".tacit" / "memory.db").write_bytes(b"not a database" * 1000)
    done = tacit("index", "--rebuild")
    assert (done.code, done.stderr) == (0, "")


def test_cli_index_of_a_damaged_one_says_what_became_of_it(home: Path, tacit: Tacit) -> None:
    (home / ".tacit" / "memory.db").write_bytes(b"not a database" * 1000)
    done = tacit("index")
    assert done.code == 0
    assert "set aside as memory.db.aside" in done.stderr


def test_cli_index_names_what_could_not_be_read_and_exits_with_1(home: Path, tacit: Tacit) -> None:
    put(home, "good.md")
    os.link(home / "knowledge" / "reference" / "good.md", home / "drafts" / "twin.md")
    put(home, os.fsdecode(b"bad\xff.md"))
    done = tacit("index")
    assert done.code == 1
    assert "2 failed" in done.stdout
    assert "knowledge/reference/good.md: could not be read" in done.stderr
    assert "has a name that is not UTF-8" in done.stderr
    value = tacit("index", "--json")
    assert value.code == 1
    assert [one["path"] for one in json.loads(value.stdout)["failed"]] != []


def test_cli_index_names_files_that_this_user_may_not_read(home: Path) -> None:
    put(home, "closed.md").chmod(0)
    put(home, "open.md")
    closed = home / "knowledge" / "closed"
    closed.mkdir()
    (closed / "in.md").write_text("A zebra.\n")
    closed.chmod(0)
    done = subprocess.run(
        plain_user(sys.executable, "-m", "tacit", "index", "--json"),
        env={**os.environ, "TACIT_HOME": str(home)},
        capture_output=True,
        timeout=60,
    )
    closed.chmod(0o700)
    assert done.returncode == 1
    value = json.loads(done.stdout)
    assert [one["path"] for one in value["failed"]] == ["knowledge/reference/closed.md"]
    assert "Permission denied" in value["failed"][0]["what"]
    assert value["read"] > 1


def test_cli_index_tells_the_problems_of_the_files_themselves(home: Path, tacit: Tacit) -> None:
    put(home, "head.md", "---\naudience: everybody\n---\nA zebra.\n")
    done = tacit("index", "--json")
    assert done.code == 0
    assert any("audience" in problem for problem in json.loads(done.stdout)["problems"])


def test_cli_index_follow_has_no_json(tacit: Tacit) -> None:
    done = tacit("index", "--follow", "--json")
    assert done.code == 2
    assert "Leave one of them out" in done.stderr


def test_cli_index_of_no_home_says_so(tmp_path: Path, tacit: Tacit) -> None:
    done = tacit("index", "--home", str(tmp_path / "nowhere"))
    assert done.code in (1, 2)
    assert "Traceback" not in done.stderr


def test_cli_index_names_are_shown_without_what_moves_the_cursor(home: Path, tacit: Tacit) -> None:
    put(home, "good.md")
    os.link(home / "knowledge" / "reference" / "good.md", home / "knowledge" / "reference" / "\x1b[2Jevil.md")
    done = tacit("index")
    assert done.code == 1
    assert "\x1b" not in done.stdout + done.stderr
