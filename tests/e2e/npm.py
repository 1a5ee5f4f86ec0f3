"""The real OpenClaw and a Node that fits it, from registry packages, into a cache folder.

Exact versions. It is installed once, by whoever comes first; others wait for it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NODE, OPENCLAW = "24.21.0", "2026.9.6"
# As whoever runs the tests has it: the tests themselves have another home folder and none of these settings.
ENVIRON = dict(os.environ)
CACHE = Path(ENVIRON.get("TACIT_HOSTS") or Path(__file__).parents[2] / ".cache" / "hosts")


class Missing(Exception):
    """Why the host cannot be had here."""


@dataclass(frozen=True, slots=True)
class Installed:
    node: Path
    openclaw: Path  # the command
    package: Path

    @property
    def path(self) -> str:
        return os.pathsep.join((str(self.node.parent), str(self.openclaw.parent)))


def installed() -> Installed:
    """Set TACIT_HOSTS to a folder to keep it elsewhere than in .cache."""
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not on PATH, so the real OpenClaw cannot be installed")
    folder = CACHE / f"openclaw-{OPENCLAW}-node-{NODE}"
    folder.mkdir(parents=True, exist_ok=True)
    found = Installed(
        folder / "node/node_modules/node/bin/node",
        folder / "app/node_modules/.bin/openclaw",
        folder / "app/node_modules/openclaw",
    )
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _install(npm, folder / "node", f"node@{NODE}", ENVIRON["PATH"])
            _install(npm, folder / "app", f"openclaw@{OPENCLAW}", f"{found.node.parent}:{ENVIRON['PATH']}")
            (folder / "ready").touch()
    return found


def _install(npm: str, folder: Path, package: str, path: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    done = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error", package],
        cwd=folder,
        env={**ENVIRON, "PATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Missing(f"npm could not install {package}: {done.stderr.strip()[-500:]}")
