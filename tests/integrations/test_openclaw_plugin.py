"""The OpenClaw plugin in Node, with recorded events of the real host and a real daemon."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tacit.hosts.openclaw import packaged
from tacit.transcripts import spool
from tests.conftest import eventually
from tests.integrations import bad
from tests.server.served import serving

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "integrations" / "openclaw"
RECORDED = ROOT / "tests" / "data" / "openclaw" / "turns.jsonl"
DM, GROUP = "agent:main:telegram:direct:111", "agent:main:telegram:group:-100123"
Json = dict[str, Any]


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not on PATH, so the plugin cannot be run here")
    return found


@pytest.fixture
def owned(home: Path) -> Path:
    """A home whose owner is known, with a note that answers."""
    config = home / "memory-config.yaml"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("owners:")]
    config.write_text("\n".join([*lines, "owners: ['telegram:111']", ""]))
    note = home / "knowledge" / "people" / "vera.md"
    note.write_text("# Vera\n\nVera has the spare key of the kiln room, behind the blue door.\n")
    return home


def recorded(*hooks: str, key: str = "") -> list[Json]:
    rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    return [row for row in rows if (not hooks or row["hook"] in hooks) and key in (_key(row), "")]


def _key(row: Json) -> str:
    return str((row.get("ctx") or {}).get("sessionKey") or row["event"].get("sessionKey") or "")


def replay(node: str, home: Path, rows: list[Json], host: Json | None = None, **config: Any) -> list[Json]:
    """`host`: its own config."""
    settings = {"home": str(home), "python": sys.executable, "deadlineMs": 5000, **config}
    given = [json.dumps(settings), json.dumps(host or {})]
    done = subprocess.run(
        [node, str(Path(__file__).parent / "replay.mjs"), str(PLUGIN), *given],
        input="".join(json.dumps(row) + "\n" for row in rows),
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def transcripts(home: Path) -> str:
    return "\n".join(file.read_text() for file in sorted(home.glob("raw/conversations/**/*.md")))


def is_kept(home: Path, text: str) -> bool:
    return f"\n{text}\n" in transcripts(home)


def of_session(home: Path, key: str) -> list[str]:
    texts = [file.read_text() for file in home.glob("raw/conversations/**/*.md")]
    return [text for text in texts if key in text]


def asked(text: str, key: str = DM, sender: str = "111") -> list[Json]:
    """A turn as the host tells it, with other words."""
    rows = recorded("before_message_write", "before_model_resolve", "agent:bootstrap", "before_prompt_build",
                    "agent_end", key=key)[:7]  # fmt: skip
    said: list[Json] = json.loads(json.dumps(rows).replace("hello dm", text).replace('"111"', f'"{sender}"'))
    return said


def given(answers: list[Json]) -> str:
    found = next(one for one in answers if one["hook"] == "before_prompt_build")
    return str((found.get("answer") or {}).get("prependContext", ""))


def test_every_recorded_message_is_kept_once_though_the_host_writes_some_twice(
    node: str, owned: Path
) -> None:
    with serving(owned):
        answers = replay(node, owned, recorded())
        assert eventually(lambda: "count to three" in transcripts(owned))
    log = answers[-1]["said"]
    assert not [line for line in log if line.startswith(("warn", "error"))]
    text = transcripts(owned)
    assert text.count("\nhello dm\n") == 1
    assert text.count("\nhello group\n") == 1
    assert text.count("\n[OpenClaw heartbeat poll]\n") == 1
    assert [who for who in ("system (heartbeat)", "system (cron)", "user (Alice)") if who not in text] == []


def test_new_ends_the_session_and_what_follows_begins_another(node: str, owned: Path) -> None:
    with serving(owned):
        replay(node, owned, recorded())
        assert eventually(lambda: len(of_session(owned, DM)) == 2)
    texts = of_session(owned, DM)
    assert sum("hello dm" in text for text in texts) == 1
    assert sum("\nagain\n" in text and "hello dm" not in text for text in texts) == 1


def test_the_owners_turn_gets_what_is_the_owners_and_a_strangers_does_not(node: str, owned: Path) -> None:
    with serving(owned):
        mine = replay(node, owned, asked("Who has the spare key of the kiln room?"))
        other = replay(node, owned, asked("Who has the spare key of the kiln room?", sender="222"))
    assert "blue door" in given(mine)
    assert "blue door" not in json.dumps(other)


def test_a_later_question_of_the_session_gets_the_passage_again_since_the_host_kept_none(
    node: str, owned: Path
) -> None:
    with serving(owned):
        first = replay(node, owned, asked("Who has the spare key of the kiln room?"))
        later = replay(node, owned, asked("And who was it that has the spare key of the kiln room?"))
    assert [given(turn).count("blue door") for turn in (first, later)] == [1, 1]


def test_files_of_the_rule_go_by_names_that_the_host_lets_through(node: str, owned: Path) -> None:
    with serving(owned):
        answers = replay(node, owned, recorded("before_model_resolve", "agent:bootstrap"))
    listed = {one["key"]: [(file["name"], Path(file["path"]).name) for file in one["files"]]
              for one in answers if one["hook"] == "agent:bootstrap"}  # fmt: skip
    assert [path for _, path in listed[DM]] == ["SOUL.md", "USER.md"]
    assert [path for _, path in listed[GROUP]] == ["SOUL.md"]
    subagent = next(files for key, files in listed.items() if ":subagent:" in key)
    assert subagent == [("AGENTS.md", "SOUL.md")]


def test_a_file_that_the_conversation_has_absorbed_is_left_out_and_comes_back(node: str, owned: Path) -> None:
    config = owned / "memory-config.yaml"
    config.write_text(config.read_text().replace("\n  #shed_after_turns: null", "\n  shed_after_turns: 1"))
    texts = [
        "I am allergic to hazelnuts.",
        "What is the time?",
        "And in Lima?",
        "Allergic to hazelnuts, too?",
    ]
    loaded = []
    with serving(owned):
        for number, text in enumerate(texts):
            said = json.dumps(asked(text)).replace("marker-USER", "allergic to hazelnuts")
            answers = replay(node, owned, json.loads(said.replace("179495", f"17949{5 + number}")))
            assert eventually(partial(is_kept, owned, text))
            loaded += [one["files"] for one in answers if one["hook"] == "agent:bootstrap"]
    user = ["USER.md" in [Path(file["path"]).name for file in files] for files in loaded]
    assert user == [True, True, False, True]


def test_a_heartbeat_in_the_owners_session_keeps_its_instructions(node: str, owned: Path) -> None:
    """What began a run is told to one copy of the plugin, and its files are chosen by another."""
    rows = [row for row in recorded("before_model_resolve", "agent:bootstrap") if row["after"] == "heartbeat"]
    with serving(owned):
        answers = replay(node, owned, rows)
    assert "HEARTBEAT.md" in [Path(file["path"]).name for file in answers[1]["files"]]


def test_without_a_daemon_turns_go_on_and_what_is_said_waits_in_the_spool_once(
    node: str, owned: Path
) -> None:
    rows = asked("Who has the spare key of the kiln room?")
    answers = replay(node, owned, rows, deadlineMs=400)
    assert given(answers) == ""
    assert spool.count_waiting(owned) > 0
    with serving(owned):
        assert eventually(lambda: spool.count_waiting(owned) == 0)
        replay(node, owned, rows)  # and the host tells it once more
        assert eventually(lambda: "spare key" in transcripts(owned))
    assert transcripts(owned).count("\nWho has the spare key of the kiln room?\n") == 1


@pytest.fixture(params=bad.WAYS)
def bad_daemon(request: pytest.FixtureRequest, owned: Path) -> Iterator[str]:
    path = owned / ".tacit" / "daemon.sock"
    path.parent.mkdir(exist_ok=True)
    with bad.listening(path, request.param):
        yield request.param


def test_a_daemon_that_misbehaves_costs_a_turn_its_memories_and_nothing_else(
    node: str, owned: Path, bad_daemon: str
) -> None:
    rows = asked("Who has the spare key of the kiln room?")
    answers = replay(node, owned, [*rows, *rows], deadlineMs=300)
    assert not any(one.get("answer") for one in answers)
    assert all(one["files"] for one in answers if one.get("hook") == "agent:bootstrap")
    assert spool.count_waiting(owned) > 0
    assert len([line for line in answers[-1]["said"] if "Turns go on without it" in line]) == 1


def test_a_run_is_held_up_for_one_deadline_however_much_it_asks(node: str, owned: Path) -> None:
    rows = asked("Who has the spare key of the kiln room?")
    end = next(at for at, row in enumerate(rows) if row["hook"] == "agent_end")
    tool = {"hook": "tool:tacit_search", "event": {"query": "key"}, "ctx": rows[end]["ctx"]}
    with bad.listening(owned / ".tacit" / "daemon.sock", "hangs"):
        answers = replay(node, owned, [*rows[:end], tool], deadlineMs=1000)
    spent = {one["hook"]: one["ms"] for one in answers[:-1]}
    assert spent["agent:bootstrap"] > 900
    assert spent["before_prompt_build"] + spent["tool:tacit_search"] < 500
    assert spent["before_message_write"] < 500  # it is written meanwhile, and waits for nothing
    assert "Not possible now" in json.dumps(answers)


def test_turns_that_fail_together_begin_one_short_pause(node: str, owned: Path) -> None:
    script = f"""
        import {{ Daemon }} from {json.dumps(str(PLUGIN / "daemon.js"))};
        const daemon = new Daemon({json.dumps(str(owned))});
        await Promise.all(Array.from({{ length: 20 }}, () => daemon.ask("/v1/turn", {{}}, 400)));
        console.log(daemon.closedUntil - performance.now());
    """
    done = subprocess.run([node, "--input-type=module", "-e", script], capture_output=True, text=True)
    assert 0 < float(done.stdout) <= 2000, done.stderr


def daemon_of(home: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(json.loads((home / ".tacit" / "daemon.json").read_text())["pid"])
    return None


def test_an_end_that_is_told_twice_does_not_end_what_began_in_between(owned: Path) -> None:
    """A daemon that hung took it from its door, and it was in the spool as well."""
    end = {
        "host": "openclaw",
        "name": "session_end",
        "session_key": DM,
        "record": {"reason": "new"},
        "id": "e",
    }
    with serving(owned) as daemon:
        for text in ("before", "after", "later"):
            daemon.message(text, session_key=DM)
            if text != "later":
                daemon.ask("POST", "/v1/event", **end)
    texts = of_session(owned, DM)
    assert sorted(text.count("— user") for text in texts) == [1, 2]


def test_the_plugin_starts_a_daemon_when_the_one_that_it_used_is_gone(node: str, owned: Path) -> None:
    script = f"""
        import {{ Daemon }} from {json.dumps(str(PLUGIN / "daemon.js"))};
        import {{ serviceOf }} from {json.dumps(str(PLUGIN / "service.js"))};
        const settings = {{ home: {json.dumps(str(owned))}, python: {json.dumps(sys.executable)} }};
        const log = {{ info: console.log, warn: console.log, error: console.log }};
        const service = serviceOf(new Daemon(settings.home), settings, log);
        service.start();
        process.stdin.on("end", () => service.stop()).resume();
    """
    command = [node, "--input-type=module", "-e", script]
    with serving(owned) as used, subprocess.Popen(command, stdin=subprocess.PIPE) as beside:
        time.sleep(1)  # so that it has seen this one
        used.end(signal.SIGKILL)
        is_back = eventually(lambda: daemon_of(owned) not in (None, used.popen.pid))
        beside.communicate(timeout=60)
    assert is_back
    assert daemon_of(owned) is None  # it ends with the gateway


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("tacit_search", {"query": "spare key of the kiln room"}, "blue door"),
        ("tacit_read", {"path": "knowledge/people/vera.md"}, "blue door"),
        ("tacit_remember", {"text": "The glaze is called Moss."}, "Remembered in knowledge/journal/"),
        ("tacit_why", {}, "No turn of this session"),
        ("tacit_read", {"path": "../../etc/passwd.md"}, "that this session may read"),
    ],
)
def test_the_model_gets_memory_tools(node: str, owned: Path, tool: str, given: Json, said: str) -> None:
    ctx = {"sessionKey": DM, "agentId": "main"}
    with serving(owned):
        answers = replay(node, owned, [{"hook": f"tool:{tool}", "event": given, "ctx": ctx}])
    assert said in answers[0]["answer"]["content"][0]["text"]


def test_memory_tools_show_a_group_nothing_that_is_the_owners(node: str, owned: Path) -> None:
    ctx = {"sessionKey": GROUP, "agentId": "main"}
    rows = [
        {"hook": "tool:tacit_search", "event": {"query": "spare key of the kiln room"}, "ctx": ctx},
        {"hook": "tool:tacit_read", "event": {"path": "knowledge/people/vera.md"}, "ctx": ctx},
        {"hook": "tool:tacit_remember", "event": {"text": "The group says the glaze is Moss."}, "ctx": ctx},
    ]
    with serving(owned):
        answers = replay(node, owned, rows)
    assert "blue door" not in json.dumps(answers)
    assert "waits for the owner" in json.dumps(answers[2])
    assert not list((owned / "knowledge/journal").glob("*.md"))


SLOT = {"plugins": {"slots": {"memory": "tacit"}}}


def test_a_model_may_not_add_to_memory_while_the_hosts_memory_slot_is_ours(node: str, owned: Path) -> None:
    asked = {"text": "The glaze is called Moss.", "slots": {"memory": "none"}, "holds_slot": False}
    row = {"hook": "tool:tacit_remember", "event": asked, "ctx": {"sessionKey": DM, "agentId": "main"}}
    look = {"hook": "tool:tacit_search", "event": {"query": "kiln room"}, "ctx": row["ctx"]}
    before = {file: file.read_bytes() for file in (owned / "knowledge").rglob("*.md")}
    with serving(owned):
        answers = replay(node, owned, [row, row, row, row, look], SLOT)
    said = [one["answer"]["content"][0]["text"] for one in answers[:5]]
    assert all("Memory is read-only here, so nothing was added" in text for text in said[:4])
    assert "blue door" in said[4]  # refusals are answers: the daemon is not left alone for them
    assert {file: file.read_bytes() for file in (owned / "knowledge").rglob("*.md")} == before
    config = owned / "memory-config.yaml"
    config.write_text(config.read_text().replace("#read_only: null", "read_only: false"))
    with serving(owned):
        answers = replay(node, owned, [row], SLOT)
    assert "Remembered in" in answers[0]["answer"]["content"][0]["text"]


def test_a_model_cannot_say_whose_session_it_is(node: str, owned: Path) -> None:
    asked: Json = {
        "query": "spare key of the kiln room",
        "session_key": "agent:main:main",
        "run": {},
        "host": None,
    }
    row = {"hook": "tool:tacit_search", "event": asked, "ctx": {"sessionKey": GROUP, "agentId": "main"}}
    with serving(owned):
        answers = replay(node, owned, [row])
    assert "blue door" not in json.dumps(answers)


def test_a_model_can_read_on_from_a_line(node: str, owned: Path) -> None:
    asked = {"path": "knowledge/people/vera.md", "from": 3, "lines": 1}
    row = {
        "hook": "tool:tacit_read",
        "event": asked,
        "ctx": {"sessionKey": "agent:main:main", "agentId": "main"},
    }
    with serving(owned):
        answers = replay(node, owned, [row])
    assert answers[0]["answer"]["content"][0]["text"].startswith("Vera has the spare key")


def settled(home: Path, name: str, value: str) -> None:
    """With this setting instead of the starter's."""
    config = home / "memory-config.yaml"
    text = config.read_text()
    assert f"#{name}: " in text
    config.write_text(re.sub(rf"#{name}: .*", f"{name}: {value}", text, count=1))


