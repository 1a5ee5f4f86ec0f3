"""What the model receives from the real host, for each kind of session."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.conftest import eventually
from tests.e2e import grown
from tests.e2e.conftest import Gateway
from tests.e2e.host import GROUP, OWNER, STRANGER
from tests.e2e.servers import Request

ASKED = {
    "What did we decide about local model strategy?": "large remote one only for customer letters",
    "When did we run the APA shakedown and what were the results?": "fourteen of sixteen checks passed",
    "What's Forge's role and when was it set up?": "Forge was set up on 2026-08-20",
}
_OF_FILES = {
    "AGENTS.md": "## Who does what",
    "SOUL.md": "I am Jules",
    "IDENTITY.md": "a small owl",
    "USER.md": "Ines Hartwig",
    "MEMORY.md": "## What happened",
    "TOOLS_COMPACT.md": "# Tools, in short",
    "HEARTBEAT.md": "# Heartbeat",
}


def files(request: Request) -> list[str]:
    return [name for name, words in _OF_FILES.items() if words in request.system]


def transcripts(gateway: Gateway) -> str:
    return "\n".join(file.read_text() for file in sorted(gateway.home.glob("raw/conversations/**/*.md")))


@pytest.fixture(scope="module", autouse=True)
def _owned(gateway: Gateway) -> None:
    """The daemon has read who the owner is."""
    loaded = ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]
    assert eventually(lambda: files(gateway.host.write("Good morning", OWNER).first) == loaded)


@pytest.mark.parametrize(("question", "answer"), ASKED.items())
def test_the_owners_question_arrives_with_the_passage_that_answers(
    gateway: Gateway, question: str, answer: str
) -> None:
    turn = gateway.host.write(question, OWNER)
    assert files(turn.first) == ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]
    assert answer in turn.first.user
    assert answer not in turn.first.system


def test_a_group_and_a_topic_and_a_stranger_get_nothing_that_is_the_owners(gateway: Gateway) -> None:
    for question, answer in ASKED.items():
        for sender, chat, topic, loaded in (
            (OWNER, GROUP, 0, ["SOUL.md", "TOOLS_COMPACT.md"]),
            (STRANGER, GROUP, 7, ["SOUL.md", "TOOLS_COMPACT.md"]),
            (STRANGER, None, 0, ["SOUL.md"]),
        ):
            turn = gateway.host.write(question, sender, chat, topic)
            assert files(turn.first) == loaded
            assert answer not in turn.first.everything


def test_a_turn_for_which_nothing_is_relevant_is_the_users_words_alone(gateway: Gateway) -> None:
    turn = gateway.host.write("ok, thanks!", OWNER)
    assert "<!--" not in turn.first.user


def test_the_main_session_gets_memories_and_the_next_turn_has_them_once(gateway: Gateway) -> None:
    question, answer = (
        "What does Melody need to mend bugs, and what does Melody answer with?",
        "with a diff and waits for a yes",
    )
    first = gateway.host.agent(question, "agent:main:main")
    assert answer in first.first.user
    second = gateway.host.agent(f"{question} Once more, please.", "agent:main:main")
    assert second.first.user.count(answer) == 1
    assert second.first.everything.count(answer) == 1  # the host kept nothing of the first turn's


def test_a_job_and_a_heartbeat_get_their_instructions(gateway: Gateway) -> None:
    host = gateway.host
    asked = "What lessons did we learn about timeout settings?"
    job_of = ("cron", "add", "--name", "beds", "--at", "20m", "--session", "isolated", "--json")
    added = host.openclaw(*job_of, "--message", asked)
    job = json.loads(added.stdout[added.stdout.index("{") :])
    before = len(host.model.requests)
    host.openclaw("cron", "run", job.get("id") or job["job"]["id"])
    assert eventually(lambda: any("[cron:" in one.everything for one in host.model.requests[before:]))
    run = next(one for one in host.model.requests[before:] if "[cron:" in one.everything)
    assert files(run) == ["SOUL.md", "HEARTBEAT.md"]
    assert "thirty is right" in run.user


def test_a_subagent_gets_soul_alone_and_what_is_for_groups(gateway: Gateway) -> None:
    host, before = gateway.host, len(gateway.host.model.requests)
    task = '{"task": "Which port does Mission Control have?", "label": "port"}'
    host.write(f"[[call sessions_spawn {task}]]", OWNER)

    def is_of_task(request: Request) -> bool:
        """And does not quote an earlier one."""
        return request.user.rfind("[Subagent Task]") > request.user.rfind("<!-- /knowledge")

    assert eventually(lambda: any(is_of_task(one) for one in host.model.requests[before:]))
    host.settle()
    run = next(one for one in host.model.requests[before:] if is_of_task(one))
    assert files(run) == ["SOUL.md"]
    assert "Ines Hartwig" not in run.everything


def test_every_message_is_in_the_transcript_once(gateway: Gateway) -> None:
    said = f"The word of this hour is heron{time.time_ns()}."
    turn = gateway.host.write(said, OWNER)
    assert eventually(lambda: turn.reply in transcripts(gateway))
    assert transcripts(gateway).count(f"\n{said}\n") == 1
    assert transcripts(gateway).count(f"\n{turn.reply}\n") == 1


def test_new_ends_the_session_on_our_side_too(gateway: Gateway) -> None:
    said = f"Before the break: otter{time.time_ns()}."
    gateway.host.write(said, OWNER)
    gateway.host.write("/new", OWNER)

    def is_sealed() -> bool:
        texts = [file.read_text() for file in gateway.home.glob("raw/conversations/**/*.md")]
        return any(said in text and "\nended: " in text for text in texts)

    assert eventually(is_sealed)


def test_what_a_model_is_told_to_remember_is_there_in_the_next_session(gateway: Gateway) -> None:
    fact = '{"text": "The spare key of the kiln room hangs behind the blue door."}'
    gateway.host.write(f"[[call tacit_remember {fact}]]", OWNER)
    gateway.host.write("/new", OWNER)
    journal = gateway.home / "knowledge" / "journal"
    assert eventually(lambda: any("blue door" in file.read_text() for file in journal.glob("*.md")))

    def is_given() -> bool:
        return "blue door" in gateway.host.write("Where is the spare key of the kiln room?", OWNER).first.user

    assert eventually(is_given)


@pytest.fixture
def shedding(gateway: Gateway) -> Iterator[None]:
    config = gateway.home / "memory-config.yaml"
    before = config.read_text()
    config.write_text(before.replace("\n  #shed_after_turns: null", "\n  shed_after_turns: 1"))
    gateway.host.write("/new", OWNER)
    yield
    config.write_text(before)
    gateway.host.write("/new", OWNER)


@pytest.mark.usefixtures("shedding")
def test_a_file_that_the_conversation_has_absorbed_is_left_out_of_the_next_turn_and_comes_back(
    gateway: Gateway,
) -> None:
    def has_user(text: str) -> bool:
        return "USER.md" in files(gateway.host.write(text, OWNER).first)

    assert has_user("[[say Metric units and a 24-hour clock, as you like it.]]")
    # Until the daemon has read the config, and then from turn to turn.
    assert eventually(lambda: not has_user("What is the capital of Peru?"))
    assert not has_user("And of Chile?")
    why = subprocess.run(
        [sys.executable, "-P", "-m", "tacit", "why", "-n", "20", "--json", "--home", str(gateway.home)],
        env=gateway.host.environ, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert '"absorbed"' in why
    assert has_user("Which metric units do you know, and which clock?")
    gateway.host.write("/new", OWNER)
    assert has_user("What is the capital of Peru?")


def test_the_grown_workspace_is_as_it_was(gateway: Gateway) -> None:
    for name, text in (("SOUL.md", grown.SOUL), ("USER.md", grown.USER)):
        assert (gateway.host.workspace / name).read_text() == text


def test_a_model_may_not_add_to_memory_while_tacit_is_the_hosts_memory_slot(gateway: Gateway) -> None:
    host, journal = gateway.host, gateway.home / "knowledge" / "journal"

    def answer(word: str) -> str:
        fact = json.dumps({"text": f"The {word} stands in the hall."})
        return host.write(f"[[call tacit_remember {fact}]]", OWNER).requests[-1].everything

    def kept(word: str) -> bool:
        return any(f"The {word} stands" in file.read_text() for file in journal.glob("*.md"))

    host.openclaw("config", "set", "plugins.slots.memory", "tacit")
    try:
        assert eventually(lambda: "Memory is read-only here" in answer("piano"))
        host.write("/new", OWNER)
        assert "tacit is the memory slot of this host" in answer("harp")
        assert not kept("harp")
        assert (
            "## Memory Recall" not in host.write("And now?", OWNER).first.system
        )  # of the host's own memory
    finally:
        host.openclaw("config", "unset", "plugins.slots.memory")
    host.write("/new", OWNER)
    assert eventually(lambda: bool(answer("flute")) and kept("flute"))


LATER = {
    "Spawn Melody to fix a bug in the auth module": "Melody answers",
    "What port does Mission Control run on?": "| Mission Control | 3310 |",
    "What lessons did we learn about timeout settings?": "thirty is right",
}


@pytest.mark.parametrize(("question", "answer"), LATER.items())
def test_what_the_owner_asks_about_agents_ports_and_lessons_is_answered_by_what_arrives(
    gateway: Gateway, question: str, answer: str
) -> None:
    gateway.host.write("/new", OWNER)
    assert answer in gateway.host.write(question, OWNER).first.everything


def test_a_topic_has_the_port_in_the_compact_tools_that_it_loads(gateway: Gateway) -> None:
    turn = gateway.host.write("What port does Mission Control run on?", OWNER, GROUP, 14)
    assert files(turn.first) == ["SOUL.md", "TOOLS_COMPACT.md"]
    assert "| Mission Control | 3310 |" in turn.first.system


def test_after_a_compaction_the_session_is_renewed_and_not_ended(gateway: Gateway) -> None:
    """The host took what was said before out of its window."""
    host, log = gateway.host, gateway.home / ".tacit" / "receipts"
    question, answer = next(iter(ASKED.items()))
    host.write("/new", OWNER)
    host.write(question, OWNER)

    def marks() -> list[str]:
        lines = [line for file in log.glob("*.jsonl") for line in file.read_text().splitlines()]
        return [line for line in lines if '"ended":' in line and f"direct:{OWNER}" in line]

    before = len(marks())
    done = host.write("/compact", OWNER).reply
    assert not re.search("failed|skipped", done), done
    assert eventually(lambda: len(marks()) == before + 1)
    assert '"sealed":true' not in marks()[-1]  # it goes on in the same transcript
    assert answer in host.write(f"{question} After the pause?", OWNER).first.user


def test_a_heartbeat_in_the_main_session_gets_its_instructions_and_is_no_word_of_the_owner(
    gateway: Gateway,
) -> None:
    host, before = gateway.host, len(gateway.host.model.requests)
    event = (
        "system",
        "event",
        "--text",
        f"The kiln is at 900 degrees, heron{time.time_ns()}.",
        "--mode",
        "now",
    )
    host.openclaw(*event, "--session-key", "agent:main:main")
    assert eventually(lambda: any("eartbeat" in one.user for one in host.model.requests[before:]))
    run = next(one for one in host.model.requests[before:] if "eartbeat" in one.user)
    assert files(run) == ["SOUL.md", "USER.md", "TOOLS_COMPACT.md", "HEARTBEAT.md"]
    assert eventually(lambda: "— system (heartbeat)\n" in transcripts(gateway))
    said = transcripts(gateway).split("\n## ")
    assert not [one for one in said if "eartbeat poll]" in one and "— user" in one]
