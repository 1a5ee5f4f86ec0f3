"""Every command: the module that has it, and what it is for. Hosts add commands of their own.

The module of one command has `arguments(parser)` and `run(options)`, and its docstring is the help text. In a
module with several commands they are `NAME_arguments` and `run_NAME`, whose docstring is the help text.
"""

from __future__ import annotations

from importlib import import_module

_COMMANDS = {
    "init": ("tacit.cli.commands.home", "make a home, or complete and repair one"),
    "demo": ("tacit.cli.commands.demo", "show a sample home at work"),
    "capture": ("tacit.cli.commands.capture", "keep a conversation from the command line"),
    "search": ("tacit.cli.commands.search", "search notes and conversations"),
    "links": ("tacit.cli.commands.index", "links between notes: to a note, from a note, broken ones"),
    "remember": ("tacit.cli.commands.search", "keep one line for later sessions"),
    "why": ("tacit.cli.commands.why", "explain why a turn got what it got, and what was left out"),
    "why-known": (
        "tacit.cli.commands.why",
        "trace a line to its file, commit, transcript and the words themselves",
    ),
    "compile": ("tacit.cli.commands.search", "compile one turn and print it"),
    "topics": ("tacit.cli.commands.topics", "topics: list them, try a message on them, see which are due"),
    "index": ("tacit.cli.commands.index", "bring the index up to date, or watch the files"),
    "gate": ("tacit.cli.commands.gate", "why topics activated or did not; mark, report, tune"),
    "eval": ("tacit.cli.commands.eval", "measure how well search finds what it should"),
    "serve": (
        "tacit.cli.commands.serve",
        "run the daemon: it answers hosts and does the work that is due",
    ),
    "stop": ("tacit.cli.commands.serve", "stop `tacit serve`"),
    "explain-session": (
        "tacit.cli.commands.why",
        "what a session key means, which rule applies and what it may see",
    ),
    "skills": ("tacit.cli.commands.skills", "cards and snippets that tell agents how to use memory"),
    "forget": (
        "tacit.cli.commands.forget",
        "remove a text, a session or an origin from files, index and history",
    ),
    "purge": ("tacit.cli.commands.forget", "remove an origin and everything that was derived from it"),
    "rebuild": ("tacit.cli.commands.rebuild", "learn everything again, on a branch"),
    "compare": (
        "tacit.cli.commands.rebuild",
        "compare two versions of the notes: recall, size, cost, diff",
    ),
    "adopt-branch": ("tacit.cli.commands.rebuild", "merge what a rebuild learned"),
    "run": ("tacit.cli.commands.run", "do the work that is due: commit, extract, condense, prune, archive"),
    "review": (
        "tacit.cli.commands.review",
        "review pending changes to notes: list, show, approve, reject, edit",
    ),
    "cost": ("tacit.cli.commands.cost", "what models would cost per month, and what was spent"),
    "history": (
        "tacit.cli.commands.history",
        "ask the past: when, blame, diff, today, recall, undo, snapshot, tags",
    ),
    "verify": ("tacit.cli.commands.history", "check that no sealed transcript was changed"),
    "status": ("tacit.cli.commands.status", "show the state of the home"),
    "doctor": ("tacit.cli.commands.home", "check the home and say what is wrong"),
    "config": ("tacit.cli.commands.home", "show every setting: its value, its origin, what it does"),
    "hook": ("tacit.cli.commands.hook", "called by git's hooks"),
}


def load_commands() -> dict[str, tuple[str, str]]:
    """The commands by name, with those of hosts."""
    names, commands = list(_COMMANDS), dict(_COMMANDS)
    for host in import_module("tacit.hosts.base").load_hosts():  # `tacit --version` needs no host
        for command in host.commands:
            place = names.index(command.after) + 1 if command.after else len(names)
            names.insert(place, command.name)
            commands[command.name] = (f"tacit.hosts.{host.name}.{command.module}", command.about)
    return {name: commands[name] for name in names}
