"""The commands that remove: forget for words, in the history too; purge for what an origin taught."""

from __future__ import annotations

import argparse
import getpass
import shlex
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from tacit.app import open_home
from tacit.erase import service as forgetting
from tacit.erase.disk import ErasurePlace
from tacit.erase.erasure import Erasure
from tacit.erase.plan import find_unfinished
from tacit.erase.service import ErasureReport
from tacit.errors import UsageError
from tacit.home.generated_lines import GeneratedLine
from tacit.memory import Memory
from tacit.provenance.purge import Purge
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.terminal.paths import path_in_home

_MAX_PLACES_PER_FILE = 5  # that are shown
_MAX_SIMILAR = 20  # files or spellings that are shown
_MAX_PLACES_PER_SPELLING = 4  # that are shown


_OTHER_SPELLINGS = "\nIn other spellings it stays here:"


def forget_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="?", type=utf8_argument, help="at least 4 characters")
    parser.add_argument("--session", metavar="ID", type=utf8_argument, help="a session by its id")
    parser.add_argument("--origin", metavar="KEY", type=utf8_argument, help="sessions by their key")
    parser.add_argument("--line", action="store_true", help="remove the whole line or turn, not only TEXT")
    parser.add_argument("--path", metavar="PATH", help="TEXT in this file or folder only")
    parser.add_argument("--yes", action="store_true", help="do it")
    add_home_option(parser)
    add_json_option(parser)


def run_forget(options: argparse.Namespace) -> int:
    """Remove a text, a session or an origin from files, index and history.

      tacit forget TEXT           every place where this text occurs, in this spelling, and also
                                  as-a-name-with-hyphens of a file, a branch or a link
      tacit forget --session ID   a session: all parts of its transcript
      tacit forget --origin KEY   all sessions whose key is KEY or begins with its segments; the part after
                                  the agent is enough, such as telegram:direct:99

    Without --yes it only shows what it would remove. It rewrites the history, which cannot be undone: commits
    get new names. Other spellings are kept, and listed with the command that removes them. See
    docs/forget.md. Exit code 1 if nothing matches, or if something could not be removed.
    """
    memory = open_home(options.home, recover=False)
    target = _read_target(memory, options)
    for problem in find_unfinished(memory.home, besides=target):
        output.warn(f"{problem.what} {problem.todo}")
    if options.yes:
        return _forget(memory, target, options)
    report = memory.services.erasure.report(target)
    if options.json:
        output.dump({**_report_json(report), "done": False})
    elif report.plan.is_empty:
        _say_nothing(report, options)
    else:
        _say_plan(report, options)
        output.say(f"\nNothing was changed. To remove all of this for good:\n  {_forget_command(options)}")
    return 1 if report.plan.is_empty else 0


def _read_target(memory: Memory, options: argparse.Namespace) -> Erasure:
    targets = [item for item in (options.text, options.session, options.origin) if item is not None]
    if len(targets) != 1:
        raise UsageError("Say what to forget, one thing: TEXT, --session ID or --origin KEY.")
    if options.text is None and (options.line or options.path):
        raise UsageError("--line and --path go with TEXT only.")
    if options.session is not None:
        return forgetting.session_erasure(options.session)
    if options.origin is not None:
        return forgetting.origin_erasure(options.origin)
    under = path_in_home(memory.home.root, options.path) if options.path else ""
    return forgetting.text_erasure(options.text, lines=options.line, under=under)


def _forget(memory: Memory, target: Erasure, options: argparse.Namespace) -> int:
    report, remaining = memory.services.erasure.carry_out(
        target, lambda step: None if options.json else output.warn(step)
    )
    if options.json:
        output.dump({**_report_json(report), "done": not report.plan.is_empty, "left": remaining})
    elif report.plan.is_empty:
        _say_nothing(report, options)
    else:
        _say_done(report, remaining, options)
    return 1 if remaining or report.plan.is_empty else 0


# ---------------------------------------------------------------- for people


def _say_plan(report: ErasureReport, options: argparse.Namespace) -> None:
    plan = report.plan
    if plan.cut_short:
        output.say("This was begun before and cut short; it is finished with --yes.")
    _say_files(plan.places)
    output.print_table(_plan_rows(report))
    _say_what_stays(report, options)
    output.say("\nOut of reach, for you to check:")
    output.print_table((place,) for place in report.outside)


