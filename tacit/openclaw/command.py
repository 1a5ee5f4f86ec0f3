"""The host's own command: the only module here that runs a program.

What it prints may be preceded by banners and warnings, so JSON is looked for from its first bracket on.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import HostError

PATIENCE = 300.0  # seconds: on a busy machine an install takes one minute
_SHOWN = 600  # characters of what it said


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return "\n".join(part for part in (self.out.strip(), self.err.strip()) if part)


class Command:
    def __init__(self, program: str, environ: Mapping[str, str]) -> None:
        self.program = program
        # Node beside the command, where a service or a test put both outside of PATH.
        path = f"{environ.get('PATH', os.defpath)}{os.pathsep}{Path(program).parent}"
        self._environ = {**environ, "PATH": path, "NO_COLOR": "1"}

    def run(self, *arguments: str, given: str = "", seconds: float = PATIENCE) -> Said:
        return run([self.program, *arguments], self._environ, given=given, seconds=seconds)

    def require(self, *arguments: str, given: str = "", seconds: float = PATIENCE) -> Said:
        said = self.run(*arguments, given=given, seconds=seconds)
        if said.code:
            raise HostError(f"`openclaw {' '.join(arguments)}` failed ({said.code}): {said.all[-_SHOWN:]}")
        return said

    def json(self, *arguments: str, seconds: float = PATIENCE) -> Any:
        return json_in(self.require(*arguments, seconds=seconds).out, " ".join(arguments))

    def version(self) -> str:
        return self.require("--version", seconds=60).out.strip()

    def node(self) -> str:
        """Its version; empty where it is not on PATH."""
        try:
            said = run(["node", "--version"], self._environ, seconds=60)
        except HostError:
            return ""
        return said.out.strip() if said.code == 0 else ""

    def elsewhere(self, **environ: str) -> Command:
        """The same command, with other settings around it."""
        return Command(self.program, {**self._environ, **environ})


def run(
    command: list[str], environ: Mapping[str, str], *, given: str = "", seconds: float = PATIENCE
) -> Said:
    try:
        done = subprocess.run(
            command,
            env=dict(environ),
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"`{' '.join(command)}` did not end within {seconds:.0f} seconds.") from None
    except OSError as error:
        raise HostError(f"{command[0]} cannot be run: {error.strerror or error}.") from error
    return Said(done.returncode, done.stdout, done.stderr)


def json_in(text: str, what: str) -> Any:
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    for start in sorted(starts):
        try:
            return json.JSONDecoder().raw_decode(text, start)[0]
        except ValueError:
            continue
    raise HostError(f"`openclaw {what}` answered with no JSON: {text[:200]!r}. Is this version supported?")
