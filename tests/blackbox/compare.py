"""Whether two checkouts compile the same prompts and receipts.

    python -m tests.blackbox.compare OLD_PYTHON NEW_PYTHON DATA_DIR [DATA_DIR ...] [--questions 200]

OLD_PYTHON and NEW_PYTHON are interpreters that each have a checkout installed, such as
`../main/.venv/bin/python`. A data folder has docs.jsonl (one message a line: id, collection, session, seq,
speaker, date, text) and queries.jsonl (id, collection, text); each collection becomes a home. As many
questions as --questions says are asked, evenly spread over all folders.

Both sides import the conversations with their dates through the public Python contract, with the clock at the
last message. Prompts and receipts are then compared byte for byte; receipt ids, timings and the random ids
of unnamed sessions are left out. Nothing is kept. Exit code 0: all are equal; 1: some differ, and the
differences are printed.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.blackbox.outside import work

CONFIG = "timezone: UTC\ngit: {auto_commit: false}\ninject: {deadline_ms: 60000}\n"
BUDGETS = (None, 1024, 4096)
SHOWN_LINES = 40
_AGENTS = ("assistant", "agent", "ai", "bot")
_DATES = ("%B-%d-%Y", "%d %B %Y", "%B %d, %Y", "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d")
_RANDOM_SESSION = re.compile(r"\bturns_[0-9a-f]{8}\b")  # of turns that name no session
_UNEQUAL = ("id", "timings_ms")  # of a receipt: random, and measured
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    sessions: list[Json]
    questions: list[Json]
    last: str


# ---------------------------------------------------------------- the data


def read_collections(folders: list[Path], count: int) -> Iterator[Collection]:
    """Only collections of which something is asked."""
    asked = [(folder, query) for folder in folders for query in _lines(folder / "queries.jsonl")]
    count = min(count, len(asked))
    spread = [asked[number * len(asked) // count] for number in range(count)]
    chosen: dict[tuple[Path, str], list[Json]] = {}
    for folder, query in spread:
        chosen.setdefault((folder, str(query["collection"])), []).append(query)
    for folder in folders:
        messages: dict[str, list[Json]] = {}
        for message in _lines(folder / "docs.jsonl"):
            messages.setdefault(str(message["collection"]), []).append(message)
        for name, said in messages.items():
            if (folder, name) in chosen:
                yield _collection(folder, name, said, chosen[folder, name])


def _lines(file: Path) -> list[Json]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]


def _collection(folder: Path, name: str, messages: list[Json], queries: list[Json]) -> Collection:
    messages.sort(key=lambda message: int(message.get("seq") or 0))
    at = datetime(2000, 1, 1, tzinfo=UTC)
    for message in messages:
        message["at"] = at = _moment(message.get("date")) or at
    sessions = [
        _session(f"{name}-{session}", list(group))
        for session, group in groupby(messages, key=lambda message: str(message["session"]))
    ]
    questions = [
        {"id": query["id"], "message": query["text"], "named": _named(BUDGETS[number % len(BUDGETS)])}
        for number, query in enumerate(queries)
    ]
    last = max(session["ended"] for session in sessions)
    return Collection(f"{folder.name}/{name}", sessions, questions, last)


def _named(budget: int | None) -> Json:
    return {"keeps_text": False, **({} if budget is None else {"budget": budget})}


def _session(name: str, messages: list[Json]) -> Json:
    at, said = messages[0]["at"], []
    for message in messages:
        at = max(at + timedelta(seconds=1), message["at"])
        said.append({**_speaker(str(message.get("speaker") or "user")), "text": message["text"]})
        said[-1]["at"] = at.isoformat()
    started = messages[0]["at"].isoformat()
    return {"named": {"session_id": name}, "started": started, "ended": at.isoformat(), "messages": said}


def _speaker(name: str) -> Json:
    if name.casefold() in _AGENTS:
        return {"role": "agent"}
    return {"role": "user", "speaker": None if name.casefold() == "user" else name}


def _moment(written: object) -> datetime | None:
    text = str(written or "")
    readers: list[Callable[[str], datetime]] = [
        datetime.fromisoformat,
        *(partial(_strptime, form) for form in _DATES),
    ]
    for read in readers:
        try:
            moment = read(text)
        except ValueError:
            continue
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _strptime(form: str, text: str) -> datetime:
    return datetime.strptime(text, form).replace(tzinfo=UTC)


# ---------------------------------------------------------------- the comparison


def compile_all(python: str, collection: Collection) -> dict[str, list[str]]:
    """Each question's prompt and receipt as lines, by the question's id."""
    with tempfile.TemporaryDirectory(prefix="blackbox-") as name:
        folder = Path(name)
        home = str(folder / "home")
        talk = {"do": "talk", "home": home, "config": CONFIG, "bare": True, "sessions": collection.sessions}
        work(folder, talk, python=python, now=collection.last)
        ask = {"do": "ask", "home": home, "how": "turn", "questions": collection.questions}
        answers = work(folder, ask, python=python, now=collection.last)
        return {answer["id"]: _as_lines(answer, home) for answer in answers}


def _as_lines(answer: Json, home: str) -> list[str]:
    receipt = {key: value for key, value in answer["receipt"].items() if key not in _UNEQUAL}
    rest = {"standing": answer["standing"], "tokens": answer["tokens"], "receipt": receipt}
    text: str = answer["text"] + "\n" + json.dumps(rest, indent=1, ensure_ascii=False)
    return _RANDOM_SESSION.sub("turns_<random>", text.replace(home, "<home>")).split("\n")


def compare(old: str, new: str, collection: Collection) -> Iterator[str]:
    """For each question that differs, its diff."""
    with ThreadPoolExecutor(2) as both:
        before, after = both.map(compile_all, (old, new), (collection, collection))
    for question in collection.questions:
        name = question["id"]
        if before.get(name) != after.get(name):
            names = (f"old {collection.name} {name}", f"new {collection.name} {name}")
            diff = difflib.unified_diff(before.get(name, []), after.get(name, []), *names, lineterm="", n=1)
            yield "\n".join(list(diff)[:SHOWN_LINES])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.blackbox.compare")
    parser.add_argument("old_python", type=os.path.abspath)
    parser.add_argument("new_python", type=os.path.abspath)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args(arguments)
    asked = differing = 0
    for collection in read_collections(options.data, options.questions):
        diffs = list(compare(options.old_python, options.new_python, collection))
        asked += len(collection.questions)
        differing += len(diffs)
        state = f"{len(diffs)} differ" if diffs else "equal"
        print(f"{collection.name}: {len(collection.questions)} questions, {state}", flush=True)
        for diff in diffs:
            print(diff, flush=True)
    print(f"{asked} questions, {asked - differing} equal, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
