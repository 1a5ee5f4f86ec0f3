"""Writes the table of operations in docs/daemon.md, made from tacit/operations/catalog.py: `make docs`."""

from __future__ import annotations

import re
from pathlib import Path

from tacit.operations.catalog import DAEMON_OPERATIONS, OPERATIONS

PAGE = Path(__file__).parent.parent / "docs" / "daemon.md"
TABLE = re.compile(r"\| \| body \| answer \|\n(?:\|.*\n)+")


def render_table() -> str:
    rows = [
        f"| `{row.method} {row.path}` | {_format_fields(row.fields)} | {row.answer} |\n"
        for row in (*OPERATIONS, *DAEMON_OPERATIONS)
    ]
    return "".join(["| | body | answer |\n", "|---|---|---|\n", *rows])


def _format_fields(fields: str) -> str:
    return ", ".join(f"`{name}`" for name in fields.split())


def render_page() -> str:
    """The page with the table as it should be."""
    table = render_table()
    return TABLE.sub(lambda _: table, PAGE.read_text("utf-8"), count=1)


if __name__ == "__main__":
    PAGE.write_text(render_page(), "utf-8")
