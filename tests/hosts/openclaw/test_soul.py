"""SOUL.md → a shorter one: what is kept, what moves, and every sentence that is left out."""

from __future__ import annotations

from datetime import date

import pytest

from tacit.hosts.openclaw.compact_files import summarize
from tacit.hosts.openclaw.soul import (
    CHECKLIST_LINE,
    MEMORY_LINE,
    SHEDDING_LINE,
    TOOLS_LINE,
    SoulProposal,
    compress_soul,
    find_lost_sections,
    find_problems,
    with_checklist,
)
from tacit.hosts.openclaw.wisdom_section import MANDATORY, WisdomEntry, parse, render
from tacit.llm.registry import choose_chat
from tacit.markdown.sections import find_sections
from tacit.review.model import split_notes
from tacit.text import tokens
from tests.embeddings import conftest as loopback
from tests.embeddings.conftest import Reply, Request, Serve
from tests.workspaces import text

serve = loopback.serve
TODAY = date(2026, 11, 20)
SOUL, AGENTS = text("SOUL.md"), text("AGENTS.md")
WISDOM = render([MANDATORY, WisdomEntry("Ask first.", "Confirm before you promise.")], TODAY, 12)


def shortened(most: int = 250, wisdom: str = WISDOM, chat: object = None) -> SoulProposal:
    return compress_soul(SOUL, AGENTS, wisdom, TODAY, most, chat)  # type: ignore[arg-type]


def errors(soul: str, most: int = 250) -> list[str]:
    return [str(problem) for problem in find_problems(soul, "D", most) if problem.level == "error"]


def test_the_proposal_keeps_what_every_session_needs_and_fits() -> None:
    made = shortened()
    assert tokens.count(made.soul) <= 250
    assert errors(made.soul) == []
    for line in (
        "# Fenn", "I am Fenn, a heron", "- Solo: ", "- Decide and report: ", "- Always ask: ",
        "## Boundaries", "## Vibe",
        MEMORY_LINE, TOOLS_LINE, SHEDDING_LINE, MANDATORY.as_item,
    ):  # fmt: skip
        assert line in made.soul
    assert "**Ask first.** Confirm before you promise." in made.soul


def test_every_sentence_is_in_the_proposal_or_in_the_list_of_what_is_not() -> None:
    made = shortened()
    listed = "\n".join(made.dropped)
    for sentence in (
        "My motto: measure twice, then once more for luck.",
        "I name the price before the praise.",
        "No advice on brakes without a look at the brakes.",
        "Customers' addresses stay in the shop.",
        "Wren never sends.",
        "On Fridays I count the drawers.",
    ):
        assert (sentence in made.soul) != (sentence in listed)


def test_agent_dynamics_and_rhythm_are_suggested_for_agents_and_nothing_of_it_is_lost() -> None:
    made = shortened()
    assert {part.title: part.fate for part in made.parts if part.fate.startswith("suggested")} == {
        "Agent dynamics": "suggested for AGENTS.md",
        "Operating rhythm": "suggested for AGENTS.md",
    }
    assert made.agents is not None
    assert made.agents.endswith(SOUL[SOUL.index("## Agent dynamics") :])
    assert CHECKLIST_LINE in made.agents
    assert list(find_lost_sections(SOUL, made.soul, AGENTS)) == ["Agent dynamics", "Operating rhythm"]
    assert list(find_lost_sections(SOUL, made.soul, made.agents)) == []


def test_the_draft_shows_the_difference_section_by_section() -> None:
    body, notes = split_notes(shortened().draft)
    assert body == shortened().soul
    assert "- Decision authority: kept, 53 → 53 tokens" in notes
    assert "- Vibe: shortened, " in notes
    assert "- Wisdom: added, " in notes
    assert "Extractive: " in notes


def test_with_more_room_more_is_kept_and_nothing_is_reworded() -> None:
    made = shortened(most=600)
    assert "I was hatched on the first day" in made.soul
    beyond = ("suggested for AGENTS.md", "posted in the shop's name", "next step", "exclamation marks")
    assert [line for line in made.dropped if not any(words in line for words in beyond)] == []


def test_wisdom_entries_for_which_there_is_no_room_are_named() -> None:
    many = [WisdomEntry(f"Rule {word}.", f"Always think of {word} first.") for word in "abcdef"]
    made = shortened(wisdom=render([MANDATORY, *many], TODAY, 40))
    assert tokens.count(made.soul) <= 250
    assert any("No room for this entry of the wisdom section: **Rule f.**" in note for note in made.notes)
    kept = parse(find_sections(made.soul, "Wisdom", 2)[0].text(made.soul)).entries
    assert kept[0].as_item == MANDATORY.as_item


def test_a_soul_without_wisdom_gets_the_mandatory_entry() -> None:
    assert MANDATORY.as_item in shortened(wisdom="").soul


