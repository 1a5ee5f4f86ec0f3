"""Runs commands of the installed product, each in a process of its own, without paying for its imports anew.

The launcher loads the public names once and forks for each command; the child calls the entry point that pip
installed as `tacit`. Requests and answers are JSON lines on the two file descriptors that it is given.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from importlib.metadata import entry_points
from typing import IO, Any

import tacit
import tacit.aio
import tacit.client

SECONDS = 120
Json = dict[str, Any]


def serve(requests: IO[str], answers: IO[str]) -> None:
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
            stdin.write(request["stdin"].encode())
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
    sys.argv = ["tacit", *request["arguments"]]
    signal.alarm(SECONDS)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    with open(int(sys.argv[1])) as requests, open(int(sys.argv[2]), "w") as answers:
        serve(requests, answers)
