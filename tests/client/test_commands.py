"""Commands that read or keep, with a real daemon and without one: the same words, the same exit code."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

from tacit.daemon_socket import send_request, socket_path
from tests.conftest import Ran, Tacit
from tests.memory.homes import GROUP, OWNER_DM, QUESTION, STRANGER
from tests.server.served import PATIENCE, Process, serving

# How long it took, when it was, and the names of what one run made are not the answer.
_CHANGING = (
    (re.compile(r'"(milliseconds|timings_ms)": \{[^{}]*\}'), "TIMES"),
    (re.compile(r"milliseconds: .*"), "TIMES"),
    (re.compile(r'"(id|receipt|at)": "[^"]*"'), "ID"),
    (re.compile(r"tacit why \S+"), "tacit why ID"),
)
READS: dict[str, tuple[str, ...]] = {
    "search": ("search", QUESTION),
    "search as JSON": ("search", QUESTION, "--json", "-n", "4"),
    "search explained": ("search", QUESTION, "--explain"),
    "search explained as JSON": ("search", QUESTION, "--explain", "--json"),
    "search a category": ("search", "water", "-c", "procedure", "-c", "person", "--not-archived"),
    "search for a group": ("search", "water", "--audience", "group"),
    "search as an agent": ("search", "water", "--agent", "pumpkin", "--since", "2026-01-01"),
    "search below a path": ("search", "water", "--under", "knowledge/reference", "--until", "2027-01-01"),
    "search for nothing": ("search", "zyzzyva", "--under", "knowledge/nowhere"),
    "search wrongly": ("search", "water", "-n", "0"),
    "search for any letters": ("search", "water \udcff tomatoes"),
    "compile": ("compile", QUESTION),
    "compile as JSON": ("compile", QUESTION, "--json"),
    "compile for a group": ("compile", QUESTION, "--session-key", GROUP),
    "compile for a stranger": ("compile", QUESTION, "--session-key", STRANGER),
    "compile for less": ("compile", QUESTION, "--budget", "700", "--agent", "pumpkin"),
    "compile for a schedule": ("compile", "", "--cron", "watering"),
    "compile a topic": ("compile", "Hello", "--wake", "pump", "--path", "knowledge/reference/hoses.md"),
    "compile what was": ("compile", QUESTION, "--at", "HEAD"),
    "compile what never was": ("compile", QUESTION, "--at", "never"),
    "explain a session": ("explain-session", OWNER_DM),
    "topics": ("topics", "list"),
    "a topic": ("topics", "show", "watering"),
    "topics tried": ("topics", "try", QUESTION, "--json"),
    "topics due": ("topics", "due", "--json"),
    "the config": ("config", "--json"),
    "tags": ("history", "tags"),
    "when": ("history", "when", "tomatoes"),
    "recall": ("history", "recall", "knowledge/procedures/watering.md"),
    "verify": ("verify", "--json"),
    "sessions": ("capture", "list", "--json"),
    "the log of the gate": ("gate", "report"),
}


WHYS: tuple[Callable[[str], tuple[str, ...]], ...] = (
    lambda name: ("why",),
    lambda name: ("why", name, "--json"),
    lambda name: ("why", name),
    lambda name: ("why", "-n", "5"),
    lambda name: ("why", name, "--block", "watering"),
    lambda name: ("why", name, "--not", "knowledge/reference/pump.md"),
)
AT = "2026-03-10T09:30:00+00:00"
TALK = (
    ("capture", "start", "--session-id", "ses_c", "--channel", "chat"),
    ("capture", "message", "ses_c", "user", "Is the bed dry?"),
    ("capture", "tool", "ses_c", "valve", "open", "--result", "ok"),
    ("capture", "message", "ses_c", "agent", "The key is AKIAIOSFODNN7EXAMPLE"),
    ("capture", "message", "ses_c", "robot", "Who says this?"),
    ("capture", "end", "ses_c", "--tag", "bed"),
)


def plain(root: Path, done: Ran) -> tuple[int, str, str]:
    def same(text: str) -> str:
        text = text.replace(str(root), "HOME")
        for pattern, word in _CHANGING:
            text = pattern.sub(word, text)
        return text

    return done.code, same(done.stdout), same(done.stderr)


def asked(daemon: Process, operation: str) -> int:
    """How often the daemon was asked for it."""
    _, text = send_request(socket_path(str(daemon.home)), "GET", "/metrics", b"", PATIENCE)
    found = re.search(rf'tacit_request_seconds_count\{{operation="{operation}"\}} (\d+)', text.decode())
    return int(found[1]) if found else 0


def test_commands_that_read_say_the_same_with_and_without_a_daemon(another: Callable[[], Path]) -> None:
    here, there = another(), another()
    alone = {name: plain(here, Tacit(here)(*arguments)) for name, arguments in READS.items()}
    with serving(there) as daemon:
        for name, arguments in READS.items():
            assert (name, plain(there, Tacit(there)(*arguments))) == (name, alone[name])
        # And it was the daemon that was asked: all but the wrong one got there.
        assert asked(daemon, "find") == sum(name.startswith("search") for name in READS) - 1
        assert asked(daemon, "look") == sum(name.startswith("compile") for name in READS)
    assert "PROCEDUREWORD" in alone["compile"][1]
    assert "SECRETWORD" in alone["compile"][1]
    assert "SECRETWORD" not in alone["compile for a stranger"][1]


def test_commands_that_read_do_not_wait_for_a_daemon_that_was_stopped(garden: Path) -> None:
    tacit = Tacit(garden)
    with serving(garden) as daemon:
        daemon.popen.send_signal(signal.SIGSTOP)
        for command in (("search", QUESTION), ("compile", QUESTION)):
            done = tacit(*command, timeout=PATIENCE / 2)
            assert done.code == 0
            assert "PROCEDUREWORD" in done.stdout
            assert done.stderr.count("does not respond") == 1
        daemon.popen.send_signal(signal.SIGCONT)


def test_commands_explain_each_others_turns(garden: Path) -> None:
    """A receipt is the same file whoever made the turn and whoever looks at it."""
    tacit = Tacit(garden)
    made: list[str] = []
    with serving(garden) as daemon:
        made.append(daemon.ask("POST", "/v1/turn", message=QUESTION, deadline_ms=60_000)["receipt"])
        tacit("compile", QUESTION)
        looks = [arguments(made[0]) for arguments in WHYS]
        served = [tacit(*look) for look in looks]
    alone = [tacit(*look) for look in looks]
    assert alone == served
    assert all(done.code == 0 for done in alone)
    assert made[0] in alone[1].stdout


def test_commands_keep_a_conversation_the_same_way(another: Callable[[], Path]) -> None:
    here, there = another(), another()

    def talk(root: Path) -> tuple[list[tuple[int, str, str]], str]:
        tacit = Tacit(root)
        done = [plain(root, tacit(*line, "--at", AT, "--json")) for line in TALK]
        (file,) = (root / "raw/conversations").rglob("*ses_c*.md")
        return done, file.read_text()

    mine, mine_kept = talk(here)
    with serving(there) as daemon:
        its, its_kept = talk(there)
        assert asked(daemon, "message") == 3
        assert asked(daemon, "tool") == 1
        assert asked(daemon, "end_session") == 1
    assert its[:-1] == mine[:-1]
    assert its_kept == mine_kept
    assert [code for code, _, _ in mine] == [0, 0, 0, 0, 2, 0]
    sealed, its_sealed = json.loads(mine[-1][1]), json.loads(its[-1][1])
    assert its_sealed == {**sealed, "commit": None}  # the daemon commits it in a moment


def test_commands_tell_the_same_state(garden: Path) -> None:
    tacit = Tacit(garden)
    alone = json.loads(tacit("status", "--json").stdout)
    with serving(garden):
        served = json.loads(tacit("status", "--json").stdout)
    assert alone["daemon"] is None
    assert served["daemon"]["answers"] is True
    assert alone["settings"] in (None, served["settings"])  # without a daemon the config is only glanced at
    for one in (alone, served):
        del one["daemon"], one["settings"]
    assert served == alone
