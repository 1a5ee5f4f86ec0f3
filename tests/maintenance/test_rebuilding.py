"""Everything learned anew: only what came by itself changes, the same run gives the same bytes, and nothing
in the home is touched before it is adopted."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import Busy, GitError, TacitError, UsageError
from tacit.git.work_trees import list_work_trees
from tacit.learn.extractors.registry import BUILT_IN
from tacit.llm.chat import ChatAnswer, ChatError
from tacit.llm.recording import RecordedChat, Recording
from tacit.llm.structured import Ask, make_ask
from tacit.rebuild import service
from tacit.rebuild.options import LearningSetup
from tacit.rebuild.service import RebuildResult
from tacit.rebuild.store import RebuildSettings, open_rebuild
from tests.maintenance.life import GROUP, MEMORY, Life

DECIDED = "We decided to fire at 1215 degrees from Monday on."
LATER = "We decided that the market stall stays closed in August."
LESSON = "Lesson learned: let the glaze dry for a day before the firing."
NAMES = tuple(BUILT_IN)


def way(
    life: Life, names: Sequence[str] = NAMES, *, ask: Ask | None = None, model: str = ""
) -> LearningSetup:
    config = life.memory.config
    config = replace(
        config,
        git=replace(config.git, auto_commit=False),
        lifecycle=replace(config.lifecycle, extractors=tuple(names)),
    )
    labels = tuple(BUILT_IN[name].label for name in names)
    models = (("extract", model),) if model else ()
    return LearningSetup(config, lambda task: ask, RebuildSettings(labels, models, len(names) == len(NAMES)))


def anew(life: Life, name: str = "v2", **how: Any) -> RebuildResult:
    return life.memory.services.rebuilder.rebuild(name, way(life, **how))


def home_of(life: Life, name: str = "v2") -> Path:
    memory = life.memory
    return open_rebuild(memory.home, memory.git, name).root


def snapshot(root: Path) -> dict[str, bytes]:
    """Every file that people or git see."""
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file() and not {".git", ".tacit"} & set(file.relative_to(root).parts)
    }


def differences(life: Life, name: str = "v2") -> list[str]:
    return life.memory.git.changed_between("main", f"extract/{name}")


@pytest.fixture
def lived(life: Life) -> Life:
    """Three days, learned and condensed as they went by."""
    for said in ((DECIDED, "The kiln costs 380 euros."), (LESSON, DECIDED), (LATER,)):
        life.talk(*said)
        life.talk("The stall opens at nine, we decided.", key=GROUP, speaker="guest")
        life.memory.services.extractor.learn_pending()
        life.pass_time(days=1)
        life.memory.services.condenser.condense(
            life.memory.services.condenser.find_due_periods(), prune=False, archive=False
        )
        life.memory.commit()
    return life


def test_by_the_same_rules_nothing_differs(lived: Life) -> None:
    done = anew(lived)
    assert done.conversations == 6
    assert differences(lived) == []


def test_nothing_in_the_home_changes_before_it_is_adopted(lived: Life) -> None:
    before, head = snapshot(lived.root), lived.memory.git.head()
    anew(lived)
    assert snapshot(lived.root) == before
    assert lived.memory.git.head() == head
    assert lived.memory.services.note_committer.note_changes().edits == ()


def test_what_was_learned_by_fewer_extractors_is_completed_and_adopted_in_one_commit(life: Life) -> None:
    life.set("lifecycle:\n  extractors: [lessons]")
    life.talk(DECIDED, LESSON)
    life.memory.services.extractor.learn_pending()
    life.memory.commit()
    assert not any("1215 degrees" in line for line in life.lines())
    done = life.memory.services.rebuild_merger.merge("v2", way(life, ("decisions", "lessons")))
    assert any("1215 degrees" in line for line in life.lines())
    assert life.memory.git.head() != done.rebuilt.base
    assert done.tag == "memory/extract/v2"
    assert life.memory.git.resolve("refs/heads/extract/v2") is None
    assert not home_of(life).exists()
    life.memory.history.undo(done.commit)
    assert not any("1215 degrees" in line for line in life.lines())


def test_what_was_adopted_is_not_learned_again(life: Life) -> None:
    life.set("lifecycle:\n  extractors: [lessons]")
    life.talk(DECIDED, LESSON)
    life.memory.services.extractor.learn_pending()
    life.memory.commit()
    life.memory.services.rebuild_merger.merge("v2", way(life, ("decisions", "lessons")))
    life.set("lifecycle:\n  extractors: [decisions, lessons]")
    assert life.memory.services.extractor.learn_pending().sessions == ()


def test_only_the_named_extractors_are_made_anew(lived: Life) -> None:
    file = lived.root / MEMORY
    lesson = next(line for line in lived.lines() if "glaze dry" in line)
    file.write_text(file.read_text().replace(lesson + "\n", lesson.replace("lessons/1", "lessons/0") + "\n"))
    lived.memory.commit()
    anew(lived, names=("decisions",))
    assert differences(lived) == []
    anew(lived, "v3", names=("lessons",))
    assert differences(lived, "v3") == [MEMORY]
    assert "lessons/0" not in (home_of(lived, "v3") / MEMORY).read_text()


def test_what_a_person_wrote_changed_or_wrote_below_a_line_stays(lived: Life) -> None:
    file = lived.root / MEMORY
    lines = lived.lines()
    decided, lesson = (next(line for line in lines if words in line) for words in ("1215", "glaze dry"))
    text = file.read_text().replace(decided, decided.replace("1215 degrees", "1210 degrees"))
    text = text.replace(lesson, f"{lesson}\n  - also in winter")
    file.write_text(text + "\n- by hand\n")
    lived.memory.commit()
    anew(lived)
    assert differences(lived) == []


def test_what_a_person_took_out_does_not_come_back(lived: Life) -> None:
    file = lived.root / MEMORY
    gone = next(line for line in lived.lines() if "market stall" in line)
    file.write_text(file.read_text().replace(gone + "\n", ""))
    lived.memory.commit()
    done = anew(lived)
    assert done.left_out > 0
    assert "market stall" not in (home_of(lived) / MEMORY).read_text()


def test_what_is_said_again_after_it_was_taken_out_is_learned_as_it_was_in_life(lived: Life) -> None:
    file = lived.root / MEMORY
    gone = next(line for line in lived.lines() if "market stall" in line)
    file.write_text(file.read_text().replace(gone + "\n", ""))
    lived.memory.commit()
    lived.talk(LATER)
    lived.memory.services.extractor.learn_pending()
    lived.memory.commit()
    assert any("market stall" in line for line in lived.lines())
    anew(lived)
    assert "market stall" in (home_of(lived) / MEMORY).read_text()


def test_lines_that_an_adopted_rebuild_replaced_are_not_taken_for_ones_that_a_person_took_out(
    lived: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    decisions = BUILT_IN["decisions"]
    shorter = decisions._replace(version=2, by_rules=lambda heard, known: ())
    monkeypatch.setitem(BUILT_IN, "decisions", shorter)
    lived.memory.services.rebuild_merger.merge("v2", way(lived))
    assert not any("1215 degrees" in line for line in lived.lines())
    monkeypatch.setitem(BUILT_IN, "decisions", decisions)
    lived.memory.services.rebuild_merger.merge("v3", way(lived))
    assert any("1215 degrees" in line for line in lived.lines())


def test_the_words_of_others_still_wait_and_what_was_approved_stays(lived: Life) -> None:
    waiting = lived.memory.reviews.waiting()
    assert waiting
    for draft in waiting:
        lived.memory.services.review.approve(draft.id, "Ines")
    lived.memory.commit()
    anew(lived)
    assert differences(lived) == []


def test_what_was_rejected_is_not_proposed_again(lived: Life) -> None:
    for draft in lived.memory.reviews.waiting():
        lived.memory.services.review.reject(draft.id, "Ines")
    lived.memory.commit()
    anew(lived)
    assert list((home_of(lived) / "drafts").glob("*.md")) == []


def test_what_was_purged_is_not_brought_back(lived: Life) -> None:
    path = next(path for path in sorted((lived.root / "raw/conversations").rglob("*.md")))
    lived.memory.services.purge.carry_out(str(path.relative_to(lived.root)), by="Ines")
    lived.memory.commit()
    anew(lived)
    source = path.name.removesuffix(".md")
    assert all(
        source not in data.decode() for name, data in snapshot(home_of(lived)).items() if "knowledge" in name
    )


def test_lines_of_a_conversation_that_is_gone_stay(lived: Life) -> None:
    path = next(path for path in sorted((lived.root / "raw/conversations").rglob("*.md")))
    path.unlink()
    subprocess.run(["git", "rm", "-q", "--cached", str(path)], cwd=lived.root, check=True)
    commit = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "gone", "--no-verify"]
    at = {"GIT_COMMITTER_DATE": lived.now.isoformat(), "GIT_AUTHOR_DATE": lived.now.isoformat()}
    subprocess.run(commit, cwd=lived.root, check=True, env={**os.environ, **at})
    anew(lived)
    assert differences(lived) == []


def test_a_summary_that_a_person_changed_is_not_made_again(lived: Life) -> None:
    page = next(
        path
        for path in sorted((lived.root / "knowledge/journal").glob("*.md"))
        if "day/1" in path.read_text()
    )
    line = next(line for line in page.read_text().split("\n") if "day/1" in line)
    page.write_text(page.read_text().replace(line + "\n", ""))
    lived.memory.commit()
    anew(lived)
    assert differences(lived) == []


def test_an_old_page_that_somebody_pinned_stays_where_it_is(lived: Life) -> None:
    page = next(iter(sorted((lived.root / "knowledge/journal").glob("*.md"))))
    page.write_text(page.read_text().replace("---\n", "---\npinned: true\n", 1))
    lived.pass_time(days=120)
    lived.memory.services.condenser.condense([], prune=False, archive=True)
    lived.memory.commit()
    assert page.is_file()
    anew(lived)
    assert differences(lived) == []


def test_archived_pages_are_made_anew_and_archived_again(lived: Life) -> None:
    lived.pass_time(days=120)
    lived.memory.services.condenser.condense([], prune=False, archive=True)
    lived.memory.commit()
    assert list((lived.root / "archive/journal").glob("*.md"))
    lived.talk("Morning.")
    lived.memory.commit()
    anew(lived)
    assert [path for path in differences(lived) if "journal" in path] == []


# Begin, go on, again


def test_a_rebuild_that_is_done_is_told_so_and_brought_up_to_what_happened_since(lived: Life) -> None:
    first = anew(lived)
    assert anew(lived).was_done
    lived.talk("We decided to buy a second kiln in May.")
    lived.memory.services.extractor.learn_pending()
    lived.memory.commit()
    again = anew(lived)
    assert not again.was_done
    assert again.base != first.base
    assert differences(lived) == []


def test_another_way_needs_another_name(lived: Life) -> None:
    anew(lived)
    with pytest.raises(UsageError, match="begun with other settings"):
        anew(lived, names=("facts",))


def test_what_is_not_committed_is_committed_first(lived: Life) -> None:
    (lived.root / MEMORY).write_text(lived.text() + "\n- by hand\n")
    with pytest.raises(UsageError, match="tacit run commit"):
        anew(lived)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "-x", "a..b", "a b", "x.lock"])
def test_a_name_that_no_branch_can_have_is_refused(lived: Life, name: str) -> None:
    with pytest.raises(UsageError, match="name of a rebuild"):
        anew(lived, name)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("at", range(1, 7))
def test_killed_anywhere_it_goes_on_and_ends_at_the_same_commit(
    lived: Life, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(service, "CHECKPOINT_EVERY", 2)
    whole = anew(lived, "whole")

    def killing(done: int, _total: int) -> None:
        if done == at:
            raise Killed

    with pytest.raises(Killed):
        lived.memory.services.rebuilder.rebuild("whole2", way(lived), killing)
    # Half-written files, as a kill may leave them.
    (home_of(lived, "whole2") / MEMORY).write_text("torn")
    (home_of(lived, "whole2") / "knowledge/people/nobody.md").write_text("- torn\n")
    again = anew(lived, "whole2")
    assert again.resumed == (at - 1) // 2 * 2
    tree = [lived.memory.git.run("rev-parse", f"{one.commit}^{{tree}}") for one in (whole, again)]
    assert tree[0] == tree[1]


def test_the_same_run_ends_at_the_same_commit(lived: Life) -> None:
    first = anew(lived)
    place = open_rebuild(lived.memory.home, lived.memory.git, "v2")
    place.drop()
    lived.pass_time(days=2)
    assert anew(lived).commit == first.commit


def test_a_work_tree_that_somebody_removed_is_made_again(
    lived: Life, monkeypatch: pytest.MonkeyPatch
) -> None:

    with pytest.raises(Killed):
        lived.memory.services.rebuilder.rebuild("v2", way(lived), _kill)
    shutil.rmtree(home_of(lived))
    assert anew(lived).resumed == 0
    assert differences(lived) == []


def test_a_home_that_was_copied_while_it_had_a_rebuild_makes_its_own(lived: Life, tmp_path: Path) -> None:
    anew(lived)
    shutil.copytree(lived.root, tmp_path / "copy", symlinks=True)
    copy = Life(tmp_path / "copy", lived.now)
    copy.talk("We decided to sell the old kiln.")
    copy.memory.commit()
    before = snapshot(home_of(lived))
    anew(copy)
    assert "old kiln" in (home_of(copy) / MEMORY).read_text()
    assert snapshot(home_of(lived)) == before
    assert list_work_trees(copy.memory.git) == [home_of(copy)]


def _kill(done: int, total: int) -> None:
    raise Killed


# Models


class Model:
    """Says one thing about each conversation, until it is down."""

    name = "fake"

    def __init__(self, answers: int = 10_000, text: str = "") -> None:
        self.left, self.text, self.asked = answers, text, 0

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        self.asked += 1
        if self.asked > self.left:
            raise ChatError("The server is down.", again=True)
        return ChatAnswer(self.text or '{"items": []}', 10, 5)


def recorded(life: Life, model: Model, name: str = "v2") -> Ask:
    place = open_rebuild(life.memory.home, life.memory.git, name)
    return make_ask(RecordedChat(Recording(place.calls), "extract", model))


def test_a_model_that_is_down_ends_it_for_now_and_nothing_is_asked_twice(lived: Life) -> None:
    model = Model(answers=5)
    with pytest.raises(TacitError, match="not finished: The server is down"):
        anew(lived, ask=recorded(lived, model), model="fake")
    assert lived.memory.git.branch() == "main"
    again = Model()
    done = anew(lived, ask=recorded(lived, again), model="fake")
    assert done.failed == ()
    whole = Model()
    anew(lived, "other", ask=recorded(lived, whole, "other"), model="fake")
    assert again.asked == whole.asked - 5


def test_a_rebuild_replays_from_its_recording_alone(lived: Life) -> None:
    first = anew(lived, ask=recorded(lived, Model()), model="fake")
    place = open_rebuild(lived.memory.home, lived.memory.git, "v2")
    tape = place.calls.read_bytes()
    place.drop()
    place.folder.mkdir(parents=True)
    place.calls.write_bytes(tape)
    nobody = Model(answers=0)
    assert anew(lived, ask=recorded(lived, nobody), model="fake").commit == first.commit
    assert nobody.asked == 0


def test_a_bad_answer_leaves_that_out_and_says_so(lived: Life) -> None:
    bad = Model(text="I would rather not.")
    good = make_ask(Model())

    def ask(task: str, system: str, user: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        asked = make_ask(bad) if "decision" in system else good
        return asked(task, system, user, schema)

    done = anew(lived, ask=ask, model="fake")
    assert bad.asked
    assert done.failed
    assert "1215 degrees" not in (home_of(lived) / MEMORY).read_text()


def test_a_model_that_never_answers_well_is_not_asked_for_ever(lived: Life) -> None:
    model = Model(text="I would rather not.")
    with pytest.raises(TacitError, match="20 answers in a row could not be used"):
        anew(lived, ask=recorded(lived, model), model="fake")
    asked = model.asked
    with pytest.raises(TacitError, match="20 answers in a row could not be used"):
        anew(lived, ask=recorded(lived, model), model="fake")
    assert model.asked == asked


# Adopting


def test_what_happened_since_is_learned_in_the_same_way_before_it_is_adopted(life: Life) -> None:
    life.set("lifecycle:\n  extractors: [lessons]")
    life.talk(DECIDED)
    life.memory.services.extractor.learn_pending()
    life.memory.commit()
    how = way(life, ("decisions", "lessons"))
    life.memory.services.rebuilder.rebuild("v2", how)
    life.talk(LATER)
    (life.root / MEMORY).write_text(life.text() + "\n- by hand\n")
    life.memory.services.extractor.learn_pending()
    life.memory.commit()
    life.memory.services.rebuild_merger.merge("v2", how)
    said = life.text()
    assert all(words in said for words in ("1215 degrees", "market stall", "- by hand"))


def test_a_note_that_is_changed_in_the_last_moment_is_not_overwritten(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.set("lifecycle:\n  extractors: [lessons]")
    life.talk(DECIDED)
    life.memory.services.extractor.learn_pending()
    life.memory.commit()
    how = way(life, ("decisions", "lessons"))

    memory = life.memory
    rebuild = memory.services.rebuilder.rebuild

    def late(name: str, how: LearningSetup, tick: Any, taken_over: Any) -> RebuildResult:
        done = rebuild(name, how, tick)
        (life.root / MEMORY).write_text(life.text() + "\n- by hand\n")
        return done

    monkeypatch.setattr(memory.services.rebuilder, "rebuild", late)
    with pytest.raises(Busy, match="changed just now"):
        memory.services.rebuild_merger.merge("v2", how)
    assert "- by hand" in life.text()
    assert life.memory.git.resolve("refs/heads/extract/v2") is not None


def test_a_rebuild_runs_no_program_that_the_repository_names(lived: Life, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    for key in ("filter.x.smudge", "filter.x.clean", "diff.x.textconv", "diff.x.command"):
        subprocess.run(["git", "config", key, f"touch {trap};cat"], cwd=lived.root, check=True)
    subprocess.run(["git", "config", "core.hooksPath", str(tmp_path)], cwd=lived.root, check=True)
    hook = tmp_path / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    (lived.root / ".gitattributes").write_text("*.md diff=x\n")
    lived.memory.commit()
    anew(lived)
    (lived.root / ".gitattributes").write_text("*.md filter=x diff=x\n")
    lived.memory.commit()
    with pytest.raises(GitError, match="filter x"):  # which would have to run
        anew(lived)
    assert not trap.exists()


def test_a_transcript_that_somebody_tampered_with_is_read_as_it_was_committed(lived: Life) -> None:
    path = next((lived.root / "raw/conversations").rglob("*.md"))
    before = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(before + b"\nmore\n")
    anew(lived)
    assert (home_of(lived) / path.relative_to(lived.root)).read_bytes() == before
    assert path.read_bytes() == before + b"\nmore\n"
