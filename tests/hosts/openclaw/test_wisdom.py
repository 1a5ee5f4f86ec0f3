"""Lessons → the wisdom section: where they stand, what they have in common, how it is said, what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest

from tacit.embeddings.static_table import open_bundled
from tacit.hosts.openclaw.lessons import (
    Kind,
    Lesson,
    LessonSource,
    collect_lessons,
    has_lesson_sections,
    read_lessons,
)
from tacit.hosts.openclaw.wisdom import (
    INSTRUCTION,
    CompressedWisdom,
    Likeness,
    compress,
    find_themes,
    parse_entries,
)
from tacit.hosts.openclaw.wisdom_section import (
    MANDATORY,
    WisdomEntry,
    find_details,
    is_mandatory,
    parse,
    parse_coverage,
    render,
    root_problems,
    section_problems,
    soul_problems,
)
from tacit.llm.registry import choose_chat
from tacit.review.model import check_off, request_review, split_notes
from tacit.text import tokens
from tests.embeddings import conftest as loopback
from tests.embeddings.conftest import Reply, Request, Serve
from tests.workspaces import text

serve = loopback.serve
TODAY = date(2026, 11, 20)
SOURCES: Sequence[tuple[str, Kind]] = (
    ("AGENTS.md", "agents"),
    ("LESSONS_LEARNED.md", "lessons"),
    ("MEMORY.md", "memory"),
    ("memory/day-1.md", "daily"),
    ("memory/day-9.md", "daily"),
)


@pytest.fixture(scope="module")
def fenns() -> list[Lesson]:
    return collect_lessons(LessonSource(path, kind, text(path)) for path, kind in SOURCES)


def of(kind: Kind, written: str) -> list[tuple[int, str]]:
    return [(one.line, one.text) for one in read_lessons(LessonSource("f.md", kind, written))]


def worded(found: Sequence[Lesson], chat: object = None, present: str = "") -> CompressedWisdom:
    return compress(found, present, TODAY, open_bundled().documents, chat)  # type: ignore[arg-type]


def problems(section: str, covers: dict[str, int] | None = None) -> list[str]:
    return [str(problem) for problem in section_problems(section, "D", covers)]


# ---------------------------------------------------------------- where lessons stand


def test_every_source_is_read_by_its_own_rule_and_each_lesson_has_its_place(fenns: list[Lesson]) -> None:
    assert [one.where for one in fenns if one.path == "AGENTS.md"] == [
        f"AGENTS.md:{n}" for n in range(15, 21)
    ]
    assert {one.path for one in fenns} == {path for path, _ in SOURCES}
    said = "\n".join(one.text for one in fenns)
    assert "Prices with tax" not in said  # another section of AGENTS.md
    assert "rides to work" not in said  # another section of MEMORY.md
    assert "dentist" not in said  # what a day tells besides
    for one in fenns:
        line = text(one.path).splitlines()[one.line - 1]
        assert " ".join(one.text.split()[:3]) in line


def test_a_lesson_is_an_item_with_what_is_indented_below_it_a_row_or_a_paragraph() -> None:
    written = """# Lessons

- 2026-03-02: Test the restore before it is needed.
  - The archive was empty for nine days.
1. **Lesson:** Ask before you promise a date.

| day | lesson |
|---|---|
| 2026-05-01 | Write the reason beside every correction |

A paragraph is
a lesson as well.