def test_a_soul_of_another_shape_loses_no_sentence_unseen() -> None:
    soul = """# Who you are

_You are not a tool._

> Slow is smooth.

**Be useful.** Skip the filler.

```
motto --loud
```

## Continuity

Each session you wake up fresh. Update these files.

---

_This file is yours._
"""
    made = compress_soul(soul, "", "", TODAY)
    kept = "You are not a tool. Slow is smooth. Be useful. Skip the filler. `motto --loud`"
    assert made.soul.startswith(f"# Who you are\n\n{kept}\n\n## Context")
    assert made.dropped == ("Each session you wake up fresh.", "Update these files.", "This file is yours.")
    assert made.agents is None


def test_shortening_what_is_short_already_drops_nothing() -> None:
    once = shortened().soul
    again = compress_soul(once, AGENTS, "", TODAY)
    assert again.soul == once
    assert again.dropped == ()


# ---------------------------------------------------------------- with a model


TIGHT = """# Fenn
I am Fenn, a heron keeping books and bench of a bicycle workshop: patient, exact, dry. Measure twice.

## Decision authority
- Solo: read, sort, draft, consumables below fifty euros.
- Decide and report: appointments within a day, small ledger corrections.
- Always ask: more money, messages to customers, deleting.

## Boundaries
- Customers' addresses stay in the shop.
- I never speak for Marit.

## Vibe
Short, dry, never at a customer's cost. Price before praise."""


def says(*answers: str) -> object:
    left = list(answers)

    def reply(request: Request) -> Reply:
        return Reply({"choices": [{"message": {"content": left.pop(0) if len(left) > 1 else left[0]}}]})

    return reply


def test_a_model_may_tighten_the_words_but_not_the_wisdom_nor_the_instructions(serve: Serve) -> None:
    server = serve(says(f"```markdown\n{TIGHT}\n```"))
    made = shortened(chat=choose_chat(f"{server.base}#m", {}))
    assert made.how.endswith("#m")
    assert made.soul.startswith(TIGHT)
    assert "**Ask first.** Confirm before you promise." in made.soul
    assert MEMORY_LINE in made.soul
    assert errors(made.soul) == []
    assert "I was hatched on the first day the shop had more orders than drawers." in made.dropped
    assert "reorganisation" in server.requests[0].json["messages"][0]["content"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (TIGHT.replace("## Vibe", "## Mood"), "Its headings are"),
        (TIGHT.replace("fifty", "250"), "It has what the text has not: 250"),
        (TIGHT + " and so on" * 200, "is the most"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_twice_and_then_done_without(
    serve: Serve, answer: str, why: str
) -> None:
    server = serve(says(answer))
    made = shortened(chat=choose_chat(f"{server.base}#m", {}))
    assert len(server.requests) == 2
    assert made.how == "extractive"
    assert why in made.notes[0]
    assert made.soul == shortened().soul


# ---------------------------------------------------------------- the linter


def test_the_linter_says_what_soul_lacks_and_what_belongs_elsewhere() -> None:
    told = "\n".join(f"{problem.level}: {problem}" for problem in find_problems(SOUL, "SOUL.md"))
    assert "error: SOUL.md: It does not say that MEMORY.md is read on demand." in told
    assert f"Add: {MEMORY_LINE}" in told
    assert (
        "warning: SOUL.md:28: “Agent dynamics” need not be in every session. It belongs in AGENTS.md." in told
    )
    assert "“Boundaries” has 4 lines; 3 is the most." in told
    assert "It does not say what the agent decides" not in told
    assert "what the agent decides: alone, and report, always ask" in str(find_problems("# Fenn\n", "S"))


def test_the_checklist_line_is_added_once_and_where_the_checklist_is() -> None:
    once = with_checklist(AGENTS)
    assert f"- Tell Marit what it costs.\n{CHECKLIST_LINE}\n" in once
    assert with_checklist(once) == once
    assert with_checklist("# Agents\n").endswith(f"## New tool checklist\n\n{CHECKLIST_LINE}\n")


# ---------------------------------------------------------------- MEMORY_SUMMARY.md


def test_the_summary_has_the_newest_thirty_entries_whichever_way_they_are_ordered() -> None:
    dated = [f"- 2026-{month:02}-01: entry of month {month}" for month in range(12, 0, -1)]
    undated = [f"- plain entry number {n}" for n in range(30)]
    text, count = summarize(
        "# Memory\n\n## Decisions\n\n" + "\n".join(dated) + "\n\n## Facts\n\n" + "\n".join(undated)
    )
    assert count == 42
    assert text.count("\n- ") == 30
    assert "- 2026-12-01: entry of month 12" in text
    assert "plain entry number 29" in text
    assert "plain entry number 3\n" not in text
    assert text.index("## Decisions") < text.index("## Facts")
