"""Remove a passage, a session or an origin from files, index and history.

  tacit forget TEXT           a passage: every place where this text stands, with these capitals
  tacit forget --session ID   a session: all parts of its transcript
  tacit forget --origin KEY   all sessions whose key is KEY or lies below it, by segments; what follows the
                              agent is enough, such as telegram:direct:99

Without --yes it only shows what it would remove. The history is written anew and cannot be brought back:
commits get other names. See docs/forget.md. Exit code 1 when nothing matches, or when something is left.
"""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from itertools import groupby

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.cli.paths import within
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.memory import forget as forgetting
from tacit.memory.forget import Report
from tacit.store.forgetting.what import Forgetting
from tacit.store.forgetting.worktree import Place

_LINES = 5  # of each file that are shown
_SIMILAR = 20  # files


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", type=words, help="at least 4 characters")
    parser.add_argument("--session", metavar="ID", type=words, help="a session by its id")
    parser.add_argument("--origin", metavar="KEY", type=words, help="sessions by their key")
    parser.add_argument("--line", action="store_true", help="remove the whole line or turn, not only TEXT")
    parser.add_argument("--path", metavar="PATH", help="TEXT in this file or folder only")
    parser.add_argument("--yes", action="store_true", help="do it")
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    what = _what(memory, options)
    if options.yes:
        return _forget(memory, what, options)
    report = forgetting.look(memory, what)
    if options.json:
        output.dump({**_value(report), "done": False})
    elif report.plan.is_empty:
        _say_nothing(report, options)
    else:
        _say(report)
        output.say(f"\nNothing was changed. To remove all of this for ever:\n  {_command(options)}")
    return 1 if report.plan.is_empty else 0


def _what(memory: Memory, options: argparse.Namespace) -> Forgetting:
    given = [item for item in (options.text, options.session, options.origin) if item is not None]
    if len(given) != 1:
        raise UsageError("Say what to forget, one thing: TEXT, --session ID or --origin KEY.")
    if options.text is None and (options.line or options.path):
        raise UsageError("--line and --path go with TEXT only.")
    if options.session is not None:
        return forgetting.session(options.session)
    if options.origin is not None:
        return forgetting.origin(options.origin)
    under = within(memory.home.root, options.path) if options.path else ""
    return forgetting.passage(options.text, lines=options.line, under=under)


def _forget(memory: Memory, what: Forgetting, options: argparse.Namespace) -> int:
    report, left = forgetting.carry_out(
        memory, what, lambda step: None if options.json else output.warn(step)
    )
    if options.json:
        output.dump({**_value(report), "done": not report.plan.is_empty, "left": left})
    elif report.plan.is_empty:
        _say_nothing(report, options)
    else:
        _say_done(report, left)
    return 1 if left or report.plan.is_empty else 0


# ---------------------------------------------------------------- for people


def _say(report: Report) -> None:
    plan = report.plan
    if plan.cut_short:
        output.say("This was begun before and cut short; it is finished with --yes.")
    _say_files(plan.places)
    output.table(_rows(report))
    _say_similar(report)
    _say_adopted(report)
    if report.staying:
        output.say("\nAttachments that it names stay:")
        output.table((path,) for path in report.staying)
    output.say("\nOut of reach, for you to think of:")
    output.table((place,) for place in report.outside)


def _say_files(places: list[Place]) -> None:
    for path, group in groupby(places, key=lambda place: place.path):
        found = list(group)
        for place in found[:_LINES]:
            is_renamed = place.becomes not in ("changed", "removed")
            then = f"renamed to {place.becomes}" if is_renamed else place.becomes
            where = f"{path}:{place.line}" if place.line else path
            output.say(f"  {where}  {output.short(place.excerpt, 90) if place.excerpt else then}")
        if len(found) > _LINES:
            output.say(f"  {path}  and {output.plural(len(found) - _LINES, 'more place')}")


