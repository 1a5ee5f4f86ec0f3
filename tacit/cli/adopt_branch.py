"""Take over what a rebuild learned, in one commit, and delete its branch.

What happened in the home since is learned in the same way first. `tacit history undo COMMIT` takes it back.
"""

from __future__ import annotations

import argparse

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option, words
from tacit.config import Config
from tacit.memory.adopting import adopt
from tacit.memory.rebuilding import How
from tacit.store.rebuilds import existing
from tacit.ways import way_of


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=words, help="of the rebuild, such as v2")
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    place = existing(memory.home, memory.git, options.name)
    how = way_of(memory, place)
    with output.progress("learning", quiet=options.quiet or options.json) as tick:
        done = adopt(memory, place.name, how, tick)
    if options.json:
        output.dump({"commit": done.commit, "tag": done.tag, "paths": done.paths})
        return 0
    if not done.commit:
        output.say(f"{place.name} says what the notes say already. Its branch is gone.")
        return 0
    output.say(
        f"adopted {place.name}: {output.plural(len(done.paths), 'note')}, "
        f"commit {done.commit[:10]}, tag {done.tag}"
    )
    output.say(f"taken back by: tacit history undo {done.commit[:10]}")
    for line in _to_set(memory.config, how):
        output.say(line)
    return 0


def _to_set(config: Config, how: How) -> list[str]:
    """What the config has to say so that new conversations are learned from in the same way."""
    lifecycle, settings = config.lifecycle, how.settings
    wanted = dict(settings.models)
    now = {
        "extract": lifecycle.extract_model or lifecycle.model or "",
        "condense": (lifecycle.condense_model or lifecycle.model or "") if settings.condenses else "",
    }
    found = [
        f"lifecycle.{task}_model: {wanted.get(task) or 'null'}"
        for task, model in now.items()
        if model != wanted.get(task, "") and (settings.condenses or task == "extract")
    ]
    names = [label.partition("/")[0] for label in settings.extractors]
    if more := [name for name in names if name not in lifecycle.extractors]:
        found.append(f"lifecycle.extractors: [{', '.join((*lifecycle.extractors, *more))}]")
    return [f"for new conversations, set {one}" for one in found]
