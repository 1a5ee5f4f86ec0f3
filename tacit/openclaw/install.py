"""Install and uninstall: what is planned is done by the host's own command, and can be undone.

Settings come before the plugin: a running gateway starts it at once, and must not do so with the wrong home.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from tacit import config as configuration
from tacit.app import init_home
from tacit.config.edit import with_items
from tacit.errors import ConfigError, HostError
from tacit.openclaw import baseline, packaged, restore, settings
from tacit.openclaw import manifest as record
from tacit.openclaw.find import Host, again, workspaces
from tacit.openclaw.manifest import Manifest
from tacit.openclaw.plan import Key, Plan, changes, hook_keys, patch, plugin_keys
from tacit.openclaw.state import adopts
from tacit.store import files
from tacit.store.home import CONFIG, Home
from tacit.version import VERSION

Say = Callable[[str], None]


# ---------------------------------------------------------------- planning


def prepare(host: Host, home: Home, python: str, *, hooks_only: bool) -> Plan:
    """What is missing. Changes nothing; asks the host for its version and its workspaces."""
    version = host.openclaw().version()
    if settings.is_too_old(settings.version_of(version)):
        oldest = ".".join(map(str, settings.OLDEST))
        raise HostError(f"This is {version}; tacit needs {oldest} or newer. Update it: openclaw update")
    if host.data is None:
        raise HostError(f"{host.config} is not there yet. Set the host up first: openclaw onboard")
    root = str(home.root)
    wanted = hook_keys(root) if hooks_only else plugin_keys(root, python)
    plan = Plan(version, makes_home=not home.config.is_file(), keys=changes(host.tree, wanted))
    edited = _edited(host, home, plan)
    plan = replace(plan, config=edited, notes=tuple(_notes(host, home, edited)))
    if hooks_only:
        found = packaged.hooks().items()
        stale = tuple(name for name, one in found if not packaged.is_same(host.hooks / name, one))
        return replace(plan, hooks=stale)
    return replace(plan, plugin=_of_plugin(host))


def _of_plugin(host: Host) -> str:
    there, ours = packaged.version_in(host.plugin), packaged.version()
    if not there:
        return f"installed, version {ours}"
    if there != ours:
        return f"replaced: version {there} by {ours}"
    return (
        ""
        if packaged.is_same(host.plugin, packaged.plugin())
        else f"replaced: its files are not those of {ours}"
    )


def _edited(host: Host, home: Home, plan: Plan) -> tuple[str, str] | None:
    """The home's config with the workspaces and, where that is sure, the owner."""
    before = configuration.starter() if plan.makes_home else home.config.read_text("utf-8")
    loaded = configuration.parse(before, where=CONFIG, environ=os.environ, trusted=True).config
    found = dict.fromkeys(map(str, workspaces(host).values()))
    missing = [folder for folder in found if not adopts(loaded, folder)]
    after = with_items(before, "workspaces", missing)
    if not loaded.owners:
        after = with_items(after, "owners", settings.owners(host.tree))
    if after == before:
        return None
    _check(after, missing)
    return before, after


def _check(text: str, wanted: list[str]) -> None:
    try:
        config = configuration.parse(text, where=CONFIG, environ=os.environ, trusted=True).config
    except ConfigError:
        config = configuration.Config()
    if not all(adopts(config, folder) for folder in wanted):
        hint = f"Write it yourself: workspaces: {configuration.show(tuple(wanted))}"
        raise ConfigError(CONFIG, None, "its lists are written in a way that tacit does not change.", hint)


def _notes(host: Host, home: Home, edited: tuple[str, str] | None) -> Iterator[str]:
    text = edited[1] if edited else home.config.read_text("utf-8")
    owners = configuration.parse(text, where=CONFIG, environ=os.environ, trusted=True).config.owners
    sure = settings.owners(host.tree)
    if edited and set(sure) & set(owners):
        yield f"Only {', '.join(sure)} may write to the host, so that is taken to be you."
    for channel in settings.unsure(host.tree):
        if not any(one.startswith(f"{channel}:") for one in owners):
            yield (
                f"Who you are on {channel} cannot be told. Until you add your id there to owners in "
                f'{home.config}, what you write there is a stranger\'s: owners: ["{channel}:<your id>"]'
            )
    if not host.is_plain:
        yield (
            f"The host writes {host.config.name} as plain JSON, so comments in it go. "
            "The backup has them, and `tacit openclaw uninstall` brings them back."
        )


# ---------------------------------------------------------------- installing


