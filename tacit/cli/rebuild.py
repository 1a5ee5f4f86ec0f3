"""Learn everything anew, on a branch.

All sealed conversations are read again in their order, in a work tree on the branch extract/NAME: with other
extractors, with another model, or after either has become better. Only lines that came by themselves are made
anew. What a person wrote, changed or approved stays, and what a person took out does not come back. Nothing
in the home changes: look at it with `tacit compare main NAME`, take it over with `tacit adopt-branch NAME`.

What models answer is recorded. A rebuild that was killed, or whose model failed, goes on with the same
command and asks nothing twice; one that is done is brought up to what happened since.
"""

from __future__ import annotations

import argparse

from tacit.app import open_home
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.rebuild.options import setup_from_options
from tacit.rebuild.service import RebuildResult, rebuild
from tacit.rebuild.store import find_rebuild, list_rebuilds
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option, utf8_argument


def arguments(parser: argparse.ArgumentParser) -> None:
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


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    if options.list:
        return _list(memory, options)
    if options.drop:
        place = find_rebuild(memory.home, memory.git, options.drop)
        with place.locked():
            place.drop()
        output.say(f"removed {place.name} and the branch {place.branch}")
        return 0
    names = [name.strip() for name in options.extractors.split(",") if name.strip()]
    if options.extractors and not names:
        raise UsageError("--extractors names none. Write for example: --extractors decisions,facts")
    method = setup_from_options(memory, options.name, names, options.model)
    with output.progress("learning", quiet=options.quiet or options.json) as tick:
        rebuilt = rebuild(memory, options.name, method, tick)
    if options.json:
        output.dump(_rebuilt_json(rebuilt))
    elif not options.quiet:
        _say(memory, rebuilt)
    for reason in rebuilt.failed:
        output.warn(f"warning: left out, because no good answer came: {reason}")
    return 1 if rebuilt.failed else 0


def _rebuilt_json(rebuilt: RebuildResult) -> dict[str, object]:
    return {name: getattr(rebuilt, name) for name in RebuildResult.__slots__}


def _say(memory: Memory, rebuilt: RebuildResult) -> None:
    if rebuilt.was_done:
        output.say(f"{rebuilt.name} is up to date: {output.pluralize(rebuilt.conversations, 'conversation')}")
    else:
        again = f", {rebuilt.resumed} of them before" if rebuilt.resumed else ""
        output.say(f"learned anew from {output.pluralize(rebuilt.conversations, 'conversation')}{again}")
    if rebuilt.left_out:
        output.say(
            f"left out {output.pluralize(rebuilt.left_out, 'line')} that somebody had taken out or changed"
        )
    changed = memory.git.changed_between(rebuilt.base, rebuilt.commit)
    output.say(
        f"{rebuilt.branch} at {rebuilt.commit[:10]} differs in {output.pluralize(len(changed), 'note')}"
    )
    output.say(f"  files     {memory.home.private / 'rebuilds' / rebuilt.name / 'home'}")
    output.say(f"  compare   tacit compare {memory.config.git.branch} {rebuilt.name} --questions FILE")
    output.say(f"  adopt     tacit adopt-branch {rebuilt.name}")


def _list(memory: Memory, options: argparse.Namespace) -> int:
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
    return "done" if is_current else "done, and the home has moved on"
