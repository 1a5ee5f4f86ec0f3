"""The command line: commands in modules by feature, and no rules of its own.

`main.py` maps every outcome to an exit code, `dispatch.py` finds the command in the list of `commands/`,
parses its arguments and runs it. A command's module is imported only when it is called, because starting up
is part of every answer. Each command prints through `tacit.terminal`; docs/cli.md is made from the parsers.
Start reading at `commands/__init__.py`, then any command.
"""
