"""Phases of a migration where no host is asked; with the real one: tests/e2e/test_whole_migration.py."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.app import open_home, set_inject_files
from tacit.errors import DraftRefused, HostError, UsageError
from tacit.hosts.openclaw import (
    baseline,
    packaged,
    phase_conditions,
    phase_criteria,
    phase_questions,
    phase_steps,
    phases,
    settings,
)
from tacit.hosts.openclaw.baseline import SessionReport
from tacit.hosts.openclaw.bootstrap_files import LoadedFile
from tacit.hosts.openclaw.drafts import compact_tools, draft_wisdom, shorten_soul
from tacit.hosts.openclaw.machine import find_host
from tacit.hosts.openclaw.phase_conditions import Condition
from tacit.hosts.openclaw.phase_criteria import NAMES, Criterion, last_results, parse_verdict
from tacit.hosts.openclaw.phase_steps import PhaseEntry
from tacit.hosts.openclaw.phases import EVIDENCE, EvidenceLine, Migration
from tacit.hosts.openclaw.soul import INSTRUCTIONS, has_instruction, with_instruction, without_instruction
from tacit.hosts.openclaw.workspace import (
    AGENTS,
    COMPACT,
    CURATED_FILES,
    FOLDER,
    MEMORY,
    SOUL,
    TOOLS,
    AgentWorkspace,
    approve_draft,
    open_workspace,
    promote_draft,
)
from tests.conftest import Tacit
from tests.e2e import grown

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
OPTIONS = 'owners: ["telegram:111"]\nopenclaw:\n  soul_approvers: [Ines]\n'


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def migration(tacit: Tacit, tmp_path: Path, clock: Clock) -> Migration:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    grown.grow(workspace)
    tacit("init", str(tacit.home))
    (tacit.home / "memory-config.yaml").write_text(OPTIONS)
    place: AgentWorkspace = replace(open_workspace(tacit.home, str(workspace)), now=clock)
    return Migration(place, open_home(tacit.home, recover=False), None, {})


def began(migration: Migration, *entered: str) -> None:
    """As if these had been entered, with their backups and drafts."""
    if "0a" in entered:
        phases.take_backups(migration.place)
        draft_wisdom(migration.place)
        approve_draft(migration.place, CURATED_FILES["wisdom"], "Ines")
        compact_tools(migration.place)
        shorten_soul(migration.place)
        for name in ("soul", "tools", "agents"):
            approve_draft(migration.place, CURATED_FILES[name], "Ines")
    for phase in entered:
        if phase == "0b":
            phase_steps.enter(PhaseEntry(migration, "Ines", lambda _: None), "0b")
        else:
            migration.note("entered", phase)


def texts(migration: Migration) -> dict[str, bytes]:
    root = migration.place.root
    return {name: (root / name).read_bytes() for name in (SOUL, AGENTS, TOOLS, COMPACT, MEMORY)}


def unmet(migration: Migration) -> dict[str, Condition]:
    found = phase_conditions.conditions(migration, migration.place.now(), last_results(migration))
    return {one.what: one for one in found if not one.holds}


# ---------------------------------------------------------------- where it stands


def line(hours: int, what: phases.EvidenceKind, phase: str) -> EvidenceLine:
    return EvidenceLine((NOW + timedelta(hours=hours)).isoformat(), what, phase)


def test_where_a_migration_stands_follows_from_the_record_alone() -> None:
    lines = [line(0, "entering", "0a"), line(0, "entered", "0a"), line(1, "entering", "0b")]
    assert phases.find_standing([]) == ("none", "", "", "")
    assert phases.find_standing(lines)[::3] == ("0a", "0b")
    lines += [line(2, "entered", "0b"), line(3, "failed", "0b")]
    assert phases.find_standing(lines) == ("0b", lines[3].at, lines[4].at, "")
    assert phases.entered_at(lines, "0a") == lines[1].at
    lines.append(line(4, "rolled back", "0a"))
    assert phases.find_standing(lines).next == "0b"
    assert phases.entered_at(lines, "0b") == ""  # it was taken back


def test_a_phase_is_watched_from_its_last_change_or_trouble_on_and_the_third_for_a_week() -> None:
    entered = phases.find_standing([line(0, "entered", "1")])
    assert phases.held_until(entered, 48) == NOW + timedelta(hours=48)
    assert phases.held_until(entered, 48, [line(5, "worked", "1").at]) == NOW + timedelta(hours=53)
    failed = phases.find_standing([line(0, "entered", "1"), line(7, "failed", "1")])
    assert phases.held_until(failed, 48) == NOW + timedelta(hours=55)
    assert phases.held_until(phases.find_standing([line(0, "entered", "3")]), 48) == NOW + timedelta(days=7)
    assert phases.held_until(phases.find_standing([line(0, "entered", "0a")]), 48) is None


def test_lines_that_nobody_can_read_are_passed_over(migration: Migration) -> None:
    migration.note("entered", "0a")
    with open(migration.place.root / EVIDENCE, "a") as file:
        file.write('{"at": "yesterday", "what": "entered", "phase": "4"}\n{"what": 1}\nno\n{"at": "2026')
    assert migration.standing.phase == "0a"
    migration.note("entered", "0b")
    assert migration.standing.phase == "0b"


# ---------------------------------------------------------------- backups


def test_backups_are_copies_with_a_manifest_and_never_written_over(migration: Migration) -> None:
    place, before = migration.place, texts(migration)
    manifest = phases.take_backups(place)
    folder = place.root / FOLDER / "backups"
    assert {name: (folder / f"{name}.bak").read_bytes() for name in (SOUL, AGENTS, TOOLS)} == {
        name: before[name] for name in (SOUL, AGENTS, TOOLS)}  # fmt: skip
    assert json.loads((folder / "manifest.json").read_bytes())["hashes"]["MEMORY_SUMMARY.md"] is None
    assert (phases.take_backups(place), list(phases.find_damage(place, manifest))) == (manifest, [])
    (place.root / SOUL).write_text("# Another soul\n")
    later = phases.take_backups(place)
    assert phases.read_original(place, later, SOUL) == b"# Another soul\n"
    aside = folder / "2026-11-18T120000"
    assert (aside / "SOUL.md.bak").read_bytes() == before[SOUL]


def test_a_damaged_backup_is_named_and_nothing_goes_on_without_it(migration: Migration) -> None:
    began(migration, "0a")
    (migration.place.root / FOLDER / "backups/SOUL.md.bak").write_text("gone wrong")
    (migration.place.root / FOLDER / "backups/TOOLS.md.bak").unlink()
    found = unmet(migration)["the backups are whole"]
    assert "SOUL.md.bak is not what SOUL.md was" in found.evidence
    assert "TOOLS.md.bak is gone" in found.evidence
    before = texts(migration)
    with pytest.raises(UsageError, match="The backups are not whole"):
        phase_steps.enter(PhaseEntry(migration, "Ines", lambda _: None), "0b")
    assert texts(migration) == before
    (migration.place.root / phases.MANIFEST).write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        phases.load_backups(migration.place)


# ---------------------------------------------------------------- checkpoints


def test_preparing_is_done_when_drafts_are_approved_and_nothing_live_changed(
    migration: Migration, tacit: Tacit
) -> None:
    phases.take_backups(migration.place)
    migration.note("entered", "0a")
    lacking = unmet(migration)
    assert "the baseline is the host's own report" in lacking
    assert f"the draft for {SOUL} is approved" in lacking
    assert "nothing live was changed" in lacking  # tacit would choose files at once
    config = tacit.home / "memory-config.yaml"
    config.write_text(f"{OPTIONS}inject:\n  files: host\n")
    began(migration, "0a")
    assert set(unmet(migration)) == {"the baseline is the host's own report"}
    (migration.place.root / AGENTS).write_text("# Mine now\n")
    assert "changed since: AGENTS.md" in unmet(migration)["nothing live was changed"].evidence


def test_a_soul_draft_from_before_the_wisdom_was_approved_has_to_be_made_anew(migration: Migration) -> None:
    phases.take_backups(migration.place)
    migration.note("entered", "0a")
    shorten_soul(migration.place)
    draft_wisdom(migration.place)
    approve_draft(migration.place, CURATED_FILES["wisdom"], "Ines")
    what = f"the wisdom section is approved and in the draft for {SOUL}"
    assert "compress-soul" in unmet(migration)[what].todo
    shorten_soul(migration.place)
    assert what not in unmet(migration)


def test_a_phase_is_not_left_before_its_time_and_a_failure_begins_it_anew(
    migration: Migration, clock: Clock
) -> None:
    began(migration, "0a", "0b", "1", "2", "3")
    watched = "it was watched long enough"
    clock.now += timedelta(days=6)
    assert watched in unmet(migration)
    migration.note("failed", "3", why="it forgot the name")
    clock.now += timedelta(days=2)
    assert watched in unmet(migration)
    clock.now += timedelta(days=5)
    assert watched not in unmet(migration)


def test_what_is_blocked_can_be_left_out_by_somebody_and_what_failed_cannot(migration: Migration) -> None:
    began(migration, "0a", "0b", "1")
    checked = {one: Criterion(one, "about", "PASS", ("seen",)) for one in NAMES}
    for verdict, holds in (("BLOCKED", True), ("FAIL", False)):
        checked["AC-3"] = Criterion("AC-3", "about", parse_verdict(verdict), ("why",))
        migration.note("waived", "1", by="Ines", why="no such file", criterion="AC-3")
        found = {one.what: one for one in phase_conditions.conditions(migration, NOW, checked)}
        assert found["AC-3: about"].holds is holds
    assert phases.find_waivers(migration.lines, "2") == {}


def test_tools_must_be_loaded_by_no_rule_and_stay_where_they_are(migration: Migration, tacit: Tacit) -> None:
    began(migration, "0a", "0b", "1", "2", "3", "4")
    assert f"{TOOLS} is loaded in no kind of session" not in unmet(migration)
    config = tacit.home / "memory-config.yaml"
    config.write_text(f"{OPTIONS}sessions:\n  group_chat: {{files: [SOUL.md, TOOLS.md]}}\n")
    again = replace(migration, memory=open_home(tacit.home, recover=False))
    assert unmet(again)[f"{TOOLS} is loaded in no kind of session"].evidence == "sessions.group_chat"
    (migration.place.root / TOOLS).unlink()
    assert f"{TOOLS} stays where it was" in unmet(migration)


# ---------------------------------------------------------------- single instructions


@pytest.mark.parametrize("name", INSTRUCTIONS)
@pytest.mark.parametrize(
    "soul", ["# Soul\n\nI am.\n", "# Soul\r\n\r\n## Context\r\nThere.\r\n\r\n## Vibe\r\nCalm.\r\n"]
)
def test_an_instruction_is_added_once_and_taken_out_without_a_trace_elsewhere(name: str, soul: str) -> None:
    added = with_instruction(soul, name)
    assert has_instruction(added, name)
    assert with_instruction(added, name) == added
    assert INSTRUCTIONS[name][0] in added.splitlines()
    back = without_instruction(added, name)
    assert not has_instruction(back, name)
    assert [one for one in back.splitlines() if one and one != "## Context"] == [
        one for one in soul.splitlines() if one and one != "## Context"]  # fmt: skip


def test_an_instruction_within_a_line_leaves_the_rest_of_it() -> None:
    sentence = INSTRUCTIONS["tools"][0]
    assert without_instruction(f"Before. {sentence} After.\n", "tools") == "Before. After.\n"
    assert without_instruction(f"- {sentence}\n- Mine.\n", "tools") == "- Mine.\n"
    assert without_instruction("Read TOOLS.md, says me.\n", "tools") == "Read TOOLS.md, says me.\n"


def test_a_missing_instruction_becomes_a_draft_that_an_owner_approves(migration: Migration) -> None:
    place, said = migration.place, list[str]()
    (place.root / SOUL).write_text("# Soul\n\nI am Jules.\n")
    began(migration, "0a")
    migration.note("entered", "2")
    phase_steps.enter(PhaseEntry(migration, "Ines", said.append), "3")
    assert "approve lines --by NAME" in said[0]
    assert place.read(SOUL) == "# Soul\n\nI am Jules.\n"
    assert any(what.startswith("SOUL.md says: Let go of") for what in unmet(migration))
    approve_draft(place, CURATED_FILES["lines"], "Ines")
    promote_draft(place, CURATED_FILES["lines"], "Ines")
    assert not any(what.startswith("SOUL.md says") for what in unmet(migration))
    (place.root / CURATED_FILES["lines"].draft).write_text("# Other\n")
    with pytest.raises(DraftRefused, match="It lacks: I am Jules"):
        approve_draft(place, CURATED_FILES["lines"], "Ines")


# ---------------------------------------------------------------- going back


def test_the_whole_goes_back_byte_for_byte_and_removes_what_was_not_there(
    migration: Migration, tacit: Tacit
) -> None:
    (migration.place.root / COMPACT).unlink()
    before = {name: (migration.place.root / name).read_bytes() for name in (SOUL, AGENTS, TOOLS, MEMORY)}
    began(migration, "0a", "0b", "1", "2", "3", "4", "done")
    assert (migration.place.root / COMPACT).exists()
    back = phase_steps.plan(migration, "0a")
    assert (back.to, back.restored, back.refused) == ("none", (SOUL, AGENTS, COMPACT), ())
    phase_steps.apply(migration, back, "Ines")
    assert {name: (migration.place.root / name).read_bytes() for name in before} == before
    assert not (migration.place.root / COMPACT).exists()
    assert migration.files == "host"
    assert migration.standing.phase == "none"
    assert migration.place.status(CURATED_FILES["soul"]).state != "promoted"
    with pytest.raises(UsageError, match="nothing to take back"):
        phase_steps.plan(migration, "0a")


def test_newer_work_is_not_overwritten_and_a_plan_with_it_does_nothing(
    migration: Migration, tacit: Tacit
) -> None:
    began(migration, "0a", "0b", "1", "2")
    soul = migration.place.root / SOUL
    soul.write_text(soul.read_text() + "\nMy own line.\n")
    before = texts(migration)
    back = phase_steps.plan(migration, "0a")
    assert "SOUL.md was edited" in back.refused[0]
    with pytest.raises(DraftRefused, match="newer work would be lost"):
        phase_steps.apply(migration, back, "Ines")
    assert texts(migration) == before
    assert (migration.files, migration.standing.phase) == ("rules", "2")
    forced = phase_steps.plan(migration, "0a", force=True)
    kept = phase_steps.apply(migration, forced, "Ines", force=True)
    assert soul.read_text() == grown.SOUL
    assert any("My own line." in (migration.place.root / one).read_text() for one in kept)


def test_a_file_that_only_its_owner_changed_stays_as_it_is(migration: Migration) -> None:
    began(migration, "0a", "0b")
    (migration.place.root / TOOLS).write_text("# Tools of mine\n")
    (migration.place.root / "MEMORY_SUMMARY.md").write_text("# Mine\n")
    back = phase_steps.plan(migration, "0a")
    assert back.refused == ()
    phase_steps.apply(migration, back, "")
    assert migration.place.read(TOOLS) == "# Tools of mine\n"
    assert migration.place.read("MEMORY_SUMMARY.md") == "# Mine\n"


def test_each_phase_is_taken_back_by_itself(migration: Migration, tacit: Tacit) -> None:
    began(migration, "0a", "0b", "1", "2", "3", "4")
    seen = []
    for phase in ("4", "3", "2", "1", "0b"):
        back = phase_steps.plan(migration, phase)
        phase_steps.apply(migration, back, "Ines")
        seen.append((back.to, back.cut, back.files, back.restored))
    assert seen == [
        ("3", ("tools",), None, ()),
        ("2", ("shedding",), None, ()),
        ("1", (), "without-memory", ()),
        ("0b", (), "host", ()),
        ("0a", (), None, (SOUL, AGENTS, COMPACT)),
    ]
    assert (migration.place.root / SOUL).read_text() == grown.SOUL
    with pytest.raises(UsageError, match="Phase 2 was not entered"):
        phase_steps.plan(migration, "2")


def test_an_instruction_in_other_words_is_left_to_its_author(migration: Migration) -> None:
    began(migration, "0a", "0b", "1", "2", "3", "4")
    soul = migration.place.root / SOUL
    soul.write_text(soul.read_text().replace(INSTRUCTIONS["tools"][0], "When in doubt, read TOOLS.md first."))
    back = phase_steps.plan(migration, "4")
    assert (back.cut, "in other words" in back.left[0]) == ((), True)


# ---------------------------------------------------------------- criteria


def verdicts(migration: Migration) -> dict[str, tuple[str, str]]:
    found = phase_criteria.evaluate(phase_criteria.observe(migration))
    return {one.name: (one.verdict, "\n".join(one.evidence)) for one in found}


def test_nothing_passes_that_nobody_has_seen(migration: Migration) -> None:
    found = verdicts(migration)
    assert list(found) == ["AC-1a", "AC-1b", "AC-2", "AC-3", "AC-4", "AC-5", "AC-6", "AC-7", "AC-8", "AC-9"]
    began(migration, "0a", "0b", "1", "2")
    found = verdicts(migration)
    assert {name for name, (verdict, _) in found.items() if verdict == "PASS"} == {"AC-6", "AC-7", "AC-8"}
    assert {name for name, (verdict, _) in found.items() if verdict == "FAIL"} == set()
    assert "the gateway does not run" in found["AC-2"][1]


def test_what_is_wrong_in_the_workspace_fails(migration: Migration) -> None:
    began(migration, "0a", "0b", "1", "2")
    root = migration.place.root
    (root / COMPACT).write_text("# Tools, in short\n\nThis is because of " + "very long prose " * 200 + ".\n")
    (root / "WISDOM.md").write_text("wise\n")
    (root / "USER.md").unlink()
    (root / MEMORY).rename(root / "elsewhere.md")
    found = verdicts(migration)
    assert {name for name, (verdict, _) in found.items() if verdict == "FAIL"} == {
        "AC-5",
        "AC-6",
        "AC-7",
        "AC-8",
    }
    assert "USER.md" in found["AC-5"][1]
    assert "MEMORY.md is gone" in found["AC-8"][1]


def test_a_check_is_recorded_and_what_fails_begins_the_watch_anew(migration: Migration, clock: Clock) -> None:
    began(migration, "0a", "0b")
    (migration.place.root / "WISDOM.md").write_text("wise\n")
    clock.now += timedelta(hours=40)
    phase_criteria.run_checks(migration)
    assert migration.standing.trouble == clock.now.isoformat(timespec="seconds")
    assert last_results(migration)["AC-7"].verdict == "FAIL"
    written = (migration.place.root / phase_criteria.REPORT_FILE).read_text()
    assert "## AC-7: FAIL" in written
    assert "WISDOM.md" in written
    (migration.place.root / phase_criteria.REPORT_FILE).write_text("mine")
    phase_criteria.run_checks(migration)
    assert (migration.place.root / phase_criteria.REPORT_FILE).read_text() == "mine"


# ---------------------------------------------------------------- what the host reports


def loaded(kind: str, key: str, **files: int) -> SessionReport:
    found = tuple(LoadedFile(f"{name}.md", size * 4, size * 4, size) for name, size in files.items())
    return SessionReport(kind, key, NOW.isoformat(), found, is_before=False)


_RIGHT = {
    "direct": loaded("direct", "agent:main:telegram:direct:111", SOUL=215, USER=90, TOOLS_COMPACT=295),
    "topic": loaded("topic", "agent:main:telegram:group:1:topic:7", SOUL=205, TOOLS_COMPACT=295),
    "enriched topic": loaded(
        "enriched topic", "agent:main:telegram:group:1:topic:15", SOUL=205, TOOLS_COMPACT=295
    ),
    "group": loaded("group", "agent:main:telegram:group:1", SOUL=205, TOOLS_COMPACT=295),
    "subagent": loaded("subagent", "agent:main:subagent:1", SOUL=205),
    "cron": loaded("cron", "agent:main:cron:1", SOUL=205, HEARTBEAT=30),
}


@pytest.fixture
def second(migration: Migration, tacit: Tacit) -> Migration:
    """In phase 2, with a topic that a rule names."""
    rule = '{type: forum_topic, topic: "15", token_budget: 4096}'
    (tacit.home / "memory-config.yaml").write_text(f"{OPTIONS}sessions:\n  rules:\n    - {rule}\n")
    began(migration, "0a", "0b", "1", "2")
    return replace(migration, memory=open_home(tacit.home, recover=False))


def judged(migration: Migration, reports: Mapping[str, SessionReport]) -> dict[str, tuple[str, str]]:
    found = phase_criteria.evaluate(phase_criteria.Observations(migration, reports, is_serving=True))
    return {one.name: (one.verdict, "\n".join(one.evidence)) for one in found}


def test_a_host_that_loads_what_it_should_passes(second: Migration) -> None:
    found = judged(second, _RIGHT)
    assert {name: found[name][0] for name in ("AC-1a", "AC-1b", "AC-2", "AC-4", "AC-5")} == dict.fromkeys(
        ("AC-1a", "AC-1b", "AC-2", "AC-4", "AC-5"), "PASS")  # fmt: skip
    assert "SOUL.md 205, TOOLS_COMPACT.md 295; 500 tokens by the host's report" in found["AC-1a"][1]


@pytest.mark.parametrize(
    ("place", "wrong", "name", "told"),
    [
        ("topic", {"SOUL": 206, "TOOLS_COMPACT": 295}, "AC-1a", "501 tokens are more than 500"),
        ("enriched topic", {"SOUL": 100, "TOOLS_COMPACT": 100, "OPS": 1}, "AC-1b", "not wanted: OPS.md"),
        ("direct", {"SOUL": 210, "USER": 96, "TOOLS_COMPACT": 295}, "AC-2", "601 tokens are more than 600"),
        ("direct", {"SOUL": 1, "USER": 1, "TOOLS_COMPACT": 1, "MEMORY": 1}, "AC-2", "not wanted: MEMORY.md"),
        ("subagent", {"SOUL": 1, "TOOLS_COMPACT": 1}, "AC-4", "not wanted: TOOLS_COMPACT.md"),
        ("cron", {"SOUL": 1}, "AC-5", "agent:main:cron:1 should load HEARTBEAT.md, SOUL.md"),
    ],
)
def test_a_host_that_loads_something_else_fails(
    second: Migration, place: str, wrong: Mapping[str, int], name: str, told: str
) -> None:
    found = judged(second, {**_RIGHT, place: loaded(place, _RIGHT[place].key, **wrong)})
    assert found[name][0] == "FAIL"
    assert told in found[name][1]


def test_a_kind_of_session_that_nobody_has_seen_blocks_and_no_more(second: Migration) -> None:
    found = judged(second, {place: one for place, one in _RIGHT.items() if place != "cron"})
    assert found["AC-5"][0] == "BLOCKED"
    assert "no cron session since phase 2 was entered" in found["AC-5"][1]


def test_which_criterion_a_session_tells_about_goes_by_its_rule(second: Migration) -> None:
    keys = {one.key: place for place, one in _RIGHT.items()}
    assert {key: phase_criteria.session_place(second, key) for key in keys} == keys
    assert phase_criteria.session_place(second, "agent:main:telegram:direct:222") == ""  # a stranger's


# ---------------------------------------------------------------- questions


def talk(migration: Migration, key: str, question: str, answer: str, read: str = "", hours: int = 1) -> None:
    at = NOW + timedelta(hours=hours)
    with migration.memory.session(key, "main", started=at) as session:
        session.message("user", question, at)
        if read:
            session.tool("read", f"path={read}", "…", at)
        session.message("agent", answer, at)


def test_a_question_passes_by_what_reached_the_agent_and_what_it_said(second: Migration) -> None:
    direct, topic = "agent:main:telegram:direct:111", "agent:main:telegram:group:1:topic:7"
    decided, shakedown, forge = phase_questions.MEMORY_QUESTIONS
    talk(second, direct, decided, "A large remote one only for customer letters.", MEMORY)
    talk(second, direct, shakedown, "I do not know.", MEMORY)
    talk(second, direct, forge, "Forge was set up on 2026-08-20.")  # a guess: nothing reached it
    talk(second, topic, "What port does Mission Control run on?", "It has 3310.", TOOLS)
    questions, kinds = (
        phase_questions.memory_prompts(second.memory.config),
        phase_questions.OWNER_SESSION_TYPES,
    )
    results = phase_questions.find_results(second.memory, second.place, questions, kinds, "")
    found = {result.prompt: result for result in results}
    assert {prompt: one.verdict for prompt, one in found.items()} == {
        decided: "PASS", shakedown: "FAIL", forge: "FAIL"}  # fmt: skip
    assert "the answer has nothing of it: “I do not know.”" in found[shakedown].summary
    assert "no file with an answer reached the agent" in found[forge].summary
    asked = phase_questions.find_results(
        second.memory, second.place, phase_questions.topic_prompts(second.memory.config), ("forum_topic",), ""
    )
    assert [one.verdict for one in asked] == ["BLOCKED", "PASS", "BLOCKED"]
    assert judged(second, _RIGHT)["AC-3"][0] == "FAIL"
    assert judged(second, _RIGHT)["AC-9"][0] == "BLOCKED"


def test_asking_again_takes_the_place_of_an_answer_that_failed(second: Migration) -> None:
    direct = "agent:main:telegram:direct:111"
    for prompt, answer in zip(
        phase_questions.MEMORY_QUESTIONS,
        ("Customer letters go to the remote one.", "Fourteen of sixteen checks.", "Set up on 2026-08-20."),
        strict=True,
    ):
        talk(second, direct, prompt, answer, MEMORY, hours=2)
        talk(second, direct, prompt, "No idea.")
    assert judged(second, _RIGHT)["AC-3"][0] == "PASS"


def test_an_owner_names_questions_of_his_own(second: Migration, tacit: Tacit) -> None:
    own = 'memory_prompts: ["When do the beds get water?"]\n  topic_prompts: ["Who waters the beds?"]'
    (tacit.home / "memory-config.yaml").write_text(f"{OPTIONS}  {own}\n")
    asked = replace(second, memory=open_home(tacit.home, recover=False))
    assert phase_questions.memory_prompts(asked.memory.config) == {"When do the beds get water?": (MEMORY,)}
    assert phase_questions.topic_prompts(asked.memory.config) == {
        "Who waters the beds?": phase_questions.ANY_FILE
    }


# ---------------------------------------------------------------- a host that is installed


def with_host(migration: Migration, folder: Path) -> Migration:
    """Its files, and no command."""
    state = folder / ".openclaw"
    shutil.copytree(
        packaged.folder(), state / "extensions" / "tacit", ignore=shutil.ignore_patterns("node_modules")
    )
    keys = {key.path: key.after for key in settings.find_changes({}, settings.plugin_keys("/h", "/py"))}
    (state / "openclaw.json").write_text(json.dumps({"gateway": {"port": 1}, **settings.build_patch(keys)}))
    return replace(migration, host=find_host({"HOME": str(folder), "PATH": ""}))


@pytest.mark.parametrize(("names", "files"), [(("SOUL", "MEMORY"), "without-memory"), (("SOUL",), "host")])
def test_memory_leaves_the_hosts_list_only_if_it_is_in_it(
    migration: Migration, tmp_path: Path, names: Sequence[str], files: str
) -> None:
    (migration.place.root / SOUL).write_text("# Soul\n\nI am Jules.\n")
    migration = with_host(migration, tmp_path / "person")
    set_inject_files(migration.memory.home, "host")
    before = loaded("main", "agent:main:main", **dict.fromkeys(names, 10))._replace(is_before=True)
    baseline.save_reports(migration.memory.home, [before], NOW.isoformat(), "2026.9.6")
    began(migration, "0a")
    said: list[str] = []
    phase_steps.enter(PhaseEntry(migration, "Ines", said.append), "1")
    assert migration.files == files
    assert migration.place.status(CURATED_FILES["lines"]).state == "waiting"  # the instruction, either way
    assert (f"The host does not load {MEMORY}" in said[0]) == (files == "host")


def test_the_first_phase_needs_tacit_in_the_host(migration: Migration, tmp_path: Path) -> None:
    began(migration, "0a", "0b")
    with pytest.raises(HostError, match="no OpenClaw on this machine"):
        phase_steps.enter(PhaseEntry(migration, "Ines", lambda _: None), "1")
    migration = with_host(migration, tmp_path / "person")
    assert migration.host is not None
    shutil.rmtree(migration.host.plugin)
    with pytest.raises(UsageError, match="tacit openclaw install"):
        phase_steps.enter(PhaseEntry(migration, "Ines", lambda _: None), "1")
    assert (migration.standing.phase, migration.standing.entering) == ("0b", "1")