def _say_files(places: list[ErasurePlace]) -> None:
    for path, group in groupby(places, key=lambda place: place.path):
        in_file = list(group)
        for place in in_file[:_MAX_PLACES_PER_FILE]:
            is_renamed = place.becomes not in ("changed", "removed")
            outcome = f"renamed to {place.becomes}" if is_renamed else place.becomes
            location = f"{path}:{place.line}" if place.line else path
            output.say(f"  {location}  {output.shorten(place.excerpt, 90) if place.excerpt else outcome}")
        if len(in_file) > _MAX_PLACES_PER_FILE:
            output.say(f"  {path}  and {output.pluralize(len(in_file) - _MAX_PLACES_PER_FILE, 'more place')}")


def _plan_rows(report: ErasureReport) -> list[tuple[str, str]]:
    plan, survey = report.plan, report.plan.survey
    refs = Counter(_kind_of_ref(name) for name in survey.refs)
    rows = [
        ("files", str(len({place.path for place in plan.places}))),
        ("commits rewritten", f"{len(survey.commits)} of {len(survey.graph)}"),
        *((kind, str(count)) for kind, count in sorted(refs.items())),
        ("stashes", str(survey.stashes)),
        ("staged files", str(len(survey.staged))),
        ("files of git", str(len(plan.beside))),
        ("unreachable objects", str(survey.loose)),
        ("attachments in git-lfs", str(len(plan.large))),
        ("chunks of the index", str(report.passages)),
        *((kind, str(count)) for kind, count in sorted(plan.derived.items())),
    ]
    return [row for row in rows if row[1] != "0"]


def _kind_of_ref(name: str) -> str:
    kinds = {"heads": "branches", "tags": "tags", "remotes": "remote branches", "notes": "notes of git"}
    return kinds.get(name.split("/")[1], "other refs")


def _say_nothing(report: ErasureReport, options: argparse.Namespace) -> None:
    output.say("Nothing in the home matches." if report.adopted else "Nothing matches.")
    _say_what_stays(report, options)
    if report.adopted or report.plan.spellings:
        return
    if options.session is not None:
        output.say(
            "The id of a session is session_id in the frontmatter of its transcript; `tacit search` finds it."
        )
    elif options.origin is not None:
        output.say(
            "The key of a session is session_key in the head of its transcript. Give its first segments,"
        )
        output.say("with the agent or from the channel on. How a key is read: tacit explain-session KEY")
    elif not report.plan.similar:
        place = " It may stand elsewhere: leave out --path." if options.path else ""
        output.say(
            f"Give the words as they are written, with their capitals; `tacit search` shows them.{place}"
        )


def _say_similar(report: ErasureReport) -> None:
    """List files that still quote the session or origin."""
    similar = report.plan.similar
    if not similar or report.plan.what.kind == "passage":  # for a text, the spellings cover this
        return
    output.say("\nWords of it stay here, quoted or said again; forget them as a text:")
    output.print_table((path,) for path in similar[:_MAX_SIMILAR])
    if len(similar) > _MAX_SIMILAR:
        output.say(f"  and {output.pluralize(len(similar) - _MAX_SIMILAR, 'more file')}")


def _say_spellings(report: ErasureReport, options: argparse.Namespace) -> None:
    spellings = sorted(report.plan.spellings.items())
    if not spellings:
        return
    output.say("\nIn these spellings, or beyond --path, it stays:" if options.path else _OTHER_SPELLINGS)
    output.print_table((spelling, _format_places(places)) for spelling, places in spellings[:_MAX_SIMILAR])
    if len(spellings) > _MAX_SIMILAR:
        output.say(
            f"  and {output.pluralize(len(spellings) - _MAX_SIMILAR, 'more spelling')}: --json has them all"
        )
    output.say("To remove them too:")
    for spelling, _ in spellings[:_MAX_SIMILAR]:
        output.say(f"  {_removal_command(spelling, options)}")


def _format_places(places: Counter[str]) -> str:
    named = [place if count == 1 and "/" in place else f"{count} {place}" for place, count in places.items()]
    more = (
        [f"and {output.pluralize(len(named) - _MAX_PLACES_PER_SPELLING, 'more place')}"]
        if len(named) > _MAX_PLACES_PER_SPELLING
        else []
    )
    return ", ".join([*sorted(named)[:_MAX_PLACES_PER_SPELLING], *more])


