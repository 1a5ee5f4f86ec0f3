"""Runs commands of the installed product, each in its own process, without paying for imports each time.

The launcher loads the public names once and forks for each command; the child calls the entry point that pip
installed as `tacit`. Requests and answers are JSON lines on two pipes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any

SECONDS = 120
Json = dict[str, Any]


class Launcher:
    """The side of the tests. It runs one command at a time."""

    def __init__(self, environment: Mapping[str, str], cwd: Path) -> None:
        self.environment = dict(environment)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs_in), str(theirs_out)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(theirs_in, theirs_out),
            env=self.environment,
            cwd=cwd,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._requests, self._answers = os.fdopen(ours_out, "w"), os.fdopen(ours_in)

    def ask(self, request: Mapping[str, Any]) -> Any:
        """`request`: arguments, stdin, env, cwd; optionally program (sys.argv[0]) and seconds."""
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        return json.loads(self._answers.readline())

    def close(self) -> None:
        self._requests.close()
        self._process.wait(60)
        self._answers.close()


def serve(requests: IO[str], answers: IO[str]) -> None:
    import tacit
    import tacit.aio
    import tacit.client

    for name in tacit.__all__:
        getattr(tacit, name)
    (entry,) = entry_points(group="console_scripts", name="tacit")
    run = entry.load()
    for line in requests:
        request = json.loads(line)
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            stdin.write(request["stdin"].encode("utf-8", "surrogateescape"))
            stdin.seek(0)
            child = os.fork()
            if not child:
                _become(request, stdin, out, err)
                sys.exit(run())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            answer = {"code": code, "stdout": _content(out), "stderr": _content(err)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _become(request: Json, *streams: IO[bytes]) -> None:
    """What a shell does before it starts a command."""
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    sys.argv = [request.get("program", "tacit"), *request["arguments"]]
    signal.alarm(request.get("seconds", SECONDS))


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "surrogateescape")


if __name__ == "__main__":
    with open(int(sys.argv[1])) as requests, open(int(sys.argv[2]), "w") as answers:
        serve(requests, answers)