@pytest.mark.parametrize(("standing", "turn"), [("after", "before"), ("before", "after")])
def test_standing_text_goes_to_the_system_prompt_and_what_is_found_to_the_turn(
    node: str, owned: Path, standing: str, turn: str
) -> None:
    settled(owned, "lanes", "[runtime]")  # the host loads its own files, so who the agent is has to be said
    (owned / "knowledge/identity/SOUL.md").write_text("# Soul\n\nI am Jules.\n")
    places: Json = {"standingText": standing, "turnText": turn}
    with serving(owned):
        answers = replay(node, owned, asked("Who has the spare key of the kiln room?"), **places)
    answer = next(one["answer"] for one in answers if one["hook"] == "before_prompt_build")
    system = "appendSystemContext" if standing == "after" else "prependSystemContext"
    user = "appendContext" if turn == "after" else "prependContext"
    assert set(answer) == {system, user}
    assert "I am Jules." in answer[system]
    assert "blue door" in answer[user]
    assert "blue door" not in answer[system]


def test_an_agent_that_is_excluded_gets_no_memories(node: str, owned: Path) -> None:
    settled(owned, "exclude_agents", "[main]")  # of inject or of capture, whichever stands first
    config = owned / "memory-config.yaml"
    config.write_text(config.read_text().replace("#exclude_agents: []", "exclude_agents: [main]"))
    with serving(owned):
        answers = replay(node, owned, asked("Who has the spare key of the kiln room?"))
    assert given(answers) == ""
    assert transcripts(owned) == ""


