"""What an agent keeps in its workspace is found and followed, and nobody claims more than is there."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tacit.config import Workspace
from tacit.home.layout import Home
from tacit.home.listing import INDEXED
from tacit.search import home_index as module
from tacit.search.index import SearchParts
from tacit.search.model import EVERYTHING, Scope
from tacit.search.searcher import Searcher
from tacit.search.watcher import watch_home
from tacit.workspaces.folders import Workspaces
from tests.conftest import eventually
from tests.memory.homes import write
from tests.search.fakes import LONG_AGO, parts, unreadable_parts
from tests.search.test_watcher import held

MEMORY = "workspace/ws/MEMORY.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "agents" / "ws"
    write(root, "MEMORY.md", "# Memory\n\nMarit Solberg mends the boiler.\n")
    write(root, "memory/2026-02-16-standup.md", "# Standup\n\nThe ledger moves to double entry.\n")
    write(root, "SOUL.md", "# Soul\n\nI am Kestrel, and the boiler is not my business.\n")
    write(root, "initiatives/ledger/STATUS.md", "# Status\n\nWaiting for the export of the bank.\n")
    for file in root.rglob("*.md"):  # nothing is so fresh that it could change without a new time
        os.utime(file, ns=(LONG_AGO, LONG_AGO))
    return root


def searcher(home: Path, *workspaces: Workspace | Path, chosen: SearchParts | None = None) -> Searcher:
    given = [one if isinstance(one, Workspace) else Workspace(str(one)) for one in workspaces]
    return Searcher(Home(home), chosen or parts(), Workspaces(Home(home), given))


@pytest.fixture
def one(home: Path, folder: Path) -> Iterator[Searcher]:
    with closing(searcher(home, folder)) as made:
        yield made


def found(searcher: Searcher, text: str, scope: Scope = EVERYTHING) -> list[str]:
    return [hit.path for hit in searcher.find(text, scope).hits]


def test_a_question_finds_what_stands_in_a_workspace(one: Searcher) -> None:
    hits = one.find("who mends the boiler").hits
    assert hits[0].path == MEMORY
    assert (hits[0].category, hits[0].audience, hits[0].lines) == ("memory", "owner", (1, 3))
    daily = one.find("double entry ledger", Scope(categories=("journal",))).hits[0]
    assert (daily.path, daily.day) == ("workspace/ws/memory/2026-02-16-standup.md", "2026-02-16")
    assert found(one, "boiler", Scope(under="workspace/ws/SOUL")) == ["workspace/ws/SOUL.md"]


def test_a_project_of_a_workspace_is_known_by_its_folder(one: Searcher) -> None:
    one.update()
    assert "ledger" in one.names()


def test_others_than_the_owner_find_only_what_is_for_them(one: Searcher) -> None:
    for audience in ("group", "anyone"):
        assert found(one, "boiler", Scope(audience=audience)) == ["workspace/ws/SOUL.md"]


def test_a_workspace_of_one_agent_is_found_by_no_other(home: Path, folder: Path) -> None:
    with closing(searcher(home, Workspace(str(folder), agent="shop"))) as one:
        assert MEMORY in found(one, "boiler", Scope(agents=("shop",)))
        assert found(one, "boiler", Scope(agents=("main",))) == []
    with closing(searcher(home, folder)) as one:  # nobody's now: what was read for one agent is read anew
        assert MEMORY in found(one, "boiler", Scope(agents=("main",)))
    with closing(searcher(home, Workspace(str(folder), agent="shop"))) as one:
        assert found(one, "boiler", Scope(agents=("main",))) == []


def test_without_an_index_the_files_are_looked_through_with_the_same_filters(
    home: Path, folder: Path
) -> None:
    with closing(searcher(home, Workspace(str(folder), agent="shop"), chosen=unreadable_parts())) as one:
        answer = one.find("boiler")
        assert answer.channels == ("scan",)
        assert {hit.path for hit in answer.hits} == {MEMORY, "workspace/ws/SOUL.md"}
        assert found(one, "boiler", Scope(audience="group")) == ["workspace/ws/SOUL.md"]
        assert found(one, "boiler", Scope(agents=("main",))) == []


def test_ripgrep_narrows_the_home_and_loses_nothing_of_a_workspace(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_ripgrep", lambda *_: [])
    with closing(searcher(home, folder, chosen=unreadable_parts())) as one:
        assert MEMORY in found(one, "boiler")


def test_unchanged_files_are_not_read_again(one: Searcher, monkeypatch: pytest.MonkeyPatch) -> None:
    one.update()
    monkeypatch.setattr(Workspaces, "read", lambda *_: pytest.fail("it was read"))
    assert one.update().report.read == 0
    assert one.update(paths=[MEMORY]).report.read == 0


def test_a_change_and_a_deletion_are_found_with_the_next_question(one: Searcher, folder: Path) -> None:
    assert found(one, "boiler")[0] == MEMORY
    write(folder, "MEMORY.md", "# Memory\n\nThe orchard is pruned in February.\n")
    assert found(one, "orchard")[0] == MEMORY
    (folder / "MEMORY.md").unlink()
    assert MEMORY not in found(one, "orchard")


def test_what_is_missing_is_found_as_it_was_and_the_answer_says_so(one: Searcher, folder: Path) -> None:
    assert one.find("boiler").degraded == ()
    folder.rename(folder.parent / "away")
    answer = one.find("boiler")
    assert answer.hits[0].path == MEMORY
    assert [note for note in answer.degraded if "ws is missing" in note and str(folder) in note]
    assert one.update().report.gone == 0
    (folder.parent / "away").rename(folder)
    assert one.find("boiler").degraded == ()


def test_what_is_missing_and_no_longer_named_goes(home: Path, one: Searcher, folder: Path) -> None:
    one.update()
    shutil.rmtree(folder)
    with closing(searcher(home)) as without:
        assert MEMORY not in found(without, "boiler")
    with closing(searcher(home, folder)) as again:
        assert MEMORY not in found(again, "boiler")


def test_an_index_built_anew_holds_nothing_of_what_is_missing(one: Searcher, folder: Path) -> None:
    one.update()
    shutil.rmtree(folder)
    done = one.update(rebuild=True)
    assert any("ws is missing" in note for note in done.notes)
    assert MEMORY not in found(one, "boiler")


def test_changes_in_a_workspace_are_followed_until_somebody_says_stop(home: Path, folder: Path) -> None:
    stop = threading.Event()
    with closing(searcher(home, folder)) as one:
        following = watch_home(one, str(home), INDEXED, stop, workspaces=one.workspaces)
        next(following)
        thread = threading.Thread(target=lambda: list(following))
        thread.start()
        try:
            write(folder, "memory/2026-02-17.md", "The orchard is pruned.\n")
            assert eventually(lambda: "workspace/ws/memory/2026-02-17.md" in held(home))
            write(home, "knowledge/reference/hoses.md", "Half an inch.\n")
            assert eventually(lambda: "knowledge/reference/hoses.md" in held(home))
            write(folder, "node_modules/x/README.md", "No memory of anybody.\n")
            (folder / "MEMORY.md").unlink()
            assert eventually(lambda: MEMORY not in held(home))
            assert not [path for path in held(home) if "node_modules" in path]
            folder.rename(folder.parent / "away")
            write(home, "knowledge/reference/taps.md", "Closed.\n")
            assert eventually(lambda: "knowledge/reference/taps.md" in held(home))
            assert "workspace/ws/SOUL.md" in held(home)
            write(folder.parent / "away", "USER.md", "Written elsewhere, and then it came back.\n")
            (folder.parent / "away").rename(folder)
            assert eventually(lambda: "workspace/ws/USER.md" in held(home))
        finally:
            stop.set()
            thread.join(30)


def test_a_home_inside_a_workspace_is_followed_as_the_home(home: Path) -> None:
    stop = threading.Event()
    write(home.parent, "notes.md", "Beside the home.\n")
    with closing(searcher(home, home.parent)) as one:
        following = watch_home(one, str(home), INDEXED, stop, workspaces=one.workspaces)
        next(following)
        thread = threading.Thread(target=lambda: list(following))
        thread.start()
        try:
            write(home, "knowledge/reference/hoses.md", "Half an inch.\n")
            assert eventually(lambda: "knowledge/reference/hoses.md" in held(home))
            assert [path for path in held(home) if path.endswith("hoses.md")] == [
                "knowledge/reference/hoses.md"
            ]
        finally:
            stop.set()
            thread.join(30)
