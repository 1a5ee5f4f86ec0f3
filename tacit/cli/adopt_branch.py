"""Take over what a rebuild learned, in one commit, and delete its branch.

What happened in the home since is learned in the same way first. `tacit history undo COMMIT` takes it back.
"""

from __future__ import annotations

import argparse

from tacit.app import open_home
from tacit.config import Config
from tacit.rebuild.merge import merge_rebuild
from tacit.rebuild.options import restore_setup
from tacit.rebuild.service import LearningSetup
from tacit.rebuild.store import find_rebuild
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option, utf8_argument


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=utf8_argument, help="of the rebuild, such as v2")
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    place = find_rebuild(memory.home, memory.git, options.name)
    method = restore_setup(memory, place)
    with output.progress("learning", quiet=options.quiet or options.json) as tick:
        merged = merge_rebuild(memory, place.name, method, tick)
    if options.json:
        output.dump({"commit": merged.commit, "tag": merged.tag, "paths": merged.paths})
        return 0
    if not merged.commit:
        output.say(f"{place.name} says what the notes say already. Its branch is gone.")
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
