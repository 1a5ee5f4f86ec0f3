"""`tacit rebuild`, `tacit compare`, `tacit adopt-branch`, with a model that speaks its real protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tacit as product
from tests.conftest import Tacit
from tests.embeddings.conftest import Reply, Request, Serve, Server
from tests.llm.test_chat import openai_says

MEMORY = "knowledge/memory/MEMORY.md"
QUESTIONS = """
- {question: "How hot do we fire the plates?", answer: ["1215 degrees"]}
- {question: "When is the stall closed?", answer: ["closed in August"]}
"""
SAID = ("We decided to fire the plates at 1215 degrees.", "We decided that the stall stays closed in August.")


@pytest.fixture
def talked(home: Path, tacit: Tacit) -> Path:
    """Two conversations of which only lessons were learned."""
    config = home / "memory-config.yaml"
    text = config.read_text()
    line = next(line for line in text.split("\n") if line.startswith("  #extractors:"))
    config.write_text(text.replace(line, "  extractors: [lessons]"))
    memory = product.open(home)
    for said in (
        "We decided to fire the plates at 1215 degrees.",
        "We decided: the stall stays closed in August.",
    ):
        with memory.session() as session:
            session.message("user", said)
    assert tacit("run", "extract").code == 0  # not all: late in the evening the day's summary would be due
    assert tacit("run", "commit").code == 0
    return home


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    file = tmp_path / "questions.yaml"
    file.write_text(QUESTIONS)
    return file


def anew(tacit: Tacit, *more: str) -> dict[str, object]:
    done = tacit("rebuild", "--name", "v2", "--json", *more)
    assert done.code == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_cli_rebuild_compare_and_adopt(talked: Path, tacit: Tacit, questions: Path) -> None:
    before = (talked / MEMORY).read_bytes()
    made = tacit("rebuild", "--name", "v2", "--extractors", "decisions,lessons")
    assert made.code == 0, made.stderr
    assert "learned again from 2 conversations" in made.stdout
    assert "tacit adopt-branch v2" in made.stdout
    assert (talked / MEMORY).read_bytes() == before
    asked = ("--questions", str(questions), "--searchable", "knowledge")
    found = json.loads(tacit("compare", "main", "v2", *asked, "--json").stdout)
    main, new = found["sides"]
    assert main["recall"]["knowledge"] == {"512": 0.0, "1024": 0.0, "2048": 0.0}
    assert min(new["recall"]["knowledge"].values()) > 0.0
    assert (new["size"]["learned"], main["size"]["learned"]) == (2, 0)
    assert [one["path"] for one in found["differences"]] == [MEMORY]
    told = tacit("compare", "main", "v2", "--diff").stdout
    assert "+ - " in told
    assert "--questions FILE" in told
    adopted = tacit("adopt-branch", "v2")
    assert adopted.code == 0, adopted.stderr
    assert "set lifecycle.extractors: [lessons, decisions]" in adopted.stdout
    assert "1215" in (talked / MEMORY).read_text()
    assert tacit("rebuild", "--list").stdout.startswith("There is none.")
    undo = adopted.stdout.split("taken back by: tacit ")[1].split("\n")[0].split()
    assert tacit(*undo).code == 0
    assert [line for line in (talked / MEMORY).read_text().split("\n") if line.startswith("- ")] == []


def test_cli_rebuild_lists_and_drops(talked: Path, tacit: Tacit) -> None:
    anew(tacit)
    assert json.loads(tacit("rebuild", "--list", "--json").stdout) == [
        {"name": "v2", "state": "done", "model": "rules"}
    ]
    assert tacit("rebuild", "--drop", "v2").code == 0
    assert not (talked / ".tacit/rebuilds/v2").exists()
    assert tacit("compare", "main", "v2").code == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("rebuild", "--name", "a/b"), "name of a rebuild"),
        (("rebuild", "--name", "v2", "--extractors", "nonsense"), "There is no extractor 'nonsense'"),
        (("rebuild", "--name", "v2", "--extractors", ","), "--extractors names none"),
        (("adopt-branch", "nobody"), "There is no rebuild 'nobody'"),
        (("rebuild", "--drop", "nobody"), "There is no rebuild 'nobody'"),
        (("compare", "main", "nobody"), "not a rebuild, branch, tag or commit"),
        (("compare", "main", "main", "--budgets", "few"), "is not a list of token counts"),
        (("compare", "main", "main", "--questions", "missing.yaml"), "cannot be read"),
    ],
)
def test_cli_rebuild_says_what_is_wrong_and_what_to_do(
    talked: Path, tacit: Tacit, arguments: tuple[str, ...], told: str
) -> None:
    done = tacit(*arguments)
    assert done.code == 2
    assert told in done.stderr


@pytest.mark.parametrize("model", ["nonsense", "openai:m", "http://"])
def test_cli_rebuild_begins_nothing_with_a_model_that_cannot_be_had(
    talked: Path, tacit: Tacit, model: str
) -> None:
    done = tacit("rebuild", "--name", "v2", "--model", model, env={"OPENAI_API_KEY": ""})
    assert done.code == 1
    assert model in done.stderr
    assert tacit("rebuild", "--list").stdout.startswith("There is none.")
    assert tacit("rebuild", "--name", "v2").code == 0


class Model:
    """A model of OpenAI's kind that says one sentence of the turn it is shown, until it is taken down."""

    def __init__(self) -> None:
        self.is_down = False

    def __call__(self, request: Request) -> Reply:
        if self.is_down:
            return Reply({"error": {"message": "no"}}, 400)
        system, user = (one["content"] for one in request.json["messages"])
        said = next(line for line in user.split("\n") if line.startswith("[1] user: "))
        text = said.removeprefix("[1] user: ")
        items = [{"text": text, "turn": 1}] if "decision" in system else []
        return openai_says(json.dumps({"items": items}))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(serve: Serve, model: Model) -> Server:
    return serve(model)


