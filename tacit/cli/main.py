"""Parse, dispatch, and turn every outcome into an exit code: 0 ok, 1 problem found, 2 usage, 3 bug.

A command's module is imported only when the command is called: starting is part of every answer.
"""

from __future__ import annotations

import os
import sys

from tacit.version import VERSION

# name: what it is for. The module is tacit.cli.<name>, with _ for -.
COMMANDS = {
    "init": "make a home, or complete and repair one",
    "demo": "show a sample home at work",
    "capture": "keep a conversation from the command line",
    "search": "find passages in notes and conversations",
    "links": "what notes link to and what links to them; broken links",
    "remember": "keep one line for later sessions",
    "why": "why the last turn got what it got, and what it did not get",
    "why-known": "follow a line to its file, commit, transcript and the words themselves",
    "compile": "compile one turn and print it",
    "topics": "playbooks: list them, try a message on them, what is due",
    "index": "bring the index up to date, or follow the files",
    "gate": "what woke topics or did not; mark, report, tune",
    "openclaw": "install, check, measure and remove tacit in OpenClaw; propose shorter files",
    "eval": "measure how well search finds what it should",
    "serve": "keep a home warm: one process that answers hosts and does the work that is due",
    "stop": "end `tacit serve`",
    "explain-session": "what a session key means, which rule it gets and what it may see",
    "skills": "cards and snippets that tell agents how to use memory",
    "forget": "remove a passage, a session or an origin from files, index and history",
    "purge": "remove an origin and all that was derived from it",
    "rebuild": "learn everything anew, on a branch",
    "compare": "two states of the notes: what prompts hold, size, cost, difference",
    "adopt-branch": "take over what a rebuild learned",
    "wisdom": "turn lessons into the wisdom section of SOUL.md: draft, check, approve, promote",
    "run": "do the work that is due: commit, extract, condense, prune, archive",
    "review": "changes to notes that wait for your word: list, show, approve, reject, edit",
    "cost": "what models would cost in a month, and what was really spent",
    "history": "ask the past: when, blame, diff, today, recall, undo, snapshot, tags",
    "verify": "prove that no sealed transcript was touched",
    "status": "where things stand",
    "doctor": "look for problems; changes nothing",
    "config": "every setting: its value, where it comes from, what it does",
    "hook": "what git's hooks call",
}


def entry() -> int:
    _fill_closed_streams()
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()  # whoever read it has seen enough
        return 0
    except OSError as error:
        drop_output()
        print(f"tacit: {UNWRITTEN}: {error.strerror or error}", file=sys.stderr)
        return 1
    return code


UNWRITTEN = "cannot write to standard output"


def drop_output() -> None:
    """What is still to be printed goes nowhere, so that Python does not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fill_closed_streams() -> None:
    """cron and daemons start programs with 0, 1 and 2 closed. The next file we open would then get such a
    number, and what is meant for the terminal would be written into it."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number: this one
    # typeshed says that they cannot be None. sys.stdin stays: who asks for it must hear that it is closed.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def main(argv: list[str]) -> int:
    if argv in (["--version"], ["-V"]):
        print(f"tacit {VERSION}")
        return 0
    if not argv or argv in (["--help"], ["-h"], ["help"]):
        print(overview())
        return 0 if argv else 2
    from tacit.cli.dispatch import dispatch

    return dispatch(argv)


def overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, about in COMMANDS.items()]
    return "\n".join(
        [
            "tacit: memory and context for AI agents, kept in files you own",
            "",
            "usage: tacit [--home DIR] COMMAND ...",
            "",
            *lines,
            "",
            "  --home DIR  the home to use (default: $TACIT_HOME, else ~/tacit)",
            "  --version   print the version",
            "",
            "`tacit COMMAND --help` says more. Exit codes: 0 ok, 1 problem found, 2 usage, 3 bug.",
        ]
    )


if __name__ == "__main__":
    sys.exit(entry())