def install(host: Host, home: Home, plan: Plan, now: datetime, say: Say) -> None:
    if plan.makes_home:
        init_home(home.root)
        say(f"made    {home.root}")
    if record.load(home) is None:
        _take_baseline(host, home, plan, now, say)
    _begin(host, home, plan, now)
    if plan.config:
        _write_config(home, *plan.config)
        say(f"changed {home.config}")
    if plan.keys:
        host.openclaw().require(
            "config", "patch", "--stdin", given=json.dumps(patch({key.path: key.after for key in plan.keys}))
        )
        say(f"changed {host.config}")
    if plan.plugin:
        source = str(packaged.folder())
        host.openclaw().require("plugins", "install", source, "--force", "--accept-capabilities")
        say(f"{'made' if plan.plugin.startswith('installed') else 'changed':<7} {host.plugin}")
    for name in plan.hooks:
        _put_hook(host.hooks / name, packaged.hook(name))
        say(f"made    {host.hooks / name}")


def _take_baseline(host: Host, home: Home, plan: Plan, now: datetime, say: Say) -> None:
    """The host forgets what it loaded into a session when that session goes on."""
    owners = settings.owners(host.tree)
    try:
        found = list(baseline.reports(host, "", owners))
    except HostError as error:
        say(f"The baseline could not be taken: {error}")
        return
    if found:
        baseline.store(home, found, now.isoformat(timespec="seconds"), plan.host)
        say(f"kept    what the host loads by itself: {', '.join(one.kind for one in found)}")


def _begin(host: Host, home: Home, plan: Plan, now: datetime) -> None:
    known = record.load(home)
    hooks = tuple(str(host.hooks / name) for name in plan.hooks)
    if known is not None and known.config == str(host.config):
        keys = record.merged(known.keys, plan.keys)
        record.save(home, replace(known, keys=keys, hooks=tuple(dict.fromkeys((*known.hooks, *hooks)))))
        return
    info = host.config.stat()
    made = Manifest(
        installed=now.isoformat(timespec="seconds"),
        tacit=VERSION,
        host=plan.host,
        config=str(host.config),
        config_backup=record.back_up(home, host.config, now),
        config_mode=stat.S_IMODE(info.st_mode),
        home_backup="" if plan.makes_home else record.back_up(home, home.config, now),
        keys=plan.keys,
        hooks=hooks,
    )
    record.save(home, made)


def _write_config(home: Home, before: str, after: str) -> None:
    with files.locked(home.lock):
        mode = stat.S_IMODE(home.config.stat().st_mode)
        files.Tree(home.root).write(CONFIG, after.encode(), files.digest(before.encode()), mode)


def _put_hook(folder: Path, wanted: Mapping[str, bytes]) -> None:
    files.make_directories(folder)
    for name, data in wanted.items():
        files.replace(folder / name, data)


# ---------------------------------------------------------------- uninstalling


class Undone(NamedTuple):
    config: str  # what became of the host's config
    removed: tuple[str, ...]
    kept: tuple[str, ...] = ()  # ours once, changed since by somebody


def is_there(host: Host) -> bool:
    return (
        host.plugin.exists()
        or any(restore.leftovers(host.tree))
        or any((host.hooks / name).exists() for name in settings.HOOKS)
    )


def uninstall(host: Host, home: Home, environ: Mapping[str, str]) -> Undone:
    known = record.load(home) if home.private.is_dir() else None
    if known is not None and known.config != str(host.config):
        known = None  # of another host
    removed: list[str] = []
    if host.plugin.exists():
        host.openclaw().require("plugins", "uninstall", settings.ID, "--force")
        removed.append(str(host.plugin))
    kept: list[str] = []
    for name, ours in packaged.hooks().items():
        folder = host.hooks / name
        if folder.exists():
            (removed if _removed_hook(folder, ours) else kept).append(str(folder))
    told = _settle_config(again(host, environ), home, known)
    if known is not None:
        record.close(home, known)
    return Undone(told, tuple(removed), tuple(kept))


def _removed_hook(folder: Path, ours: Mapping[str, bytes]) -> bool:
    there = {file.name: file for file in folder.iterdir()}
    if set(there) - set(ours) or not packaged.is_same(folder, {name: ours[name] for name in there}):
        return False
    shutil.rmtree(folder)
    return True


def _settle_config(host: Host, home: Home, known: Manifest | None) -> str:
    """As it was, where nobody else has changed it since; else without what is ours."""
    if host.data is None:
        return ""
    before = record.backed_up(home, known.config_backup) if known else None
    keys: tuple[Key, ...] = known.keys if known else ()
    if before is not None and known is not None and restore.is_as_before(before, host.data, keys):
        if before != host.data:
            files.replace(host.config, before, known.config_mode)
        return f"{host.config} is as it was before, byte for byte."
    back = patch(dict(restore.undone(host.tree, keys)) | dict.fromkeys(restore.leftovers(host.tree)))
    if back:
        host.openclaw().require("config", "patch", "--stdin", given=json.dumps(back))
    return f"{host.config} was changed by others since, so only what is tacit's was taken out of it."
