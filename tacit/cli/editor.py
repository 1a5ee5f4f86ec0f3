"""Edit a text in the user's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from tacit.errors import UsageError
from tacit.markdown import notes


def edit_text(text: str) -> str:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise UsageError("Set $EDITOR, or give the new text with --file FILE.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "draft.md")
        file.write_bytes(notes.encode(text))
        if subprocess.run([*shlex.split(editor), str(file)], check=False).returncode:
            raise UsageError("The editor ended with an error, so the draft is as it was.")
        return notes.decode(file.read_bytes())
