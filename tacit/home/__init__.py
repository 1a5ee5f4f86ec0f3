"""A home on disk: its layout, its files, and how they survive a crash.

`Home` names every file and folder. `files.py` is how the product reads and writes: atomically, synced,
readable by the owner only, and never through a path that leads outside. Nothing here runs git or knows what
the files mean. Start reading at `layout.py`, then `files.py`.
"""
