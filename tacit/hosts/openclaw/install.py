"""Installs and uninstalls by a plan: the host's own command makes the changes, and they can be undone.

Settings come before the plugin: a running gateway starts the plugin at once and must not do so with the wrong
home.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from tacit import config as configuration
from tacit.app import init_home
from tacit.config.editing import add_items
from tacit.errors import ConfigError, HostError
from tacit.home import files
from tacit.home.layout import CONFIG, Home
from tacit.hosts.openclaw import baseline, packaged, settings
from tacit.hosts.openclaw import manifest as record
from tacit.hosts.openclaw.doctor import is_attached
from tacit.hosts.openclaw.machine import OpenClawHost, find_workspaces, reload_host
from tacit.hosts.openclaw.manifest import InstallManifest
from tacit.hosts.openclaw.settings import (
    SettingChange,
    build_patch,
    find_changes,
    find_leftovers,
    hook_keys,
    is_unchanged,
    plugin_keys,
    settings_to_revert,
)
from tacit.version import VERSION

Say = Callable[[str], None]


# ---------------------------------------------------------------- planning


@dataclass(frozen=True, slots=True)
class InstallPlan:
    host: str  # its version
    makes_home: bool = False
    config: tuple[str, str] | None = None  # the home's config, before and after
    keys: tuple[SettingChange, ...] = ()
    plugin: str = ""  # installed or replaced; empty: it stays
    hooks: tuple[str, ...] = ()  # to write into the host's folder
    notes: tuple[str, ...] = ()  # what the owner should know

    @property
    def is_empty(self) -> bool:
        return not (self.makes_home or self.config or self.keys or self.plugin or self.hooks)


def prepare(host: OpenClawHost, home: Home, python: str, *, hooks_only: bool) -> InstallPlan:
    """Plans what is missing. Changes nothing; asks the host for its version and its workspaces."""
    version = host.openclaw().version()
    if settings.is_too_old(settings.version_of(version)):
        oldest = ".".join(map(str, settings.MIN_VERSION))
        raise HostError(f"This is {version}; tacit needs {oldest} or newer. Update it: openclaw update")
    if host.data is None:
        raise HostError(f"{host.config} is not there yet. Set the host up first: openclaw onboard")
    root = str(home.root)
    keys = hook_keys(root) if hooks_only else plugin_keys(root, python)
    plan = InstallPlan(version, makes_home=not home.config.is_file(), keys=find_changes(host.tree, keys))
    config_edit = _edit_config(host, home, plan)
    plan = replace(plan, config=config_edit, notes=tuple(_list_notes(host, home, config_edit)))
    if hooks_only:
        packaged_hooks = packaged.all_hook_files().items()
        stale = tuple(
            name for name, hook_files in packaged_hooks if not packaged.is_same(host.hooks / name, hook_files)
        )
        return replace(plan, hooks=stale)
    return replace(plan, plugin=_plan_plugin(host))


def _plan_plugin(host: OpenClawHost) -> str:
    installed, packaged_version = packaged.version_in(host.plugin), packaged.version()
    if not installed:
        return f"installed, version {packaged_version}"
    if installed != packaged_version:
        return f"replaced: version {installed} by {packaged_version}"
    return (
        ""
        if packaged.is_same(host.plugin, packaged.plugin_files())
        else f"replaced: its files are not those of {packaged_version}"
    )


def _edit_config(host: OpenClawHost, home: Home, plan: InstallPlan) -> tuple[str, str] | None:
    """Adds the workspaces to the home's config, and the owner if that is certain."""
    before = configuration.render_starter() if plan.makes_home else home.config.read_text("utf-8")
    loaded = configuration.parse(before, where=CONFIG, environ=os.environ, trusted=True).config
    folders = dict.fromkeys(map(str, find_workspaces(host).values()))
    missing = [folder for folder in folders if not is_attached(loaded, folder)]
    after = add_items(before, "workspaces", missing)
    if not loaded.owners:
        after = add_items(after, "owners", settings.owners(host.tree))
    if after == before:
        return None
    _verify_edit(after, missing)
    return before, after


def _verify_edit(text: str, folders: list[str]) -> None:
    try:
        config = configuration.parse(text, where=CONFIG, environ=os.environ, trusted=True).config
    except ConfigError:
        config = configuration.Config()
    if not all(is_attached(config, folder) for folder in folders):
        hint = f"Write it yourself: workspaces: {configuration.show(tuple(folders))}"
        raise ConfigError(CONFIG, None, "its lists are written in a way that tacit does not change.", hint)


def _list_notes(host: OpenClawHost, home: Home, config_edit: tuple[str, str] | None) -> Iterator[str]:
    text = config_edit[1] if config_edit else home.config.read_text("utf-8")
    owners = configuration.parse(text, where=CONFIG, environ=os.environ, trusted=True).config.owners
    known_owners = settings.owners(host.tree)
    if config_edit and set(known_owners) & set(owners):
        yield f"Only {', '.join(known_owners)} may write to the host, so that is taken to be you."
    for channel in settings.channels_without_owner(host.tree):
        if not any(owner.startswith(f"{channel}:") for owner in owners):
            yield (
                f"Your id on {channel} is not known. Until you add your id there to owners in "
                f'{home.config}, what you write there is a stranger\'s: owners: ["{channel}:<your id>"]'
            )
    if not host.is_plain:
        yield (
            f"The host writes {host.config.name} as plain JSON, so comments in it go. "
            "The backup has them, and `tacit openclaw uninstall` brings them back."
        )


