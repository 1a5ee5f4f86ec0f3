"""What was purged is neither in the index nor found by looking through the files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tacit as product
from tacit.context.request import Request
from tacit.home.layout import PURGED, Home
from tacit.home.listing import INDEXED
from tacit.markdown.comment import source_name
from tacit.search.searcher import Searcher
from tacit.search.watcher import watch_home
from tests.conftest import Tacit, eventually
from tests.search.fakes import parts, unreadable_parts

START = datetime(2026, 5, 2, 9, tzinfo=UTC)
SAID = ("The kiln is safe.", "A web page says: open the kiln at 1240 degrees.", "The kiln cooled.")


@pytest.fixture
def spoken(home: Path) -> str:
    """The path of a conversation of three records."""
    (home / "memory-config.yaml").write_text("search:\n  embedding_model: none\n")
    session = product.open(home).session("agent:main:main", started=START)
    for number, said in enumerate(SAID):
        session.message("user", said, at=START + timedelta(minutes=number))
    sealed = session.end(at=START + timedelta(minutes=9))
    assert sealed is not None
    return sealed.path


def purge(home: Path, *sources: str) -> None:
    entry = {"at": "2026-11-18T09:00:00Z", "origin": "url x", "sources": sources, "by": "owner", "why": "bad"}
    with (home / PURGED).open("a") as file:
        file.write(json.dumps(entry) + "\n")


@pytest.fixture(params=[parts, unreadable_parts], ids=["index", "files"])
def searcher(request: pytest.FixtureRequest, home: Path) -> Iterator[Searcher]:
    made = Searcher(Home(home), request.param())
    yield made
    made.close()


def found(searcher: Searcher) -> list[str]:
    return sorted(hit.text for hit in searcher.find("kiln").hits)


def test_purged_records_are_found_no_more_and_the_others_are(
    home: Path, spoken: str, searcher: Searcher
) -> None:
    assert found(searcher) == sorted(SAID)
    purge(home, source_name(spoken, 2))
    assert found(searcher) == [SAID[2], SAID[0]]
    purge(home, source_name(spoken, 3))
    assert found(searcher) == [SAID[0]]
    purge(home, source_name(spoken))
    assert found(searcher) == []


def test_what_is_no_longer_purged_is_found_again(home: Path, spoken: str, searcher: Searcher) -> None:
    purge(home, source_name(spoken, 2))
    assert len(found(searcher)) == 2
    (home / PURGED).unlink()
    assert found(searcher) == sorted(SAID)


def test_words_of_purged_records_find_nothing_beside_them(
    home: Path, spoken: str, searcher: Searcher
) -> None:
    """Neither as neighbours of other records nor by the title."""
    purge(home, source_name(spoken, 1), source_name(spoken, 2))
    for word in ("degrees", "safe"):
        assert [hit.text for hit in searcher.find(word).hits] == []


def test_while_the_list_cannot_be_read_conversations_are_not_searched_and_the_answer_says_so(
    home: Path, spoken: str, searcher: Searcher
) -> None:
    (home / PURGED).mkdir()
    answer = searcher.find("kiln")
    assert answer.hits == ()
    assert any(PURGED in note for note in answer.degraded)
    (home / PURGED).rmdir()
    assert found(searcher) == sorted(SAID)


def test_who_is_told_that_only_some_files_changed_looks_at_all_when_something_was_purged(
    home: Path, spoken: str
) -> None:
    searcher = Searcher(Home(home), parts())
    searcher.update()
    purge(home, source_name(spoken))
    assert searcher.is_purged_anew()
    assert searcher.update(paths=["knowledge/people/_index.md"]).report.gone == 1
    assert not searcher.is_purged_anew()
    searcher.close()


def test_who_follows_the_files_learns_of_it(home: Path, spoken: str) -> None:
    searcher, stop = Searcher(Home(home), parts()), threading.Event()
    gone: list[int] = []

    def followed() -> None:
        gone.extend(done.report.gone for done in watch_home(searcher, str(home), INDEXED, stop))

    thread = threading.Thread(target=followed)
    thread.start()
    try:
        assert eventually(lambda: bool(gone))
        purge(home, source_name(spoken))
        assert eventually(lambda: 1 in gone)
    finally:
        stop.set()
        thread.join()
        searcher.close()


def test_cli_index_leaves_out_what_was_purged(home: Path, spoken: str, tacit: Tacit) -> None:
    tacit("index")
    purge(home, source_name(spoken, 2))
    assert json.loads(tacit("index", "--json").stdout)["read"] == 1
    assert json.loads(tacit("search", "degrees", "--json").stdout) == []


def test_a_look_at_the_past_has_no_more_of_it_either(home: Path, spoken: str) -> None:
    memory = product.open(home)
    memory.commit()
    asked = "What does a web page say about opening the kiln at 1240 degrees?"
    request = Request(asked, "agent:main:main")
    then = memory.services.turns.look(request, "HEAD").text
    purge(home, source_name(spoken, 2))
    assert SAID[1] in then
    assert SAID[1] not in memory.services.turns.look(request, "HEAD").text
