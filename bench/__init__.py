"""How fast tacit is, always as a ratio to what the machine needs for the bare work in the same run.

    python -m bench              everything
    python -m bench append seal  some parts

Nothing here passes or fails: a number is looked at, not asserted. docs/benchmarks.md says how to read it.
"""
