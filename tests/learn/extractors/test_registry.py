"""Extractors by name: built in, or brought by a package, which may be broken without harm to the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tacit.errors import UsageError
from tacit.learn.extractors.registry import BUILT_IN, load_extractors
from tacit.learn.pipeline import learn
from tests.learn.talk import KNOWN, talk

OWN = """
from tacit.learn.extractors.extractor import Extractor
from tacit.learn.model import Change, Source

def by_rules(heard, known):
    for said in heard.said:
        if "teapot" in said.text:
            source = Source("", said.number, said.role)
            path = "knowledge/reference/teapots.md"
            yield Change(path, None, said.text, heard.day, "fact", source, said.trust)
            yield Change("topics/../../x.md", None, said.text, heard.day, "fact", source, said.trust)

def by_model(item, heard, said, known):
    return ()

EXTRACTOR = Extractor("teapots", 2, by_rules, "Find teapots.", {}, by_model)
OTHER = Extractor("kettles", 1, by_rules, "Find kettles.", {}, by_model)
NO_EXTRACTOR = 42
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tacit_teapots.py").write_text(OWN)
    info = tmp_path / "tacit_teapots-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tacit-teapots\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tacit.extractors]\n"
        "teapots = tacit_teapots:EXTRACTOR\n"
        "broken = tacit_teapots_missing:EXTRACTOR\n"
        "number = tacit_teapots:NO_EXTRACTOR\n"
        "liar = tacit_teapots:OTHER\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tacit_teapots", raising=False)


def test_names_are_found_once_and_in_their_order() -> None:
    found, problems = load_extractors(["journal", "facts", "journal"])
    assert (found, problems) == ([BUILT_IN["journal"], BUILT_IN["facts"]], [])


@pytest.mark.usefixtures("installed")
def test_a_users_own_is_found_by_its_entry_point_and_learns() -> None:
    [own], problems = load_extractors(["teapots"])
    assert (own.label, problems) == ("teapots/2", [])
    learned = learn(talk("Another teapot, from Ana."), KNOWN, [own], None)
    [one] = learned.changes
    assert (one.path, one.extractor) == ("knowledge/reference/teapots.md", "teapots/2")
    assert one.source.transcript == talk().transcript
    assert learned.notes == ("teapots/2: 1 of 2 lines cannot be written.",)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", ["broken", "number", "liar"])
def test_one_that_cannot_be_used_is_a_problem_and_the_others_go_on(name: str) -> None:
    found, [problem] = load_extractors(["decisions", name, "facts"])
    assert [one.name for one in found] == ["decisions", "facts"]
    assert problem.where == f"extractor {name}"
    assert "lifecycle.extractors" in problem.todo


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("name", "near"), [("decision", "decisions"), ("teapot", "teapots")])
def test_an_unknown_name_is_told_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"Did you mean '{near}'"):
        load_extractors([name])
    with pytest.raises(UsageError, match="There are: decisions, lessons"):
        load_extractors(["zzzzzz"])