# ---------------------------------------------------------------- installing


def install(host: OpenClawHost, home: Home, plan: InstallPlan, now: datetime, say: Say) -> None:
    if plan.makes_home:
        init_home(home.root)
        say(f"made    {home.root}")
    if record.load(home) is None:
        _take_baseline(host, home, plan, now, say)
    _record_start(host, home, plan, now)
    if plan.config:
        _write_config(home, *plan.config)
        say(f"changed {home.config}")
    if plan.keys:
        host.openclaw().require(
            "config",
            "patch",
            "--stdin",
            given=json.dumps(build_patch({key.path: key.after for key in plan.keys})),
        )
        say(f"changed {host.config}")
    if plan.plugin:
        source = str(packaged.folder())
        host.openclaw().require("plugins", "install", source, "--force", "--accept-capabilities")
        say(f"{'made' if plan.plugin.startswith('installed') else 'changed':<7} {host.plugin}")
    for name in plan.hooks:
        _write_hook(host.hooks / name, packaged.hook_files(name))
        say(f"made    {host.hooks / name}")


def _take_baseline(host: OpenClawHost, home: Home, plan: InstallPlan, now: datetime, say: Say) -> None:
    """Taken now because the host forgets what it loaded into a session once that session goes on."""
    owners = settings.owners(host.tree)
    try:
        reports = list(baseline.reports(host, "", owners))
    except HostError as error:
        say(f"The baseline could not be taken: {error}")
        return
    if reports:
        baseline.save_reports(home, reports, now.isoformat(timespec="seconds"), plan.host)
        say(f"kept    what the host loads by itself: {', '.join(report.kind for report in reports)}")


def _record_start(host: OpenClawHost, home: Home, plan: InstallPlan, now: datetime) -> None:
    previous = record.load(home)
    hooks = tuple(str(host.hooks / name) for name in plan.hooks)
    if previous is not None and previous.config == str(host.config):
        keys = record.merge_keys(previous.keys, plan.keys)
        record.save(home, replace(previous, keys=keys, hooks=tuple(dict.fromkeys((*previous.hooks, *hooks)))))
        return
    info = host.config.stat()
    manifest = InstallManifest(
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
    record.save(home, manifest)


def _write_config(home: Home, before: str, after: str) -> None:
    with files.hold_lock(home.lock):
        mode = stat.S_IMODE(home.config.stat().st_mode)
        files.Tree(home.root).write(CONFIG, after.encode(), files.digest(before.encode()), mode)


def _write_hook(folder: Path, contents: Mapping[str, bytes]) -> None:
    files.make_directories(folder)
    for name, data in contents.items():
        files.replace(folder / name, data)


# ---------------------------------------------------------------- uninstalling


class UninstallResult(NamedTuple):
    config: str  # what happened to the host's config
    removed: tuple[str, ...]
    kept: tuple[str, ...] = ()  # installed by tacit, and edited since


def is_installed(host: OpenClawHost) -> bool:
    return (
        host.plugin.exists()
        or any(find_leftovers(host.tree))
        or any((host.hooks / name).exists() for name in settings.HOOKS)
    )


def uninstall(host: OpenClawHost, home: Home, environ: Mapping[str, str]) -> UninstallResult:
    manifest = record.load(home) if home.private.is_dir() else None
    if manifest is not None and manifest.config != str(host.config):
        manifest = None  # it belongs to another host
    removed: list[str] = []
    if host.plugin.exists():
        host.openclaw().require("plugins", "uninstall", settings.PLUGIN_ID, "--force")
        removed.append(str(host.plugin))
    modified: list[str] = []
    for name, packaged_files in packaged.all_hook_files().items():
        folder = host.hooks / name
        if folder.exists():
            (removed if _remove_hook(folder, packaged_files) else modified).append(str(folder))
    config_outcome = _restore_config(reload_host(host, environ), home, manifest)
    if manifest is not None:
        record.archive(home, manifest)
    return UninstallResult(config_outcome, tuple(removed), tuple(modified))


def _remove_hook(folder: Path, packaged_files: Mapping[str, bytes]) -> bool:
    present = {file.name: file for file in folder.iterdir()}
    if set(present) - set(packaged_files) or not packaged.is_same(
        folder, {name: packaged_files[name] for name in present}
    ):
        return False
    shutil.rmtree(folder)
    return True


def _restore_config(host: OpenClawHost, home: Home, manifest: InstallManifest | None) -> str:
    """Restores the file if it was not edited since; otherwise removes only tacit's settings."""
    if host.data is None:
        return ""
    before = record.read_backup(home, manifest.config_backup) if manifest else None
    keys: tuple[SettingChange, ...] = manifest.keys if manifest else ()
    if before is not None and manifest is not None and is_unchanged(before, host.data, keys):
        if before != host.data:
            files.replace(host.config, before, manifest.config_mode)
        return f"{host.config} is as it was before, byte for byte."
    changes_back = build_patch(
        dict(settings_to_revert(host.tree, keys)) | dict.fromkeys(find_leftovers(host.tree))
    )
    if changes_back:
        host.openclaw().require("config", "patch", "--stdin", given=json.dumps(changes_back))
    return f"{host.config} was changed by others since, so only what is tacit's was taken out of it."