def test_cli_rebuild_with_a_model_records_what_it_said_and_asks_nothing_twice(
    talked: Path, tacit: Tacit, server: Server, model: Model
) -> None:
    named = ("--model", f"{server.base}#m", "--extractors", "decisions")
    first = anew(tacit, *named)
    asked = len(server.requests)
    assert asked > 0
    home = talked / ".tacit/rebuilds/v2"
    assert "1215 degrees" in (home / "home" / MEMORY).read_text()
    tape = (home / "calls.jsonl").read_bytes()
    assert tacit("rebuild", "--drop", "v2").code == 0
    home.mkdir(parents=True)
    (home / "calls.jsonl").write_bytes(tape)
    model.is_down = True
    assert anew(tacit, *named)["commit"] == first["commit"]
    assert len(server.requests) == asked
    found = json.loads(tacit("compare", "main", "v2", "--json").stdout)
    assert found["sides"][1]["spent"]["calls"] == asked
    assert found["sides"][0]["spent"]["calls"] == asked  # the ledger has them too


def test_cli_rebuild_stops_when_the_model_does_and_goes_on_later(
    talked: Path, tacit: Tacit, server: Server, model: Model
) -> None:
    model.is_down = True
    named = ("rebuild", "--name", "v2", "--model", f"{server.base}#m", "--extractors", "decisions")
    stopped = tacit(*named)
    assert stopped.code == 1
    assert "v2 is not finished" in stopped.stderr
    assert "the same command" in stopped.stderr
    assert json.loads(tacit("rebuild", "--list", "--json").stdout)[0]["state"] == "not finished"
    model.is_down = False
    (talked / ".tacit/breakers.json").unlink(missing_ok=True)
    assert tacit(*named).code == 0
    assert tacit("adopt-branch", "v2").code == 0
    assert "1215" in (talked / MEMORY).read_text()