HOOK = """
import fs from "node:fs";
const { default: handler } = await import(process.argv[2]);
for (const event of JSON.parse(fs.readFileSync(0, "utf8"))) {
  await handler(event);
  console.log(JSON.stringify(event.context.bootstrapFiles ?? null));
}
process.exit(0);
"""


def fired(node: str, folder: Path, name: str, events: list[Json]) -> list[Any]:
    """The list of files after each event, by a classic hook as an install puts it there."""
    for file, data in packaged.hook_files(name).items():
        (folder / file).write_bytes(data)
    (folder / "fire.mjs").write_text(HOOK)
    done = subprocess.run(
        [node, str(folder / "fire.mjs"), str(folder / "handler.js")],
        input=json.dumps(events), capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_classic_hook_adds_what_the_content_of_a_message_asks_for_once(
    node: str, owned: Path, tmp_path: Path
) -> None:
    settings = {"home": str(owned), "deadlineMs": 5000}
    cfg = {"hooks": {"internal": {"entries": {"ethos-context": settings}}}}
    said = {"content": "Who has the spare key of the kiln room?", "channelId": "telegram"}
    received: Json = {"type": "message", "action": "received", "sessionKey": DM,
                      "context": {**said, "metadata": {"senderId": "111"}}}  # fmt: skip
    context = {"cfg": cfg, "agentId": "main", "workspaceDir": "/w", "bootstrapFiles": []}
    begins: Json = {"type": "agent", "action": "bootstrap", "sessionKey": DM, "context": context}
    elsewhere = {**begins, "sessionKey": GROUP}
    with serving(owned):
        found = fired(node, tmp_path, "ethos-context", [received, elsewhere, begins, begins])
    assert found[1] == []
    assert [(file["name"], "blue door" in file["content"]) for file in found[2]] == [
        ("ETHOS_CONTEXT.md", True)
    ]
    assert found[3] == []


def test_the_classic_hook_reads_the_session_key_at_the_top_of_the_event(
    node: str, owned: Path, tmp_path: Path
) -> None:
    cfg = {"hooks": {"internal": {"entries": {"aci-bootstrap": {"home": str(owned), "deadlineMs": 5000}}}}}
    names = ("AGENTS.md", "SOUL.md", "USER.md", "MEMORY.md")
    files = [{"name": name, "path": f"/w/{name}", "content": name, "missing": False} for name in names]
    context = {"cfg": cfg, "agentId": "main", "workspaceDir": "/w", "bootstrapFiles": files}
    event: Json = {"type": "agent", "action": "bootstrap", "context": context}
    keys = ("agent:main:main", "agent:main:subagent:5", "no key at all")
    with serving(owned):
        found = fired(node, tmp_path, "aci-bootstrap", [{**event, "sessionKey": key} for key in keys])
    assert [[Path(file["path"]).name for file in one] for one in found] == [
        ["SOUL.md", "USER.md"], ["SOUL.md"], list(names),
    ]  # fmt: skip
