"""`tacit forget` with kill -9 at each of its file calls in turn: `python -m tests.faults.forget [STEP]`.

After each kill the repository must be sound and the text may be anywhere; after the same command once more it
is nowhere, everything else has the bytes it had, and the person's work is as it was.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import tacit
from tests.faults import homes, rerun
from tests.faults.report import tell
from tests.faults.rerun import Trial

SECRET = "heron7719"
NOTE = "knowledge/people/heron.md"
COMMAND = ("forget", SECRET, "--yes")


def furnish(home: Path) -> None:
    """A home with the text wherever it can stand, and a person's work beside it."""
    homes.furnish(home)
    memory = tacit.open(home)
    for name, said in (("talk", f"The {SECRET} is mine"), ("other", "Tea?")):
        with memory.session(session_id=name) as session:
            session.message("user", said)
            session.message("agent", "Yes.")
    memory.turn(f"where is the {SECRET}?")
    memory.services.searcher.close()
    memory.write(NOTE, f"# Heron\n\n- {SECRET}\n- tea\n", replacing=None)
    for name, text in (("forgotten", "One"), (SECRET, "Two")):  # the second needs a number
        memory.write(f"knowledge/people/{name}.md", f"# {text}\n", replacing=None)
    memory.commit()
    homes.must(home, "tag", "-a", "-m", SECRET, "one")
    homes.must(home, "branch", "explore/forgotten", "HEAD~1")
    homes.must(home, "switch", "-q", "-c", f"explore/{SECRET}")


def state(home: Path) -> dict[str, object]:
    """All that must not change: commits by their dates, with every file that does not hold the text."""
    commits: dict[str, list[list[tuple[str, str]]]] = {}
    for line in homes.must(home, "log", "--all", "--format=%H %at %ct %ae").decode().splitlines():
        name, _, who = line.partition(" ")
        rows = homes.must(home, "ls-tree", "-r", "-z", name).decode().split("\0")[:-1]
        pairs = (row.partition("\t") for row in rows)
        others = ((meta, path) for meta, _, path in pairs if path != NOTE and "-talk-" not in path)
        kept = sorted((_plain(path), meta) for meta, path in others)
        commits.setdefault(who, []).append(kept)
    branch = homes.must(home, "branch", "--show-current").decode().strip()
    status = homes.must(home, "status", "--short").decode()
    return {
        "commits": {who: sorted(kept) for who, kept in commits.items()},
        "own": homes.own_work(home),
        "branch": _plain(branch),
        "status": status,
        "logged": homes.must(home, "log", "-g", "--format=%at", branch),
    }


def _plain(name: str) -> str:
    """As it is called afterwards."""
    return name.replace(SECRET, "forgotten-2")


def broken(home: Path, before: object) -> list[str]:
    found = []
    if homes.git(home, "fsck", "--full").returncode:
        found.append("git fsck fails after the kill")
    if any(SECRET in file.read_text() for file in (home / ".tacit").glob("forget-*.json")):
        found.append("the text was written down")
    again = rerun.again(FORGET, home)
    is_done = again.returncode == 1 and b"Nothing matches" in again.stdout  # the kill came when all was over
    if again.returncode and not is_done:
        found.append(
            f"running it again ends with {again.returncode}: {(again.stderr + again.stdout).decode()[-300:]}"
        )
    if homes.git(home, "fsck", "--full", "--strict").returncode:
        found.append("git fsck fails")
    found += [f"still there: {place}" for place in residue(home)]
    if bad := [item.path for item in tacit.open(home).verify() if not item.good]:
        found.append(f"not proved: {bad}")
    if state(home) != before:
        found.append("something else has changed")
    if locks := list((home / ".git").rglob("*.lock")):
        found.append(f"locks are left: {locks}")
    return found


def residue(home: Path) -> list[str]:
    text = SECRET.encode()
    found = []
    for here, _, names in os.walk(home):
        files = (Path(here, name) for name in names)
        found += [str(file) for file in files if file.is_file() and text in file.read_bytes()]
    objects = homes.must(home, "cat-file", "--batch-all-objects", "--batch", "--unordered")
    return found + ["an object"] * (text in objects)


def command(home: Path) -> tuple[str, ...]:
    return COMMAND


FORGET = Trial("forget", "tacit forget", furnish, command, state, broken)


if __name__ == "__main__":
    figure = tell(rerun.scan(FORGET, int(sys.argv[1]) if len(sys.argv) > 1 else 1))
    sys.exit(1 if figure.broken else 0)