def _rows(report: Report) -> list[tuple[str, str]]:
    plan, survey = report.plan, report.plan.survey
    refs = Counter(_kind(name) for name in survey.refs)
    rows = [
        ("files", str(len({place.path for place in plan.places}))),
        ("commits rewritten", f"{len(survey.commits)} of {len(survey.graph)}"),
        *((kind, str(count)) for kind, count in sorted(refs.items())),
        ("stashes", str(survey.stashes)),
        ("staged files", str(len(survey.staged))),
        ("objects that nothing leads to", str(survey.loose)),
        ("attachments in git-lfs", str(len(plan.large))),
        ("passages of the index", str(report.passages)),
        *((kind, str(count)) for kind, count in sorted(plan.derived.items())),
    ]
    return [row for row in rows if row[1] != "0"]


def _kind(name: str) -> str:
    known = {"heads": "branches", "tags": "tags", "remotes": "remote branches", "notes": "notes of git"}
    return known.get(name.split("/")[1], "other refs")


def _say_nothing(report: Report, options: argparse.Namespace) -> None:
    output.say("Nothing in the home matches." if report.adopted else "Nothing matches.")
    _say_similar(report)
    if report.adopted:
        _say_adopted(report)
        return
    if options.session is not None:
        output.say(
            "A session's id stands in the head of its transcript, which `tacit search` finds: session_id."
        )
    elif options.origin is not None:
        output.say(
            "A session's key stands in the head of its transcript: session_key. Give its first segments,"
        )
        output.say("with the agent or from the channel on. How a key is read: tacit explain-session KEY")
    elif not report.plan.similar:
        place = " It may stand elsewhere: leave out --path." if options.path else ""
        output.say(
            f"Give the words as they are written, with their capitals; `tacit search` shows them.{place}"
        )


def _say_similar(report: Report) -> None:
    """What stays, though somebody may have thought that it goes."""
    plan, older = report.plan, report.plan.survey.similar
    rows = [(path,) for path in plan.similar[:_SIMILAR]]
    if len(plan.similar) > _SIMILAR:
        rows.append((f"and {output.plural(len(plan.similar) - _SIMILAR, 'more file')}",))
    if older:
        rows.append((f"{output.plural(older, 'version')} of files in the history",))
    if not rows:
        return
    if plan.what.kind == "passage":
        output.say("\nWith other capitals, or beyond --path, it stays here; run this again for them:")
    else:
        output.say("\nWords of it stay here, quoted or said again; forget them as a text:")
    output.table(rows)


def _say_adopted(report: Report) -> None:
    """Where it will be found again."""
    if report.adopted:
        output.say("\nWorkspaces are read and not written. It stays here until you take it out yourself:")
        output.table((place,) for place in report.adopted)


def _say_done(report: Report, left: list[str]) -> None:
    output.table(_rows(report))
    if left:
        output.say("\nIt is still here:")
        output.table((place,) for place in left)
        return
    _say_similar(report)
    _say_adopted(report)
    output.say(
        "\nNothing is left of it in this home: files, index, logs and every object of git were looked at."
    )
    output.say("Out of reach:")
    output.table((place,) for place in report.outside)


def _command(options: argparse.Namespace) -> str:
    parts = ["tacit", "forget"]
    for name in ("session", "origin", "path", "home"):
        if getattr(options, name) is not None:
            parts += [f"--{name}", getattr(options, name)]
    parts += ["--line"] if options.line else []
    parts.append("--yes")
    parts += ["--", options.text] if options.text is not None else []
    return shlex.join(parts)


def _value(report: Report) -> dict[str, object]:
    plan, survey = report.plan, report.plan.survey
    return {
        "files": [
            {"path": place.path, "line": place.line, "excerpt": place.excerpt, "becomes": place.becomes}
            for place in plan.places
        ],
        "commits": len(survey.commits),
        "commits_in_all": len(survey.graph),
        "refs": sorted(survey.refs),
        "stashes": survey.stashes,
        "staged": sorted(survey.staged),
        "loose_objects": survey.loose,
        "lfs_objects": len(plan.large),
        "passages": report.passages,
        "derived": dict(plan.derived),
        "similar": plan.similar,
        "similar_versions": survey.similar,
        "attachments": list(report.staying),
        "workspaces": list(report.adopted),
        "out_of_reach": list(report.outside),
        "cut_short": plan.cut_short,
    }
