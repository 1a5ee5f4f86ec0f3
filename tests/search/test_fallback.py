"""Without an index the files themselves are looked through: the same hits, with and without ripgrep."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit as product
from tacit.home.layout import Home
from tacit.home.listing import Stamp
from tacit.search.fallback import fallback_search
from tacit.search.model import EVERYTHING, Found, Scope
from tacit.search.searcher import Searcher
from tacit.search.sqlite.index import open_memory_index
from tests.hostile import hostile
from tests.search.fake_rg import install
from tests.search.fakes import CALIBRATION, LONG_AGO, parts, unreadable_parts

NOTES = {
    "knowledge/reference/studio.md": "# Studio\n\nThe kiln is called Berta. It fires at night.\n",
    "knowledge/reference/notes.md": "# Cafés\n\nThe note about Köln: a café near the Rhine.\n",
    "knowledge/reference/code.md": "# Code\n\nThe parser is in C++, see #34 and `src/app.py` --force.\n",
    "knowledge/reference/regex.md": "# Regex\n\nA pattern like a.*b(c|d)[e]+ or $HOME.\n",
    "knowledge/reference/tokyo.md": "# 旅行\n\n東京タワーに行った。\n",
    "knowledge/people/ana-ruiz.md": "---\nupdated: 2026-03-04\n---\n# Ana Ruiz\n\nBrings the kiln wood.\n",
    "knowledge/journal/2026-05-01.md": "# 1 May\n\nFired the kiln twice; studied glazes.\n",
    "topics/kiln.md": "# Kiln watcher\n\nWakes for the oven.\n",
    "archive/reference/old.md": "# Old kiln\n\nThe kiln before Berta was Anton.\n",
    "knowledge/reference/glaze-firing.md": "Nothing but the name of the file says it.\n",
}
TALK_KEY = "agent:main:telegram:group:-100"


WAYS = ["without ripgrep", "with a stand-in", *(["with ripgrep"] if shutil.which("rg") else [])]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Path:
    """A home that no test changes."""
    root = tmp_path_factory.mktemp("filled") / "home"
    memory = product.init(root)
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    session = memory.session(TALK_KEY, started=datetime(2026, 5, 2, 9, tzinfo=UTC))
    session.message("user", "Was the kiln opened too early?", at=datetime(2026, 5, 2, 9, 1, tzinfo=UTC))
    session.message("agent", "Yes, at 300 degrees.", at=datetime(2026, 5, 2, 9, 2, tzinfo=UTC))
    session.end(at=datetime(2026, 5, 2, 9, 3, tzinfo=UTC))
    return root


@pytest.fixture
def own(filled: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(filled, tmp_path / "own", symlinks=True))


@pytest.fixture(params=WAYS)
def _way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "with ripgrep":
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    if request.param == "with a stand-in":
        install(tmp_path / "bin")


@pytest.fixture
def searcher(_way: None, filled: Path) -> Searcher:
    """One that cannot have an index now."""
    return Searcher(Home(filled), unreadable_parts())


@pytest.fixture(scope="module")
def indexed(filled: Path) -> Iterator[Searcher]:
    """One with an index, of the same files."""
    found = Searcher(Home(filled), parts())
    yield found
    found.close()


def places(found: Found) -> set[tuple[str, tuple[int, int]]]:
    return {(hit.path, hit.lines) for hit in found.hits}


QUESTIONS = [
    "kiln",
    "KILN",
    "kilns",
    "who brings wood for the kiln?",
    "cafe",
    "köln",
    "C++",
    "#34",
    "src/app.py",
    "--force",
    "-force",
    "-e kiln",
    "$HOME",
    "a.*b(c|d)[e]+",
    "[",
    "東京",
    "京",
    "study",
    "glaze firing",
    '"opened too early"',
    "degrees",
    "Berta",
    "zebra",
    "",
    "the of",
    "kiln\0wood",
    "\ud800",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_same_is_found_as_with_an_index(searcher: Searcher, indexed: Searcher, question: str) -> None:
    scanned, known = searcher.find(question), indexed.find(question)
    assert places(scanned) == places(known)
    assert scanned.channels == ("scan",)
    assert known.channels == ("lexical",)
    by_place = {(hit.path, hit.lines): hit for hit in known.hits}
    for hit in scanned.hits:
        twin = by_place[hit.path, hit.lines]
        assert (hit.text, hit.snippet, hit.category, hit.title, hit.day, hit.speaker, hit.turn) == (
            (twin.text, twin.snippet, twin.category, twin.title, twin.day, twin.speaker, twin.turn)
        )
        assert 0.0 <= hit.score <= 1.0


@pytest.mark.parametrize(
    "scope",
    [
        Scope(categories=("person", "topic")),
        Scope(categories=("conversation",)),
        Scope(audience="group"),
        Scope(audience="anyone"),
        Scope(audience="group", conversation=TALK_KEY),
        Scope(agents=("other",)),
        Scope(since=date(2026, 5, 1), until=date(2026, 5, 1)),
        Scope(until=date(2026, 4, 1)),
        Scope(under="knowledge/people"),
        Scope(under="knowledge/refer"),
        Scope(under="nowhere"),
        Scope(archived=True),
        Scope(archived=False),
    ],
    ids=str,
)
def test_filters_are_those_of_the_index(searcher: Searcher, indexed: Searcher, scope: Scope) -> None:
    scanned, known = searcher.find("kiln", scope), indexed.find("kiln", scope)
    assert places(scanned) == places(known)


def test_an_answer_from_the_files_says_so(searcher: Searcher) -> None:
    found = searcher.find("kiln")
    assert any("index cannot be used now" in note for note in found.degraded)
    assert found.trace["files"] == len(searcher._files.list())


def test_conversations_are_looked_through(searcher: Searcher) -> None:
    hit = searcher.find("degrees").hits[0]
    assert (hit.category, hit.speaker, hit.turn) == ("conversation", "agent", 2)


@pytest.mark.usefixtures("_way")
def test_links_lead_nowhere(own: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("zebra\n")
    (own / "knowledge" / "link.md").symlink_to(outside / "secret.md")
    shutil.rmtree(own / "archive")
    (own / "archive").symlink_to(outside)
    assert Searcher(Home(own), unreadable_parts()).find("zebra").hits == ()


def test_an_index_that_was_deleted_is_built_anew(own: Path) -> None:
    searcher = Searcher(Home(own), parts())
    before = searcher.find("kiln")
    searcher.file.unlink()
    assert places(searcher.find("kiln")) == places(before)
    assert searcher.file.is_file()
    assert searcher.find("kiln").channels == ("lexical",)
    assert Searcher(Home(own), parts()).update().report.read == 0


# By itself


def scanned(
    texts: dict[str, str], question: object, scope: Scope = EVERYTHING, near: list[str] | None = None
) -> Found:
    return fallback_search(
        question,
        {path: Stamp(LONG_AGO, len(text), 1) for path, text in texts.items()},
        lambda path: texts[path].encode("utf-8", "surrogatepass"),
        scope=scope,
        limit=10,
        now=None,
        index=open_memory_index(),
        calibration=CALIBRATION,
        narrow=lambda words: near,
    )


def test_only_files_that_are_listed_are_read() -> None:
    """Whatever ripgrep names: links, files outside, files of others."""
    found = scanned(NOTES, "kiln", near=["../secret.md", "knowledge/link.md", "topics/kiln.md"])
    assert {hit.path for hit in found.hits} == {"topics/kiln.md"}


def test_a_filter_comes_before_the_choice_of_files() -> None:
    """Among many files with all the words, the one in scope is not crowded out."""
    texts = {f"knowledge/journal/{n}.md": "The kiln wood is dry.\n" for n in range(400)}
    texts["knowledge/people/ana.md"] = "Ana brings the kiln wood.\n"
    found = scanned(texts, "kiln wood", Scope(categories=("person",)))
    assert [hit.path for hit in found.hits] == ["knowledge/people/ana.md"]


def test_a_word_that_is_nowhere_takes_nothing_away() -> None:
    assert scanned(NOTES, "Berta zebra").hits


def test_accents_do_not_matter() -> None:
    assert scanned(NOTES, "koln cafe").hits[0].path == "knowledge/reference/notes.md"


def test_the_files_with_the_most_and_the_rarest_words_are_read() -> None:
    texts = {f"knowledge/reference/{n:03}.md": "The kiln is dry.\n" for n in range(400)}
    texts["knowledge/reference/zz.md"] = "The kiln has a zebra.\n"
    assert scanned(texts, "kiln zebra").hits[0].path == "knowledge/reference/zz.md"


@settings(max_examples=60)
@given(hostile, st.dictionaries(st.sampled_from(["knowledge/a.md", "topics/b.md"]), hostile))
def test_any_text_can_be_looked_for_in_any_file(question: str, texts: dict[str, str]) -> None:
    scanned(texts, question)
