"""Learning, condensing, archiving, approving and adopting a rebuild with kill -9 at each of their file calls:
`python -m tests.faults.lifecycle [STEP]`.

After the kill and the same command once more, the notes are those of a run that nobody disturbed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import tacit
from tests.faults import homes, rerun
from tests.faults.machine import ROOT, environment
from tests.faults.report import tell
from tests.faults.rerun import Trial

SAID = (
    ("From now on we fire the big plates at 1,215 degrees.", "Noted."),
    ("Lesson learned: never open the kiln above 100 degrees.", "I will remind you."),
    ("We decided to fire the big plates at 1,180 degrees instead of 1,215 degrees.", "Changed."),
)
_DATED = ("updated:", "made:", "line_count:")


def talked(home: Path) -> None:
    """A home with conversations of three days and a person's work beside them."""
    homes.furnish(home)
    talk(home, SAID)


def talk(home: Path, conversations: Sequence[tuple[str, str]], day: int = 0) -> None:
    memory = tacit.open(home)
    for number, (said, answer) in enumerate(conversations, day):
        began = datetime(2026, 3, 2, 10, tzinfo=memory.services.clock.now().tzinfo) + timedelta(days=number)
        with memory.session(session_id=f"day{number}", started=began) as session:
            session.message("user", said, at=began)
            session.message("agent", answer, at=began + timedelta(minutes=1))
            session.end(at=began + timedelta(minutes=2))


def learned(home: Path) -> None:
    """The same, learned from, with a journal page of long ago."""
    talked(home)
    page = home / "knowledge/journal/2024-01-05.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("# Long ago\n\n- a day\n")
    _command(home, "run", "extract")
    _command(home, "run", "commit")


def proposed(home: Path) -> None:
    """And a guest's word that waits for a review."""
    talked(home)
    memory = tacit.open(home)
    began = datetime(2026, 3, 9, 10, tzinfo=memory.services.clock.now().tzinfo)
    with memory.session("agent:main:telegram:group:-100", session_id="guest", started=began) as session:
        session.message("user", "We decided to open the shop at nine on Mondays.", at=began, speaker="Guest")
        session.end(at=began + timedelta(minutes=2))
    _command(home, "run", "extract")


def rebuilt(home: Path) -> None:
    """Learned by lessons alone, then by decisions too on a branch; and somebody talked since."""
    homes.furnish(home)
    config = home / "memory-config.yaml"
    config.write_text(
        config.read_text().replace("  #extractors: ", "  extractors: [lessons]\n  #extractors: ")
    )
    talk(home, SAID[:2])
    _command(home, "run", "all")
    _command(home, "rebuild", "--name", "v2", "--extractors", "decisions,lessons")
    talk(home, SAID[2:], day=3)
    _command(home, "run", "all")


def _command(home: Path, *arguments: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "tacit", *arguments, "--home", str(home)],
        env=environment(home.parent),
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    return done.stdout


def extract(home: Path) -> Sequence[str]:
    return ("run", "extract")


def condense(home: Path) -> Sequence[str]:
    return ("run", "condense")


def archive(home: Path) -> Sequence[str]:
    return ("run", "archive")


def approve(home: Path) -> Sequence[str]:
    names = sorted(file.stem for file in (home / "drafts").glob("*.md"))
    return ("review", "approve", names[0] if names else "gone", "--by", "me")


def adopt(home: Path) -> Sequence[str]:
    return ("adopt-branch", "v2")


def notes(home: Path) -> dict[str, list[str]]:
    """Every note, without what tells the time of the run."""
    files = (file for folder in ("knowledge", "archive", "drafts") for file in (home / folder).rglob("*.md"))
    return {
        str(file.relative_to(home)): [
            line for line in file.read_text().split("\n") if not line.startswith(_DATED)
        ]
        for file in sorted(files)
    }


def undisturbed(command: Sequence[str], home: Path) -> dict[str, list[str]]:
    copy = home.parent / "undisturbed"
    shutil.copytree(home, copy, symlinks=True)
    try:
        _command(copy, *command)
        return notes(copy)
    finally:
        shutil.rmtree(copy)


def _trial(name: str, what: str, furnish: object, command: object) -> Trial:
    return Trial(name, what, furnish, command, _States(command), _Broken(command))  # type: ignore[arg-type]


class _States:
    """A class, since what goes to another process must have a name."""

    def __init__(self, command: object) -> None:
        self.command = command

    def __call__(self, home: Path) -> object:
        return undisturbed(self.command(home), home)  # type: ignore[operator]


class _Broken(_States):
    def __call__(self, home: Path, expected: object = None) -> list[str]:
        found = []
        # A work tree that git has half made is damage to it, until the next command.
        if self.command is not adopt and homes.git(home, "fsck", "--full").returncode:
            found.append("git fsck fails after the kill")
        again = subprocess.run(
            [sys.executable, "-m", "tacit", *self.command(home), "--home", str(home)],  # type: ignore[operator]
            env=environment(home.parent),
            cwd=ROOT,
            capture_output=True,
        )
        is_done = again.returncode == 2 and again.stderr.startswith(
            (b"tacit: There is no draft", b"tacit: There is no rebuild")
        )
        if again.returncode and not is_done:
            found.append(f"again: {again.returncode}: {(again.stderr + again.stdout).decode()[-300:]}")
        if homes.git(home, "fsck", "--full").returncode:
            found.append("git fsck fails after it was run again")
        if (now := notes(home)) != expected:
            found.append(f"other notes than undisturbed: {_difference(now, expected)}")
        standing = [lines for path, lines in now.items() if not path.startswith("drafts/")]
        marked = [line for lines in standing for line in lines if line.rstrip().endswith("-->")]
        if twice := [line for line, count in Counter(marked).items() if count > 1]:
            found.append(f"twice: {twice[:2]}")
        if bad := [item.path for item in tacit.open(home).verify() if not item.good]:
            found.append(f"not proved: {bad}")
        return found


def _difference(now: dict[str, list[str]], expected: object) -> str:
    assert isinstance(expected, dict)
    paths = [path for path in {*now, *expected} if now.get(path) != expected.get(path)]
    return ", ".join(sorted(paths))


TRIALS = (
    _trial("extract", "tacit run extract", talked, extract),
    _trial("condense", "tacit run condense", learned, condense),
    _trial("archive", "tacit run archive", learned, archive),
    _trial("approve", "tacit review approve", proposed, approve),
    _trial("adopt", "tacit adopt-branch", rebuilt, adopt),
)


if __name__ == "__main__":
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    figures = [tell(rerun.scan(trial, step)) for trial in TRIALS]
    sys.exit(1 if any(figure.broken for figure in figures) else 0)
