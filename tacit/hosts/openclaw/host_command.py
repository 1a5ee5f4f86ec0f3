"""Runs the host's own command; the only module here that runs a program.

The command may print banners and warnings first, so JSON is read from its first bracket on.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import HostError

COMMAND_TIMEOUT_S = 300.0  # seconds: on a busy machine an install takes one minute
_MAX_ERROR_CHARS = 600  # of the output


class CommandOutput(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return "\n".join(part for part in (self.out.strip(), self.err.strip()) if part)


class Command:
    def __init__(self, program: str, environ: Mapping[str, str]) -> None:
        self.program = program
        # A service or a test may put the command and Node together outside of PATH.
        path = f"{environ.get('PATH', os.defpath)}{os.pathsep}{Path(program).parent}"
        self._environ = {**environ, "PATH": path, "NO_COLOR": "1"}

    def run(self, *arguments: str, given: str = "", seconds: float = COMMAND_TIMEOUT_S) -> CommandOutput:
        return run([self.program, *arguments], self._environ, given=given, seconds=seconds)

    def require(self, *arguments: str, given: str = "", seconds: float = COMMAND_TIMEOUT_S) -> CommandOutput:
        output = self.run(*arguments, given=given, seconds=seconds)
        if output.code:
            raise HostError(
                f"`openclaw {' '.join(arguments)}` failed ({output.code}): {output.all[-_MAX_ERROR_CHARS:]}"
            )
        return output

    def json(self, *arguments: str, seconds: float = COMMAND_TIMEOUT_S) -> Any:
        return extract_json(self.require(*arguments, seconds=seconds).out, " ".join(arguments))

    def version(self) -> str:
        return self.require("--version", seconds=60).out.strip()

    def node(self) -> str:
        """The version of Node; empty if it is not on PATH."""
        try:
            output = run(["node", "--version"], self._environ, seconds=60)
        except HostError:
            return ""
        return output.out.strip() if output.code == 0 else ""

    def elsewhere(self, **environ: str) -> Command:
        """The same command with other environment variables."""
        return Command(self.program, {**self._environ, **environ})


def run(
    command: list[str], environ: Mapping[str, str], *, given: str = "", seconds: float = COMMAND_TIMEOUT_S
) -> CommandOutput:
    try:
        process = subprocess.run(
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
    return CommandOutput(process.returncode, process.stdout, process.stderr)


def extract_json(text: str, what: str) -> Any:
    starts = [index for index in (text.find("{"), text.find("[")) if index >= 0]
    for start in sorted(starts):
        try:
            return json.JSONDecoder().raw_decode(text, start)[0]
        except ValueError:
            continue
    raise HostError(f"`openclaw {what}` answered with no JSON: {text[:200]!r}. Is this version supported?")