def _removal_command(spelling: str, options: argparse.Namespace) -> str:
    home = ["--home", options.home] if options.home else []
    return shlex.join(["tacit", "forget", *home, "--yes", "--", spelling])


def _say_what_stays(report: ErasureReport, options: argparse.Namespace) -> None:
    _say_spellings(report, options)
    _say_similar(report)
    _say_workspaces(report)
    if report.staying:
        output.say("\nAttachments that it names stay:")
        output.print_table((path,) for path in report.staying)


def _say_workspaces(report: ErasureReport) -> None:
    """List workspace files where search will still find it."""
    if report.adopted:
        output.say("\nWorkspaces are read and not written. It stays here until you take it out yourself:")
        output.print_table((place,) for place in report.adopted)


def _say_done(report: ErasureReport, remaining: list[str], options: argparse.Namespace) -> None:
    output.print_table(_plan_rows(report))
    if remaining:
        output.say("\nIt is still here:")
        output.print_table((place, _advice(place)) for place in remaining)
    _say_what_stays(report, options)
    if not remaining:
        output.say(f"\n{_proof(report, options)}")
    output.say("Out of reach:")
    output.print_table((place,) for place in report.outside)


def _proof(report: ErasureReport, options: argparse.Namespace) -> str:
    """Say what was checked, and claim no more than that."""
    scope = "files, names, index, logs and every git object were searched"
    if report.plan.encrypted:
        return f"It is gone from all that can be read here ({scope}), but what is encrypted in git stays."
    if options.path:
        return f"It is gone from {options.path}, also in the history."
    if report.plan.spellings or report.plan.similar or report.adopted:
        return f"It is gone in the spelling you gave ({scope}). What stays is listed above."
    if options.text is None:
        return f"Its transcripts are gone, and so is everything that names them: {scope}."
    return f"Nothing is left of it in this home: {scope}."


def _advice(place: str) -> str:
    """The command that removes what `tacit forget` cannot."""
    first, *rest = place.split("/")
    match [first, *rest[:2]]:
        case [".tacit", "rebuilds", name]:
            return f"tacit rebuild --drop {shlex.quote(name)}"
        case [".git", "worktrees", *_]:
            return "git worktree list, then git worktree remove PATH"
        case [".git", "HEAD" | "index" | "config" | "packed-refs" | "logs" | "refs", *_]:
            return "a name that git or tacit needs, or one that was added since: git status"
    if place.endswith(")"):
        return ""
    return f"rm -r {shlex.quote(place)}"


def _forget_command(options: argparse.Namespace) -> str:
    parts = ["tacit", "forget"]
    for name in ("session", "origin", "path", "home"):
        if getattr(options, name) is not None:
            parts += [f"--{name}", getattr(options, name)]
    parts += ["--line"] if options.line else []
    parts.append("--yes")
    parts += ["--", options.text] if options.text is not None else []
    return shlex.join(parts)


def _report_json(report: ErasureReport) -> dict[str, object]:
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
        "other_files": plan.beside,
        "lfs_objects": len(plan.large),
        "passages": report.passages,
        "derived": dict(plan.derived),
        "similar": plan.similar,
        "spellings": {spelling: dict(places) for spelling, places in sorted(plan.spellings.items())},
        "similar_versions": survey.similar,
        "attachments": list(report.staying),
        "workspaces": list(report.adopted),
        "out_of_reach": list(report.outside),
        "cut_short": plan.cut_short,
    }


_MAX_LINES_SHOWN = 200


def purge_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--origin", metavar="ORIGIN", type=utf8_argument, required=True, help="what goes")
    parser.add_argument("--yes", action="store_true", help="do it")
    parser.add_argument("--edited", action="store_true", help="also lines that were edited since")
    parser.add_argument("--by", metavar="NAME", type=utf8_argument, help="who does it (default: the user)")
    parser.add_argument("--why", metavar="TEXT", type=utf8_argument, default="", help="kept with it")
    add_home_option(parser)
    add_json_option(parser)


