"""A home on disk: its layout, files that survive a crash, init, status, doctor, attached workspaces.

`Home` names every file and folder. `files.py` is how the product reads and writes: atomically, synced,
readable by the owner only, and never through a path that leads outside. `status.py` must stay cheap: it
imports nothing heavy and starts no process. Start reading at `layout.py`, then `files.py`.
"""
