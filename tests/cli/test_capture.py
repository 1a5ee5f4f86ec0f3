"""`tacit capture`: a conversation kept one command at a time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tacit as product
from tacit.home.files import hold_lock
from tacit.transcripts import writer
from tacit.transcripts.model import Attachment, KnowledgeChange, Message, ToolCall, Transcript

if TYPE_CHECKING:
    from tests.conftest import GitLog, Ran, Tacit


def good(ran: Ran) -> str:
    assert (ran.code, ran.stderr) == (0, ""), ran
    return ran.stdout


def read(home: Path) -> Transcript:
    (file,) = home.glob("raw/conversations/*/*/*/*.md")
    return product.open(home).transcript(str(file.relative_to(home)))


def test_cli_capture_keeps_a_whole_conversation(tacit: Tacit, home: Path, git_log: GitLog) -> None:
    begun = good(
        tacit("capture", "start", "--channel", "chat", "--model", "some-model", "--session-key", "agent:a:b")
    )
    name = begun.strip()
    assert re.fullmatch(r"ses_[0-9a-f]{8}", name)
    assert good(tacit("capture", "message", name, "user", "What did we decide?", "--speaker", "Ana")) == ""
    assert good(tacit("capture", "tool", name, "read", "notes.md", "--result", "42 lines")) == ""
    assert good(tacit("capture", "message", name, "assistant", "-", stdin="To fire at 1,220 °C.\n")) == ""
    assert (
        good(tacit("capture", "knowledge", name, "updated", "knowledge/kiln.md", "--summary", "1,220 °C"))
        == ""
    )
    (home / "attachments/kiln.png").write_bytes(b"png")
    assert good(tacit("capture", "attach", name, "attachments/kiln.png")) == ""
    told = good(
        tacit(
            "capture", "end", name, "--tag", "kiln", "--tag", "b c", "--tokens-in", "7", "--tokens-out", "9"
        )
    )

    parsed = read(home)
    assert told == f"sealed {parsed.path}\ncommitted as {git_log()[0].name[:10]}\n"
    assert git_log()[0].subject == "conversation: what-did-we-decide"
    fields = parsed.fields
    assert (fields["session_id"], fields["channel"], fields["model"]) == (name, "chat", "some-model")
    assert (fields["session_key"], fields["agent"]) == ("agent:a:b", "a")
    assert (fields["tags"], fields["tokens_in"], fields["tokens_out"]) == (["kiln", "b c"], 7, 9)
    first, tool, answer, change, attached = parsed.turns
    assert isinstance(first, Message)
    assert (first.text, first.speaker) == ("What did we decide?", "Ana")
    assert isinstance(tool, ToolCall)
    assert (tool.name, tool.summary, tool.result) == ("read", "notes.md", "42 lines")
    assert isinstance(answer, Message)
    assert (answer.role, answer.text) == ("agent", "To fire at 1,220 °C.\n")
    assert isinstance(change, KnowledgeChange)
    assert (change.action, change.path, change.summary) == ("updated", "knowledge/kiln.md", "1,220 °C")
    assert isinstance(attached, Attachment)
    assert (attached.role, attached.path) == ("user", "attachments/kiln.png")


def test_cli_capture_speaks_json(tacit: Tacit, home: Path, git_log: GitLog) -> None:
    def ask(*arguments: str) -> Any:
        return json.loads(good(tacit("capture", *arguments, "--json")))

    assert ask("start", "--session-id", "a\n🔥") == {"session_id": "a\n🔥"}
    assert ask("list") == [{"session_id": "a\n🔥", "path": None}]
    kept = ask("message", "a\n🔥", "user", "hello")
    assert kept == {"session_id": "a\n🔥", "number": 1, "path": kept["path"]}
    assert ask("tool", "a\n🔥", "read", "x")["number"] == 2
    assert ask("list") == [{"session_id": "a\n🔥", "path": kept["path"]}]
    ended = ask("end", "a\n🔥")
    assert ended["path"] == kept["path"]
    assert ended["commit"] == git_log()[0].name
    assert git_log()[0].trailer("Transcript-SHA256") == [ended["sha256"]]
    assert ask("list") == []


def test_cli_capture_end_of_a_session_without_a_message_keeps_nothing(tacit: Tacit, home: Path) -> None:
    name = good(tacit("capture", "start")).strip()
    assert good(tacit("capture", "end", name)) == "nothing was said, so nothing is kept\n"
    assert good(tacit("capture", "list")) == ""
    assert list(home.glob("raw/conversations/**/*.md")) == []


def test_cli_capture_takes_any_bytes_from_stdin(tacit: Tacit, home: Path) -> None:
    name = good(tacit("capture", "start")).strip()
    data = b"\xff\xfe\0 ## 18:45 \xe2\x80\x94 agent\r\n" + b"x" * 1_000_000 + b"\n\n"
    good(tacit("capture", "message", name, "user", "-", stdin=data))
    good(tacit("capture", "tool", name, "read", "a", "--result", "-", stdin=b"line\nline"))
    message, tool = read(home).turns
    assert isinstance(message, Message)
    assert message.text.encode("utf-8", "surrogateescape") == data
    assert isinstance(tool, ToolCall)
    assert tool.result == "line line"
    (file,) = home.glob("raw/conversations/*/*/*/*.md")
    assert "\0" not in file.read_text(encoding="utf-8")


def test_cli_capture_takes_given_times(tacit: Tacit, home: Path) -> None:
    name = good(tacit("capture", "start", "--at", "2026-02-16T18:45:00+01:00")).strip()
    good(tacit("capture", "message", name, "user", "one", "--at", "2026-02-16T19:00:00.250+02:00"))
    good(tacit("capture", "message", name, "agent", "two", "--at", "2026-02-17T00:05:00"))
    good(tacit("capture", "end", name, "--at", "2026-02-17T00:10:00+01:00"))
    parsed = read(home)
    assert parsed.path.startswith(f"raw/conversations/2026/02/16/1845-{name}-one")
    assert [turn.at for turn in parsed.turns] == [
        datetime(2026, 2, 16, 17, 0, 0, 250_000, tzinfo=UTC),
        datetime(2026, 2, 16, 23, 5, tzinfo=UTC),
    ]
    assert parsed.fields["ended"] == datetime(2026, 2, 16, 23, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("message", "nobody", "user", "x"),
            "There is no session 'nobody'. Begin one with: tacit capture start",
        ),
        (("end", "nobody"), "There is no session 'nobody'"),
        (("tool", "../../x", "read", "x"), "There is no session '../../x'"),
        (("message", "ses_1", "wizard", "x"), "'wizard' is not a role. The roles are user, agent"),
        (("message", "ses_1", "tool", "x"), "Use .tool() for tool calls"),
        (("attach", "ses_1", "memory-config.yaml", "--role", "wizard"), "'wizard' is not a role"),
        (("attach", "ses_1", ""), "The path is empty"),
        (("attach", "ses_1", "none.png"), "There is no file 'none.png' in the home"),
        (("attach", "ses_1", "/etc/passwd"), "it is not relative to the home"),
        (("attach", "ses_1", "../../etc/passwd"), "it leaves the home"),
        (("tool", "ses_1", " ", "x"), "Say which tool"),
        (("knowledge", "ses_1", "", "knowledge/a.md"), "Say what was done to the note"),
        (("knowledge", "ses_1", "updated", ""), "Say which note"),
        (("start", "--session-id", "-"), "'-' cannot be an id"),
        (("start", "--session-id=-x"), "'-x' cannot be an id"),
        (("start", "--session-id", ""), "'' cannot be an id"),
        (("message", "ses_1", "user", "-x"), "tacit capture message … -- -text"),
        (
            ("message", "ses_1", "user", "x", "--at", "yesterday"),
            "'yesterday' is not a time like 2026-02-16T18:45",
        ),
        (("message", "ses_1", "user", "x", "--at", "0001-01-01T00:00:00+05:00"), "cannot be the time"),
        (("start", "--at", "0001-01-01T00:00:00+05:00"), "cannot be the time"),
        (("start", "--at", "25:00"), "'25:00' is not a time like 2026-02-16T18:45"),
        (("end", "ses_1", "--tokens-in", "many"), "'many' is not a count; use 0 or more"),
        (("end", "ses_1", "--tokens-in", "-5"), "'-5' is not a count; use 0 or more"),
        (("message", "ses_1", "user"), "required: text"),
        (("whisper",), "invalid choice: 'whisper'"),
        ((), "required: ACTION"),
    ],
)
def test_cli_capture_a_wrong_call_is_told_what_would_be_right(
    tacit: Tacit, home: Path, arguments: tuple[str, ...], words: str
) -> None:
    product.open(home).session(session_id="ses_1", detached=True).detach()
    ran = tacit("capture", *arguments)
    assert ran.code == 2
    assert words in ran.stderr
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    assert list(home.glob("raw/conversations/**/*.md")) == []


def test_cli_capture_of_an_agent_that_is_not_kept_prints_a_dash_and_drops_everything(
    tacit: Tacit, home: Path, git_log: GitLog
) -> None:
    (home / "memory-config.yaml").write_text("capture:\n  exclude_agents: [private]\n")
    count = len(git_log())
    assert good(tacit("capture", "start", "--agent", "private")) == "-\n"
    assert good(tacit("capture", "start", "--session-key", "agent:private:main")) == "-\n"
    assert good(tacit("capture", "message", "-", "user", "secret")) == ""
    assert good(tacit("capture", "tool", "-", "read", "secret")) == ""
    assert good(tacit("capture", "end", "-")) == "nothing was said, so nothing is kept\n"
    assert good(tacit("capture", "list")) == ""
    assert list(home.glob("raw/conversations/**/*.md")) == []
    assert len(git_log()) == count


def test_cli_capture_list_shows_when_a_session_began_and_where_it_is(tacit: Tacit, home: Path) -> None:
    good(tacit("capture", "start", "--session-id", "ses_1", "--at", "2026-02-16T18:45:00+01:00"))
    good(tacit("capture", "start", "--session-id", "ses_2", "--at", "2026-02-16T18:46:00+01:00"))
    good(tacit("capture", "message", "ses_2", "user", "hello"))
    first, second = good(tacit("capture", "list")).splitlines()
    assert first.split() == ["ses_1", "2026-02-16", "18:45", "no", "message", "yet"]
    assert second.split() == [
        *("ses_2", "2026-02-16", "18:46", "raw/conversations/2026/02/16/1846-ses_2-hello.md")
    ]


def test_cli_capture_does_not_pass_control_characters_to_the_terminal(tacit: Tacit) -> None:
    good(tacit("capture", "start", "--session-id", "\x1b[2Jx"))
    assert "\x1b" not in good(tacit("capture", "list"))


def test_cli_capture_goes_on_with_a_sealed_session_in_a_new_part(tacit: Tacit, home: Path) -> None:
    for _ in range(2):
        good(tacit("capture", "start", "--session-id", "ses_1"))
        good(tacit("capture", "message", "ses_1", "user", "hello"))
        good(tacit("capture", "end", "ses_1"))
    parts = [product.open(home).transcript(str(file.relative_to(home))) for file in home.glob("raw/**/*.md")]
    assert len(parts) == 2
    (earlier,) = [part.path for part in parts if "continues" not in part.fields]
    assert {part.fields.get("continues") for part in parts} == {None, earlier}


def test_cli_capture_seals_what_nobody_ended_after_the_idle_hours(tacit: Tacit, home: Path) -> None:
    good(tacit("capture", "start", "--session-id", "ses_1"))
    good(tacit("capture", "message", "ses_1", "user", "hello"))
    (file,) = home.glob("raw/**/*.md")
    good(tacit("capture", "list"))
    assert not writer.is_sealed(file)
    long_ago = time.time() - 13 * 3600
    os.utime(file, (long_ago, long_ago))
    good(tacit("capture", "end", good(tacit("capture", "start")).strip()))
    assert good(tacit("capture", "list")) == ""
    assert writer.is_sealed(file)


def test_cli_capture_a_message_to_a_sealed_session_is_kept_in_a_new_part(tacit: Tacit, home: Path) -> None:
    arguments = ("--session-id", "ses_1", "--agent", "helper", "--channel", "chat", "--model", "m")
    good(tacit("capture", "start", *arguments))
    good(tacit("capture", "message", "ses_1", "user", "before the night"))
    good(tacit("capture", "end", "ses_1"))
    good(tacit("capture", "message", "ses_1", "user", "after the night"))
    good(tacit("capture", "message", "ses_1", "agent", "still here"))
    good(tacit("capture", "end", "ses_1"))
    memory = product.open(home)
    parts = [memory.transcript(str(file.relative_to(home))) for file in sorted(home.glob("raw/**/*.md"))]
    assert sorted(len(part.messages) for part in parts) == [1, 2]
    later = max(parts, key=lambda part: len(part.messages))
    assert (later.fields["agent"], later.fields["channel"], later.fields["model"]) == ("helper", "chat", "m")
    assert later.fields["continues"] in {part.path for part in parts}


def test_cli_capture_a_message_does_not_wait_for_somebody_elses_commit(tacit: Tacit, home: Path) -> None:
    good(tacit("capture", "start", "--session-id", "ses_1"))
    with hold_lock(home / ".tacit" / "lock"):
        good(tacit("capture", "message", "ses_1", "user", "now", timeout=20.0))


def test_cli_capture_outside_a_home_says_how_to_make_one(tacit: Tacit, tmp_path: Path) -> None:
    ran = tacit("capture", "start", "--home", str(tmp_path / "nowhere"))
    assert ran.code == 1
    assert f"Make one with: tacit init {tmp_path / 'nowhere'}" in ran.stderr
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("text", ["-x", "--json", "--", "-", "-1"])
def test_cli_capture_takes_text_that_begins_with_a_hyphen_after_two(
    tacit: Tacit, home: Path, text: str
) -> None:
    good(tacit("capture", "start", "--session-id", "ses_1"))
    good(tacit("capture", "message", "ses_1", "user", "--", text, stdin="-"))
    (message,) = read(home).turns
    assert isinstance(message, Message)
    assert message.text == text


def test_cli_capture_of_a_closed_standard_input_is_told_and_nothing_is_kept(tacit: Tacit, home: Path) -> None:
    good(tacit("capture", "start", "--session-id", "ses_1"))
    command = f"exec {sys.executable} -m tacit --home {home} capture message ses_1 user - <&-"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("tacit: There is nothing to read: standard input is closed.")
    assert list(home.glob("raw/conversations/**/*.md")) == []


def test_cli_capture_attaches_a_file_named_from_anywhere_by_its_place_in_the_home(
    tacit: Tacit, home: Path
) -> None:
    (home / "attachments/a.png").write_bytes(b"png")
    good(tacit("capture", "start", "--session-id", "ses_1"))
    good(tacit("capture", "attach", "ses_1", str(home / "attachments/a.png")))
    good(tacit("capture", "attach", "ses_1", "a.png", cwd=home / "attachments"))
    good(tacit("capture", "attach", "ses_1", "./knowledge/../attachments/a.png"))
    assert [turn.path for turn in read(home).turns if isinstance(turn, Attachment)] == [
        "attachments/a.png"
    ] * 3


def test_cli_capture_ending_twice_says_where_it_was_sealed(tacit: Tacit, home: Path) -> None:
    good(tacit("capture", "start", "--session-id", "ses_1"))
    good(tacit("capture", "message", "ses_1", "user", "hello"))
    good(tacit("capture", "end", "ses_1"))
    (file,) = home.glob("raw/**/*.md")
    assert good(tacit("capture", "end", "ses_1")) == f"was sealed before as {file.relative_to(home)}\n"


def test_cli_capture_list_shows_long_and_odd_ids_on_one_short_line_each(tacit: Tacit) -> None:
    good(tacit("capture", "start", "--session-id", "x" * 5000))
    good(tacit("capture", "start", "--session-id", "a\nb\tc"))
    lines = good(tacit("capture", "list")).splitlines()
    assert len(lines) == 2
    assert max(map(len, lines)) < 120
    assert any(line.split()[0] == "a\ufffdb\ufffdc" for line in lines)


def test_cli_capture_keeps_arguments_as_utf_8_whatever_the_locale(tacit: Tacit, home: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    good(tacit("capture", "start", "--session-id", "ses_ü", env=plain))
    good(tacit("capture", "message", "ses_ü", "user", "Grüße, 1 220 °C", "--speaker", "Åsa", env=plain))
    good(tacit("capture", "end", "ses_ü", env=plain))
    parsed = read(home)
    (message,) = parsed.turns
    assert isinstance(message, Message)
    assert (message.text, message.speaker) == ("Grüße, 1 220 °C", "Åsa")
    assert parsed.fields["session_id"] == "ses_ü"
    assert tacit("history", "when", "Grüße, 1", env=plain).code == 0
