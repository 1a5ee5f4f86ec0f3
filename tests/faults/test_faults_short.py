"""A sample of the long form (`make faults`) for every run of the tests."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.faults import broken, forget, fulldisk, lifecycle, rerun, scan, userwork
from tests.faults.cases import Case, try_case
from tests.faults.killloop import kill_loop
from tests.faults.machine import Impossible
from tests.faults.report import Figure
from tests.faults.scan import Scenario
from tests.faults.writers import write_together

pytestmark = pytest.mark.faults

# Which of the calls are tried. Fixed, so that a failure can be repeated; another number tries others.
SEED = int(os.environ.get("TACIT_FAULTS_SEED", "3"))


def hold(trial: Callable[[], Figure]) -> None:
    try:
        figure = trial()
    except Impossible as why:
        pytest.skip(str(why))
    assert figure.tried
    assert list(figure.failures) == []


def hold_case(case: Case) -> None:
    try:
        failures = try_case(case)
    except Impossible as why:
        pytest.skip(str(why))
    assert failures == []


def sample(scenario: Scenario, act: str, step: int, *, sticky: bool = False) -> Figure:
    first = 1 + SEED % step
    return scan.scan(scenario, act, "short", sticky=sticky, step=step, first=first, workers=1)


@pytest.mark.parametrize("scenario", [scan.TURN, scan.WRITE], ids=lambda scenario: scenario.operation)
def test_kill_at_file_calls_loses_nothing(scenario: Scenario) -> None:
    """What was acknowledged before a kill -9 is there once, whole and committed after the next command."""
    hold(lambda: sample(scenario, "kill", 7))


def test_kill_at_file_calls_of_a_commit_leaves_it_whole_or_absent() -> None:
    hold(lambda: sample(scan.COMMIT, "kill", 11))


def test_kill_at_file_calls_of_init_is_mended_by_running_it_again() -> None:
    hold(lambda: sample(scan.INIT, "kill", 37))


def test_kill_at_file_calls_of_forget_is_finished_by_running_it_again() -> None:
    """Nothing of the text is left then, and everything else has the bytes it had."""
    hold(lambda: rerun.scan(forget.FORGET, step=47, first=1 + SEED % 47, workers=1))


@pytest.mark.parametrize("trial", lifecycle.TRIALS, ids=lambda trial: trial.name)
def test_kill_at_file_calls_of_the_lifecycle_is_finished_by_running_it_again(trial: rerun.Trial) -> None:
    """Then the notes are those of an undisturbed run: no line is lost, none is there twice."""
    hold(lambda: rerun.scan(trial, step=trial_step(trial), first=1 + SEED % trial_step(trial), workers=1))


def trial_step(trial: rerun.Trial) -> int:
    return {"approve": 23, "adopt": 97}.get(trial.name, 61)


@pytest.mark.parametrize("act", ["ENOSPC", "EIO"])
def test_error_at_file_calls_is_never_a_false_acknowledgement(act: str) -> None:
    """One call fails and the host tries again: nothing is lost and nothing is there twice."""
    hold(lambda: sample(scan.STUBBORN, act, 11))


@pytest.mark.parametrize("act", ["ENOSPC", "EROFS"])
def test_error_from_a_file_call_on_does_no_damage(act: str) -> None:
    """All calls fail from one on; when the disk is well again, the next command goes on."""
    hold(lambda: sample(scan.TURN, act, 23, sticky=True))


def test_random_kills_of_one_home_lose_nothing() -> None:
    hold(lambda: kill_loop(15, seed=SEED))


def test_four_writers_lose_no_message_and_no_edit() -> None:
    hold(lambda: write_together(4, 3))


@pytest.mark.parametrize("case", [*broken.MENDED, *broken.EXPLAINED], ids=lambda case: case.name)
def test_broken_repository_is_named_and_mended_or_explained(case: Case) -> None:
    hold_case(case)


@pytest.mark.parametrize("case", userwork.CASES, ids=lambda case: case.name)
def test_persons_git_work_is_left_alone(case: Case) -> None:
    hold_case(case)


@pytest.mark.parametrize("case", fulldisk.CASES, ids=lambda case: case.name)
def test_full_or_closed_disk_is_explained_and_resumed_from(case: Case) -> None:
    hold_case(case)
