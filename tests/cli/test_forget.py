"""`tacit forget` shows first, does it when told to, and says what is left."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import tacit as product
from tacit.home import files
from tests.conftest import GitLog, Tacit

SECRET = "blue heron 7719"
NOTE = "knowledge/people/noor.md"


def furnish(home: Path) -> None:
    memory = product.open(home)
    with memory.session(session_id="talk", session_key="agent:main:telegram:direct:99") as session:
        session.message("user", f"The {SECRET} is mine")
    memory.write(NOTE, f"# Noor\n\n- has a {SECRET} at home\n", replacing=None)
    memory.commit()


def everything(home: Path) -> dict[str, bytes]:
    places = (file for file in home.rglob("*") if file.is_file() and not file.name.endswith("lock"))
    return {str(file): file.read_bytes() for file in places}


def test_cli_forget_shows_what_would_go_and_changes_nothing(home: Path, tacit: Tacit) -> None:
    furnish(home)
    subprocess.run(["git", "remote", "add", "origin", "https://example.org/x.git"], cwd=home, check=True)
    before = everything(home)
    done = tacit("forget", SECRET)
    assert done.code == 0
    assert f"{NOTE}:3  - has a {SECRET} at home" in done.stdout
    assert "commits rewritten  2 of 3" in done.stdout
    assert "branches" in done.stdout
    assert "origin (https://example.org/x.git)" in done.stdout
    assert "a model's provider" in done.stdout
    assert f"tacit forget --yes -- '{SECRET}'" in done.stdout
    assert everything(home) == before


def test_cli_forget_does_it_and_proves_it(home: Path, tacit: Tacit, git_log: GitLog) -> None:
    furnish(home)
    done = tacit("forget", SECRET, "--yes")
    assert (done.code, "Nothing is left of it" in done.stdout) == (0, True)
    assert tacit("forget", SECRET).code == 1
    assert tacit("verify", "--quiet").code == 0
    assert [entry.subject for entry in git_log() if entry.subject.startswith("conv")] == [
        "conversation: the-forgotten-is-mine"
    ]
    assert (home / NOTE).read_text() == "# Noor\n\n- has a at home\n"


def test_cli_forget_of_a_session_and_of_an_origin(home: Path, tacit: Tacit) -> None:
    furnish(home)
    seen = json.loads(tacit("forget", "--session", "talk", "--json").stdout)
    assert [(file["becomes"], file["path"].endswith("is-mine.md")) for file in seen["files"]] == [
        ("removed", True)
    ]
    assert tacit("forget", "--origin", "telegram:direct:9").code == 1
    done = json.loads(tacit("forget", "--origin", "telegram:direct:99", "--yes", "--json").stdout)
    assert (done["done"], done["left"]) == (True, [])
    assert list((home / "raw").rglob("*.md")) == []


def test_cli_forget_says_when_nothing_matches(home: Path, tacit: Tacit) -> None:
    furnish(home)
    other = "HAS A BLUE HERON"
    for arguments in ([other], [other, "--yes"], ["--session", "x"], ["--origin", "irc"]):
        done = tacit("forget", *arguments)
        assert (done.code, "Nothing matches" in done.stdout) == (1, True)
    assert NOTE in tacit("forget", other).stdout


def test_cli_forget_says_what_to_do_when_nothing_matches(home: Path, tacit: Tacit) -> None:
    furnish(home)
    for arguments, advice in (
        (["no such words"], "with their capitals"),
        (["no such words", "--path", "knowledge"], "leave out --path"),
        (["--session", "x"], "session_id"),
        (["--origin", "irc"], "tacit explain-session"),
    ):
        assert advice in tacit("forget", *arguments).stdout


def test_cli_forget_says_what_stays_before_and_after(home: Path, tacit: Tacit) -> None:
    furnish(home)
    other = "knowledge/people/ada.md"
    product.open(home).write(other, f"{SECRET.upper()}\nThe {SECRET} is mine\n", replacing=None)
    for arguments in (["--session", "talk"], [SECRET]):
        for more in ([], ["--yes"]):
            stays = tacit("forget", *arguments, *more).stdout.partition("stay")[2]
            assert other in stays.partition("Out of reach")[0]


def test_cli_forget_wants_one_thing_and_enough_of_it(home: Path, tacit: Tacit) -> None:
    for arguments in (
        [],
        ["abc"],
        [SECRET, "--session", "x"],
        ["--session", "x", "--line"],
        ["--origin", "a::b"],
    ):
        done = tacit("forget", *arguments)
        assert (done.code, done.stdout) == (2, "")


def test_cli_forget_of_whole_turns_in_one_place(home: Path, tacit: Tacit) -> None:
    furnish(home)
    assert tacit("forget", SECRET, "--line", "--path", "knowledge", "--yes").code == 0
    assert (home / NOTE).read_text() == "# Noor\n\n"
    assert SECRET in next((home / "raw").rglob("*.md")).read_text()
    assert tacit("forget", SECRET, "--line", "--yes").code == 0
    transcript = next((home / "raw").rglob("*.md"))
    assert product.open(home).transcript(str(transcript.relative_to(home))).messages[0].text == "[forgotten]"
    assert transcript.name.endswith("-talk-forgotten.md")
    assert tacit("verify", "--quiet").code == 0


def test_cli_forget_waits_for_nobody_who_serves(home: Path, tacit: Tacit) -> None:
    furnish(home)
    with files.hold_lock(home / ".tacit" / "daemon.lock"):
        done = tacit("forget", SECRET, "--yes")
    assert done.code == 1
    assert "tacit stop" in done.stderr
    assert SECRET in (home / NOTE).read_text()
