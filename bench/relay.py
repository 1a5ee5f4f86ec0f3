"""Starting the relay against starting Python and against starting `tacit`.

The relay is run as an integration runs it, by its path in a package with bytecode, with a real daemon and
without one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import tacit
from bench import homes
from bench.pairs import Measured, Timed, paired
from bench.processes import BARE, PYTHON, TACIT, process

_LEAN_OPTIONS = ("-S", "-E", "-B")  # no site-packages, no environment variables, no writing of bytecode
_DEADLINE_MS = "60000"  # long enough that no run is cut off
_SAMPLES = 150


def measure(folder: Path) -> list[Measured]:
    home = str(homes.from_sample(folder / "relay").home.root)
    python = os.path.realpath(PYTHON)
    helper = (python, *_LEAN_OPTIONS, str(_install(folder) / "relay.py"))

    def run(operation: str, event: Path) -> Timed:
        return _time_relay(event, *helper, operation, "--home", home, "--deadline-ms", _DEADLINE_MS)

    turn, message = folder / "turn.json", folder / "said.json"
    turn.write_text('{"prompt": "ok", "sessionKey": "agent:main:main"}')
    message.write_text('{"text": "How hot do we fire?", "session_id": "ses_bench"}')
    bare, lean = process(*BARE), process(python, *_LEAN_OPTIONS, "-c", "pass")
    results = [
        _compare("a turn, no daemon", "`python -c pass`", bare, run("turn", turn), 1.5),
        _compare("a message, no daemon: spooled", "`python -c pass`", bare, run("message", message)),
    ]
    with _run_daemon(home):
        ask = run("turn", turn)
        results += [
            _compare("a turn, asked", "`python -c pass`", bare, ask, 1.5),
            _compare("a turn, asked", "`python -S -E -B -c pass`", lean, ask),
            _compare("a turn, asked", "`tacit --version`", process(TACIT, "--version"), ask),
            _compare("a message, kept", "`python -c pass`", bare, run("message", message)),
        ]
    return results


def _compare(what: str, against: str, floor: Timed, ours: Timed, aim: float | None = None) -> Measured:
    return paired(f"relay: {what}", against, floor, ours, samples=_SAMPLES, aim=aim, warm=10)


def _install(folder: Path) -> Path:
    """The package with its bytecode beside it, as an installer leaves it: the relay ignores the variable that
    names another place for bytecode."""
    package = folder / "installed" / "tacit"
    shutil.copytree(Path(tacit.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([PYTHON, "-E", "-m", "compileall", "-q", str(package)], check=True)
    return package


@contextmanager
def _run_daemon(home: str) -> Iterator[None]:
    command = [TACIT, "serve", "--home", home]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        if "listening on" not in daemon.stdout.readline():
            raise RuntimeError("`tacit serve` did not come up")
        try:
            yield
        finally:
            daemon.terminate()


def _time_relay(event: Path, *command: str) -> Timed:
    """Like bench.processes.run, with an event on standard input."""
    files = [
        (os.POSIX_SPAWN_OPEN, 0, str(event), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]

    def once() -> float:
        began = perf_counter()
        child = os.posix_spawn(command[0], command, os.environ, file_actions=files)
        os.waitpid(child, 0)
        return perf_counter() - began

    return once
