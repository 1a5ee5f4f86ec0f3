"""OpenClaw as a host: where it is, how it is configured, what tacit adds to it and removes again.

`host` says what it offers to tacit, `events` translates its records, `commands/` are the commands. Pure are
`settings`, `bootstrap_files`, `soul`, `wisdom` and `compact_files`. Only `machine` runs the host's own
program.
"""
