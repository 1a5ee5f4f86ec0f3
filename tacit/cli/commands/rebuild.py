"""The commands about rebuilds: learn again on a branch, compare two versions of the notes, merge one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tacit.app import ledger_of, make_setups, open_home
from tacit.config import Config
from tacit.errors import UsageError
from tacit.evaluation.prompt_quality import Searchable, measure_commit, offset_tick, summarize
from tacit.evaluation.questions import (
    EvalQuestion,
    match_by_quotes,
    read_answers,
    read_questions,
    read_yaml,
)
from tacit.evaluation.search_quality import ProgressCallback
from tacit.llm.ledger import SpendTotal
from tacit.memory import Memory
from tacit.rebuild.comparison import (
    NoteDiff,
    NotesSize,
    NotesVersion,
    diff_notes,
    find_version,
    measure_size,
    sum_spending,
)
from tacit.rebuild.options import LearningSetup
from tacit.rebuild.service import RebuildResult
from tacit.rebuild.store import find_rebuild, list_rebuilds
from tacit.terminal import output
from tacit.terminal.arguments import (
    add_home_option,
    add_json_option,
    add_quiet_option,
    utf8_argument,
)


def rebuild_arguments(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--name", type=utf8_argument, metavar="NAME", help="of the rebuild, such as v2")
    action.add_argument("--list", action="store_true", help="the rebuilds that are there")
    action.add_argument(
        "--drop", type=utf8_argument, metavar="NAME", help="remove one: branch, files and recorded answers"
    )
    parser.add_argument(
        "--extractors",
        type=utf8_argument,
        default="",
        metavar="A,B",
        help="learn only these anew; all other lines stay, and no summaries are made",
    )
    parser.add_argument(
        "--model", type=utf8_argument, metavar="NAME", help="instead of lifecycle.model; `rules`: no model"
    )
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run_rebuild(options: argparse.Namespace) -> int:
    """Learn everything again, on a branch.

    All sealed conversations are read again in order, in a work tree on the branch extract/NAME: with other
    extractors, with another model, or because either has improved. Only generated lines are made again. Lines
    that a person wrote, changed or approved are kept, and lines that a person removed do not come back.
    Nothing changes in the home: check the result with `tacit compare main NAME`, merge it with
    `tacit adopt-branch NAME`.

    The answers of models are recorded. If a rebuild is killed or its model fails, run the same command again:
    it continues and asks nothing twice. Run on a finished rebuild, it adds what happened since.
    """
    memory = open_home(options.home, recover=False)
    if options.list:
        return _list_rebuilds(memory, options)
    if options.drop:
        place = find_rebuild(memory.home, memory.git, options.drop)
        with place.lock():
            place.drop()
        output.say(f"removed {place.name} and the branch {place.branch}")
        return 0
    names = [name.strip() for name in options.extractors.split(",") if name.strip()]
    if options.extractors and not names:
        raise UsageError("--extractors names none. Write for example: --extractors decisions,facts")
    method = make_setups(memory).from_options(options.name, names, options.model)
    with output.progress("learning", quiet=options.quiet or options.json) as tick:
        rebuilt = memory.services.rebuilder.rebuild(options.name, method, tick)
    if options.json:
        output.dump(_rebuilt_json(rebuilt))
    elif not options.quiet:
        _say_rebuilt(memory, rebuilt)
    for reason in rebuilt.failed:
        output.warn(f"warning: left out, because no good answer came: {reason}")
    return 1 if rebuilt.failed else 0


def _rebuilt_json(rebuilt: RebuildResult) -> dict[str, object]:
    return {name: getattr(rebuilt, name) for name in RebuildResult.__slots__}


def _say_rebuilt(memory: Memory, rebuilt: RebuildResult) -> None:
    if rebuilt.was_done:
        output.say(f"{rebuilt.name} is up to date: {output.pluralize(rebuilt.conversations, 'conversation')}")
    else:
        again = f", {rebuilt.resumed} of them before" if rebuilt.resumed else ""
        output.say(f"learned again from {output.pluralize(rebuilt.conversations, 'conversation')}{again}")
    if rebuilt.left_out:
        output.say(
            f"left out {output.pluralize(rebuilt.left_out, 'line')} that a person had removed or changed"
        )
    changed = memory.git.changed_between(rebuilt.base, rebuilt.commit)
    output.say(
        f"{rebuilt.branch} at {rebuilt.commit[:10]} differs in {output.pluralize(len(changed), 'note')}"
    )
    output.say(f"  files     {memory.home.private / 'rebuilds' / rebuilt.name / 'home'}")
    output.say(f"  compare   tacit compare {memory.config.git.branch} {rebuilt.name} --questions FILE")
    output.say(f"  adopt     tacit adopt-branch {rebuilt.name}")


def _list_rebuilds(memory: Memory, options: argparse.Namespace) -> int:
    states = [(place, place.state()) for place in list_rebuilds(memory.home, memory.git)]
    head = memory.git.head()
    rows = [
        (
            place.name,
            _describe_state(state.done, state.base == head),
            ", ".join(dict.fromkeys(model for _, model in state.settings.models)) or "rules",
        )
        for place, state in states
        if state is not None
    ]
    if options.json:
        output.dump([dict(zip(("name", "state", "model"), row, strict=True)) for row in rows])
    elif rows:
        output.print_table(rows)
    else:
        output.say("There is none. Make one with: tacit rebuild --name v2")
    return 0


def _describe_state(is_done: bool, is_current: bool) -> str:
    if not is_done:
        return "not finished"
    return "done" if is_current else "done, but the home has changed since"


_BUDGETS = "512,1024,2048"
_MAX_NOTES_SHOWN = 20
_WAYS: Mapping[str, tuple[Searchable, ...]] = {
    "all": ("knowledge", "both"),
    "knowledge": ("knowledge",),
    "both": ("both",),
}
Recall = Mapping[str, Mapping[int, float | None]]  # by searched content, then by budget


def compare_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("one", metavar="ONE", type=utf8_argument, help="such as main")
    parser.add_argument("other", metavar="OTHER", type=utf8_argument, help="such as v2")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="what is asked of both")
    parser.add_argument(
        "--budgets", default=_BUDGETS, type=utf8_argument, metavar="N,N", help="tokens of a prompt"
    )
    parser.add_argument(
        "--searchable", choices=tuple(_WAYS), default="all", help="notes alone, conversations too, or each"
    )
    parser.add_argument("--diff", action="store_true", help="every line that differs")
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run_compare(options: argparse.Namespace) -> int:
    """Compare two versions of the notes, such as main and a rebuild: recall, size, cost, diff.

      tacit compare main v2 --questions questions.yaml

    For each version it shows how large the notes are, what the models cost, and how much of the evidence that
    answers need is in the prompt of a turn: when only the notes are searched, and when conversations are
    searched as well. Then it shows where the notes differ. A version is a rebuild, a branch, a tag or a
    commit. Nothing is changed.

    Questions are a YAML list of {question: …, answer: [PHRASE, EITHER|OR]}, or JSON lines as for `tacit eval`
    ({"text": …, "gold": [{"path": …, "quote": …}]}), whose quotes may then be in any note. Write questions
    about what you want to be remembered, before you look at either version.
    """
    budgets = _parse_budgets(options.budgets)
    questions = _read_questions(options.questions) if options.questions else []
    memory = open_home(options.home, recover=False)
    sides = [find_version(memory.home, memory.git, name) for name in (options.one, options.other)]
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        recalls = _measure_recalls(memory, sides, _WAYS[options.searchable], questions, budgets, tick)
    differ = list(diff_notes(memory.git, *sides))
    sizes = [measure_size(memory.git, side) for side in sides]
    ledger = ledger_of(memory.config, memory.home)
    spent = [sum_spending(side, ledger, memory.config.models.prices) for side in sides]
    if options.json:
        output.dump({
            "sides": [_side_json(*each) for each in zip(sides, sizes, spent, recalls, strict=True)],
            "questions": len(questions),
            "budgets": budgets,
            "differences": [difference._asdict() for difference in differ],
        })  # fmt: skip
        return 0
    output.print_table([*_comparison_rows(sides, sizes, spent), *_recall_rows(recalls, len(questions))])
    _say_differences(differ, whole=options.diff)
    if not questions:
        output.say("Which one answers better? Ask both: --questions FILE (see: tacit compare --help)")
    return 0


def _parse_budgets(text: str) -> list[int]:
    try:
        budgets = [int(part) for part in text.split(",")]
    except ValueError:
        budgets = []
    if not budgets or min(budgets) < 1:
        raise UsageError(f"--budgets {text!r} is not a list of token counts. Write: {_BUDGETS}")
    return budgets


def _read_questions(file: Path) -> list[EvalQuestion]:
    if file.suffix == ".jsonl":
        questions = match_by_quotes(read_questions(file))
    else:
        questions = read_answers(read_yaml(file), str(file))
    if not any(question.gold for question in questions):
        raise UsageError(f"{file} has no question with an answer. See: tacit compare --help")
    return questions


def _measure_recalls(
    memory: Memory,
    sides: Sequence[NotesVersion],
    ways: Sequence[Searchable],
    questions: Sequence[EvalQuestion],
    budgets: Sequence[int],
    tick: ProgressCallback,
) -> list[Recall]:
    if not questions:
        return [{} for _ in sides]
    recalls: list[Recall] = []
    total = len(sides) * len(ways) * len(questions)
    for side in sides:
        recall: dict[str, Mapping[int, float | None]] = {}
        for way in ways:
            offset = (len(recalls) * len(ways) + len(recall)) * len(questions)
            measured = measure_commit(
                memory, side.commit, way, questions, budgets, offset_tick(tick, offset, total)
            )
            compiled = summarize(measured, budgets, 1.0).ways["compiled"]
            recall[way] = {budget: metrics.recall for budget, metrics in compiled.items()}
        recalls.append(recall)
    return recalls


def _side_json(side: NotesVersion, size: NotesSize, spent: SpendTotal, recall: Recall) -> dict[str, object]:
    return {
        "name": side.name,
        "commit": side.commit,
        "size": size._asdict(),
        "spent": spent._asdict(),
        "recall": {way: {str(budget): share for budget, share in row.items()} for way, row in recall.items()},
    }


def _comparison_rows(
    sides: Sequence[NotesVersion], sizes: Sequence[NotesSize], spent: Sequence[SpendTotal]
) -> Iterator[list[str]]:
    yield ["", *(side.name for side in sides)]
    yield ["commit", *(side.commit[:10] for side in sides)]
    for name, label in (
        ("notes", "notes"),
        ("lines", "lines"),
        ("learned", "of them learned"),
        ("tokens", "tokens"),
    ):
        yield [label, *(format(getattr(size, name), ",") for size in sizes)]
    yield ["model calls", *(format(usage.calls, ",") for usage in spent)]
    yield ["model cost", *(_format_cost(usage) for usage in spent)]


def _format_cost(spent: SpendTotal) -> str:
    if spent.unpriced:
        return f"${spent.usd:.2f} and {spent.unpriced} calls without a price"
    return f"${spent.usd:.2f}"


def _recall_rows(recalls: Sequence[Recall], questions: int) -> Iterator[list[str]]:
    labels = {"knowledge": "notes alone", "both": "with conversations"}
    for way, row in recalls[0].items():
        yield [""]
        yield [f"evidence of {questions} questions, {labels[way]}"]
        for budget in row:
            yield [f"  in {budget:,} tokens", *(output.percent(recall[way][budget]) for recall in recalls)]


def _say_differences(differ: Sequence[NoteDiff], *, whole: bool) -> None:
    output.say()
    if not differ:
        output.say("The notes are the same.")
        return
    added, removed = (sum(len(getattr(note, name)) for note in differ) for name in ("added", "removed"))
    output.say(f"{output.pluralize(len(differ), 'note')} differ: {added} lines more, {removed} lines less")
    for note in differ if whole else differ[:_MAX_NOTES_SHOWN]:
        output.say(f"  {note.path}  +{len(note.added)} -{len(note.removed)}")
        if whole:
            for line in (*(f"- {line}" for line in note.removed), *(f"+ {line}" for line in note.added)):
                output.say(f"    {line}")
    if len(differ) > _MAX_NOTES_SHOWN and not whole:
        output.say(f"  and {len(differ) - _MAX_NOTES_SHOWN} more: --diff")


def adopt_branch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=utf8_argument, help="of the rebuild, such as v2")
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run_adopt_branch(options: argparse.Namespace) -> int:
    """Merge what a rebuild learned in one commit, and delete its branch.

    Conversations that were added since the rebuild are learned from in the same way first. To undo it:
    `tacit history undo COMMIT`.
    """
    memory = open_home(options.home, recover=False)
    place = find_rebuild(memory.home, memory.git, options.name)
    method = make_setups(memory).restore(place)
    with output.progress("learning", quiet=options.quiet or options.json) as tick:
        merged = memory.services.rebuild_merger.merge(place.name, method, tick)
    if options.json:
        output.dump({"commit": merged.commit, "tag": merged.tag, "paths": merged.paths})
        return 0
    if not merged.commit:
        output.say(f"{place.name} adds nothing to the notes. Its branch was deleted.")
        return 0
    output.say(
        f"adopted {place.name}: {output.pluralize(len(merged.paths), 'note')}, "
        f"commit {merged.commit[:10]}, tag {merged.tag}"
    )
    output.say(f"taken back by: tacit history undo {merged.commit[:10]}")
    for line in _settings_to_change(memory.config, method):
        output.say(line)
    return 0


def _settings_to_change(config: Config, method: LearningSetup) -> list[str]:
    """The settings that make new conversations be learned from in the same way."""
    lifecycle, settings = config.lifecycle, method.settings
    wanted_models = dict(settings.models)
    now = {
        "extract": lifecycle.extract_model or lifecycle.model or "",
        "condense": (lifecycle.condense_model or lifecycle.model or "") if settings.condenses else "",
    }
    changes = [
        f"lifecycle.{task}_model: {wanted_models.get(task) or 'null'}"
        for task, model in now.items()
        if model != wanted_models.get(task, "") and (settings.condenses or task == "extract")
    ]
    names = [label.partition("/")[0] for label in settings.extractors]
    if missing := [name for name in names if name not in lifecycle.extractors]:
        changes.append(f"lifecycle.extractors: [{', '.join((*lifecycle.extractors, *missing))}]")
    return [f"for new conversations, set {change}" for change in changes]
