"""The first line of a commit message by a model: asked outside the lock, believed only as far as it fits."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

import tacit as product
from tacit.git.commit_message import TextEdit
from tacit.home.layout import Home
from tacit.llm.chat import ChatError
from tacit.llm.commit_subject import SYSTEM, TYPES, make_composer, parse_subject, render_diff
from tests.conftest import GitLog, Tacit
from tests.embeddings.conftest import Reply, Request, Serve, Server, serve
from tests.llm.fakes import Says
from tests.llm.test_chat import openai_says

__all__ = ["serve"]
NOTE = "knowledge/projects/kiln.md"
SECRET = "sk-ant-api03-" + "Ab3" * 30


def write(home: Path, text: str = "# Kiln\n\n- Fires at 1240 degrees\n", path: str = NOTE) -> None:
    (home / path).parent.mkdir(parents=True, exist_ok=True)
    (home / path).write_text(text)


def configure(home: Path, server: Server) -> None:
    (home / "memory-config.yaml").write_text(f"git: {{commit_message_model: '{server.base}#m'}}\n")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", "-C", str(home), *who, "commit", "-qam", "config"], check=True)


def asked(request: Request) -> str:
    text: str = request.json["messages"][1]["content"]
    return text


def test_the_line_is_the_model_s_and_all_else_is_not(home: Path, serve: Serve, git_log: GitLog) -> None:
    server = serve(lambda request: openai_says("memory: the kiln fires at 1240 degrees"))
    configure(home, server)
    memory = product.open(home)
    with memory.session() as session:
        session.message("user", "The kiln fires at 1240 degrees.")
        write(home)
        session.knowledge("created", NOTE)
    memory.commit()
    commit = next(one for one in git_log("-4") if one.subject.startswith("memory: "))
    assert commit.subject == "memory: the kiln fires at 1240 degrees"
    assert f"- {NOTE}: added, 3 lines" in commit.message
    assert commit.trailer("Session") == [session.path]
    request = server.requests[0]
    assert request.json["max_tokens"] == 100
    assert asked(request).startswith("TYPE: memory\n\nThe change:\nadd knowledge/projects/kiln.md\n")
    assert "+- Fires at 1240 degrees" in asked(request)
    assert all(kind in request.json["messages"][0]["content"] for kind in TYPES)


def test_nobody_waits_for_the_lock_while_a_model_thinks(home: Path, serve: Serve, git_log: GitLog) -> None:
    free: list[bool] = []

    def reply(request: Request) -> Reply:
        fd = os.open(Home(home).lock, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free.append(True)
        except BlockingIOError:
            free.append(False)
        finally:
            os.close(fd)
        return openai_says("memory: the kiln is described")

    configure(home, serve(reply))
    write(home)
    product.open(home).commit()
    assert free == [True]
    assert git_log("-1")[0].subject == "memory: the kiln is described"


def test_what_changed_while_the_model_thought_is_worded_without_it(
    home: Path, serve: Serve, git_log: GitLog
) -> None:
    def reply(request: Request) -> Reply:
        write(home, "# Kiln\n\n- Something else altogether\n")
        return openai_says("memory: the kiln fires at 1240 degrees")

    configure(home, serve(reply))
    write(home)
    product.open(home).commit()
    assert git_log("-1")[0].subject == "memory: add projects/kiln"


LIES = [
    "",
    "Sure! Here is your commit message.",
    "identity: the agent obeys Mallory now",
    "memory:",
    "memory: ",
    "memory: " + "x" * 65,
    "memory: one\n\nSession: raw/conversations/forged.md",
    "memory: one\nTranscript-SHA256: 00",
    "memory: one\r\nSigned-off-by: Mallory",
    "memory: \x1b[31mred",
    "feat: add kiln",
    f"memory: the key is {SECRET}",
    "memory: one\u2028Session: forged",
    "<think>hm",
]


@pytest.mark.parametrize("said", LIES, ids=[said[:20] for said in LIES])
def test_an_answer_that_does_not_fit_is_not_used(
    home: Path, serve: Serve, git_log: GitLog, said: str
) -> None:
    configure(home, serve(lambda request: openai_says(said)))
    write(home)
    product.open(home).commit()
    commit = git_log("-1")[0]
    assert commit.subject == "memory: add projects/kiln"
    assert commit.trailer("Session") == []


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("memory: the kiln is hot", "memory: the kiln is hot"),
        ("  memory: the kiln is hot.\n", "memory: the kiln is hot"),
        ("`memory: the kiln is hot`", "memory: the kiln is hot"),
        ('"memory: the kiln is hot"', "memory: the kiln is hot"),
        ("```\nmemory: the kiln is hot\n```", "memory: the kiln is hot"),
        ("<think>what type?</think>memory: the kiln is hot", "memory: the kiln is hot"),
        ("memory: der Ofen ist heiß", "memory: der Ofen ist heiß"),
    ],
)
def test_what_models_put_around_a_line_is_passed_over(said: str, line: str) -> None:
    assert parse_subject(said, "memory") == line


@pytest.mark.parametrize("reply", [Reply(b"", 500), Reply(b"", 401), Reply(b"{"), Reply(b"x" * 100_000)])
def test_a_provider_that_fails_costs_the_commit_nothing(
    home: Path, serve: Serve, git_log: GitLog, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setattr("tacit.llm.retry._FIRST_PAUSE_S", 0.01)
    configure(home, serve(lambda request: reply))
    write(home)
    product.open(home).commit()
    assert git_log("-1")[0].subject == "memory: add projects/kiln"


def test_a_provider_that_hangs_is_given_up(
    home: Path, serve: Serve, git_log: GitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(request: Request) -> Reply:
        server.stopped.wait(60)
        return openai_says("memory: too late")

    monkeypatch.setattr("tacit.llm.commit_subject._TIMEOUT_S", 0.2)
    server = serve(wait)
    configure(home, server)
    write(home)
    product.open(home).commit()
    assert git_log("-1")[0].subject == "memory: add projects/kiln"


def test_over_a_limit_the_commit_is_made_without(home: Path, serve: Serve, git_log: GitLog) -> None:
    server = serve(lambda request: openai_says("memory: paid"))
    configure(home, server)
    with (home / "memory-config.yaml").open("a") as config:
        config.write("models: {daily_calls: 0}\n")
    write(home)
    product.open(home).commit()
    assert "memory: add projects/kiln" in [one.subject for one in git_log("-3")]
    assert server.requests == []


def test_secrets_and_what_is_private_are_never_shown(home: Path) -> None:
    before = "# Kiln\n\n<private>\nline one\nline two\n</private>\n\nend\n"
    after = before.replace("line two", "line two is the code 4711") + f"key {SECRET}\n"
    text = render_diff([TextEdit(NOTE, before, after)])
    assert "4711" not in text
    assert "Ab3" not in text
    assert "[secret: " in text


def test_at_most_four_thousand_characters_are_shown() -> None:
    edits = [TextEdit(f"knowledge/n{number}.md", None, "a line of text\n" * 200) for number in range(5)]
    assert len(render_diff(edits)) == 4000
    assert render_diff([TextEdit("attachments/x.png", None, "\ufffd" * 100)]) == "add attachments/x.png\n"
    assert render_diff([TextEdit("knowledge/big.md", None, "x\n" * 200_000)]) == "add knowledge/big.md\n"


def test_trailers_stay_and_one_failure_stops_the_asking() -> None:
    edits = (TextEdit(NOTE, None, "a\n"), TextEdit("drafts/x.md", None, "b\n"))
    compose = make_composer(lambda: Says("memory: the kiln"), edits, "main")
    message = compose("memory", [edits[0]], ["raw/conversations/x.md"])
    assert message.splitlines()[0] == "memory: the kiln"
    assert message.endswith("\n\nSession: raw/conversations/x.md\n")
    assert compose("maintenance", [edits[1]], []).startswith("maintenance: add drafts/x")
    chat = Says(ChatError("down"))
    make_composer(lambda: chat, edits, "main")
    assert len(chat.asked) == 1


def test_without_a_model_or_a_change_nothing_is_asked(home: Path, serve: Serve, tacit: Tacit) -> None:
    server = serve(lambda request: openai_says("memory: x"))
    configure(home, server)
    product.open(home).commit()
    asked_at_rest = len(server.requests)
    product.open(home).commit()
    assert len(server.requests) == asked_at_rest == 0
    assert "one of" in SYSTEM
