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
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option, words
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.memory.rebuilding import Rebuilt, rebuild
from tacit.store.rebuilds import existing, rebuilds
from tacit.ways import way_of_learning


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--name", type=words, metavar="NAME", help="of the rebuild, such as v2")
    what.add_argument("--list", action="store_true", help="the rebuilds that are there")
    what.add_argument(
        "--drop", type=words, metavar="NAME", help="remove one: branch, files and recorded answers"
    )
    parser.add_argument(
        "--extractors",
        type=words,
        default="",
        metavar="A,B",
        help="learn only these anew; all other lines stay, and no summaries are made",
    )
    parser.add_argument(
        "--model", type=words, metavar="NAME", help="instead of lifecycle.model; `rules`: no model"
    )
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    if options.list:
        return _list(memory, options)
    if options.drop:
        place = existing(memory.home, memory.git, options.drop)
        with place.locked():
            place.drop()
        output.say(f"removed {place.name} and the branch {place.branch}")
        return 0
    names = [name.strip() for name in options.extractors.split(",") if name.strip()]
    if options.extractors and not names:
        raise UsageError("--extractors names none. Write for example: --extractors decisions,facts")
    how = way_of_learning(memory, options.name, names, options.model)
    with output.progress("learning", quiet=options.quiet or options.json) as tick:
        done = rebuild(memory, options.name, how, tick)
    if options.json:
        output.dump(_value(done))
    elif not options.quiet:
        _say(memory, done)
    for why in done.failed:
        output.warn(f"warning: left out, because no good answer came: {why}")
    return 1 if done.failed else 0


def _value(done: Rebuilt) -> dict[str, object]:
    return {name: getattr(done, name) for name in Rebuilt.__slots__}


def _say(memory: Memory, done: Rebuilt) -> None:
    if done.was_done:
        output.say(f"{done.name} is up to date: {output.plural(done.conversations, 'conversation')}")
    else:
        again = f", {done.resumed} of them before" if done.resumed else ""
        output.say(f"learned anew from {output.plural(done.conversations, 'conversation')}{again}")
    if done.left_out:
        output.say(f"left out {output.plural(done.left_out, 'line')} that somebody had taken out or changed")
    changed = memory.git.changed_between(done.base, done.commit)
    output.say(f"{done.branch} at {done.commit[:10]} differs in {output.plural(len(changed), 'note')}")
    output.say(f"  files     {memory.home.private / 'rebuilds' / done.name / 'home'}")
    output.say(f"  compare   tacit compare {memory.config.git.branch} {done.name} --questions FILE")
    output.say(f"  adopt     tacit adopt-branch {done.name}")


def _list(memory: Memory, options: argparse.Namespace) -> int:
    found = [(one, one.state()) for one in rebuilds(memory.home, memory.git)]
    head = memory.git.head()
    rows = [
        (
            one.name,
            _state(state.done, state.base == head),
            ", ".join(dict.fromkeys(m for _, m in state.settings.models)) or "rules",
        )
        for one, state in found
        if state is not None
    ]
    if options.json:
        output.dump([dict(zip(("name", "state", "model"), row, strict=True)) for row in rows])
    elif rows:
        output.table(rows)
    else:
        output.say("There is none. Make one with: tacit rebuild --name v2")
    return 0


def _state(done: bool, is_current: bool) -> str:
    if not done:
        return "not finished"
    return "done" if is_current else "done, and the home has moved on"
