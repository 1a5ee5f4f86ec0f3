"""Starting the hook helper against starting Python and against starting `tacit`.

The helper is run as an integration runs it, by its path in a package that has its bytecode, with a real
daemon and without one.
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

_LEAN = ("-S", "-E", "-B")  # neither site-packages, nor variables, nor writing bytecode
_PATIENT = "60000"  # milliseconds: what is measured is not cut
_SAMPLES = 150


def measure(folder: Path) -> list[Measured]:
    home = str(homes.from_sample(folder / "relay").home.root)
    python = os.path.realpath(PYTHON)
    helper = (python, *_LEAN, str(_installed(folder) / "relay.py"))

    def run(operation: str, event: Path) -> Timed:
        return _fed(event, *helper, operation, "--home", home, "--deadline-ms", _PATIENT)

    turn, said = folder / "turn.json", folder / "said.json"
    turn.write_text('{"prompt": "ok", "sessionKey": "agent:main:main"}')
    said.write_text('{"text": "How hot do we fire?", "session_id": "ses_bench"}')
    bare, lean = process(*BARE), process(python, *_LEAN, "-c", "pass")
    found = [
        _pair("a turn, no daemon", "`python -c pass`", bare, run("turn", turn), 1.5),
        _pair("a message, no daemon: spooled", "`python -c pass`", bare, run("message", said)),
    ]
    with _served(home):
        ask = run("turn", turn)
        found += [
            _pair("a turn, asked", "`python -c pass`", bare, ask, 1.5),
            _pair("a turn, asked", "`python -S -E -B -c pass`", lean, ask),
            _pair("a turn, asked", "`tacit --version`", process(TACIT, "--version"), ask),
            _pair("a message, kept", "`python -c pass`", bare, run("message", said)),
        ]
    return found


def _pair(what: str, against: str, floor: Timed, ours: Timed, aim: float | None = None) -> Measured:
    return paired(f"relay: {what}", against, floor, ours, samples=_SAMPLES, aim=aim, warm=10)


def _installed(folder: Path) -> Path:
    """The package with its bytecode beside it, as an installer leaves it: the helper heeds no variable that
    names another place for that."""
    package = folder / "installed" / "tacit"
    shutil.copytree(Path(tacit.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([PYTHON, "-E", "-m", "compileall", "-q", str(package)], check=True)
    return package


@contextmanager
def _served(home: str) -> Iterator[None]:
    command = [TACIT, "serve", "--home", home]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout is not None
        if "listening on" not in daemon.stdout.readline():
            raise RuntimeError("`tacit serve` did not come up")
        try:
            yield
        finally:
            daemon.terminate()


def _fed(event: Path, *command: str) -> Timed:
    """As bench.processes.run, with an event on standard input."""
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
