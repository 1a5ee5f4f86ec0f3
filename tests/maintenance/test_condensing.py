"""Days, weeks and months are condensed once, in order, and caught up with."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.condense.periods import machine_name
from tacit.condense.plan import plan
from tacit.health.access import trust
from tacit.home.layout import Home
from tests.conftest import GitLog
from tests.maintenance.life import MEMORY, Life, archived_text, killed_at

DECIDED = "We decided to fire the big plates at 1,215 degrees."
JOURNAL = "knowledge/journal/2026-03-02.md"


def test_a_day_is_condensed_after_its_time_and_once(life: Life, git_log: GitLog) -> None:
    life.talk(DECIDED, ("agent", "I moved the launch to Saturday and told Noor about the plates."))
    assert life.memory.services.condenser.find_due_periods() == []
    life.now = datetime(2026, 3, 2, 23, 1, tzinfo=UTC)
    done = life.memory.services.condenser.condense_due()
    assert done.periods == ("day 2026-03-02",)
    assert "### Summary" in life.text(JOURNAL)
    assert git_log("-1")[0].trailer("Condensed") == ["day 2026-03-02"]
    before, commits = life.text(JOURNAL), len(git_log())
    life.pass_time(minutes=5)
    assert life.memory.services.condenser.condense_due().periods == ()
    (life.root / ".tacit/runs.jsonl").unlink()  # then the commits tell
    assert "day 2026-03-02" in life.memory.services.runs.list_condense_times()
    assert life.memory.services.condenser.condense_due().periods == ()
    assert (life.text(JOURNAL), len(git_log())) == (before, commits)


def test_an_agent_that_repeats_what_is_known_tells_the_day_nothing_new(life: Life) -> None:
    life.talk(DECIDED)
    life.memory.services.extractor.learn_pending()
    life.pass_time(days=2)
    life.talk("How hot were the big plates?", ("agent", f"{DECIDED} We decided to sell the old kiln, too."))
    life.pass_time(days=1)
    life.memory.services.condenser.condense_due()
    page = life.text("knowledge/journal/2026-03-04.md")
    assert "the old kiln" in page
    assert "1,215" not in page


def test_a_page_that_others_read_does_not_get_the_summary_of_the_owners_day(life: Life) -> None:
    (life.root / JOURNAL).write_text("---\naudience: group\n---\n## 2026-03-02\n")
    life.talk(DECIDED, ("agent", "I moved the launch to Saturday and told Noor about the plates."))
    life.now = datetime(2026, 3, 2, 23, 1, tzinfo=UTC)
    life.memory.services.condenser.condense_due()
    assert "1,215" not in life.text(JOURNAL)
    assert "1,215" in life.text(JOURNAL.replace(".md", "-owner.md"))


def test_days_off_are_caught_up_with_the_oldest_first(life: Life) -> None:
    for _ in range(3):
        life.talk(DECIDED.replace("1,215", f"1,2{life.now.day}"))
        life.now = (life.now + timedelta(days=1)).replace(hour=9)
    life.pass_time(days=20)
    done = life.memory.services.condenser.condense_due()
    days = [period for period in done.periods if period.startswith("day")]
    assert days == ["day 2026-03-02", "day 2026-03-03", "day 2026-03-04"]
    assert "week 2026-W10" in done.periods


def test_a_conversation_that_ends_after_the_condensation_is_taken_in(life: Life) -> None:
    life.talk(DECIDED)
    life.now = datetime(2026, 3, 2, 22, 50, tzinfo=UTC)
    memory = life.memory
    session = memory.session(session_id="late", started=life.now)
    session.message("user", "We agreed that Noor gets the key for the shop in April.")
    life.now = datetime(2026, 3, 2, 23, 5, tzinfo=UTC)
    life.memory.services.condenser.condense_due()
    assert "Noor" not in life.text(JOURNAL)
    life.pass_time(minutes=20)
    session.end()
    life.memory.services.condenser.condense_due()
    assert "Noor" in life.text(JOURNAL)


def test_a_conversation_that_was_sealed_or_brought_later_is_taken_in_though_it_ended_before(
    life: Life,
) -> None:
    life.talk(DECIDED)
    life.now = datetime(2026, 3, 2, 23, 1, tzinfo=UTC)
    life.memory.services.condenser.condense_due()
    life.now = datetime(2026, 3, 2, 15, tzinfo=UTC)
    life.talk("We agreed that Noor gets the key for the shop in April.")
    life.now = datetime(2026, 3, 3, 9, tzinfo=UTC)
    assert life.memory.services.condenser.condense_due().periods == ("day 2026-03-02",)
    assert "Noor" in life.text(JOURNAL)
    life.pass_time(minutes=1)
    assert life.memory.services.condenser.condense_due().periods == ()


def test_what_another_machine_learned_and_condensed_is_known_after_a_pull(life: Life, tmp_path: Path) -> None:
    other = Life(tmp_path / "other", life.now)
    subprocess.run(["cp", "-r", str(life.root), str(other.root)], check=True)
    trust(Home(other.root))
    assert other.memory.work().summed is not None  # it has its own record from now on
    life.talk(DECIDED)
    life.now = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    life.memory.work()
    (life.root / MEMORY).write_text(life.text().replace(life.lines()[-1] + "\n", ""))  # not so
    life.memory.commit()
    other.now = life.now + timedelta(days=1)
    subprocess.run(["git", "-C", str(other.root), "pull", "-q", str(life.root)], check=True)
    assert other.memory.services.condenser.condense_due().periods == ()
    assert other.memory.services.extractor.learn_pending().added == ()
    assert DECIDED not in other.text()


def test_a_dry_run_shows_what_would_be_and_does_nothing(life: Life, git_log: GitLog) -> None:
    life.talk(DECIDED)
    life.pass_time(days=1)
    memory = life.memory
    commits = len(git_log())
    done = memory.services.condenser.condense(
        memory.services.condenser.find_due_periods(), prune=True, archive=True, dry_run=True
    )
    assert [edit.path for edit in done.edits] == [JOURNAL]
    assert not (life.root / JOURNAL).exists()
    assert len(git_log()) == commits
    assert life.memory.services.condenser.find_due_periods()


def test_old_journal_pages_move_to_the_archive_and_can_be_brought_back(life: Life) -> None:
    old = "knowledge/journal/2025-06-01.md"
    (life.root / old).parent.mkdir(parents=True, exist_ok=True)
    (life.root / old).write_text("# A day\n\n- long ago\n")
    life.memory.commit()
    done = life.memory.services.condenser.condense([], prune=False, archive=True)
    assert not (life.root / old).exists()
    assert life.text("archive/journal/2025-06-01.md") == "# A day\n\n- long ago\n"
    life.memory.history.undo(done.commits[-1])
    assert life.text(old) == "# A day\n\n- long ago\n"


def test_nothing_that_guides_or_is_young_or_linked_is_ever_evicted(life: Life) -> None:
    pages = {
        "knowledge/reference/unused.md": "# Unused\n",
        "knowledge/reference/pinned.md": "---\npinned: true\n---\n\n# Pinned\n",
        "knowledge/reference/linked.md": "# Linked\n",
        "knowledge/people/ines.md": "# Ines\n\nSee [[linked]].\n",
    }
    for path, text in pages.items():
        (life.root / path).parent.mkdir(parents=True, exist_ok=True)
        (life.root / path).write_text(text)
    life.memory.commit()
    life.pass_time(days=400)
    done = life.memory.services.condenser.condense([], prune=False, archive=True)
    targets = {draft.target for draft in done.drafts}
    assert "knowledge/reference/unused.md" in targets
    assert not targets & {"knowledge/reference/pinned.md", "knowledge/reference/linked.md", MEMORY}
    assert not any(target.startswith(("knowledge/identity/", "topics/")) for target in targets)
    assert (life.root / "knowledge/reference/unused.md").exists()  # it waits for a review


def evicted(life: Life) -> set[str]:
    done = life.memory.services.condenser.condense([], prune=False, archive=True)
    return {draft.target for draft in done.drafts} | {edit.path for edit in done.edits}


@pytest.mark.parametrize("where", ["topics/firing.md", "memory-config.yaml"])
def test_what_a_topic_or_the_config_names_is_not_evicted(life: Life, where: str) -> None:
    (life.root / "knowledge/reference/unused.md").write_text("# Unused\n")
    text = "---\ntriggers: [fire]\n---\n\nSee knowledge/reference/unused.md.\n"
    if where.endswith(".yaml"):
        text = f"{life.text(where)}\n# knowledge/reference/unused.md\n"
    (life.root / where).write_text(text)
    life.memory.commit()
    life.pass_time(days=400)
    assert "knowledge/reference/unused.md" not in evicted(life)


def test_what_somebody_edited_just_now_is_not_evicted(life: Life) -> None:
    note = life.root / "knowledge/reference/unused.md"
    note.write_text("# Unused\n")
    life.memory.commit()
    life.pass_time(days=400)
    note.write_text("# Unused\n\nNot at all.\n")
    assert "knowledge/reference/unused.md" not in evicted(life)


def test_a_pinned_journal_page_stays_however_old_it_is(life: Life) -> None:
    for day, head in (("2025-10-01", "---\npinned: true\n---\n\n"), ("2025-10-02", "")):
        (life.root / f"knowledge/journal/{day}.md").write_text(f"{head}## {day}\n\n- Ada was born\n")
    life.memory.commit()
    assert {path for path in evicted(life) if "2025" in path} == {
        "knowledge/journal/2025-10-02.md",
        "archive/journal/2025-10-02.md",
    }


def test_a_month_without_pruning_tells_of_quiet_projects_too(life: Life) -> None:
    (life.root / "knowledge/projects/shed").mkdir(parents=True)
    (life.root / "knowledge/projects/shed/context.md").write_text("# Shed\n\n- It leaks.\n")
    (life.root / "knowledge/projects/_active.md").write_text("# Active\n\n- **shed**: until June\n")
    life.memory.commit()
    life.now = datetime(2026, 6, 29, 9, tzinfo=UTC)
    life.talk(DECIDED)
    life.memory.services.condenser.condense([], prune=True, archive=True)
    life.now = datetime(2026, 6, 30, 23, 30, tzinfo=UTC)
    done = life.memory.services.condenser.condense_due()
    assert "month 2026-06" in done.periods
    assert [draft.target for draft in done.drafts] == ["knowledge/projects/_active.md"]


def test_a_note_that_somebody_edits_meanwhile_is_left_and_the_rewrite_waits(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.set("review: {memory: auto}")
    note = life.root / MEMORY
    note.write_text(note.read_text() + "".join(f"- 2026-01-01: entry {n} of many\n" for n in range(210)))
    life.memory.commit()
    real = plan

    def planned(*given: object, **more: object) -> object:
        found = real(*given, **more)  # type: ignore[arg-type]
        note.write_text(note.read_text() + "- 2026-03-02: by hand, just now\n")
        return found

    monkeypatch.setattr("tacit.condense.service.plan", planned)
    done = life.memory.services.condenser.condense([], prune=True, archive=False)
    assert "by hand, just now" in life.text()
    assert MEMORY in {draft.target for draft in done.drafts}


def test_pruning_by_policy_loses_nothing(life: Life) -> None:
    life.set("review: {memory: auto}")
    note = life.root / MEMORY
    note.write_text(note.read_text() + "".join(f"- 2026-01-01: entry {n} of many\n" for n in range(210)))
    life.memory.commit()
    life.memory.services.condenser.condense([], prune=True, archive=False)
    kept = life.text() + life.text("archive/memory/2026-03.md")
    assert all(f"entry {number} of many" in kept for number in range(210))
    assert life.text().count("\n") <= 200


def test_two_machines_with_one_remote_condense_a_day_once(life: Life, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    life.set(f"git: {{auto_push: true, remote: '{remote}'}}")
    life.talk(DECIDED)
    life.memory.commit()
    machine_name(Home(life.root))  # made when it first condenses, and then copied along
    other = Life(tmp_path / "other", life.now)
    subprocess.run(["cp", "-r", str(life.root), str(other.root)], check=True)
    trust(Home(other.root))
    for one in (life, other):
        one.now = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    assert life.memory.services.condenser.condense_due().periods == ("day 2026-03-02",)
    done = other.memory.services.condenser.condense_due()
    assert done.periods == ()
    assert not (other.root / JOURNAL).exists()
    remote.rename(tmp_path / "gone.git")
    other.pass_time(days=1)
    other.talk("We decided to close on Mondays from April on.")
    other.pass_time(days=1)
    assert "could not be asked" in other.memory.services.condenser.condense_due().waiting


def test_everything_that_is_due_runs_in_one_call_and_a_second_changes_nothing(
    life: Life, git_log: GitLog
) -> None:
    life.talk(DECIDED)
    life.pass_time(days=10)
    done = life.memory.work()
    assert done.learnt is not None
    assert len(done.learnt.added) == 1
    assert done.summed is not None
    assert "day 2026-03-02" in done.summed.periods
    commits = len(git_log())
    again = life.memory.work()
    assert not again.changed
    assert len(git_log()) == commits


def overfull(life: Life) -> None:
    note = life.root / MEMORY
    note.write_text(note.read_text() + "".join(f"- 2026-01-01: entry {n} of many\n" for n in range(210)))


@pytest.mark.parametrize("number", range(1, 7))
def test_a_run_that_is_killed_between_two_files_loses_no_line_and_gives_none_twice(
    life: Life, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    life.set("review: {memory: auto}")
    overfull(life)
    for day in ("2025-10-01", "2025-10-02"):
        (life.root / f"knowledge/journal/{day}.md").write_text(f"## {day}\n\n- what was on {day}\n")
    life.memory.commit()
    with killed_at(monkeypatch, number):
        life.memory.services.condenser.condense([], prune=True, archive=True)
    for _ in range(2):
        life.memory.services.condenser.condense([], prune=True, archive=True)
    text = life.text() + archived_text(life)
    assert {text.count(f"entry {entry} of many") for entry in range(210)} == {1}
    assert {text.count(f"- what was on {day}") for day in ("2025-10-01", "2025-10-02")} == {1}
    assert not list((life.root / "knowledge/journal").glob("2025-*"))


def test_a_page_that_is_summed_up_and_archived_in_one_run_is_archived_with_its_summary(life: Life) -> None:
    life.talk(DECIDED, ("agent", "I moved the launch to Saturday and told Noor about the plates."))
    (life.root / JOURNAL).write_text("## 2026-03-02\n\n- The new van came.\n")
    life.pass_time(days=120)
    life.memory.work()
    assert "The new van" in (page := life.text("archive/journal/2026-03-02.md"))
    assert "### Summary" in page
    assert not (life.root / JOURNAL).exists()


def test_who_takes_back_a_run_keeps_what_was_written_by_hand_before_it(life: Life, git_log: GitLog) -> None:
    page = life.root / JOURNAL
    page.write_text("## 2026-03-02\n\nFirst words.\n")
    (life.root / MEMORY).write_text(life.text() + "\nMy own words.\n")
    life.talk(DECIDED)
    learnt = life.memory.services.extractor.learn_pending().commits
    page.write_text(page.read_text() + "More of my own words.\n")
    life.now = datetime(2026, 3, 2, 23, 1, tzinfo=UTC)
    for commit in (*life.memory.services.condenser.condense_due().commits, *learnt):
        life.memory.history.undo(commit)
    assert "1,215" not in life.text() + page.read_text()
    assert "My own words." in life.text()
    assert "More of my own words." in page.read_text()


def test_what_a_hand_edit_kept_in_memory_is_not_archived(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    life.set("review: {memory: auto}")
    overfull(life)
    life.memory.commit()

    def planned(*given: object, **more: object) -> object:
        found = plan(*given, **more)  # type: ignore[arg-type]
        (life.root / MEMORY).write_text(life.text() + "- 2026-03-02: by hand, just now\n")
        return found

    monkeypatch.setattr("tacit.condense.service.plan", planned)
    life.memory.services.condenser.condense([], prune=True, archive=False)
    assert not (life.root / "archive/memory").exists()


def test_lines_of_a_day_wait_by_the_policy_of_the_journal(life: Life) -> None:
    life.set("review: {journal: owner, approvers: [Ines]}")
    life.talk(DECIDED)
    life.now = datetime(2026, 3, 2, 23, 1, tzinfo=UTC)
    (draft,) = life.memory.services.condenser.condense_due().drafts
    assert (draft.category, draft.policy) == ("day", "owner")