```
- this is code and no lesson
```
- too short
"""
    assert of("lessons", written) == [
        (3, "Test the restore before it is needed. The archive was empty for nine days."),
        (5, "Ask before you promise a date."),
        (9, "Write the reason beside every correction"),
        (11, "A paragraph is a lesson as well."),
    ]


def test_a_day_gives_its_section_and_the_sentences_that_say_they_are_lessons() -> None:
    told = "Marit was away.\n\nLesson learned: lock the door at noon.\n"
    written = f"{told}\n## Lessons\n\n- Count the drawers on Fridays.\n"
    assert sorted(of("daily", written)) == [
        (3, "lock the door at noon."),
        (7, "Count the drawers on Fridays."),
    ]


def test_the_same_words_are_one_lesson_wherever_they_stand() -> None:
    twice = [
        LessonSource("a.md", "lessons", "- Ask before you promise."),
        LessonSource("b.md", "lessons", "- ask before you PROMISE."),
    ]
    assert [one.where for one in collect_lessons(twice)] == ["a.md:1"]


def test_a_file_without_the_section_is_known_as_such() -> None:
    assert has_lesson_sections(LessonSource("AGENTS.md", "agents", text("AGENTS.md")))
    assert not has_lesson_sections(LessonSource("AGENTS.md", "agents", "# Agents\n\n## Lessons of history\n"))


# ---------------------------------------------------------------- without a model


def test_without_a_model_themes_get_the_most_general_sentence_and_the_draft_says_so(
    fenns: list[Lesson],
) -> None:
    made = worded(fenns)
    body, notes = split_notes(made.draft)
    entries = parse(body).entries
    assert entries[0] == MANDATORY._replace(line=entries[0].line)
    assert {entry.text for entry in entries[1:]} >= {
        "Test a restore before you trust a backup.",
        "Tell the customer the price before the work begins.",
        "Write the reason beside every correction in the ledger.",
    }
    assert made.how == "extractive"
    assert notes.startswith("Extractive: sentences of the lessons themselves")
    assert problems(body.strip(), parse_coverage(notes)) == []
    assert len(fenns) / (len(entries) - 1) >= 3  # ten lessons make one to three patterns


def test_every_entry_says_which_lessons_it_covers_and_where_they_stand(fenns: list[Lesson]) -> None:
    made = worded(fenns)
    notes = split_notes(made.draft)[1]
    assert parse_coverage(notes) == made.covers
    assert min(made.covers.values()) >= 3
    assert "- AGENTS.md:15 Test a restore before you trust a backup." in notes


def test_the_same_lessons_make_the_same_draft_with_vectors_or_without(fenns: list[Lesson]) -> None:
    assert worded(fenns) == worded(list(fenns))
    by_words = compress(fenns, "", TODAY, None, None)
    assert by_words == compress(list(fenns), "", TODAY, None, None)
    assert len(by_words.covers) >= 4


def test_lessons_that_have_nothing_in_common_make_no_theme() -> None:
    texts = ["Oil the chain", "Call Ruth on Tuesday", "The kettle is slow", "Invoices need a stamp"]
    assert find_themes(Likeness(texts, open_bundled().documents)) == []
    assert find_themes(Likeness([], None)) == []


def test_no_detail_of_a_lesson_reaches_an_entry() -> None:
    found = [
        Lesson(f"Verify port {port} before starting the {name} server on {name}.local:{port}.", "f.md", at)
        for at, (port, name) in enumerate(((8080, "till"), (8190, "print"), (6310, "label")), 1)
    ]
    made = worded(found)
    assert made.covers == {}
    assert "No sentence of these is short and general enough" in made.draft
    assert parse(made.section).entries[0].name == MANDATORY.name


def test_no_lessons_still_make_a_section_with_the_mandatory_entry() -> None:
    made = worded([])
    assert made.section == render([MANDATORY], TODAY, 0)


def test_what_does_not_fit_is_left_out_and_named(fenns: list[Lesson]) -> None:
    more = [
        Lesson(f"{rule} {thing} before {other} is touched by anybody in the shop at all, {end}.", "g.md", at)
        for at, (rule, thing, other, end) in enumerate(
            (rule, thing, other, end)
            for rule, thing, other in (
                ("Label", "cables", "wiring"),
                ("Weigh", "parcels", "postage"),
                ("Oil", "bearings", "grease"),
            )
            for end in ("always", "really", "truly")
        )
    ]
    made = worded([*fenns, *more])
    assert tokens.count(made.section) <= 150
    assert sum(note.startswith("Did not fit") for note in made.notes) >= 1


def test_the_way_a_person_says_the_mandatory_entry_is_kept_and_what_goes_is_told(fenns: list[Lesson]) -> None:
    mine = "**Not sure? Look it up.** Check `memory/` and MEMORY.md before you guess."
    made = worded(fenns, present=f"## Wisdom\n\n{mine}\n**Old.** Nobody says this any more.\n")
    assert made.section.splitlines()[4] == mine
    assert "In SOUL.md now and not in this draft: **Old.** Nobody says this any more." in made.notes


# ---------------------------------------------------------------- with a model


def says(*answers: str) -> object:
    left = list(answers)

    def reply(request: Request) -> Reply:
        return Reply({"choices": [{"message": {"content": left.pop(0) if len(left) > 1 else left[0]}}]})

    return reply


GOOD = "Rehearse | Trust only what you have tried under real conditions. | 1, 2, 3"


def test_the_model_gets_the_prompt_and_the_numbered_lessons(serve: Serve, fenns: list[Lesson]) -> None:
    server = serve(says(GOOD))
    made = worded(fenns, choose_chat(f"{server.base}#m", {}))
    system, user = (message["content"] for message in server.requests[0].json["messages"])
    assert system.startswith(INSTRUCTION)
    assert INSTRUCTION == (
        "Group these lessons by theme. For each theme, write one compressed wisdom pattern: "
        "broader applicability, no implementation-specific details, maximum 15 words."
    )
    assert user.splitlines()[0] == f"1. {fenns[0].text}"
    assert len(user.splitlines()) == len(fenns)
    assert made.how.endswith("#m")
    assert made.covers == {"Rehearse.": 3}
    assert "**Rehearse.** Trust only what you have tried under real conditions." in made.section
    assert f"- {fenns[1].where} " in made.draft
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "entry", "numbers"),
    [
        (GOOD, WisdomEntry("Rehearse.", "Trust only what you have tried under real conditions."), [1, 2, 3]),
        ("<think>hm | 1</think>\n**Ask.** Confirm it (L4, 5)", WisdomEntry("Ask.", "Confirm it."), [4, 5]),
        ("2. **Ask first**: Confirm it. [4, 5]", WisdomEntry("Ask first.", "Confirm it."), [4, 5]),
        ("| Pattern name | wisdom | lesson |\n|---|---|---|\n|Ask|Do.|7|", WisdomEntry("Ask.", "Do."), [7]),
        ("Here you are:\n- Ask first: Confirm it.", WisdomEntry("Ask first.", "Confirm it."), []),
    ],
)  # fmt: skip
def test_answers_are_read_in_the_forms_that_models_like(
    answer: str, entry: WisdomEntry, numbers: list[int]
) -> None:
    assert list(parse_entries(answer)) == [(entry, numbers)]


def test_a_bad_answer_is_told_what_is_wrong_and_asked_for_once_more(
    serve: Serve, fenns: list[Lesson]
) -> None:
    server = serve(says("Ports | Use port 3100 for everything that you build here. | 1, 2, 3", GOOD))
    made = worded(fenns, choose_chat(f"{server.base}#m", {}))
    assert "“Ports.” names a port: port 3100." in server.requests[1].json["messages"][1]["content"]
    assert made.covers == {"Rehearse.": 3}


@pytest.mark.parametrize(
    "answer", ["I would rather not.", "Ports | Use port 3100. | 1, 2, 3", "Two | Only two. | 1, 2"]
)
def test_two_bad_answers_lead_to_the_extractive_way_and_it_is_said(
    serve: Serve, fenns: list[Lesson], answer: str
) -> None:
    server = serve(says(answer))
    made = worded(fenns, choose_chat(f"{server.base}#m", {}))
    assert len(server.requests) == 2
    assert made.how == "extractive"
    assert "could be used" in made.notes[0]
    assert made.covers == worded(fenns).covers


def test_a_server_that_does_not_answer_leads_there_too(serve: Serve, fenns: list[Lesson]) -> None:
    server = serve(lambda request: Reply(b"", status=500))
    made = worded(fenns, choose_chat(f"{server.base}#m", {}))
    assert made.how == "extractive"
    assert "gave no answer" in made.notes[0]


def test_an_entry_without_numbers_is_mapped_to_the_lessons_that_it_is_like(
    serve: Serve, fenns: list[Lesson]
) -> None:
    server = serve(says("Restore. | Test a restore before you trust a backup."))
    made = worded(fenns, choose_chat(f"{server.base}#m", {}))
    assert made.covers["Restore."] >= 3
    assert "- AGENTS.md:16 A backup that nobody has restored" in made.draft


# ---------------------------------------------------------------- the linter


WISDOM = render([MANDATORY, WisdomEntry("Ask first.", "Confirm before you promise.")], TODAY, 12)


def test_a_good_section_has_no_problem_and_reads_back_as_it_was_written() -> None:
    assert problems(WISDOM, {"Ask first.": 3}) == []
    found = parse(WISDOM)
    assert (found.day, found.lessons) == (TODAY, 12)
    assert render(found.entries, TODAY, 12) == WISDOM
    assert WISDOM.splitlines()[:4] == [
        "## Wisdom",
        "",
        "_Last compressed: 2026-11-20 | Source lessons: 12_",
        "",
    ]


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Mission Control answers on port 3100.", "a port"),
        ("Look at dashboard:3100 first.", "a port"),
        ("Prefer qwen3.5:35b for drafts.", "a model's name"),
        ("Let Sonnet write the letters.", "a model's name"),
        ("Stay on Python 3.12 for now.", "a version"),
        ("Never skip v2 of the form.", "a version"),
        ("Logs are below /var/log/shop there.", "a path"),
        ("Read ledger.sqlite before closing.", "a file name"),
        ("Call `make all` before leaving.", "code"),
        ("Pass --force only when asked.", "an option"),
        ("Look at https://shop.example first.", "an address"),
        ("Set MAX_RETRIES with care.", "a name from code"),
        ("Room 4711 is the cold one.", "a number"),
    ],
)
def test_implementation_details_are_found_and_named(sentence: str, kind: str) -> None:
    assert [found for found, _ in find_details(sentence)] == [kind]


@pytest.mark.parametrize(
    "sentence",
    [
        "Names, ports, and model IDs drift.",
        "Ask twice; a 90 % yes is a no.",
        "Either/or questions get bad answers.",
    ],
)
def test_what_is_general_is_no_detail(sentence: str) -> None:
    assert find_details(sentence) == []


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (WISDOM.replace("Confirm before you promise.", "one " * 16), "has 16 words; 15 is the most"),
        (WISDOM.replace(MANDATORY.as_item, ""), f"Add: {MANDATORY.as_item}"),
        (WISDOM.replace("_Last", "Last"), "The line that says when it was compressed is missing"),
        (WISDOM + "And so on.\n", "This is no entry: And so on."),
        (WISDOM + "**Ask first.** Again.\n", "is there twice"),
        (WISDOM.replace("Ask first.**", "Ask first**"), "does not end with a full stop"),
    ],
)
def test_what_is_wrong_with_a_section_is_told(section: str, said: str) -> None:
    assert [one for one in problems(section) if said in one]


def test_an_entry_covers_three_lessons_except_the_mandatory_one() -> None:
    (found,) = problems(WISDOM, {"Ask first.": 2})
    assert found.startswith("D:6: “Ask first.” covers 2 of the 3 lessons that an entry must cover.")
    assert problems(WISDOM, {}) != []
    assert problems(WISDOM) == []  # nobody can tell


def test_the_token_cap_rules_and_what_does_not_fit_is_named() -> None:
    many = [
        WisdomEntry(f"Rule {word}.", f"Always think of {word} before anything else happens.")
        for word in "abcdefgh"
    ]
    found = problems(render([MANDATORY, *many], TODAY, 40))
    assert len(found) == 1
    assert "150 is the most. What does not fit: " in found[0]
    assert "“Rule h.”" in found[0]
    assert "Rule a." not in found[0]
    assert "memory" not in found[0]


def test_the_mandatory_entry_may_be_said_in_other_words_that_lead_to_both_places() -> None:
    assert is_mandatory(WisdomEntry("Unsure?", "Check MEMORY.md and `memory/2026-11-20.md` first."))
    assert not is_mandatory(WisdomEntry("Unsure?", "Check MEMORY.md first."))
    assert not is_mandatory(WisdomEntry("Unsure?", "Guess."))


def test_soul_is_held_to_its_tokens_with_a_warning_before() -> None:
    def levels(words: int) -> list[str]:
        return [
            problem.level for problem in soul_problems(f"# Fenn\n\n{'heron ' * words}\n\n{WISDOM}", "SOUL.md")
        ]

    size = tokens.count(WISDOM)
    assert levels(20) == []
    assert levels((205 - size) // 2) == ["warning"]
    assert levels(260) == ["error"]
    assert [one.level for one in soul_problems("# Fenn\n", "SOUL.md")] == ["warning"]  # none yet
    assert "2 `## Wisdom` sections" in str(soul_problems(f"{WISDOM}\n{WISDOM}", "SOUL.md")[-1])


def test_wisdom_never_has_a_file_of_its_own() -> None:
    assert [problem.where for problem in root_problems(["SOUL.md", "Wisdom.md", "WISDOM.md"])] == [
        "WISDOM.md",
        "Wisdom.md",
    ]
    assert list(root_problems(["SOUL.md", "WISDOM.txt"])) == []


# ---------------------------------------------------------------- the list of the day


def test_a_review_is_asked_for_once_and_ticked_off() -> None:
    once = request_review("# Queue\n\n- [ ] oil the chain\n", "a/DRAFT.md", "(for SOUL.md)")
    assert once == "# Queue\n\n- [ ] oil the chain\n- [ ] REVIEW NEEDED: a/DRAFT.md (for SOUL.md)\n"
    assert request_review(once, "a/DRAFT.md", "(for SOUL.md)") == once
    newer = request_review(once, "a/DRAFT.md", "(for SOUL.md, today)")
    assert newer.count("REVIEW NEEDED") == 1
    done = check_off(newer, "a/DRAFT.md")
    assert "- [x] REVIEW NEEDED: a/DRAFT.md (for SOUL.md, today)" in done
    assert "- [ ] oil the chain" in done
    assert request_review(done, "a/DRAFT.md", "(again)").count("REVIEW NEEDED") == 2