def run_purge(options: argparse.Namespace) -> int:
    """Remove an origin and everything that was derived from it.

      tacit purge --origin telegram:direct:99       sessions by their key, read as in `tacit forget`
      tacit purge --origin ses_a1b2                 one session by its id
      tacit purge --origin raw/conversations/….md   one transcript
      tacit purge --origin tool:mail                the results of a tool, and the replies to them
      tacit purge --origin web:example.org          the same, for tools that used an address there
      tacit purge --origin url:TEXT                 the same, for tools with this text in call or result

    It removes the lines that tacit generated from the origin in notes, archive, drafts and proposals.
    raw/purged.jsonl records it, so that search, learning and rebuilds ignore the origin from then on.
    Generated lines that were edited since are kept unless you give --edited. Transcripts are not changed:
    `tacit forget` removes the words themselves, from the history too. Without --yes it only shows what it
    would remove.
    Exit code 1 if nothing matches.
    """
    if not options.origin.strip():
        raise UsageError("Name an origin: tacit purge --origin telegram:direct:99")
    memory = open_home(options.home, recover=False)
    if options.yes:
        user = options.by or getpass.getuser()
        purge = memory.services.purge.carry_out(
            options.origin, by=user, why=options.why, edited=options.edited
        )
    else:
        purge = memory.services.purge.inspect(options.origin, edited=options.edited)
    if options.json:
        output.dump({**_purge_json(purge), "done": options.yes and not purge.is_empty})
    elif purge.is_empty:
        output.say(
            f"Nothing here is from {options.origin!r}. Origins are session keys, session ids, transcripts,"
        )
        output.say("tool:NAME, web:DOMAIN and url:TEXT; `tacit why-known TEXT` tells where a line is from.")
    else:
        _say_purge(purge, options)
    return 1 if purge.is_empty else 0


def _say_purge(purge: Purge, options: argparse.Namespace) -> None:
    _say_lines("These lines went:" if options.yes else "These lines would go:", purge.lines)
    _say_lines("These were edited since, so they stay (--edited removes them too):", purge.edited)
    rows = [
        ("transcripts", str(len({source.partition("#")[0] for source in purge.sources}))),
        ("records", str(sum("#" in source for source in purge.sources))),
        ("notes that are empty then", str(len(purge.notes))),
        ("proposals", str(purge.proposals)),
    ]
    output.print_table(row for row in rows if row[1] != "0")
    if not options.yes:
        remark = " It was purged before." if purge.is_named else ""
        output.say(f"\nNothing was changed.{remark} To remove all of this:\n  {_purge_command(options)}")
        return
    if purge.commit:
        output.say(f"\nDone in {purge.commit[:10]}. To take it back: tacit history undo {purge.commit[:10]}")
    else:
        output.say(
            "\nIt was purged before. No line that tacit made from it is left in notes, archive or drafts."
        )
    output.say(
        "The words are still in transcripts and in the history. To remove them too: tacit forget --help"
    )


def _say_lines(title: str, lines: Sequence[GeneratedLine]) -> None:
    if not lines:
        return
    output.say(title)
    for line in lines[:_MAX_LINES_SHOWN]:
        output.say(f"  {line.path}:{line.number}  {output.shorten(line.text.strip(), 90)}")
    if len(lines) > _MAX_LINES_SHOWN:
        output.say(f"  and {output.pluralize(len(lines) - _MAX_LINES_SHOWN, 'more line')}")


def _purge_command(options: argparse.Namespace) -> str:
    parts = ["tacit", "purge", "--origin", options.origin]
    for name in ("by", "why", "home"):
        if getattr(options, name):
            parts += [f"--{name}", getattr(options, name)]
    return shlex.join([*parts, *(["--edited"] if options.edited else []), "--yes"])


def _purge_json(purge: Purge) -> dict[str, object]:
    return {
        "origin": purge.origin,
        "sources": list(purge.sources),
        "lines": [_line_json(line) for line in purge.lines],
        "edited": [_line_json(line) for line in purge.edited],
        "notes": list(purge.notes),
        "proposals": purge.proposals,
        "purged_before": purge.is_named,
        "commit": purge.commit or None,
    }


def _line_json(line: GeneratedLine) -> dict[str, object]:
    mark = line.mark
    return {
        "path": line.path,
        "line": line.number,
        "text": line.text,
        "extractor": mark.extractor,
        "trust": mark.trust,
        "sources": list(mark.sources),
    }
