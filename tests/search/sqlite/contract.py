"""What every index does, as tests. Nothing here knows how an index keeps what it holds.

For another backend, subclass `IndexContract` and give it the fixture `make_index`: called with a name it
opens the index of that name, an empty one at first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import count
from typing import Any, NamedTuple, Protocol, cast, overload

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.home.categories import CATEGORIES
from tacit.home.listing import Stamp
from tacit.privacy.audience import AUDIENCES
from tacit.search.index import MAX_NEIGHBOURS, Index, IndexUnavailable
from tacit.search.model import EVERYTHING, Chunk, Document, Link, Neighbour, Scope, Scored
from tacit.search.query import parse_query
from tests.hostile import SHAPES, hostile
from tests.search.sqlite.samples import (
    STAMP,
    Place,
    by_question,
    by_vector,
    by_words,
    document,
    embed,
    note,
    places,
    points,
    put,
    talk,
    text_of,
    vector,
)

# A fixture that makes a new index for each example, and one test for several backends, are both meant so.
many = settings(
    max_examples=40,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)

# What queries, patterns and statements of databases are made of.
EVIL = [
    *SHAPES,
    "",
    "NEAR(",
    'NEAR("a" "b", 2)',
    "OR",
    "AND",
    "NOT",
    "clay OR NOT",
    "*",
    "clay*",
    "^clay",
    "body:clay",
    "{body heading}:clay",
    "clay + clay",
    "- clay",
    ":",
    "::",
    '"',
    '""',
    '"clay',
    'cl"ay',
    "'",
    "';",
    "'; DROP TABLE passages; --",
    "') UNION SELECT path FROM knowledge_meta --",
    "1 OR 1=1",
    "%",
    "_",
    "\\",
    "?",
    "?1",
    ":name",
    "$1",
    "%s",
    "{}",
    "{0}",
    "NULL",
    "\0",
    "cl\0ay",
    "\ud800clay",
    "a\u0300" * 300,
    "\ue000",
    "全",
    "全文検索",
    "ก็",
    "🔥" * 50,
    "x" * 100_000,
    "clay " * 20_000,
    '" ' * 50_000,
    "ß" * 100_000,
]


class MakeIndex(Protocol):
    def __call__(self, name: str) -> Index: ...


class Interrupted(Exception):
    pass


class Handed(Sequence[tuple[Document, Stamp]]):
    """Documents, and something that is done while they are handed over."""

    def __init__(self, meanwhile: Callable[[], None], *documents: Document) -> None:
        self._meanwhile, self._documents = meanwhile, [(one, STAMP) for one in documents]

    def __len__(self) -> int:
        return len(self._documents)

    @overload
    def __getitem__(self, at: int) -> tuple[Document, Stamp]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[Document, Stamp]]: ...
    def __getitem__(self, at: int | slice) -> Any:
        self._meanwhile()
        return self._documents[at]


class Breaking(Sequence[tuple[Document, Stamp]]):
    """Documents of which the last is never handed over."""

    def __init__(self, *documents: Document) -> None:
        self._documents = documents

    def __len__(self) -> int:
        return len(self._documents) + 1

    @overload
    def __getitem__(self, at: int) -> tuple[Document, Stamp]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[Document, Stamp]]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice) or at >= len(self._documents):
            raise Interrupted
        return self._documents[at], STAMP

    def __iter__(self) -> Iterator[tuple[Document, Stamp]]:
        yield from ((one, STAMP) for one in self._documents)
        raise Interrupted


# ---------------------------------------------------------------- who sees what, in plain Python


def is_visible(one: Document, chunk: Chunk, scope: Scope) -> bool:
    return (
        (not scope.categories or one.category in scope.categories)
        and _hears(one, scope)
        and (not scope.agents or not one.agents or not set(scope.agents).isdisjoint(one.agents))
        and (scope.since is None or chunk.day >= scope.since.isoformat())
        and (scope.until is None or "" < chunk.day <= scope.until.isoformat())
        and one.path.startswith(scope.under)
        and one.path not in scope.without
        and (scope.archived is None or one.archived == scope.archived)
    )


def _hears(one: Document, scope: Scope) -> bool:
    if AUDIENCES.index(one.audience) <= AUDIENCES.index(scope.audience):
        return True
    return bool(one.conversation) and one.conversation == scope.conversation


def visible(documents: Sequence[Document], scope: Scope) -> set[Place]:
    return {
        (one.path, at)
        for one in documents
        for at, chunk in enumerate(one.chunks)
        if is_visible(one, chunk, scope)
    }


_agents = st.lists(
    st.sampled_from(["main", "kiln", "a", "b", "a\nb", "a\n\nb", '"a"', "", "?", "\ud800", "\ufffd", "ä"]),
    max_size=3,
    unique=True,
).map(tuple)
_conversations = st.sampled_from(["", "agent:main:group:1", "agent:main:group:12", "?", "\ud800", "\ufffd"])
_days = st.sampled_from(["", "2025-12-31", "2026-01-01", "2026-01-02", "2026-02-01"])
_dates = st.none() | st.sampled_from([date(2025, 12, 31), date(2026, 1, 1), date(2026, 1, 15)])
_folders = st.sampled_from(["", "topics/", "topics/clay/", "knowledge/", "archive/topics/", "%/", "_/", "ä/"])

_scopes = st.builds(
    Scope,
    categories=st.lists(st.sampled_from(CATEGORIES), max_size=4, unique=True).map(tuple),
    audience=st.sampled_from(AUDIENCES),
    conversation=_conversations,
    agents=_agents,
    since=_dates,
    until=_dates,
    under=_folders | st.sampled_from(["topics/cl", "\ud800", "\ufffd", "?", "topics/0.md"]),
    without=st.lists(st.builds("{}{}.md".format, _folders, st.integers(0, 5)), max_size=3).map(tuple),
    archived=st.none() | st.booleans(),
)


@st.composite
def _seen_documents(draw: st.DrawFn) -> list[Document]:
    return [
        note(
            f"{draw(_folders)}{number}.md",
            *draw(st.lists(st.sampled_from(["clay", "clay clay", "clay and ash", "ash clay"]), max_size=3)),
            category=draw(st.sampled_from(CATEGORIES)),
            audience=draw(st.sampled_from(AUDIENCES)),
            agents=draw(_agents),
            conversation=draw(_conversations),
            archived=draw(st.booleans()),
            day=draw(_days),
        )
        for number in range(draw(st.integers(0, 8)))
    ]


# ---------------------------------------------------------------- hostile documents

_paths = (
    (hostile | st.sampled_from(EVIL))
    .map(lambda text: text.encode("utf-8", "ignore").replace(b"\0", b"")[:255].decode("utf-8", "ignore"))
    .filter(bool)
)


@st.composite
def _hostile_documents(draw: st.DrawFn) -> list[Document]:
    text = hostile | st.sampled_from(EVIL)
    names = st.lists(text, max_size=2).map(tuple)
    found = []
    for path in draw(st.lists(_paths, max_size=3, unique=True)):
        texts = draw(st.lists(text, max_size=3))
        chunks = [
            Chunk(said, at, at, draw(names), draw(text), draw(text), at, (0, len(texts)))
            for at, said in enumerate(texts)
        ]
        found.append(
            document(
                path,
                chunks,
                category=draw(st.sampled_from(CATEGORIES)),
                agents=draw(names),
                conversation=draw(text),
                title=draw(text),
                day=draw(text),
                tags=draw(names),
                names=draw(names),
                links=points(*draw(names)),
            )
        )
    return found


def whole(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


def _turn(at: int, turn: int, text: str) -> Chunk:
    return Chunk(text, at + 1, at + 1, (), "2026-01-02", "Ana", turn, (at, at + 1))


class Score(NamedTuple):
    place: Place
    score: float


class IndexContract:
    @pytest.fixture
    def make_index(self) -> MakeIndex:
        raise NotImplementedError

    @pytest.fixture
    def index(self, make_index: MakeIndex) -> Index:
        return make_index("index")

    @pytest.fixture
    def other(self, index: Index, make_index: MakeIndex) -> Index:
        """The same index as `index`, opened a second time."""
        return make_index("index")

    # ------------------------------------------------------------ stamps

    def test_a_new_index_is_empty(self, index: Index) -> None:
        assert index.stamps() == {}
        assert index.stats()[:3] == (0, 0, 0)
        assert index.stats().embedder == ""
        assert (index.names(), index.vectors.embedder_name()) == ((), "")
        assert by_words(index, "clay") == []
        assert index.words.frequency("clay") == 0.0
        assert index.vectors.nearest(vector(*range(8)), EVERYTHING, 10) == []

    @pytest.mark.parametrize(
        "stamp",
        [
            Stamp(0, 0, 0),
            Stamp(1_760_000_000_123_456_789, 4096, 131_072),
            Stamp(-86_400_000_000_000, 1, 1),  # 1969
            Stamp(11_000_000_000 * 10**9, 2**40, 2**64 - 2),  # in the year 2318, on a disk with wide inodes
            Stamp(1, 1, -1),
        ],
    )
    def test_a_stamp_comes_back_as_it_was(self, index: Index, stamp: Stamp) -> None:
        index.replace([(note("a.md", "clay"), stamp)])
        assert index.stamps() == {"a.md": stamp}

    def test_a_file_without_chunks_has_a_stamp_too(self, index: Index) -> None:
        put(index, note("empty.md"))
        assert index.stamps() == {"empty.md": STAMP}
        assert index.stats()[:2] == (1, 0)

    # ------------------------------------------------------------ replace

    def test_documents_are_added(self, index: Index) -> None:
        put(index, note("a.md", "clay"), note("b.md", "ash", "slip"))
        assert index.stats()[:2] == (2, 3)
        assert by_words(index, "slip") == [("b.md", 1)]

    def test_a_document_takes_the_place_of_what_was_there(self, index: Index) -> None:
        put(index, note("a.md", "clay", "slip"), note("b.md", "ash"))
        index.replace([(note("a.md", "glaze"), Stamp(9, 9, 9))])
        assert by_words(index, "clay", "slip") == []
        assert by_words(index, "glaze") == [("a.md", 0)]
        assert by_words(index, "ash") == [("b.md", 0)]
        assert index.stamps() == {"a.md": Stamp(9, 9, 9), "b.md": STAMP}
        assert index.stats()[:2] == (2, 2)

    def test_what_is_gone_is_gone(self, index: Index) -> None:
        put(index, note("a.md", "clay"), note("b.md", "clay"))
        put(index, gone=["a.md", "never there.md"])
        assert by_words(index, "clay") == [("b.md", 0)]
        assert list(index.stamps()) == ["b.md"]

    def test_a_file_is_moved_in_one_change(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        put(index, note("b.md", "clay"), gone=["a.md"])
        assert by_words(index, "clay") == [("b.md", 0)]

    def test_what_is_both_gone_and_there_is_there(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        put(index, note("a.md", "ash"), gone=["a.md"])
        assert by_words(index, "clay", "ash") == [("a.md", 0)]

    def test_of_two_documents_for_one_path_the_last_counts(self, index: Index) -> None:
        put(index, note("a.md", "clay"), note("a.md", "ash"))
        assert by_words(index, "clay", "ash") == [("a.md", 0)]
        assert by_words(index, "ash") == [("a.md", 0)]

    def test_the_same_change_again_changes_nothing(self, index: Index) -> None:
        documents = [note("a.md", "clay", "clay ash", reach=1), note("b.md", "ash clay", "slip")]
        put(index, *documents)
        before = self._scores(index, "clay", "ash")
        for _ in range(3):
            put(index, *documents, gone=["c.md"])
        assert self._scores(index, "clay", "ash") == before
        assert index.stats()[:2] == (2, 4)
        assert index.words.frequency("slip") == 0.25

    def _scores(self, index: Index, *terms: str) -> list[Score]:
        found = index.words.search(terms, EVERYTHING, 100)
        return [Score(place, one.score) for place, one in zip(places(index, found), found, strict=True)]

    def test_when_one_document_cannot_be_had_none_is_kept(self, index: Index) -> None:
        put(index, note("a.md", "clay"), note("b.md", "slip"))
        before = (index.stats(), index.stamps())
        with pytest.raises(Interrupted):
            index.replace(Breaking(note("a.md", "ash"), note("c.md", "ash")), gone=["b.md"])
        assert (index.stats(), index.stamps()) == before
        assert by_words(index, "clay", "slip", "ash") == [("a.md", 0), ("b.md", 0)]

    def test_when_one_document_is_bad_none_is_kept(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        before = (index.stats(), index.stamps())
        bad = note("c.md", "ash", cast(str, None))
        with pytest.raises((TypeError, ValueError, AttributeError)):
            put(index, note("a.md", "ash"), bad, note("d.md", "ash"), gone=["a.md"])
        assert (index.stats(), index.stamps()) == before
        assert by_words(index, "clay", "ash") == [("a.md", 0)]
        put(index, note("d.md", "ash"))  # and it goes on
        assert by_words(index, "ash") == [("d.md", 0)]

    def test_an_index_holds_what_it_held_when_it_is_opened_again(
        self, index: Index, make_index: MakeIndex
    ) -> None:
        put(index, note("a.md", "clay"), talk("t.md", ("Ana", "ash")))
        embed(index, {"clay": vector(*[1] * 8), "ash": None})
        before = (index.stats(), index.stamps(), index.names(), index.vectors.embedder_name())
        index.close()
        again = make_index("index")
        assert (again.stats(), again.stamps(), again.names(), again.vectors.embedder_name()) == before
        assert by_words(again, "ash") == [("t.md", 0)]
        assert by_vector(again, vector(*[1] * 8)) == [("a.md", 0)]
        assert again.vectors.list_unembedded(10) == []

    def test_two_who_have_it_open_see_each_others_changes(self, index: Index, other: Index) -> None:
        assert other.words.frequency("clay") == 0.0
        assert other.names() == ()
        put(index, note("knowledge/people/ana.md", "clay", category="person", title="Ana Ruiz"))
        assert other.words.frequency("clay") == 1.0
        assert other.names() == ("Ana Ruiz", "ana")
        put(other, note("b.md", "ash"))
        assert by_words(index, "ash") == [("b.md", 0)]
        assert index.words.frequency("clay") == 0.5
        assert index.stats() == other.stats()

    # ------------------------------------------------------------ words

    def test_a_chunk_with_one_of_the_terms_is_found(self, index: Index) -> None:
        put(index, note("a.md", "clay"), note("b.md", "ash"), note("c.md", "slip"))
        assert sorted(by_words(index, "clay", "ash", "nowhere")) == [("a.md", 0), ("b.md", 0)]

    def test_no_terms_find_nothing(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        for terms in ((), ("",), (" ",), ("...",), ('"',)):
            assert index.words.search(terms, EVERYTHING, 10) == []

    def test_the_best_come_first(self, index: Index) -> None:
        put(
            index,
            note("a.md", "the kiln is in the shed behind the house, next to the wood and the old bicycles"),
            note("b.md", "kiln kiln"),
            note("c.md", "the kiln and its glaze"),
            *(note(f"other{number}.md", "nothing of that kind") for number in range(10)),
        )
        assert by_words(index, "kiln", "glaze") == [("c.md", 0), ("b.md", 0), ("a.md", 0)]
        found = index.words.search(["kiln", "glaze"], EVERYTHING, 10)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert all(one.score > 0 for one in found)

    def test_a_rare_word_counts_more_than_a_common_one(self, index: Index) -> None:
        put(index, *(note(f"{number}.md", "clay here") for number in range(20)), note("rare.md", "ash here"))
        assert by_words(index, "clay", "ash")[0] == ("rare.md", 0)

    def test_at_most_so_many_are_found(self, index: Index) -> None:
        put(index, *(note(f"{number:02}.md", "clay " * (number + 1)) for number in range(20)))
        everything = by_words(index, "clay")
        assert len(everything) == 20
        for limit in (0, 1, 7, 20, 1000):
            assert by_words(index, "clay", limit=limit) == everything[:limit]

    def test_equal_ones_come_in_the_order_of_the_files(self, index: Index) -> None:
        for path in ("c.md", "a.md", "d.md", "b.md"):
            put(index, note(path, "clay", "other", "clay"))
        put(index, note("c.md", "clay", "other", "clay"))
        expected = [(path, at) for path in ("a.md", "b.md", "c.md", "d.md") for at in (0, 2)]
        for limit in range(1, 9):
            assert by_words(index, "clay", limit=limit) == expected[:limit]

    def test_a_term_of_several_words_is_found_where_they_stand_together(self, index: Index) -> None:
        put(
            index,
            note("together.md", "the Night Jar relay"),
            note("apart.md", "a jar at night"),
            note("between.md", "night and jar"),
        )
        assert by_words(index, "night jar") == [("together.md", 0)]
        assert len(by_words(index, "night", "jar")) == 3

    def test_words_of_two_chunks_do_not_stand_together(self, index: Index) -> None:
        put(index, note("a.md", "at night", "jar of", "clay", reach=2))
        put(index, note("b.md", "slip", "at night", "jar of", reach=2))
        put(index, note("c.md", "x", section=("at night", "jar"), title="slip", tags=("old", "kiln")))
        assert by_words(index, "night jar", "slip at", "old kiln") == []

    def test_a_chunk_is_found_by_what_stands_next_to_it_but_comes_after_it(self, index: Index) -> None:
        put(
            index,
            talk(
                "t.md",
                ("Ana", "When do we fire the kiln?"),
                ("Deniz", "On Tuesday."),
                ("Ana", "Good."),
                ("Ana", "And something else entirely."),
            ),
        )
        assert by_words(index, "kiln") == [("t.md", 0), ("t.md", 1), ("t.md", 2)]
        assert by_words(index, "tuesday")[0] == ("t.md", 1)
        assert len(by_words(index, "tuesday")) == 4

    def test_only_neighbours_that_the_chunk_names_count(self, index: Index) -> None:
        put(index, note("a.md", "clay", "ash", "slip"))
        assert by_words(index, "ash") == [("a.md", 1)]

    def test_neighbours_are_of_the_same_file(self, index: Index) -> None:
        put(index, note("a.md", "clay", reach=2), note("b.md", "ash", reach=2))
        assert by_words(index, "clay") == [("a.md", 0)]

    def test_a_turn_is_found_by_who_spoke_and_when(self, index: Index) -> None:
        put(index, talk("t.md", ("Ana Ruiz", "Yes."), ("Deniz", "No."), reach=0, day="2026-03-14"))
        assert by_words(index, "ruiz") == [("t.md", 0)]
        assert by_words(index, "deniz") == [("t.md", 1)]
        assert sorted(by_words(index, "14 march 2026")) == [("t.md", 0), ("t.md", 1)]
        assert by_words(index, "april") == []

    @pytest.mark.parametrize("word", ["workshop", "shelves", "tools", "inventory", "woodwork"])
    def test_a_note_is_found_by_its_title_headings_tags_and_name(self, index: Index, word: str) -> None:
        put(
            index,
            note(
                "topics/inventory.md",
                "Two saws and a plane.",
                section=("Workshop", "Shelves"),
                title="All tools",
                tags=("woodwork",),
            ),
            note("topics/b.md", "Nothing."),
        )
        assert by_words(index, word) == [("topics/inventory.md", 0)]

    def test_a_word_of_the_text_counts_more_than_one_of_the_heading(self, index: Index) -> None:
        put(index, note("a.md", "x y z", title="kiln"), note("b.md", "kiln y z", title="x"))
        assert by_words(index, "kiln") == [("b.md", 0), ("a.md", 0)]

    @pytest.mark.parametrize(
        ("text", "question"),
        [
            ("She glazed the pots.", "glazing a pot"),
            ("They are firing it", "fired"),
            ("The café in Málaga", "cafe malaga"),
            ("cafe malaga", "Café Málaga"),
            ("Grüße aus der Straße", "GRÜSSE STRASSE"),
            ("KILN", "kiln"),
            ("cafe\u0301", "café"),
            ("full-width ｋｉｌｎ", "kiln"),
            ("新しい全文検索エンジン", "全文検索"),
            ("窯の温度は千二百度", "温度"),
            ("가마 온도를 확인했다", "온도"),
            ("เตาเผาร้อนมาก", "เตาเผา"),
            ("Rewrite it in C++ one day", "C++"),
            ("C# and F# only", "F#"),
            ("see #34 for that", "#34"),
            ("export $HOME first", "$HOME"),
            ("run it with --force", "--force"),
            ("call getUserName() here", "user name"),
            ("call getUserName() here", "getUserName"),
            ("in src/app/main.py at the top", "src/app/main.py"),
            ("Ёлка стоит", "елка"),
            ("Ἀθήνα καλή", "καλη"),
        ],
    )
    def test_a_word_is_found_however_it_is_written(self, index: Index, text: str, question: str) -> None:
        put(index, note("a.md", text), note("b.md", "Something else."))
        assert by_question(index, question) == [("a.md", 0)]

    @pytest.mark.parametrize(
        ("text", "question"),
        [("34 pots and 34", "#34"), ("home at home", "$HOME"), ("use of force", "--force"), ("tag", "#tag")],
    )
    def test_a_symbol_is_more_than_its_letters(self, index: Index, text: str, question: str) -> None:
        put(index, note("a.md", text), note("b.md", f"some text with {question} in it"), note("c.md", "x"))
        assert by_question(index, question) == [("b.md", 0), ("a.md", 0)]

    def test_some_letters_are_nothing_without_their_symbol(self, index: Index) -> None:
        put(index, note("a.md", "Vitamin C and F and hashtag"))
        for question in ("C++", "F#", "C#"):
            assert by_question(index, question) == []

    def test_one_letter_of_a_script_without_spaces_is_found(self, index: Index) -> None:
        put(index, note("a.md", "窯の温度"), note("b.md", "千二百度"))
        assert by_words(index, "温") == [("a.md", 0)]
        assert sorted(by_words(index, "度")) == [("a.md", 0), ("b.md", 0)]

    # ------------------------------------------------------------ frequency

    def test_frequency_is_the_share_of_chunks(self, index: Index) -> None:
        put(index, note("a.md", "clay clay", "clay", "ash"), note("b.md", "glazing"))
        assert index.words.frequency("clay") == 0.5
        assert index.words.frequency("Ash") == 0.25
        assert index.words.frequency("glaze") == 0.25
        assert (
            index.words.frequency("nowhere")
            == index.words.frequency("")
            == index.words.frequency("...")
            == 0.0
        )

    def test_frequency_of_several_words_is_at_most_that_of_each(self, index: Index) -> None:
        put(index, note("a.md", "night jar", "night", "night", "day"))
        assert 0 < index.words.frequency("night jar") <= index.words.frequency("jar") == 0.25
        assert index.words.frequency("night nowhere") == 0.0

    def test_frequency_follows_every_change(self, index: Index) -> None:
        put(index, note("a.md", "clay", "ash"), note("b.md", "clay"))
        assert index.words.frequency("clay") == pytest.approx(2 / 3)
        put(index, gone=["b.md"])
        assert index.words.frequency("clay") == 0.5
        put(index, note("a.md", "slip"))
        assert index.words.frequency("clay") == 0.0

    def test_only_the_owner_learns_how_rare_a_word_is_in_what_others_do_not_see(self, index: Index) -> None:
        put(
            index,
            note("a.md", "clay", "ash", audience="group"),
            note("b.md", "clay", "clay", "diagnosis", audience="owner"),
        )
        group = Scope(audience="group")
        assert index.words.frequency("diagnosis", group) == 0.0
        assert index.words.frequency("clay", group) == 0.5
        assert index.words.frequency("clay", Scope(audience="anyone")) == 0.0
        assert index.words.frequency("clay", Scope(under="a.md")) == index.words.frequency("clay") == 0.6
        put(index, note("b.md", "diagnosis", audience="group"))
        assert index.words.frequency("diagnosis", group) == pytest.approx(1 / 3)

    @pytest.mark.parametrize("word", ["agreed", "universities", "glazing", "café", "全文", "C++"])
    def test_a_word_is_as_frequent_for_a_group_that_sees_all(self, index: Index, word: str) -> None:
        text = "We agreed on the agreement of universities: glazing, café, 全文検索, C++, x"
        put(index, note("a.md", text, audience="anyone"), note("b.md", "nothing", audience="anyone"))
        terms = [term.text for term in parse_query(word).terms]
        assert terms
        for term in terms:
            assert index.words.frequency(term, Scope(audience="group")) == index.words.frequency(term) == 0.5

    # ------------------------------------------------------------ vectors

    def test_the_nearest_come_first(self, index: Index) -> None:
        put(index, note("a.md", "north", "east", "north-east", "south"))
        north, east = vector(127, 0, 1, 1, 1, 1, 1, 1), vector(0, 127, 1, 1, 1, 1, 1, 1)
        both, south = vector(127, 127, 1, 1, 1, 1, 1, 1), vector(-127, 0, -1, -1, -1, -1, -1, -1)
        embed(index, {"north-east": both, "north": north, "east": east, "south": south})
        assert by_vector(index, north) == [("a.md", 0), ("a.md", 2), ("a.md", 1), ("a.md", 3)]
        found = index.vectors.nearest(north, EVERYTHING, 10)
        assert found[0].score == pytest.approx(1.0, abs=1e-6)
        assert found[-1].score == pytest.approx(-1.0, abs=1e-6)
        assert by_vector(index, north, limit=2) == [("a.md", 0), ("a.md", 2)]
        assert index.vectors.nearest(north, EVERYTHING, 0) == []

    @pytest.mark.parametrize("length", [1, 3, 8, 12, 64, 100, 256, 1024])
    def test_vectors_may_have_any_length(self, index: Index, length: int) -> None:
        put(index, note("a.md", "one", "two"))
        one, two = vector(*[100] * length), vector(*[-100] * length)
        embed(index, {"one": one, "two": two})
        assert by_vector(index, one)[0] == ("a.md", 0)
        assert by_vector(index, two)[0] == ("a.md", 1)

    def test_the_length_of_a_vector_says_nothing(self, index: Index) -> None:
        put(index, note("a.md", "small", "large"))
        embed(index, {"small": vector(*[1, 2] * 4), "large": vector(*[60, 120] * 4)})
        found = index.vectors.nearest(vector(*[30, 60] * 4), EVERYTHING, 10)
        assert [one.score for one in found] == pytest.approx([1.0, 1.0], abs=1e-6)

    def test_equally_near_ones_come_in_the_order_of_the_files(self, index: Index) -> None:
        for path in ("c.md", "a.md", "d.md", "b.md"):
            put(index, note(path, "clay", "clay"))
            embed(index, {"clay": vector(*range(8))})
        expected = [(path, at) for path in ("a.md", "b.md", "c.md", "d.md") for at in (0, 1)]
        for limit in range(1, 9):
            assert by_vector(index, vector(*range(8)), limit=limit) == expected[:limit]

    def test_of_very_many_equally_near_ones_the_first_files_are_kept(self, index: Index) -> None:
        paths = [f"{number:03}.md" for number in range(700)]
        put(index, *(note(path, "clay") for path in reversed(paths)))
        embed(index, {"clay": vector(*range(8))})
        assert by_vector(index, vector(*range(8)), limit=5) == [(path, 0) for path in paths[:5]]

    def test_the_nearest_of_very_many_is_found(self, index: Index) -> None:
        texts = [f"text {number:04}." for number in range(900)]
        put(index, *(note(f"{text}md", text) for text in texts))
        index.vectors.use_embedder("by hand")
        # All signs alike, so only the values tell them apart.
        given = {text: vector(*[1 + at % 97, 1 + at // 97] * 4) for at, text in enumerate(texts)}
        index.vectors.store({digest: given[text] for digest, text in index.vectors.list_unembedded(1000)})
        asked = given["text 0005."]
        found = index.vectors.nearest(asked, EVERYTHING, 3)
        assert found[0].score == pytest.approx(1.0, abs=1e-5)

    def test_chunks_without_a_vector_are_not_near_anything(self, index: Index) -> None:
        put(index, note("a.md", "clay", "12345"))
        embed(index, {"clay": vector(*range(8)), "12345": None})
        put(index, note("b.md", "not embedded yet"))
        assert by_vector(index, vector(*range(8))) == [("a.md", 0)]
        assert index.stats().embedded == 1

    def test_cosines_are_told_for_the_chunks_asked_for(self, index: Index) -> None:
        put(index, note("a.md", "north", "south", "12345"), note("b.md", "waiting"))
        north, south = vector(*[1, 2] * 4), vector(*[-1, -2] * 4)
        index.vectors.use_embedder("by hand")
        given = {"north": north, "south": south, "12345": None}
        index.vectors.store(
            {digest: given[text] for digest, text in index.vectors.list_unembedded(10) if text in given}
        )
        ids = {place: one.id for place, one in self._all(index).items()}
        told = index.vectors.cosines(north, ids.values())
        assert set(told) == {ids["a.md", 0], ids["a.md", 1]}
        assert told[ids["a.md", 0]] == pytest.approx(1.0, abs=1e-6)
        assert told[ids["a.md", 1]] == pytest.approx(-1.0, abs=1e-6)
        assert index.vectors.cosines(north, [ids["a.md", 1]]) == {ids["a.md", 1]: told[ids["a.md", 1]]}
        assert index.vectors.cosines(north, []) == index.vectors.cosines(north, [987_654_321]) == {}

    def _all(self, index: Index) -> dict[Place, Scored]:
        terms = ("north", "south", "12345", "waiting", "clay", "ash", "slip", "kiln")
        found = index.words.search(terms, EVERYTHING, 1000)
        return dict(zip(places(index, found), found, strict=True))

    def test_cosines_and_nearest_say_the_same(self, index: Index) -> None:
        put(index, note("a.md", "clay", "ash", "slip"))
        embed(index, {"clay": vector(1, 2, 3), "ash": vector(-5, 6, 1), "slip": vector(9, 9, -90)})
        near = index.vectors.nearest(vector(4, 5, -6), EVERYTHING, 10)
        assert index.vectors.cosines(vector(4, 5, -6), [one.id for one in near]) == dict(near)

    def test_the_background_is_what_texts_have_in_common(self, index: Index) -> None:
        assert index.vectors.sample_cosines() == []
        put(index, note("a.md", "north", "south", "12345", "north"), note("b.md", "waiting"))
        north, south = vector(*[1, 2] * 4), vector(*[-1, -2] * 4)
        embed(index, {"north": north, "south": south, "12345": None, "waiting": north})
        put(index, gone=["b.md"])  # what is gone is no text of the home
        assert index.vectors.sample_cosines() == pytest.approx([-1.0], abs=1e-6)

    def test_a_chunk_that_changed_loses_its_vector_until_it_has_a_new_one(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        embed(index, {"clay": vector(*range(8))})
        put(index, note("a.md", "ash"))
        assert index.vectors.nearest(vector(*range(8)), EVERYTHING, 10) == []
        assert index.stats().embedded == 0
        embed(index, {"ash": vector(*range(8))})
        assert by_vector(index, vector(*range(8))) == [("a.md", 0)]

    def test_a_vector_may_be_given_again(self, index: Index) -> None:
        put(index, note("a.md", "clay", "ash"))
        index.vectors.use_embedder("by hand")
        (one, _), (two, _) = waiting = index.vectors.list_unembedded(10)
        texts = [text for _, text in waiting]
        index.vectors.store({one: vector(*[1] * 8), two: vector(*[-1] * 8)})
        index.vectors.store({one: vector(*[-1] * 8), two: vector(*[1] * 8)})
        assert by_vector(index, vector(*[1] * 8))[0] == ("a.md", ("clay", "ash").index(texts[1]))
        assert index.stats().embedded == 2

    # ------------------------------------------------------------ embedding

    def test_texts_wait_with_what_an_embedder_should_read(self, index: Index) -> None:
        one = note("a.md", "wet clay", title="Materials", section=("Materials", "Clay"))
        two = talk("t.md", ("Ana", "wet clay"))
        put(index, one, two)
        index.vectors.use_embedder("by hand")
        texts = {text for _, text in index.vectors.list_unembedded(10)}
        assert texts == {text_of(one), text_of(two)} == {"Materials > Clay\nwet clay", "Ana: wet clay"}

    def test_equal_texts_wait_once_and_share_a_vector(self, index: Index) -> None:
        put(index, note("a.md", "clay", "clay", "ash"), note("b.md", "clay"))
        assert sorted(embed(index, {"clay": vector(*range(8)), "ash": None})) == ["ash", "clay"]
        assert by_vector(index, vector(*range(8))) == [("a.md", 0), ("a.md", 1), ("b.md", 0)]

    def test_at_most_so_many_texts_are_given_at_a_time_and_all_in_the_end(self, index: Index) -> None:
        put(index, note("a.md", *(f"text {number}" for number in range(20))))
        index.vectors.use_embedder("by hand")
        seen: list[str] = []
        while waiting := index.vectors.list_unembedded(6):
            assert len(waiting) <= 6
            seen += [text for _, text in waiting]
            index.vectors.store(dict.fromkeys((digest for digest, _ in waiting), vector(*range(8))))
        assert sorted(seen) == sorted(f"text {number}" for number in range(20))
        assert index.stats().embedded == 20

    def test_a_text_that_has_no_vector_is_not_asked_for_again(self, index: Index) -> None:
        put(index, note("a.md", "12345"))
        assert embed(index, {"12345": None}) == ["12345"]
        put(index, note("b.md", "12345"), note("a.md", "12345", "12345"))
        assert index.vectors.list_unembedded(10) == []

    def test_what_comes_in_the_place_of_the_last_waits_for_its_vector(self, index: Index) -> None:
        given = {"": vector(*range(8))}
        put(index, note("a.md", "clay"), note("b.md", "ash", "slip"))
        embed(index, given)
        assert index.vectors.list_unembedded(10) == []
        put(index, gone=["b.md"])
        put(index, note("c.md", "glaze"))
        assert not index.vectors.is_complete()
        assert embed(index, given) == ["glaze"]
        assert index.vectors.list_unembedded(10) == []
        assert index.vectors.is_complete()
        assert sorted(by_vector(index, vector(*range(8)))) == [("a.md", 0), ("c.md", 0)]

    def test_texts_wait_until_all_of_them_have_come(self, index: Index) -> None:
        texts = ["clay", "ash", "clay", "slip", "ash", "glaze"]
        put(index, note("a.md", *texts))
        index.vectors.use_embedder("by hand")
        seen: list[str] = []
        while waiting := index.vectors.list_unembedded(2):
            assert len(waiting) <= 2
            assert not index.vectors.is_complete()
            seen += [text for _, text in waiting]
            index.vectors.store({digest: vector(*range(8)) for digest, _ in waiting})
        assert sorted(seen) == sorted(set(texts))
        assert index.stats().embedded == len(texts)

    def test_a_text_that_loses_its_vector_is_near_nothing(self, index: Index) -> None:
        put(index, note("a.md", "clay"), note("b.md", "ash"))
        index.vectors.use_embedder("by hand")
        waiting = dict(index.vectors.list_unembedded(10))
        index.vectors.store(dict.fromkeys(waiting, vector(*range(8))))
        index.vectors.store({digest: None for digest, text in waiting.items() if text == "ash"})
        assert by_vector(index, vector(*range(8))) == [("a.md", 0)]
        assert index.stats().embedded == 1

    def test_nothing_is_embedded_twice(self, index: Index) -> None:
        put(index, note("a.md", "clay", "ash"))
        given = {"clay": vector(*[1] * 8), "ash": vector(*[-1] * 8), "slip": vector(*[1, -1] * 4)}
        assert len(embed(index, given)) == 2
        put(index, note("moved.md", "clay", "ash"), gone=["a.md"])
        assert embed(index, given) == []
        assert by_vector(index, vector(*[1] * 8)) == [("moved.md", 0), ("moved.md", 1)]
        put(index, gone=["moved.md"])
        put(index, note("back.md", "ash", "clay"))
        assert embed(index, given) == []
        assert by_vector(index, vector(*[1] * 8)) == [("back.md", 1), ("back.md", 0)]
        put(index, note("back.md", "ash", "slip", "clay"))
        assert embed(index, given) == ["slip"]

    def test_another_embedder_starts_from_nothing(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        embed(index, {"clay": vector(*range(8))}, name="one")
        assert (index.vectors.embedder_name(), index.stats().embedder) == ("one", "one")
        index.vectors.use_embedder("two")
        assert index.vectors.embedder_name() == ""
        assert index.stats().embedded == 0
        assert index.vectors.nearest(vector(*range(8)), EVERYTHING, 10) == []
        assert embed(index, {"clay": vector(1, 2, 3)}, name="two") == ["clay"]  # of another length
        assert by_vector(index, vector(1, 2, 3)) == [("a.md", 0)]
        assert index.vectors.embedder_name() == "two"

    def test_the_same_embedder_again_keeps_all(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        embed(index, {"clay": vector(*range(8))}, name="one")
        before = index.stats()
        index.vectors.use_embedder("one")
        assert index.stats() == before
        assert index.vectors.list_unembedded(10) == []

    def test_vectors_of_nobody_are_held_before_the_first(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        index.vectors.use_embedder("one")
        assert index.vectors.embedder_name() == ""

    def test_it_is_known_whether_all_texts_were_given_to_the_embedder(self, index: Index) -> None:
        put(index, note("a.md", "clay", "12345"))
        index.vectors.use_embedder("one")
        assert not index.vectors.is_complete()
        embed(index, {"clay": vector(*range(8)), "12345": None}, name="one")
        assert index.vectors.list_unembedded(10) == []
        assert index.vectors.is_complete()
        put(index, note("b.md", "ash"))
        assert not index.vectors.is_complete()
        embed(index, {"ash": vector(*range(8))}, name="one")
        assert index.vectors.list_unembedded(10) == []
        assert index.vectors.is_complete()
        index.vectors.use_embedder("two")
        assert not index.vectors.is_complete()

    def test_vectors_of_two_embedders_never_mix(self, index: Index, other: Index) -> None:
        put(index, note("a.md", "clay"))
        index.vectors.use_embedder("one")
        waiting = index.vectors.list_unembedded(10)
        other.vectors.use_embedder("two")  # while the first one was computing
        with pytest.raises(IndexUnavailable):
            index.vectors.store({digest: vector(*range(8)) for digest, _ in waiting})
        assert (other.stats().embedded, other.vectors.embedder_name()) == (0, "")
        assert embed(other, {"clay": vector(1, 2, 3)}, name="two") == ["clay"]

    def test_a_vector_for_a_text_that_is_gone_meanwhile_does_no_harm(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        index.vectors.use_embedder("by hand")
        waiting = index.vectors.list_unembedded(10)
        put(index, gone=["a.md"])
        index.vectors.store({digest: vector(*range(8)) for digest, _ in waiting})
        assert index.stats().embedded == 0
        assert index.vectors.nearest(vector(*range(8)), EVERYTHING, 10) == []

    # ------------------------------------------------------------ reading

    def test_a_chunk_comes_back_as_it_went_in(self, index: Index) -> None:
        chunk = Chunk("Ton\nund \0 Asche 🔥", 3, 9, ("Töpferei", 'a "b"'), "2026-05-06", "", 0, (0, 2))
        turn = Chunk("Yes.", 12, 12, (), "2026-05-07", "Ana (she)", 4, (0, 2))
        put(
            index,
            document(
                "archive/people/ana.md",
                [chunk, turn],
                category="person",
                audience="group",
                archived=True,
                title="Ana 'R' Ruiz",
            ),
        )
        found = index.words.search(["asche", "yes"], EVERYTHING, 10)
        stored = sorted(index.read_chunks([one.id for one in found]).values(), key=lambda one: one.id)
        assert [one.chunk._replace(near=(0, 0)) for one in stored] == [
            chunk._replace(near=(0, 0)),
            turn._replace(near=(0, 0)),
        ]
        for one in stored:
            assert one[1:6] == ("archive/people/ana.md", "Ana 'R' Ruiz", "person", "group", True)

    def test_only_chunks_that_are_there_come_back(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        (found,) = index.words.search(["clay"], EVERYTHING, 10)
        assert set(index.read_chunks([found.id, 987_654_321])) == {found.id}
        assert index.read_chunks([]) == {}

    def test_turns_are_shown_with_the_two_before_and_the_one_after(self, index: Index) -> None:
        said = [("Ana", "one"), ("Deniz", "two"), ("Ana", "three"), ("Deniz", "four"), ("Ana", "five")]
        put(index, talk("t.md", *said, reach=0), note("a.md", "four", "five"))
        ids = [self._one(index, "t.md", word) for word in ("one", "four", "five")]
        windows = index.windows([*ids, self._one(index, "a.md", "five")])
        assert windows == {
            ids[0]: "Ana: one Deniz: two",
            ids[1]: "Deniz: two Ana: three Deniz: four Ana: five",
            ids[2]: "Ana: three Deniz: four Ana: five",
        }
        assert index.windows([]) == {}

    def test_a_chunk_is_given_among_its_neighbours(self, index: Index) -> None:
        said = [("Ana", "one"), ("Deniz", "two"), ("Ana", "three"), ("Deniz", "four"), ("Ana", "five")]
        put(index, talk("t.md", *said), note("a.md", "clay", "ash", "slip"), note("b.md", "alone"))
        found = index.around([("t.md", 1), ("t.md", 4), ("a.md", 2), ("b.md", 1)], before=2, after=1)
        assert {place: [one.chunk.text for one in near] for place, near in found.items()} == {
            ("t.md", 1): ["one", "two"],
            ("t.md", 4): ["two", "three", "four", "five"],
            ("a.md", 2): ["clay", "ash", "slip"],
            ("b.md", 1): ["alone"],
        }

    def test_neighbours_are_given_as_they_are_stored(self, index: Index) -> None:
        put(index, talk("t.md", ("Ana", "one"), ("Deniz", "two"), title="Pots", day="2026-03-04"))
        near = index.around([("t.md", 1)], after=1)["t.md", 1]
        assert near == list(index.read_chunks([one.id for one in near]).values())
        assert [(one.path, one.title, one.chunk.speaker) for one in near] == [
            ("t.md", "Pots", "Ana"),
            ("t.md", "Pots", "Deniz"),
        ]

    def test_a_message_in_several_chunks_is_given_complete_and_counts_once(self, index: Index) -> None:
        said = [(3, "before"), (7, "begins"), (7, "goes on"), (7, "ends"), (8, "after"), (9, "later")]
        put(index, document("t.md", [_turn(at, *one) for at, one in enumerate(said)]))
        for line in (2, 3, 4):
            near = index.around([("t.md", line)])["t.md", line]
            assert [one.chunk.text for one in near] == ["begins", "goes on", "ends"]
        near = index.around([("t.md", 3)], before=1, after=1)["t.md", 3]
        assert [one.chunk.text for one in near] == ["before", "begins", "goes on", "ends", "after"]
        near = index.around([("t.md", 5)], before=1)["t.md", 5]
        assert [one.chunk.text for one in near] == ["begins", "goes on", "ends", "after"]

    def test_of_chunks_on_one_line_all_are_given(self, index: Index) -> None:
        chunks = [chunk._replace(first_line=1) for chunk in note("a.md", "clay", "ash", "slip").chunks]
        put(index, document("a.md", chunks))
        assert [one.chunk.text for one in index.around([("a.md", 1)])["a.md", 1]] == ["clay", "ash", "slip"]

    def test_of_a_book_in_one_message_the_chunks_close_by_are_given(self, index: Index) -> None:
        put(index, document("t.md", [_turn(at, 1, f"page {at}") for at in range(4 * MAX_NEIGHBOURS)]))
        near = index.around([("t.md", 1)], after=1)["t.md", 1]
        assert [one.chunk.text for one in near] == [f"page {at}" for at in range(MAX_NEIGHBOURS + 1)]

    def test_what_is_not_there_has_no_neighbours(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        places = [("a.md", 2), ("b.md", 1), ("", 0), ("\ud800", 1), ("a\0.md", -1)]
        assert index.around(places, 3, 3) == {}
        assert index.around([]) == {}
        assert index.around([("a.md", 1)], -5, -5).keys() == {("a.md", 1)}

    def test_what_others_write_meanwhile_is_seen_afterwards(self, index: Index, other: Index) -> None:
        put(index, note("a.md", "clay"))
        with index.unmoving(), index.unmoving():
            assert index.words.frequency("clay") == 1.0
            put(other, note("b.md", "ash"), gone=["a.md"])
            assert by_words(index, "clay") == [("a.md", 0)]
            assert index.words.frequency("ash") == 0.0
            assert list(index.stamps()) == ["a.md"]
        assert by_words(index, "clay") == []
        assert index.words.frequency("ash") == 1.0
        put(index, note("c.md", "slip"))
        assert by_words(index, "slip") == [("c.md", 0)]

    def test_a_question_that_fails_leaves_the_index_free(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        with pytest.raises(ZeroDivisionError), index.unmoving():
            index.words.search(["clay"], EVERYTHING, 1 // len(index.names()))
        put(index, note("b.md", "ash"))
        assert by_words(index, "ash") == [("b.md", 0)]
        assert index.words.frequency("ash") == 0.5

    def _one(self, index: Index, path: str, word: str) -> int:
        (found,) = index.words.search([word], Scope(under=path), 10)
        return found.id

    def test_names_are_those_of_people_and_projects(self, index: Index) -> None:
        put(
            index,
            note("knowledge/projects/night-jar/notes.md", category="project", title="Night Jar relay"),
            note("knowledge/projects/kilnlog.md", category="project", title="Kilnlog"),
            note("knowledge/people/ana_ruiz.md", category="person", title="Ana"),
            note("knowledge/people/deniz.txt", category="person", title="Deniz"),
            note("archive/people/mo.markdown", category="person", title="Mo Farah", archived=True),
            note("topics/clay.md", category="topic", title="Clay"),
            talk("raw/conversations/t.md", ("Ines", "hello"), title="A talk"),
        )
        assert index.names() == (
            "Mo Farah", "mo", "Ana", "ana ruiz", "Deniz", "deniz", "Kilnlog", "kilnlog",
            "Night Jar relay", "night jar",
        )  # fmt: skip
        put(index, gone=["knowledge/people/ana_ruiz.md", "archive/people/mo.markdown"])
        assert index.names()[:2] == ("Deniz", "deniz")

    def test_names_are_those_that_may_be_seen(self, index: Index) -> None:
        put(
            index,
            note("knowledge/people/ana.md", "x", category="person", title="Ana Ruiz"),
            note("knowledge/people/mo.md", "x", category="person", title="Mo Farah", audience="group"),
            note("archive/people/li.md", "x", category="person", title="Li", archived=True, agents=("kiln",)),
        )
        assert index.names(Scope(audience="group")) == ("Mo Farah", "mo")
        assert index.names(Scope(audience="anyone")) == ()
        assert index.names(Scope(agents=("main",), archived=True)) == ()
        assert index.names(Scope(archived=True)) == ("Li", "li")
        assert len(index.names()) == 6

    # ------------------------------------------------------------ links

    def test_a_link_counts_for_every_note_that_is_called_so(self, index: Index) -> None:
        put(
            index,
            note("a.md", "clay", links=points("[[mara]]", "b.md")),
            note("b.md", "clay", links=points("[[mara]]"), names=("[[b]]",)),
            note("p/mara.md", "clay", names=("[[mara]]",)),
            note("q/mara.md", "clay", names=("[[mara]]",)),
        )
        assert index.links.count_references(["p/mara.md", "q/mara.md", "b.md", "a.md", "none.md"]) == {
            "p/mara.md": 2, "q/mara.md": 2, "b.md": 1,
        }  # fmt: skip
        assert index.links.resolve("Mara") == ["p/mara.md", "q/mara.md"]
        assert index.links.resolve("b.md") == ["b.md"]
        assert index.links.resolve("nobody") == []

    def test_a_file_that_points_to_another_in_two_ways_counts_once_and_to_itself_not_at_all(
        self, index: Index
    ) -> None:
        put(
            index,
            note("a.md", "clay", links=points("[[b]]", "b.md")),
            note("b.md", "clay", links=points("[[b]]"), names=("[[b]]",)),
        )
        assert index.links.count_references(["a.md", "b.md"]) == {"b.md": 1}

    def test_links_follow_every_change(self, index: Index) -> None:
        put(index, note("a.md", "clay", links=points("[[b]]")))
        assert index.links.list() == [Link("a.md", 1, "[[b]]", ())]
        put(index, note("b.md", "clay", names=("[[b]]",)))
        assert index.links.list() == [Link("a.md", 1, "[[b]]", ("b.md",))]
        put(index, note("c.md", "clay", names=("[[b]]",)))
        assert index.links.list() == [Link("a.md", 1, "[[b]]", ("b.md", "c.md"))]
        put(index, gone=["b.md"])
        assert index.links.list(path="c.md") == index.links.list() == [Link("a.md", 1, "[[b]]", ("c.md",))]
        assert index.links.list(path="b.md") == []
        put(index, note("a.md", "clay"))
        assert index.links.list() == []

    def test_neighbours_are_those_a_note_points_to_and_those_that_point_to_it(self, index: Index) -> None:
        put(
            index,
            note("a.md", "clay", links=points("[[b]]")),
            note("b.md", "clay", links=points("c.md", "[[none]]"), names=("[[b]]",)),
            note("c.md", "clay"),
        )
        assert index.links.neighbours(["b.md"], EVERYTHING) == [
            Neighbour("b.md", "a.md", False),
            Neighbour("b.md", "c.md", True),
        ]
        assert index.links.neighbours([], EVERYTHING) == index.links.neighbours(["none.md"], EVERYTHING) == []

    def test_links_of_hidden_notes_are_neither_counted_nor_told(self, index: Index) -> None:
        seen: dict[str, Any] = {"audience": "group"}
        put(
            index,
            note("hidden.md", "clay", links=points("[[seen]]"), names=("[[hidden]]",)),
            note("seen.md", "clay", links=points("[[hidden]]", "other.md"), names=("[[seen]]",), **seen),
            note("other.md", "clay", links=points("[[seen]]"), **seen),
            note("of-agent.md", "clay", links=points("[[seen]]"), agents=("ada",), **seen),
        )
        group = Scope(audience="group", agents=("moss",))
        assert index.links.count_references(["seen.md", "hidden.md"], group) == {"seen.md": 1}
        assert index.links.count_references(["seen.md"]) == {"seen.md": 3}
        assert index.links.neighbours(["seen.md"], group) == [
            Neighbour("seen.md", "other.md", False),
            Neighbour("seen.md", "other.md", True),
        ]
        assert index.links.resolve("hidden", group) == []
        assert index.notes(group) == ["other.md", "seen.md"]
        assert index.links.list(group) == [
            Link("other.md", 1, "[[seen]]", ("seen.md",)),
            Link("seen.md", 1, "[[hidden]]", ()),
            Link("seen.md", 1, "other.md", ("other.md",)),
        ]
        assert index.chunks_of(["hidden.md", "of-agent.md"], group, 10) == {}

    def test_how_a_search_is_narrowed_does_not_change_who_points_to_a_note(self, index: Index) -> None:
        put(
            index,
            note("a.md", "clay", links=points("b.md"), category="person", day="2026-01-01"),
            note("b.md", "clay", day="2026-02-01"),
        )
        narrow = Scope(categories=("reference",), since=date(2026, 1, 15), without=("a.md",))
        assert index.links.count_references(["b.md"], narrow) == {"b.md": 1}
        assert index.links.neighbours(["b.md"], narrow) == []

    def test_the_first_chunks_of_files_are_given_in_their_order(self, index: Index) -> None:
        put(index, note("a.md", "one", "two", "three"), note("b.md", "four"))
        found = index.chunks_of(["b.md", "a.md", "none.md"], EVERYTHING, 2)
        stored = index.read_chunks([one for ids in found.values() for one in ids])
        texts = {path: [stored[one].chunk.text for one in ids] for path, ids in found.items()}
        assert texts == {"a.md": ["one", "two"], "b.md": ["four"]}

    # ------------------------------------------------------------ facts

    def test_facts_count_files_chunks_and_vectors(self, index: Index) -> None:
        put(index, note("a.md", "clay", "12345"), note("b.md"))
        embed(index, {"clay": vector(*range(8)), "12345": None})
        facts = index.stats()
        assert facts[:3] == (2, 2, 1)
        assert facts.embedder == "by hand"

    def test_the_generation_grows_with_every_change(self, index: Index) -> None:
        seen = [index.stats().generation]
        put(index, note("a.md", "clay"))
        seen.append(index.stats().generation)
        put(index, note("a.md", "clay"))
        seen.append(index.stats().generation)
        index.vectors.use_embedder("one")
        seen.append(index.stats().generation)
        index.vectors.store({digest: vector(*range(8)) for digest, _ in index.vectors.list_unembedded(10)})
        seen.append(index.stats().generation)
        put(index, gone=["a.md"])
        seen.append(index.stats().generation)
        assert seen == sorted(set(seen))
        by_words(index, "clay")
        index.vectors.nearest(vector(*range(8)), EVERYTHING, 10)
        index.names()
        assert index.stats().generation == seen[-1]

    # ------------------------------------------------------------ where terms stand

    @pytest.mark.parametrize(
        ("terms", "text", "expected"),
        [
            (["kilns"], "The kiln is hot", [("kiln", "kilns")]),
            (["fired"], "Firing is fun, fires are not", [("Firing", "fired"), ("fires", "fired")]),
            (["cafe"], "Ein Café, ein café", [("Café", "cafe"), ("café", "cafe")]),
            (["hot"], "🔥 ß 熱 hot", [("hot", "hot")]),
            (["clay", "ash"], "ash, clay; ash", [("ash", "ash"), ("clay", "clay"), ("ash", "ash")]),
            (["night jar"], "Night of the jar", [("Night", "night jar"), ("jar", "night jar")]),
            (["全文"], "新しい全文検索", [("全文", "全文")]),
            (["clay"], "", []),
            ([], "clay", []),
            (["", "..."], "clay ...", []),
            (["glaze"], "kiln", []),
        ],
    )
    def test_terms_are_shown_where_they_stand(
        self, index: Index, terms: list[str], text: str, expected: list[tuple[str, str]]
    ) -> None:
        found = index.words.matches(terms, text)
        assert [(text[start:end], term) for start, end, term in found] == expected

    def test_a_name_with_a_symbol_is_shown_with_it(self, index: Index) -> None:
        text = "We use C++ here"
        ((start, end, term),) = index.words.matches(["cplusplus"], text)
        assert (text[start:end], term) == ("C++", "cplusplus")

    @many
    @given(st.lists(hostile | st.sampled_from(EVIL), max_size=4), hostile)
    def test_what_is_shown_is_in_the_text_and_in_order(
        self, index: Index, terms: list[str], text: str
    ) -> None:
        end = 0
        for first, last, term in index.words.matches(terms, text):
            assert end <= first < last <= len(text)
            assert term in terms
            end = last

    # ------------------------------------------------------------ who sees what

    def _both(self, index: Index, scope: Scope) -> list[str]:
        """The files that both sides show, which must be the same."""
        words = sorted(by_words(index, "clay", scope=scope))
        near = sorted(by_vector(index, vector(*range(8)), scope))
        assert words == near
        return [path for path, _ in words]

    def _filled(self, index: Index, *documents: Document) -> None:
        put(index, *documents)
        embed(index, {"clay": vector(*range(8))})

    def test_a_scope_names_categories(self, index: Index) -> None:
        self._filled(index, *(note(f"{category}.md", "clay", category=category) for category in CATEGORIES))
        assert self._both(index, Scope(categories=("person",))) == ["person.md"]
        assert self._both(index, Scope(categories=("topic", "journal"))) == ["journal.md", "topic.md"]
        assert len(self._both(index, EVERYTHING)) == len(CATEGORIES)

    def test_each_listener_sees_what_is_meant_for_them(self, index: Index) -> None:
        self._filled(index, *(note(f"{audience}.md", "clay", audience=audience) for audience in AUDIENCES))
        assert self._both(index, Scope(audience="owner")) == ["anyone.md", "group.md", "owner.md"]
        assert self._both(index, Scope(audience="group")) == ["anyone.md", "group.md"]
        assert self._both(index, Scope(audience="anyone")) == ["anyone.md"]

    @pytest.mark.parametrize("audience", ["group", "anyone"])
    def test_a_group_sees_its_own_conversations_and_no_others(self, index: Index, audience: str) -> None:
        self._filled(
            index,
            talk("own.md", ("Ana", "clay"), conversation="agent:main:group:1"),
            talk("other.md", ("Ana", "clay"), conversation="agent:main:group:12"),
            talk("mine.md", ("Ana", "clay"), conversation="agent:main:main"),
            talk("nobody's.md", ("Ana", "clay"), conversation=""),
            note("private.md", "clay"),
        )
        scope = Scope(audience=cast(Any, audience), conversation="agent:main:group:1")
        assert self._both(index, scope) == ["own.md"]
        assert self._both(index, Scope(audience=cast(Any, audience))) == []

    def test_an_agent_sees_what_is_shared_or_its_own(self, index: Index) -> None:
        self._filled(
            index,
            note("shared.md", "clay"),
            note("kiln.md", "clay", agents=("kiln",)),
            note("both.md", "clay", agents=("main", "kiln")),
            note("main.md", "clay", agents=("main",)),
            note("mainly.md", "clay", agents=("mainly", "ai")),
        )
        assert self._both(index, Scope(agents=("main",))) == ["both.md", "main.md", "shared.md"]
        assert self._both(index, Scope(agents=("kiln", "ai"))) == [
            "both.md", "kiln.md", "mainly.md", "shared.md",
        ]  # fmt: skip
        assert self._both(index, Scope(agents=("nobody",))) == ["shared.md"]
        assert len(self._both(index, Scope())) == 5

    def test_no_name_of_an_agent_passes_for_others(self, index: Index) -> None:
        self._filled(
            index,
            note("two.md", "clay", agents=("a", "b")),
            note("odd.md", "clay", agents=("a\n\nb",)),
            note("half.md", "clay", agents=("\ud800",)),
        )
        assert self._both(index, Scope(agents=("a\n\nb",))) == ["odd.md"]
        assert self._both(index, Scope(agents=("a",))) == ["two.md"]
        assert self._both(index, Scope(agents=("?", "\ufffd", "\n", ""))) == []

    def test_days_are_counted_with_their_first_and_last(self, index: Index) -> None:
        days = ("2025-12-31", "2026-01-01", "2026-01-15", "2026-02-01")
        self._filled(index, *(note(f"{day}.md", "clay", day=day) for day in (*days, "")))
        first, last = date(2026, 1, 1), date(2026, 1, 15)
        assert self._both(index, Scope(since=first)) == [f"{day}.md" for day in days[1:]]
        assert self._both(index, Scope(until=last)) == [f"{day}.md" for day in days[:3]]
        assert self._both(index, Scope(since=first, until=last)) == [f"{day}.md" for day in days[1:3]]
        assert self._both(index, Scope(since=last, until=first)) == []

    def test_each_turn_has_its_own_day(self, index: Index) -> None:
        turns = [
            Chunk("clay", at + 1, at + 1, (), day, "Ana", at + 1, (at, at + 1))
            for at, day in enumerate(("2026-01-01", "2026-01-02"))
        ]
        self._filled(index, document("t.md", turns, category="conversation"))
        assert by_words(index, "clay", scope=Scope(since=date(2026, 1, 2))) == [("t.md", 1)]
        assert self._both(index, Scope(until=date(2026, 1, 1))) == ["t.md"]

    def test_a_scope_names_the_beginning_of_a_path(self, index: Index) -> None:
        paths = ("topics/clay.md", "topics/clay/ash.md", "topics2/a.md", "ä/b.md", "t%/c.md", "t_/d.md")
        self._filled(index, *(note(path, "clay") for path in paths))
        assert self._both(index, Scope(under="topics/")) == ["topics/clay.md", "topics/clay/ash.md"]
        assert self._both(index, Scope(under="topics/clay.md")) == ["topics/clay.md"]
        assert self._both(index, Scope(under="t%")) == ["t%/c.md"]
        assert self._both(index, Scope(under="t_")) == ["t_/d.md"]
        assert self._both(index, Scope(under="ä")) == ["ä/b.md"]
        assert self._both(index, Scope(under="Topics/")) == self._both(index, Scope(under="\ud800")) == []

    def test_a_scope_may_leave_the_archive_out_or_ask_for_it_alone(self, index: Index) -> None:
        self._filled(index, note("a.md", "clay"), note("archive/b.md", "clay", archived=True))
        assert self._both(index, Scope(archived=False)) == ["a.md"]
        assert self._both(index, Scope(archived=True)) == ["archive/b.md"]
        assert self._both(index, Scope(archived=None)) == ["a.md", "archive/b.md"]

    def test_a_scope_may_be_without_some_files(self, index: Index) -> None:
        self._filled(
            index,
            note("a.md", "clay", "clay", audience="anyone"),
            note("b.md", "clay", audience="anyone"),
            note("secret.md", "clay"),
        )
        assert self._both(index, Scope(without=("a.md", "c.md"))) == ["b.md", "secret.md"]
        assert self._both(index, Scope(audience="anyone", without=("b.md",))) == ["a.md", "a.md"]
        assert self._both(index, Scope(audience="anyone", without=("a.md", "secret.md"))) == ["b.md"]
        assert self._both(index, Scope(audience="anyone", without=("a.md", "b.md"))) == []
        assert self._both(index, Scope(audience="anyone")) == ["a.md", "a.md", "b.md"]
        assert self._both(index, Scope(without=("\ud800", ""))) == ["a.md", "a.md", "b.md", "secret.md"]

    def test_a_scope_may_let_nothing_through(self, index: Index) -> None:
        nothing = Scope(audience="anyone")
        assert self._both(index, nothing) == []  # nothing is there yet
        self._filled(index, note("knowledge/people/ana.md", "clay", title="Ana", category="person"))
        for _ in range(2):
            assert self._both(index, nothing) == []
            assert index.words.frequency("clay", nothing) == 0.0
            assert index.names(nothing) == ()

    def test_scopes_may_come_and_come_again(self, index: Index) -> None:
        """More of them than anybody would remember."""
        paths = [f"{number:02}.md" for number in range(12)]
        self._filled(index, *(note(path, "clay") for path in paths))
        for asked in (paths, reversed(paths), paths):
            for path in asked:
                assert self._both(index, Scope(under=path)) == [path]
                rest = [other for other in paths if other != path]
                assert self._both(index, Scope(without=(path,))) == rest

    def test_what_was_hidden_since_the_last_question_is_hidden(self, index: Index) -> None:
        self._require_hidden(index, index)

    def test_what_others_hid_since_the_last_question_is_hidden(self, index: Index, other: Index) -> None:
        self._require_hidden(index, other)

    def _require_hidden(self, index: Index, writer: Index) -> None:
        """One file takes the place of another in every way but who may see it."""
        scope = Scope(audience="anyone")
        for number in range(3):
            put(writer, note("open.md", "clay", audience="anyone"), gone=[f"secret{number - 1}.md"])
            embed(writer, {"clay": vector(*range(8))})
            assert self._both(index, scope) == ["open.md"]
            assert index.words.frequency("clay", scope) == 1.0
            put(writer, note(f"secret{number}.md", "clay"), gone=["open.md"])
            assert self._both(index, scope) == []
            assert index.words.frequency("clay", scope) == 0.0
            with index.unmoving():
                assert self._both(index, scope) == []

    def test_what_is_asked_in_the_middle_of_a_change_is_not_remembered(self, index: Index) -> None:
        scope, asked = Scope(audience="anyone"), list[list[str]]()
        self._filled(index, note("a.md", "clay", audience="anyone"))

        def meanwhile() -> None:
            asked.append(self._both(index, scope))
            with index.unmoving():
                asked.append(self._both(index, scope))

        index.replace(Handed(meanwhile, note("a.md", "clay"), note("b.md", "clay", audience="anyone")))
        assert by_words(index, "clay", scope=scope) == [("b.md", 0)]
        with pytest.raises(Interrupted):
            index.replace(Breaking(note("b.md", "clay")))
        assert by_words(index, "clay", scope=scope) == [("b.md", 0)]
        assert asked
        assert all(seen in (["a.md"], ["b.md"]) for seen in asked)

    def test_what_is_hidden_takes_no_place(self, index: Index) -> None:
        """However many better ones there are that somebody may not see."""
        self._filled(
            index,
            *(note(f"secret{number:03}.md", "clay " * 5) for number in range(500)),
            note("open.md", "one word of clay among quite a few others", audience="anyone"),
        )
        scope = Scope(audience="anyone")
        assert by_words(index, "clay", scope=scope, limit=1) == [("open.md", 0)]
        assert by_vector(index, vector(*range(8)), scope, limit=1) == [("open.md", 0)]

    @many
    @given(_seen_documents(), st.lists(_scopes, min_size=1, max_size=4), st.integers(1, 12))
    def test_only_what_may_be_seen_is_found_and_all_of_it(
        self, make_index: MakeIndex, documents: list[Document], scopes: list[Scope], limit: int
    ) -> None:
        index = make_index(f"seen {next(_numbers)}")
        put(index, *documents)
        north, south = vector(*[1] * 8), vector(*[1, 2, -3, 4] * 2)
        embed(index, {"clay clay": south, "clay": north})
        for scope in scopes:
            expected = visible(documents, scope)
            words = by_words(index, "clay", scope=scope, limit=1000)
            near = by_vector(index, north, scope, limit=1000)
            assert len(words) == len(near) == len(expected)
            assert set(words) == set(near) == expected
            if scope.audience != "owner":
                ash = set(by_words(index, "ash", scope=scope, limit=1000))
                assert index.words.frequency("ash", scope) == (len(ash) / len(expected) if expected else 0.0)
            assert by_words(index, "clay", scope=scope, limit=limit) == words[:limit]
            assert by_vector(index, north, scope, limit=limit) == near[:limit]
        index.close()

    # ------------------------------------------------------------ whatever it is given

    @pytest.mark.parametrize("evil", EVIL, ids=lambda text: ascii(text[:20]))
    def test_any_text_may_be_looked_for(self, index: Index, evil: str) -> None:
        put(index, note("a.md", "wet clay"))
        index.words.search([evil], EVERYTHING, 10)
        index.words.frequency(evil)
        index.words.matches([evil], "wet clay")
        by_question(index, evil)
        assert by_words(index, evil, "wet")[:1] == [("a.md", 0)]
        for scope in (
            Scope(under=evil), Scope(agents=(evil,)), Scope(audience="group", conversation=evil),
        ):  # fmt: skip
            index.words.search(["wet"], scope, 10)
            index.words.frequency(evil, scope)
            index.names(scope)
        index.vectors.use_embedder(evil if evil.isprintable() else "x")
        assert index.stats()[:2] == (1, 1)

    def test_very_many_terms_may_be_looked_for(self, index: Index) -> None:
        put(index, note("a.md", "clay"))
        assert by_words(index, *(f"word{number}" for number in range(2000)), "clay") == [("a.md", 0)]

    @pytest.mark.parametrize("evil", EVIL, ids=lambda text: ascii(text[:20]))
    def test_any_text_may_be_held(self, index: Index, evil: str) -> None:
        chunk = Chunk(f"{evil} kiln", 1, 2, (evil,), evil, evil, 1, (0, 1))
        one = document("a.md", [chunk], title=evil, tags=(evil,), agents=(evil,), conversation=evil, day=evil)
        put(index, one)
        (found,) = index.words.search(["kiln"], EVERYTHING, 10)
        stored = index.read_chunks([found.id])[found.id]
        assert stored.chunk.text == whole(f"{evil} kiln")
        assert stored.chunk.section == (whole(evil),)
        assert (stored.chunk.speaker, stored.title) == (whole(evil), whole(evil))
        assert index.words.search(["kiln"], Scope(agents=(evil,)), 10) == [found]
        embed(index, {"kiln": vector(*range(8))})
        assert by_vector(index, vector(*range(8))) == [("a.md", 0)]

    @pytest.mark.parametrize(
        "path",
        [
            "x" * 255,
            "ä" * 127 + ".",
            "/".join(["y" * 255] * 15),
            "a b.md",
            "a\nb.md",
            "'; DROP TABLE passages; --.md",
            '".md',
            "%.md",
            ".md",
            "no ending",
            "a.b.c.md",
            "-",
            "\u202egnp.md",
            "e\u0301.md",
            "é.md",
            "🔥.md",
        ],
        ids=lambda text: ascii(text[:20]),
    )
    def test_a_file_may_have_any_name(self, index: Index, path: str) -> None:
        put(index, note(path, "clay", category="person"))
        assert by_words(index, "clay", scope=Scope(under=path)) == [(path, 0)]
        assert list(index.stamps()) == [path]
        index.names()
        put(index, gone=[path])
        assert index.stamps() == {}

    def test_two_spellings_of_a_name_are_two_files(self, index: Index) -> None:
        put(index, note("é.md", "clay"), note("e\u0301.md", "ash"), note("É.md", "slip"))
        assert len(index.stamps()) == 3

    @many
    @given(_hostile_documents(), st.lists(hostile | st.sampled_from(EVIL), max_size=3))
    def test_nothing_that_is_held_or_looked_for_is_an_error(
        self, make_index: MakeIndex, documents: list[Document], terms: list[str]
    ) -> None:
        index = make_index(f"hostile {next(_numbers)}")
        put(index, *documents)
        assert set(index.stamps()) == {one.path for one in documents}
        index.vectors.use_embedder("by hand")
        index.vectors.store({digest: vector(*range(8)) for digest, _ in index.vectors.list_unembedded(100)})
        near = index.vectors.nearest(vector(*range(8)), EVERYTHING, 100)
        assert len(near) == index.stats().chunks
        stored = index.read_chunks([one.id for one in near])
        index.windows(stored)
        around = index.around([(one.path, one.chunk.first_line) for one in stored.values()], 1, 1)
        for one in stored.values():
            assert one in around[one.path, one.chunk.first_line]
        texts = sorted(whole(chunk.text) for one in documents for chunk in one.chunks)
        assert sorted(one.chunk.text for one in stored.values()) == texts
        index.words.search(terms, EVERYTHING, 10)
        index.names()
        for term in terms:
            assert 0 <= index.words.frequency(term) <= 1
            index.words.search(
                [term], Scope(under=term, conversation=term, agents=(term,), audience="group"), 10
            )
            by_question(index, term)
        put(index, gone=[one.path for one in documents])
        assert index.stats()[:3] == (0, 0, 0)
        index.close()


_numbers = count()
