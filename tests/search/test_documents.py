"""A file as a document: its place, its listeners, its dates, and chunks that point at what is in it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.home.categories import CATEGORIES, category_of
from tacit.markdown import comment
from tacit.markdown.chunker import MAX_CHUNK_CHARS
from tacit.markdown.escape import restore_block, restore_characters
from tacit.markdown.notes import decode, split
from tacit.privacy.audience import AUDIENCES
from tacit.search.documents import embedded_text, read_document
from tacit.search.model import Chunk, Document
from tacit.transcripts import format as transcripts
from tacit.transcripts.model import Opening
from tests.hostile import hostile
from tests.markdown.test_hostile import FILES

MODIFIED = date(2026, 7, 8)
STARTED = datetime(2026, 1, 2, 18, 45, tzinfo=UTC)


def read(path: str, text: str) -> Document:
    return read_document(path, text, MODIFIED)


def note(text: str, path: str = "topics/a.md") -> Document:
    return read(path, text)


def texts(found: Document) -> list[str]:
    return [chunk.text for chunk in found.chunks]


def lines_of(text: str, chunk: Chunk) -> str:
    """Of the file, counted as git and editors do."""
    return "\n".join(text.split("\n")[chunk.first_line - 1 : chunk.last_line])


def dense(text: str) -> str:
    return "".join(text.split())


# ---------------------------------------------------------------- what it is


@pytest.mark.parametrize(
    ("path", "category"),
    [
        ("knowledge/identity/SOUL.md", "identity"),
        ("knowledge/memory/MEMORY.md", "memory"),
        ("knowledge/journal/2026-01-02.md", "journal"),
        ("knowledge/projects/kilnlog/notes.md", "project"),
        ("knowledge/people/ana.md", "person"),
        ("knowledge/procedures/restore.md", "procedure"),
        ("knowledge/reference/cones.md", "reference"),
        ("knowledge/reference/deep/er/cones.md", "reference"),
        ("raw/conversations/2026/01/02/1845-s1-clay.md", "conversation"),
        ("topics/clay.md", "topic"),
        ("topics/people/clay.md", "topic"),
        ("archive/journal/2026-01-02.md", "journal"),
        ("archive/people/ana.md", "person"),
        ("archive/projects/old/notes.md", "project"),
        ("archive/topics/clay.md", "topic"),
        ("archive/conversations/1845-s1-clay.md", "conversation"),
        ("knowledge/loose.md", "reference"),
        ("knowledge/of-my-own/loose.md", "reference"),
        ("archive/loose.md", "reference"),
        ("loose.md", "reference"),
        ("people", "reference"),
        ("", "reference"),
    ],
)
def test_the_folder_says_what_it_is(path: str, category: str) -> None:
    assert category_of(path) == read(path, "").category == category


def test_every_category_has_a_folder() -> None:
    folders = ("identity", "memory", "journal", "projects", "people", "procedures", "reference")
    found = {category_of(f"knowledge/{folder}/a.md") for folder in folders}
    assert found | {category_of("topics/a.md"), category_of("raw/conversations/a.md")} == set(CATEGORIES)


def test_only_what_is_below_archive_is_archived() -> None:
    assert read("archive/topics/a.md", "").archived
    assert read("archive/conversations/a.md", "").archived
    assert not read("topics/archive/a.md", "").archived
    assert not read("knowledge/journal/archive.md", "").archived


# ---------------------------------------------------------------- who may see it


@pytest.mark.parametrize(
    ("path", "audience"),
    [
        ("knowledge/identity/SOUL.md", "anyone"),
        ("knowledge/identity/AGENTS.md", "owner"),
        ("knowledge/identity/soul.md", "owner"),
        ("knowledge/people/SOUL.md", "owner"),
        ("topics/clay.md", "group"),
        ("archive/topics/clay.md", "group"),
        ("knowledge/procedures/restore.md", "group"),
        ("knowledge/reference/cones.md", "group"),
        ("knowledge/people/ana.md", "owner"),
        ("knowledge/journal/a.md", "owner"),
        ("knowledge/memory/MEMORY.md", "owner"),
        ("knowledge/projects/kilnlog.md", "owner"),
        ("raw/conversations/2026/01/02/a.md", "owner"),
        ("knowledge/of-my-own/diagnosis.md", "owner"),  # nobody said that it is for groups
        ("knowledge/loose.md", "owner"),
        ("archive/loose.md", "owner"),
    ],
)
def test_the_folder_says_who_may_see_it(path: str, audience: str) -> None:
    found = read(path, "# Text\n")
    assert found.audience == audience
    assert read(path, "---\ntitle: x\n---\ntext").audience == audience


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("path", ["topics/a.md", "knowledge/people/a.md", "knowledge/identity/SOUL.md"])
def test_a_note_may_say_who_may_see_it(path: str, audience: str) -> None:
    found = read(path, f"---\naudience: {audience}\n---\ntext")
    assert (found.audience, found.problems) == (audience, ())


@pytest.mark.parametrize(
    "written",
    ["Owner", "owners", "gruop", "[group]", "everyone", "true", "7", "''", "{anyone: yes}", "all"],
)
@pytest.mark.parametrize("path", ["topics/a.md", "knowledge/identity/SOUL.md", "knowledge/people/a.md"])
def test_a_wrong_word_for_it_never_opens_it(path: str, written: str) -> None:
    found = read(path, f"---\naudience: {written}\n---\ntext")
    assert found.audience == "owner"
    (problem,) = found.problems
    assert "only the owner" in problem.what
    assert problem.where == path
    assert all(audience in problem.todo for audience in AUDIENCES)


@pytest.mark.parametrize(
    "text",
    [
        "---\naudience: owner\ntags: [\n---\ntext",
        "---\naudience: owner\n# The end is missing\n\ntext",
        "---\n\taudience: owner\n---\ntext",
        "---\n'audience: owner\n---\ntext",
    ],
)
def test_a_head_that_cannot_be_read_never_opens_it(text: str) -> None:
    found = read("topics/a.md", text)
    assert found.audience == "owner"
    assert found.problems


@pytest.mark.parametrize("path", ["knowledge/memory/MEMORY.md", "archive/memory/2025.md"])
@pytest.mark.parametrize("audience", ["anyone", "group"])
def test_what_is_in_memory_is_the_owners_whatever_it_says(path: str, audience: str) -> None:
    found = read(path, f"---\naudience: {audience}\n---\ntext")
    assert found.audience == "owner"
    assert "the owner's alone" in found.problems[0].what
    assert read(path, "---\naudience: owner\n---\ntext").problems == ()


def test_nothing_written_is_the_default() -> None:
    assert read("topics/a.md", "---\naudience:\n---\ntext").audience == "group"


def test_a_transcript_is_the_owners_whatever_it_says() -> None:
    text = "---\nstarted: 2026-01-02T10:00:00Z\naudience: anyone\nsession_key: agent:main:group:7\n---\n"
    found = read("raw/conversations/2026/01/02/a.md", text)
    assert (found.audience, found.conversation) == ("owner", "agent:main:group:7")
    assert read("raw/conversations/a.md", "").conversation == ""
    assert note("---\nsession_key: agent:main:group:7\n---\ntext").conversation == ""


@pytest.mark.parametrize(
    ("written", "agents"),
    [
        ("", ()),
        ("agent: kiln", ("kiln",)),
        ("agent: [main, kiln]", ("main", "kiln")),
        ("agent: [main, main, ' kiln ']", ("main", "kiln")),
        ("agent:", ()),
        ("agent: []", ()),
        ("agent: ['', ' ']", ()),
        ("agent: 7", ("7",)),
    ],
)
def test_a_file_may_belong_to_agents(written: str, agents: tuple[str, ...]) -> None:
    assert note(f"---\n{written}\ntitle: x\n---\ntext").agents == agents
    head = f"---\nstarted: 2026-01-02T10:00:00Z\n{written}\n---\n"
    assert read("raw/conversations/a.md", head).agents == agents


# ---------------------------------------------------------------- dates, tags, titles


@pytest.mark.parametrize(
    ("fields", "name", "day"),
    [
        ("updated: 2026-03-01\ndate: 2026-02-01\ncreated: 2026-01-01", "2025-01-01.md", "2026-03-01"),
        ("date: 2026-02-01\ncreated: 2026-01-01", "2025-01-01.md", "2026-02-01"),
        ("created: 2026-01-01", "2025-01-01.md", "2026-01-01"),
        ("title: x", "2025-01-01.md", "2025-01-01"),
        ("title: x", "notes-of-2025-01-01-evening.md", "2025-01-01"),
        ("title: x", "a.md", "2026-07-08"),
        ("updated: 2026-03-01T23:30:00+02:00", "a.md", "2026-03-01"),
        ("updated: 2026-03-01T23:30:00Z", "a.md", "2026-03-01"),
        ("updated: '2026-03-01'", "a.md", "2026-03-01"),
        ('updated: "2026-03-01 10:00"', "a.md", "2026-03-01"),
        ("updated: yesterday\ndate: 2026-02-01", "a.md", "2026-02-01"),
        ("updated: '2026-02-30'", "2025-01-01.md", "2025-01-01"),
        ("updated: 7", "a.md", "2026-07-08"),
        ("updated:", "a.md", "2026-07-08"),
        ("title: x", "2026-13-45.md", "2026-07-08"),
        ("title: x", "120260-01-011.md", "2026-07-08"),
    ],
)
def test_the_day_of_a_note(fields: str, name: str, day: str) -> None:
    found = read(f"knowledge/journal/{name}", f"---\n{fields}\n---\ntext")
    assert found.day == day
    assert [chunk.day for chunk in found.chunks] == [day]


def test_a_date_in_a_folder_is_not_the_day() -> None:
    assert read("knowledge/journal/2025-01-01/a.md", "text").day == "2026-07-08"


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("tags: [clay, ash]", ("clay", "ash")),
        ("tags: clay", ("clay",)),
        ("tags: [1, 1, x]", ("1", "x")),
        ("", ()),
    ],
)
def test_tags_are_one_or_several(written: str, tags: tuple[str, ...]) -> None:
    assert note(f"---\n{written}\ntitle: x\n---\ntext").tags == tags


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Wet clay\n---\n# Other\n", "Wet clay"),
        ("---\nname: Ana Ruiz\n---\n# Other\n", "Ana Ruiz"),
        ("---\ntitle: ' '\n---\n# Heading\n", "Heading"),
        ("---\ntitle: 7\n---\n# Heading\n", "Heading"),
        ("# Heading\n\ntext\n\n## Second\n\ntext", "Heading"),
        ("Some words first.\n\n# Heading\n\ntext", "Heading"),
        ("# One\n\nshort\n\n# Two\n\nshort\n", "One"),
        ("text alone", "wet-clay"),
        ("", "wet-clay"),
    ],
)
def test_the_title_is_what_it_says_of_itself_or_its_name(text: str, title: str) -> None:
    assert read("topics/wet-clay.md", text).title == title


@pytest.mark.parametrize(
    ("path", "title"), [("topics/.md", ".md"), ("topics/README", "README"), ("a.b.md", "a.b")]
)
def test_a_file_without_any_other_title_has_its_name(path: str, title: str) -> None:
    assert read(path, "text").title == title


def test_a_title_is_never_a_book() -> None:
    assert len(note(f"---\ntitle: {'x' * 5000}\n---\n").title) == 200
    assert len(note(f"# {'x' * 5000}\n").title) == 200


def test_the_title_of_a_transcript_is_its_heading() -> None:
    head = "---\nstarted: 2026-01-02T10:00:00Z\n---\n"
    assert read("raw/conversations/a.md", f"{head}\n# What to fire\n").title == "What to fire"


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2), ("a\r\nb\r\n", 2), ("\n", 1)],
)
def test_lines_are_counted_as_editors_do(text: str, count: int) -> None:
    assert note(text).lines == count
    assert read("raw/conversations/a.md", text).lines == count


def test_problems_of_the_file_come_along() -> None:
    (problem,) = note("---\ntags: [\n---\ntext").problems
    assert problem.where == "topics/a.md"
    assert read("raw/conversations/a.md", "text").problems  # it does not say when it began


# ---------------------------------------------------------------- chunks of a note


def section(title: str, size: int) -> str:
    return f"## {title}\n\n{'clay ' * (size // 5)}"


def test_short_sections_share_a_chunk() -> None:
    text = "# Ana\n\nA potter.\n\n## Phone\n\n12345\n\n## Birthday\n\nIn May.\n"
    (chunk,) = note(text).chunks
    assert chunk.text == text.strip()
    assert (chunk.first_line, chunk.last_line, chunk.section) == (1, 11, ("Ana",))


def test_long_sections_are_chunks_of_their_own() -> None:
    found = note(f"# A\n\n{section('B', 400)}\n\n{section('C', 400)}\n\n{section('D', 40)}\n")
    assert [chunk.section for chunk in found.chunks] == [("A",), ("A",)]
    assert found.chunks[0].text.startswith("# A\n\n## B\n")
    assert found.chunks[1].text.startswith("## C\n")


def test_the_section_of_several_is_what_stands_above_all_of_them() -> None:
    text = "# A\n\n## Notes\n\none\n\n# B\n\n## Notes\n\ntwo\n"
    (chunk,) = note(text).chunks
    assert chunk.section == ()
    nested = "# A\n\n## X\n\n### One\n\none\n\n### Two\n\ntwo\n"
    assert note(nested).chunks[0].section == ("A",)


@pytest.mark.parametrize("size", [10, 600, 1100, 1190, MAX_CHUNK_CHARS, 1300, 5000])
@pytest.mark.parametrize("above", ["# A", "# A\n\n## B", "# A\n## B\n### C", "  # A", "# A\n\n\n\n\n## B"])
def test_a_heading_never_stands_alone_when_something_follows(above: str, size: int) -> None:
    found = note(f"{above}\n\n#### Last\n\n{'x' * size}\n")
    assert found.chunks[0].text.startswith(above.strip("\n"))
    for chunk in found.chunks:
        assert any(line and not line.lstrip().startswith("#") for line in chunk.text.split("\n"))


def test_a_heading_at_the_end_stands_alone_if_it_must() -> None:
    found = note(f"{section('A', 1100)}\n\n## The end\n")
    assert found.chunks[-1].text == "## The end"


def test_very_many_empty_lines_do_not_become_text() -> None:
    found = note("# A\n\none\n" + "\n" * 50_000 + "## B\n\ntwo\n")
    assert texts(found) == ["# A\n\none", "## B\n\ntwo"]
    assert max(map(len, texts(note("# A" + "\n" * 50_000 + "text")))) < MAX_CHUNK_CHARS


def test_neighbours_count_only_among_short_chunks() -> None:
    short = note("\n\n".join(section(name, 350) for name in "ABCDE"))
    assert [chunk.near for chunk in short.chunks] == [(0, 2), (0, 3), (1, 4), (2, 5), (3, 5)]
    long = note("\n\n".join(section(name, 1100) for name in "ABC"))
    assert [chunk.near for chunk in long.chunks] == [(0, 1), (1, 2), (2, 3)]
    mixed = note(
        "\n\n".join(section(name, size) for name, size in zip("ABCD", (300, 300, 1100, 300), strict=True))
    )
    assert [chunk.near for chunk in mixed.chunks] == [(0, 2), (1, 2), (2, 3), (2, 4)]


def test_the_frontmatter_is_no_chunk() -> None:
    assert texts(note("---\nsecret: 1\n---\ntext\n")) == ["text"]
    assert note("---\nsecret: 1\n---\n").chunks == ()


def test_an_embedder_reads_what_stands_above() -> None:
    assert embedded_text("Ana", ("Ana", "Phone"), "", "12345") == "Ana > Phone\n12345"
    assert (
        embedded_text("Ana", ("Ana", "Phone"), "", "# Ana\n\n## Phone\n\n12345")
        == "# Ana\n\n## Phone\n\n12345"
    )
    assert embedded_text("Talk", (), "Ana", "Yes.") == "Ana: Yes."
    assert embedded_text("", (), "", "text") == "text"


markdown = st.lists(
    st.sampled_from(
        ["# A", "## B", "#", "text", "other words", "", "", "```", "- item", "\r", "x" * 700, "é" * 1300]
    )
    | hostile,
    max_size=14,
).map("\n".join)
heads = st.sampled_from(
    ["", "---\ntitle: T\n---\n", "\ufeff", "\ufeff---\na: 1\n---\n", "---\r\na: 1\r\n---\r\n"]
)


@given(heads, markdown)
def test_a_chunk_is_in_the_lines_that_it_names(head: str, body: str) -> None:
    text = head + body
    found = note(text)
    for chunk in found.chunks:
        assert 1 <= chunk.first_line <= chunk.last_line <= found.lines
        assert dense(chunk.text) in dense(lines_of(text, chunk))
        assert chunk.text.strip()


@given(heads, markdown)
def test_all_of_a_note_is_in_its_chunks_once_and_in_order(head: str, body: str) -> None:
    found = note(head + body)
    assert dense("".join(texts(found))) == dense(split(head + body)[1].removeprefix("\ufeff"))
    starts = [chunk.first_line for chunk in found.chunks]
    assert starts == sorted(starts)
    for at, chunk in enumerate(found.chunks):
        assert chunk.near[0] <= at < chunk.near[1] <= len(starts)


@given(markdown)
def test_no_chunk_is_much_longer_than_the_limit(body: str) -> None:
    assert all(len(text) <= MAX_CHUNK_CHARS + 300 for text in texts(note(body)))


# ---------------------------------------------------------------- chunks of a conversation

Said = Callable[[transcripts.RecordPosition], transcripts.RenderedRecord]


def message(text: str, speaker: str | None = None, role: str = "user", at: datetime = STARTED) -> Said:
    return lambda place: transcripts.render_message(place, at, role, text, speaker)  # type: ignore[arg-type]


def tool(name: str, summary: str, result: str = "") -> Said:
    return lambda place: transcripts.render_tool_call(place, STARTED, name, summary, result)


def attachment(path: str) -> Said:
    return lambda place: transcripts.render_attachment(place, STARTED, "user", path)


def change(path: str) -> Said:
    return lambda place: transcripts.render_knowledge_change(place, STARTED, "updated", path, "why")


def conversation(*said: Said, hint: str = "hello") -> str:
    text = transcripts.render_opening(Opening("s1", STARTED, session_key="agent:main:main"), hint)
    place, _ = transcripts.find_position(text, STARTED)
    for one in said:
        written = one(place)
        text, place = text + written.text, written.place
    return text


def talk(text: str) -> Document:
    return read("raw/conversations/2026/01/02/1845-s1-hello.md", text)


def test_each_message_is_a_chunk_with_who_and_when() -> None:
    found = talk(
        conversation(
            message("When do we fire?", "Ana"),
            message("On Tuesday.\n\nOr later.", role="agent", at=STARTED.replace(day=3)),
        )
    )
    first, second = found.chunks
    assert (first.text, first.speaker, first.turn, first.day) == ("When do we fire?", "Ana", 1, "2026-01-02")
    assert (second.text, second.speaker, second.turn) == ("On Tuesday.\n\nOr later.", "agent", 2)
    assert second.day == "2026-01-03"
    assert found.day == "2026-01-02"
    assert (first.section, second.section) == ((), ())
    assert (found.category, found.agents, found.conversation) == (
        "conversation",
        ("main",),
        "agent:main:main",
    )


def test_tool_calls_and_attachments_are_chunks_and_changes_are_not() -> None:
    found = talk(
        conversation(
            message("Look"),
            tool("read", "notes.md", "42 lines"),
            tool("beep", "twice"),
            attachment("attachments/a.png"),
            change("knowledge/a.md"),
        )
    )
    assert [(chunk.speaker, chunk.text) for chunk in found.chunks] == [
        ("user", "Look"),
        ("tool read", "notes.md → 42 lines"),
        ("tool beep", "twice"),
        ("attachment", "attachments/a.png"),
    ]
    assert [chunk.turn for chunk in found.chunks] == [1, 2, 3, 4]


def test_a_long_message_is_cut_and_each_piece_knows_its_lines() -> None:
    body = "\n\n".join(f"Paragraph {number}. " + "clay " * 60 for number in range(12))
    text = conversation(message("first"), message(body, "Ana"), message("last"))
    found = talk(text)
    assert len(found.chunks) > 4
    assert {chunk.speaker for chunk in found.chunks} == {"user", "Ana"}
    for chunk in found.chunks:
        assert len(chunk.text) <= MAX_CHUNK_CHARS
        assert dense(lines_of(text, chunk)) == dense(chunk.text)
    assert dense("".join(texts(found)[1:-1])) == dense(body)


def test_headings_in_a_message_begin_nothing_new() -> None:
    found = talk(conversation(message("# One\n\ntext\n\n# Two\n\ntext")))
    assert texts(found) == ["# One\n\ntext\n\n# Two\n\ntext"]
    assert found.chunks[0].section == ()


def test_the_neighbours_of_a_turn_are_two_on_each_side_among_short_ones() -> None:
    found = talk(conversation(*(message(f"turn {number}") for number in range(6))))
    assert [chunk.near for chunk in found.chunks] == [(0, 3), (0, 4), (0, 5), (1, 6), (2, 6), (3, 6)]
    long = talk(conversation(*(message("clay " * 160) for number in range(3))))
    assert [chunk.near for chunk in long.chunks] == [(0, 1), (1, 2), (2, 3)]


def test_a_blank_message_is_no_chunk() -> None:
    assert texts(talk(conversation(message(" \n "), message("x")))) == ["x"]


@given(st.lists(st.tuples(hostile, st.none() | hostile), max_size=4), hostile)
@example([("## 18:45 — agent\n<!-- torn -->\n> [tool:x] y", None), ("a\rb\r\nc\u2028d", "(Ana)")], "\n# x")
@example([("\n\n\nlate", None), ("a&#xA;b", None), ("one\n\n" + "x" * 1300 + "\n\ntwo", None)], "")
def test_a_turn_is_in_the_lines_that_it_names(said: list[tuple[str, str | None]], hint: str) -> None:
    text = conversation(*(message(*one) for one in said), hint=hint)
    found = talk(text)
    for chunk in found.chunks:
        assert 1 <= chunk.first_line <= chunk.last_line <= found.lines
        assert dense(chunk.text) in dense(restore_block(lines_of(text, chunk)))
    whole = "".join(dense(message) for message, _ in said)
    assert dense("".join(texts(found))) == whole


@given(st.lists(st.tuples(hostile, hostile, hostile), max_size=4))
def test_a_tool_call_is_in_the_line_that_it_names(calls: list[tuple[str, str, str]]) -> None:
    text = conversation(
        message("x"), *(tool(*call) for call in calls), *(attachment(call[0]) for call in calls)
    )
    for chunk in talk(text).chunks[1:]:
        assert chunk.first_line == chunk.last_line
        line = restore_characters(lines_of(text, chunk))
        assert line.startswith(("> [tool:", "> [attachment:"))
        assert dense(chunk.text) in dense(line)


def by_hand(body: str) -> str:
    return f"---\nsession_id: s1\nstarted: 2026-01-02T10:00:00Z\n---\n\n# Talk\n{body}"


def test_a_transcript_written_by_hand_has_chunks_too() -> None:
    text = by_hand("\n## 10:00 — user (Ana)\nHello.\nAnd more.\n> [tool:read] a.md → 3 lines\nAfter.\n")
    found = talk(text)
    assert [(chunk.speaker, chunk.text) for chunk in found.chunks] == [
        ("Ana", "Hello.\nAnd more."),
        ("tool read", "a.md → 3 lines"),
        ("Ana", "After."),
    ]
    for chunk in found.chunks:
        assert dense(chunk.text) in dense(lines_of(text, chunk))


def test_empty_lines_after_a_heading_written_by_hand_are_counted() -> None:
    text = by_hand("\n## 10:00 — user\n\n\nHello.\n\n## 10:01 — agent\n\nYes.\n")
    assert [lines_of(text, chunk) for chunk in talk(text).chunks] == ["Hello.", "Yes."]


@given(
    st.lists(
        st.sampled_from(["## 10:00 — user", "## 10:01 — agent (Kiln)", "", "words"]) | hostile, max_size=10
    )
)
def test_a_turn_written_by_hand_is_in_the_lines_that_it_names(lines: list[str]) -> None:
    text = by_hand("\n".join(lines))
    for chunk in talk(text).chunks:
        assert dense(chunk.text) in dense(restore_block(lines_of(text, chunk)))


# ---------------------------------------------------------------- whatever it is given


@given(
    st.sampled_from(["topics/a.md", "raw/conversations/a.md", "knowledge/identity/SOUL.md", "archive/x"])
    | hostile,
    hostile | markdown | st.text(st.characters()),
)
def test_any_text_under_any_path_is_a_document(path: str, text: str) -> None:
    found = read(path, text)
    assert found.path == path
    assert found.category in CATEGORIES
    assert found.audience in AUDIENCES
    assert all(chunk.text.strip() for chunk in found.chunks)


@pytest.mark.parametrize("name", [name for name in FILES if "5 MB" not in name or "line" in name])
@pytest.mark.parametrize("path", ["topics/a.md", "raw/conversations/a.md"])
def test_a_hostile_file_is_a_document(name: str, path: str) -> None:
    found = read(path, decode(FILES[name]))
    assert found.audience in AUDIENCES


def test_the_sample_home_is_read_without_a_problem() -> None:
    root = Path(__file__).parents[2] / "tacit" / "sample" / "home"
    for file in root.rglob("*.md"):
        path = file.relative_to(root).as_posix()
        found = read(path, file.read_text())
        assert found.problems == ()
        assert found.chunks or not file.read_text().strip()


# What tacit wrote, and what no longer holds


def test_chunks_have_neither_marks_nor_lines_that_no_longer_hold_and_point_at_the_right_lines() -> None:
    line = comment.attach("- 2026-02-16: two coats", "decisions/1", ["2026/02/16/1845-ses_a-x#3"], "owner")
    old = comment.mark_superseded(line.replace("two", "five"), "2026-03-01")
    text = f"---\ntitle: Glaze (superseded 2026-01-01)\n---\n# Glaze\n\n{old}\n{line}\n- dry for a day\n"
    [chunk] = note(text).chunks
    assert chunk.text == "# Glaze\n\n\n- 2026-02-16: two coats\n- dry for a day"
    assert (chunk.first_line, chunk.last_line) == (4, 8)
    assert note(text).title == "Glaze (superseded 2026-01-01)"


def test_what_was_said_in_a_conversation_stays_whatever_it_ends_with() -> None:
    said = "It was in the list: the old oven (superseded 2026-10-19)"
    [found] = talk(conversation(message(said))).chunks
    assert found.text == said


def test_purged_records_are_left_out_and_the_others_keep_their_places() -> None:
    text = conversation(message("poison"), message("fine", role="agent"), hint="poison")
    whole = talk(text)
    left = read_document(whole.path, text, MODIFIED, purged={1})
    assert left.chunks == (whole.chunks[1]._replace(near=(0, 1)),)
    assert "poison" in whole.title
    assert left.title == ""
