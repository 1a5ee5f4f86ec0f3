"""How long `tacit forget` takes, and what it goes through: `python -m bench.forget [SESSIONS]`.

No part of `python -m bench`: it is run once in a while by a person, and there is nothing to hold it against.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import tacit
from bench import homes
from bench.__main__ import _leave_the_user_alone
from tacit.memory import forget
from tacit.store.forgetting.what import Forgetting

SECRET = "blue heron 7719"


def main(count: int) -> None:
    _leave_the_user_alone()
    with homes.workshop() as folder:
        home = homes.copy(homes.with_transcripts(count), folder / "home")
        _hide(home, count)
        print(f"{count} sessions: {_files(home)} files, {_objects(home)} objects")
        one = next(home.glob("raw/conversations/**/*.md"))
        session_id = str(tacit.open(home).transcript(str(one.relative_to(home))).fields["session_id"])
        _forget(home, "a passage", forget.passage(SECRET))
        _forget(home, "a session", forget.session(session_id))
        _forget(home, "an origin", forget.origin("agent:main:heron:direct:7"))


def _hide(home: Path, count: int) -> None:
    """In one session of ten, in a note, and in the index."""
    memory = tacit.open(home)
    for number in range(count // 10):
        with memory.session(f"agent:main:heron:direct:{number % 10}", session_id=f"h{number}") as session:
            session.message("user", f"Number {number}: the {SECRET} is mine")
            session.message("agent", "Noted.")
    memory.write("knowledge/people/heron.md", f"# Heron\n\n- {SECRET}\n- tea\n", replacing=None)
    memory.commit()
    memory.search("heron")
    memory.searcher.close()


def _forget(home: Path, name: str, what: Forgetting) -> None:
    memory = tacit.open(home)
    began = time.perf_counter()
    forget.look(memory, what)
    shown = time.perf_counter()
    report, left = forget.carry_out(memory, what, lambda step: None)
    done = time.perf_counter()
    survey, files = report.plan.survey, {place.path for place in report.plan.places}
    print(
        f"{name}: {len(files)} files and {len(survey.commits)} of {len(survey.graph)} commits changed; "
        f"shown in {shown - began:.1f} s, done and proved in {done - shown:.1f} s, left in {len(left)} places"
    )


def _files(home: Path) -> int:
    return sum(file.is_file() for file in home.rglob("*") if ".git" not in file.parts)


def _objects(home: Path) -> int:
    command = ["git", "cat-file", "--batch-all-objects", "--batch-check=x", "--unordered"]
    return subprocess.run(command, cwd=home, capture_output=True, check=True).stdout.count(b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
