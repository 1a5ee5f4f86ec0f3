"""Does one job with the public Python contract, in a process of its own: job on stdin, JSON lines on stdout.

Runs by its path under any interpreter that has the product, so two checkouts can be given the same job. The
clock is the one of clock/sitecustomize.py.

    {"do": "talk", "home": DIR, "config": TEXT or null, "bare": BOOL, "sessions": [SESSION]}
    {"do": "ask", "home": DIR, "how": "turn" or "look", "questions": [QUESTION]}

A session is {"named": {…}, "started", "ended", "messages": [{"role", "text", "at", "speaker"}]}. A question
is {"id", "message", "named": {…}}; for each, one line {"id", "text", "standing", "tokens", "receipt"} is
printed, with the receipt as it stands on disk.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import tacit
from tacit.client import connect

Json = dict[str, Any]


def talk(job: Json) -> Iterator[Json]:
    home = Path(job["home"])
    memory = tacit.open(home) if home.exists() else tacit.init(home)
    if job.get("bare"):
        _remove_starter_files(home)
    if job.get("config") is not None:
        (home / "memory-config.yaml").write_text(job["config"], encoding="utf-8")
        memory = tacit.open(home)
    for entry in job["sessions"]:
        os.environ["BLACKBOX_NOW"] = entry["ended"]
        session = memory.session(**entry["named"], started=_moment(entry["started"]))
        for message in entry["messages"]:
            _say(session, message)
        sealed = session.end(at=_moment(entry["ended"]), tags=entry.get("tags", ()))
        yield {"path": sealed.path if sealed else None}


def _remove_starter_files(home: Path) -> None:
    """Only what was said is left to be found."""
    for folder in ("knowledge", "topics"):
        shutil.rmtree(home / folder)
        (home / folder).mkdir()


def _say(session: Any, message: Json) -> None:
    at = _moment(message["at"])
    if message["role"] == "tool":
        session.tool(message["name"], message["summary"], message["result"], at=at)
    else:
        session.message(message["role"], message["text"], at=at, speaker=message.get("speaker"))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ask(job: Json) -> Iterator[Json]:
    home = Path(job["home"])
    # A search spends little time on changed files, so the index is brought up to date first.
    subprocess.run([sys.executable, "-m", "tacit", "index", "--quiet", "--home", str(home)], check=True)
    memory = tacit.open(home)
    client = connect(home)
    for question in job["questions"]:
        named = dict(question.get("named") or {})
        if "event" in named:
            named["event"] = tacit.Event(**named["event"])
        compiled = (memory.turn if job["how"] == "turn" else client.look)(question["message"], **named)
        yield {
            "id": question["id"],
            "text": compiled.text,
            "standing": compiled.standing,
            "tokens": compiled.tokens,
            "receipt": receipt_on_disk(home, compiled.receipt.id),
        }


def receipt_on_disk(home: Path, name: str) -> Json | None:
    for file in sorted((home / ".tacit" / "receipts").glob("*.jsonl"), reverse=True):
        for line in reversed(file.read_text(encoding="utf-8").splitlines()):
            receipt: Json = json.loads(line)
            if receipt.get("id") == name:
                return receipt
    return None


def main() -> None:
    job = json.load(sys.stdin)
    for line in {"talk": talk, "ask": ask}[job["do"]](job):
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
