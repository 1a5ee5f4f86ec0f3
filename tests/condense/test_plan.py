"""All steps in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from tacit.condense.day import add_summary, journal_path
from tacit.condense.periods import Period, find_due
from tacit.condense.plan import CondensePlan, PlanInput, plan
from tacit.config.schema import LifecycleSettings, ReviewSettings
from tacit.markdown.note_page import line_count
from tacit.transcripts.attribution import AttributedTranscript
from tests.condense import sampled
from tests.condense.sampled import MEMORY, NOW, VIENNA, heard

DAY, WEEK, MONTH = Period("day", "2026-10-21"), Period("week", "2026-W43"), Period("month", "2026-10")
DECIDED = "We decided to buy the second kiln in January for 2,400 €."
UNWRITTEN = {path: text for path, text in sampled.notes().items() if "/journal/" not in path}
CHANGED = dict.fromkeys(sampled.notes(), date(2026, 10, 31))


def home(files: Mapping[str, str], **more: Any) -> PlanInput:
    return PlanInput(files.get, files.keys(), **more)


def planned(
    files: Mapping[str, str],
    heards: Sequence[AttributedTranscript],
    periods: Sequence[Period],
    *,
    lifecycle: LifecycleSettings | None = None,
    review: ReviewSettings | None = None,
    now: datetime = NOW,
    **more: Any,
) -> CondensePlan:
    by_day = {one.day: [other for other in heards if other.day == one.day] for one in heards}
    return plan(
        home(files, **more),
        by_day,
        periods,
        now=now,
        lifecycle=lifecycle or LifecycleSettings(),
        review=review or ReviewSettings(),
    )


def applied(files: Mapping[str, str], found: CondensePlan) -> dict[str, str]:
    """What is on disk once somebody approved everything."""
    new = dict(files)
    for path in {change.path for change in found.changes}:
        lines = [change for change in found.changes if change.path == path]
        new[path] = add_summary(new.get(path), lines[0].day, lines, found.sessions[path]) or ""
    for rewrite in found.rewrites:
        assert new.get(rewrite.path) == rewrite.old
        new[rewrite.path] = rewrite.new
    for move in found.moves:
        new[move.to] = new.pop(move.path)
    return new


def test_a_week_sees_the_summary_of_its_days_where_that_applies_by_itself() -> None:
    talk = heard(("owner", DECIDED), day="2026-10-21")
    found = planned(UNWRITTEN, [talk], [WEEK, DAY])
    assert [change.text for change in found.changes] == [DECIDED]
    [rewrite] = found.rewrites
    assert DECIDED in rewrite.new
    assert rewrite.sources == ("2026/10/21/0900-ses_a-talk#1",)
    assert found.periods == (WEEK, DAY)
    assert found.sessions == {journal_path("2026-10-21"): ("ses_a",)}


def test_a_summary_that_waits_for_somebody_is_not_there_yet() -> None:
    talk = heard(("owner", DECIDED), day="2026-10-21")
    for lifecycle, review in (
        (LifecycleSettings(auto_apply=False), ReviewSettings()),
        (LifecycleSettings(), ReviewSettings(journal="review")),
    ):
        found = planned(UNWRITTEN, [talk], [DAY, WEEK], lifecycle=lifecycle, review=review)
        assert [change.text for change in found.changes] == [DECIDED]
        assert found.rewrites == ()


def test_words_of_others_reach_neither_page_nor_memory() -> None:
    found = planned(UNWRITTEN, [heard(("web", DECIDED), day="2026-10-21")], [DAY, WEEK, MONTH])
    assert (found.changes, found.rewrites) == ((), ())
    assert [change.trust for change in found.untrusted] == ["web"]


def test_what_several_steps_want_of_memory_is_one_rewrite_of_what_is_on_disk() -> None:
    first = heard(("owner", DECIDED), day="2026-10-21")
    second = heard(("owner", "We decided to fire bisque on Mondays only."), day="2026-10-28", name="b")
    periods = [DAY, WEEK, Period("day", "2026-10-28"), Period("week", "2026-W44")]
    found = planned(
        sampled.notes(), [first, second], periods, lifecycle=LifecycleSettings(memory_line_cap=60)
    )
    by_path = {one.path: one for one in found.rewrites}
    assert sorted(by_path) == ["archive/memory/2026-11.md", MEMORY]
    memory = by_path[MEMORY]
    assert memory.old == sampled.notes()[MEMORY]
    assert line_count(memory.new) <= 60
    assert "week 2026-W43" in memory.reason
    assert "week 2026-W44" in memory.reason
    both = [*memory.new.split("\n"), *by_path["archive/memory/2026-11.md"].new.split("\n")]
    assert [line for line in (memory.old or "").split("\n")[5:] if line not in both] == []


def test_a_home_over_its_cap_is_pruned_when_it_is_time_and_at_the_end_of_a_month() -> None:
    files = sampled.notes()
    small = LifecycleSettings(memory_line_cap=60)

    def rewrites(periods: Sequence[Period], *, prune: bool) -> list[str]:
        found = plan(
            home(files),
            {},
            periods,
            now=NOW,
            lifecycle=small,
            review=ReviewSettings(),
            prune=prune,
            archive=False,
        )
        return [one.path for one in found.rewrites]

    assert rewrites([], prune=False) == []
    assert rewrites([], prune=True) == [MEMORY, "archive/memory/2026-11.md"]
    assert rewrites([MONTH], prune=False) == [MEMORY, "archive/memory/2026-11.md"]


def test_old_pages_and_forgotten_notes_move_and_pinned_or_linked_ones_do_not() -> None:
    files = {
        **sampled.notes(),
        "knowledge/reference/pinned.md": "---\npinned: true\n---\n",
        "knowledge/reference/linked.md": "text\n",
        "knowledge/reference/forgotten.md": "text\n",
    }
    changed = {path: date(2026, 10, 31) for path in sampled.notes()}
    changed |= {path: date(2026, 1, 1) for path in files if path not in changed}
    found = planned(
        files,
        [],
        [],
        now=datetime(2027, 1, 5, 23, tzinfo=VIENNA),
        changed=changed,
        linked=["knowledge/reference/linked.md"],
    )
    assert [(move.path, move.category) for move in found.moves] == [
        ("knowledge/journal/2026-10-05.md", "archive"),
        ("knowledge/journal/2026-10-06.md", "archive"),
        ("knowledge/reference/forgotten.md", "evict"),
    ]


def test_a_note_whose_age_nobody_knows_stays() -> None:
    assert planned(sampled.notes(), [], [], now=datetime(2026, 12, 1, tzinfo=VIENNA)).moves == ()


def test_the_sample_s_whole_month_runs_once_and_then_nothing_is_left_to_do() -> None:
    talks = {one.day: max(said.at for said in one.said if said.at) for one in sampled.heards()}
    periods = find_due("0 23 * * *", VIENNA, NOW, talks, {})
    assert len([one for one in periods if one.kind == "day"]) == 21
    found = planned(sampled.notes(), sampled.heards(), periods, changed=CHANGED)
    assert found.changes
    assert found.untrusted
    after = applied(sampled.notes(), found)
    assert line_count(after[MEMORY]) <= 200
    again = planned(after, sampled.heards(), periods, changed=CHANGED, now=replace_day(NOW))
    assert (again.changes, again.rewrites, again.moves) == ((), (), ())


def replace_day(now: datetime) -> datetime:
    return now.replace(day=now.day + 1)


def test_what_somebody_wrote_meanwhile_is_kept_by_working_on_what_is_there() -> None:
    talk = heard(("owner", DECIDED), day="2026-10-21")
    found = planned(sampled.notes(), [talk], [DAY])
    by_hand = "## 2026-10-21\n\n- written while the plan was made\n"
    text = add_summary(by_hand, "2026-10-21", found.changes, found.sessions[journal_path("2026-10-21")])
    assert text is not None
    assert "- written while the plan was made\n" in text
    assert DECIDED in text
