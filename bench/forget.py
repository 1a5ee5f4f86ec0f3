"""How long `tacit forget` takes, and how much it processes: `python -m bench.forget [SESSIONS]`.

Not part of `python -m bench`: a person runs it once in a while, and there is no baseline for it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import tacit
from bench import homes
from bench.__main__ import _isolate_environment
from tacit.erase import service
from tacit.erase.erasure import Erasure

SECRET = "blue heron 7719"


def main(count: int) -> None:
    _isolate_environment()
    with homes.workshop() as folder:
        home = homes.copy(homes.with_transcripts(count), folder / "home")
        _plant_secret(home, count)
        print(f"{count} sessions: {_count_files(home)} files, {_count_objects(home)} objects")
        transcript = next(home.glob("raw/conversations/**/*.md"))
        session_id = str(tacit.open(home).transcript(str(transcript.relative_to(home))).fields["session_id"])
        _forget(home, "a passage", service.text_erasure(SECRET))
        _forget(home, "a session", service.session_erasure(session_id))
        _forget(home, "an origin", service.origin_erasure("agent:main:heron:direct:7"))


def _plant_secret(home: Path, count: int) -> None:
    """Put the secret into one session of ten, a note and the index."""
    memory = tacit.open(home)
    for number in range(count // 10):
        with memory.session(f"agent:main:heron:direct:{number % 10}", session_id=f"h{number}") as session:
            session.message("user", f"Number {number}: the {SECRET} is mine")
            session.message("agent", "Noted.")
    memory.write("knowledge/people/heron.md", f"# Heron\n\n- {SECRET}\n- tea\n", replacing=None)
    memory.commit()
    memory.search("heron")
    memory.services.searcher.close()


def _forget(home: Path, name: str, target: Erasure) -> None:
    memory = tacit.open(home)
    began = time.perf_counter()
    memory.services.erasure.report(target)
    shown_at = time.perf_counter()
    report, remaining = memory.services.erasure.carry_out(target, lambda step: None)
    done_at = time.perf_counter()
    survey, files = report.plan.survey, {place.path for place in report.plan.places}
    print(
        f"{name}: {len(files)} files and {len(survey.commits)} of {len(survey.graph)} commits changed; "
        f"shown in {shown_at - began:.1f} s, done and proved in {done_at - shown_at:.1f} s, "
        f"left in {len(remaining)} places"
    )


def _count_files(home: Path) -> int:
    return sum(file.is_file() for file in home.rglob("*") if ".git" not in file.parts)


def _count_objects(home: Path) -> int:
    command = ["git", "cat-file", "--batch-all-objects", "--batch-check=x", "--unordered"]
    return subprocess.run(command, cwd=home, capture_output=True, check=True).stdout.count(b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
