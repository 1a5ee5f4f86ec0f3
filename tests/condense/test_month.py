"""The month's look at what sleeps."""

from __future__ import annotations

from datetime import date, timedelta

from tacit.condense.month import ACTIVE_PROJECTS, monthly_review
from tests.condense import sampled

TODAY = date(2026, 12, 1)
BASALT = "knowledge/projects/basalt/context.md"
ALFONS = "knowledge/people/alfons-rieder.md"


def days_ago(days: int) -> date:
    return TODAY - timedelta(days=days)


def test_a_project_nobody_touched_or_named_for_sixty_days_is_proposed_as_quiet() -> None:
    texts = {ACTIVE_PROJECTS: sampled.notes()[ACTIVE_PROJECTS], BASALT: "# basalt\n"}
    found = monthly_review(texts, {BASALT: days_ago(61)}, TODAY, "2026-11")
    assert [one.name for one in found.projects] == ["basalt"]
    assert found.rewrite is not None
    assert found.rewrite.old == texts[ACTIVE_PROJECTS]
    added = set(found.rewrite.new.split("\n")) - set(texts[ACTIVE_PROJECTS].split("\n"))
    line = "- **basalt**: home server. Backups at 04:15, restore test on the first Sunday of the month."
    assert added == {f"{line} (quiet since 2026-10-01)"}
    again = monthly_review(
        {**texts, ACTIVE_PROJECTS: found.rewrite.new}, {BASALT: days_ago(61)}, TODAY, "2026-12"
    )
    assert again.rewrite is None


def test_a_page_that_names_a_project_keeps_it_awake() -> None:
    texts = {ACTIVE_PROJECTS: sampled.notes()[ACTIVE_PROJECTS], BASALT: "# basalt\n"}
    page = f"knowledge/journal/{days_ago(20)}.md"
    found = monthly_review(
        {**texts, page: "### Basalt\n- rebooted\n"}, {BASALT: days_ago(90)}, TODAY, "2026-11"
    )
    assert found.projects == ()
    other = monthly_review({**texts, page: "basaltic rock\n"}, {BASALT: days_ago(90)}, TODAY, "2026-11")
    assert len(other.projects) == 1


def test_a_person_whom_nobody_named_for_half_a_year_is_told_of_and_nothing_else_happens() -> None:
    texts = {ALFONS: "---\nname: Alfons Rieder\n---\n"}
    found = monthly_review(texts, {ALFONS: days_ago(181)}, TODAY, "2026-11")
    assert found.notes == (f"{ALFONS}: not named since {days_ago(181)}.",)
    assert found.rewrite is None
    named = {**texts, f"archive/journal/{days_ago(100)}.md": "- Alfons sent a card\n"}
    assert monthly_review(named, {ALFONS: days_ago(181)}, TODAY, "2026-11").people == ()


def test_in_the_sample_home_nobody_sleeps() -> None:
    changed = dict.fromkeys(sampled.notes(), date(2026, 10, 31))
    found = monthly_review(sampled.notes(), changed, date(2026, 11, 1), "2026-10")
    assert (found.projects, found.people, found.rewrite) == ((), (), None)
