"""Links between notes in a search: a bounded tie-break, and one hop to notes that nothing else would find.

The questions below are answered in a note that shares no word with them, but is linked with the note that
does. Beside them stand questions about notes without links, and enough notes that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

import tacit as product
from tacit.app import load_config, search_parts
from tacit.home.layout import Home
from tacit.search.hybrid import Engine, find
from tacit.search.link_expansion import Seed, expand_seeds
from tacit.search.model import EVERYTHING, Found, Hit, Scope
from tacit.search.searcher import Searcher
from tacit.search.weights import STRONG_RELEVANCE
from tests.search.fakes import CALIBRATION, Meaning, engine_of, index_of, unreadable_parts

_WEEK = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


class Asked(NamedTuple):
    question: str
    answer: str  # the note in which it stands


NOTES: Mapping[str, str] = {
    "knowledge/people/mara.md": "# Mara Lind\n\n- Lives with [[Oskar]] since spring\n",
    "knowledge/people/oskar.md": "# Oskar\n\n- Cannot have nuts of any kind\n",
    "knowledge/projects/shop/context.md": "# Shop\n\n- Parcels leave on Thursdays, see [[packing]]\n",
    "knowledge/procedures/packing.md": "# Boxes\n\n1. Honeycomb paper, five centimetres to every wall\n",
    "knowledge/reference/studio.md": "# Studio\n\n- The kiln is Berta, her manual: [here](berta.md)\n",
    "knowledge/reference/berta.md": "# Model 120\n\n- Fuse of 32 amperes, three phases\n",
    "knowledge/projects/ledger/context.md": "---\ntitle: Ledger\n---\n- Tax is quarterly\n",
    "knowledge/people/ruth.md": "---\nname: Ruth\naliases: [Frau Amsel]\n---\n- Office hours until noon\n",
    "knowledge/projects/ledger/progress.md": "# Receipts\n\n- October was sent to [[Frau Amsel|her]]\n",
    "knowledge/reference/router.md": "# Cupboard\n\n- Port eight is the printer, see [[rack#Ports]]\n",
    "knowledge/reference/rack.md": "# Cabinet\n\n- Bought used, second shelf is loose\n",
    "knowledge/reference/bike.md": "# Bicycle\n\n- Chain and saddle are new\n",
    "knowledge/people/noor.md": "# Noor\n\n- Sits her exam in December\n",
    **{
        f"knowledge/reference/day-{n}.md": f"# Note {n}\n\n- On {_WEEK[n % 7]} something was number {n}\n"
        for n in range(40)
    },
}
LINKED = (
    Asked("What should I cook when Mara comes?", "knowledge/people/oskar.md"),
    Asked("How do parcels from the shop not break?", "knowledge/procedures/packing.md"),
    Asked("Which circuit does the kiln in the studio need?", "knowledge/reference/berta.md"),
    Asked("When can I ask about October receipts?", "knowledge/people/ruth.md"),
    Asked("Where is the printer port mounted?", "knowledge/reference/rack.md"),
)
UNLINKED = (
    Asked("Is the saddle of the bicycle new?", "knowledge/reference/bike.md"),
    Asked("When is Noor's exam?", "knowledge/people/noor.md"),
    Asked("What was number 17?", "knowledge/reference/day-17.md"),
)


@pytest.fixture(scope="module", params=["words", "vectors"])
def engine(request: pytest.FixtureRequest) -> Engine:
    made = engine_of(NOTES, Meaning() if request.param == "vectors" else None)
    return replace(made, spreading=0.5)


def paths(found: Found) -> list[str]:
    return [hit.path for hit in found.hits]


def reasons(found: Found) -> list[tuple[str, list[str]]]:
    return [(hit.path, [name for name, _ in hit.why.boosts]) for hit in found.hits]


def by_links(found: Found) -> list[Hit]:
    return [hit for hit in found.hits if hit.why.linked]


@pytest.mark.parametrize("asked", LINKED, ids=lambda asked: asked.answer)
def test_an_answer_in_a_linked_note_is_found_and_says_by_which_link(engine: Engine, asked: Asked) -> None:
    before = find(replace(engine, spreading=0.0), asked.question, limit=5)
    after = find(engine, asked.question, limit=5)
    assert asked.answer not in paths(before)
    [hit] = [hit for hit in after.hits if hit.path == asked.answer]
    [(reason, share)] = hit.why.boosts
    assert reason == f"linked from {hit.why.linked}"
    assert hit.why.linked in paths(before)
    assert (
        hit.score == pytest.approx(0.5 * after.hits[0].score, abs=0.001)
        or after.hits[0].score > STRONG_RELEVANCE
    )
    assert hit.why.score == hit.why.standing == share
    assert paths(after)[0] == paths(before)[0]


@pytest.mark.parametrize("asked", UNLINKED, ids=lambda asked: asked.answer)
def test_questions_about_notes_without_links_are_answered_as_before(engine: Engine, asked: Asked) -> None:
    before = find(replace(engine, spreading=0.0), asked.question)
    after = find(engine, asked.question)
    assert paths(before)[0] == asked.answer
    assert after.hits == before.hits


def test_what_links_to_a_hit_is_found_too(engine: Engine) -> None:
    [hit] = [hit for hit in find(engine, "fuse amperes").hits if hit.why.linked]
    assert hit.path == "knowledge/reference/studio.md"
    assert hit.why.boosts[0][0] == "links to knowledge/reference/berta.md"


def test_a_note_that_was_found_by_itself_is_not_found_again(engine: Engine) -> None:
    found = find(engine, "Mara and Oskar, nuts")
    assert paths(found).count("knowledge/people/oskar.md") == 1
    assert by_links(found) == []


def test_only_a_few_notes_come_by_links_and_a_note_with_many_links_gives_each_little() -> None:
    many = "".join(f"- [[page {n}]]\n" for n in range(60))
    texts = {
        **{f"knowledge/reference/page-{n}.md": f"# page {n}\n\nNumber {n}.\n" for n in range(60)},
        "knowledge/reference/hub.md": f"# Zebra\n\n{many}",
        "knowledge/people/one.md": "# Okapi\n\n- [[page 7]]\n",
    }
    engine = replace(engine_of(texts), spreading=0.5)
    hub, one = by_links(find(engine, "zebra")), by_links(find(engine, "okapi"))
    assert len(hub) == 3
    assert [hit.path for hit in one] == ["knowledge/reference/page-7.md"]
    assert hub[0].why.standing < one[0].why.standing - 0.3


def test_a_linked_note_is_never_above_a_strong_hit_nor_strong_itself(engine: Engine) -> None:
    sure = replace(engine, calibration=replace(engine.calibration, bias=6.0, fall=0.1), spreading=0.9)
    found = find(sure, LINKED[0].question, limit=20)
    linked = by_links(found)
    strong = [hit.why.standing for hit in found.hits if hit.score >= STRONG_RELEVANCE]
    assert linked
    assert strong
    assert all(hit.score < STRONG_RELEVANCE and hit.why.standing < min(strong) for hit in linked)


def test_of_a_long_linked_note_the_chunk_nearest_to_the_question_is_taken() -> None:
    long = "\n\n".join(f"## Part {n}\n\n" + "filler words here " * 40 for n in range(5))
    garage = f"# Garage\n\n{long}\n\n## Red\n\nThe automobile is red.\n\n{long}\n"
    texts = {"knowledge/people/ana.md": "# Ana\n\n- [[garage]]\n", "knowledge/reference/garage.md": garage}
    embedder = Meaning()
    index = index_of(texts, embedder)
    ana, asked = Seed("knowledge/people/ana.md", 2.0, 0.5), embedder.query("car")
    found = expand_seeds(
        index, [ana], EVERYTHING, asked, there={}, whys={}, weight=0.5, apart=CALIBRATION.apart, ceiling=None
    )
    [chunk] = index.read_chunks(found.keys()).values()
    assert "automobile" in chunk.chunk.text


# Who may know


SECRET = {
    "knowledge/reference/open.md": "---\naudience: anyone\n---\n# Zebra\n\n- [[diary]] and [[plan]]\n",
    "knowledge/reference/plan.md": "---\naudience: anyone\n---\n# Plan\n\n- Paint it.\n",
    "knowledge/memory/diary.md": "# Diary\n\n- Nobody reads this. [[open]] [[plan]]\n",
    "knowledge/people/one.md": "# One\n\n- [[plan]]\n",
    "knowledge/people/two.md": "# Two\n\n- [[plan]]\n",
}


def test_links_of_hidden_notes_spread_nothing_and_lift_nothing() -> None:
    """As in a home without the hidden notes."""
    visible = {path: text for path, text in SECRET.items() if "anyone" in text}
    stranger = Scope(audience="anyone")
    all_there = find(replace(engine_of(SECRET), spreading=0.5), "zebra", stranger)
    without = find(replace(engine_of(visible), spreading=0.5), "zebra", stranger)
    assert reasons(all_there) == reasons(without)
    assert paths(all_there) == ["knowledge/reference/open.md", "knowledge/reference/plan.md"]
    owner = find(replace(engine_of(SECRET), spreading=0.5), "zebra")
    assert "knowledge/memory/diary.md" in paths(owner)


def test_a_scope_that_is_narrower_is_not_left_by_a_link() -> None:
    engine = replace(engine_of(SECRET), spreading=0.5)
    found = find(engine, "zebra", Scope(categories=("reference",), without=("knowledge/reference/plan.md",)))
    assert paths(found) == ["knowledge/reference/open.md"]


def test_how_many_notes_point_to_a_file_decides_among_near_equals_and_no_more() -> None:
    texts = {
        "knowledge/reference/a.md": "The quagga is here.\n",
        "knowledge/reference/b.md": "The quagga is here.\n",
        "knowledge/reference/best.md": "# Quagga\n\nThe quagga, the quagga.\n",
        **{f"knowledge/people/p{n}.md": "See knowledge/reference/b.md\n" for n in range(9)},
        **{f"knowledge/reference/x{n}.md": f"The {n}th zebra.\n" for n in range(30)},
    }
    found = find(engine_of(texts), "quagga")
    assert paths(found) == [f"knowledge/reference/{name}.md" for name in ("best", "b", "a")]
    [(reason, size)] = found.hits[1].why.boosts
    assert (reason, round(size, 9)) == ("linked from 9 notes", 0.15)


# All ways to search


@pytest.fixture
def written(home: Path) -> Path:
    for path, text in NOTES.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    return home


def test_in_a_small_home_a_link_lifts_what_is_near_only_because_there_is_so_little(written: Path) -> None:
    """With the embedder that tacit brings along every note there is a candidate."""
    parts = search_parts(load_config(Home(written)).config)
    on, off = (Searcher(Home(written), replace(parts, spreading=weight)) for weight in (0.5, 0.0))
    for asked in LINKED:
        assert paths(on.find(asked.question))[1] == asked.answer
        assert asked.answer not in paths(off.find(asked.question))[:3]
    for asked in UNLINKED:
        assert paths(on.find(asked.question))[0] == paths(off.find(asked.question))[0] == asked.answer
    on.close()
    off.close()


def test_a_note_that_words_found_stays_where_it_is(engine: Engine) -> None:
    for question in ("kiln in the studio, amperes", "parcels in honeycomb paper"):
        assert find(engine, question).hits == find(replace(engine, spreading=0.0), question).hits


def test_without_an_index_links_spread_among_the_files_that_were_read(written: Path) -> None:
    """Only those that have a word of the question: a scan looks at no others."""
    found = Searcher(Home(written), unreadable_parts()).find("Mara Lind")
    assert found.channels == ("scan",)
    assert paths(found) == ["knowledge/people/mara.md"]


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_the_config_turns_it_off(written: Path, weight: float) -> None:
    settings = f"search:\n  embedding_model: none\n  spreading: {weight}\n"
    (written / "memory-config.yaml").write_text(settings)
    hits = product.open(written).search(LINKED[0].question)
    assert (LINKED[0].answer in [hit.path for hit in hits]) == bool(weight)
