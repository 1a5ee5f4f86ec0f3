"""Everything that runs git: commits, history, refs, hooks, repair.

`Git` in `repository.py` is the only code that starts a git process. `Committer` makes commits, one at a time,
under the home's lock; `NoteCommitter` finds what changed in the notes and commits it. The user's git stays
the user's: commits are made from bytes that we read, without index, work tree, hooks, filters or signing, and
staged or filtered paths are left alone. If git cannot commit now, the files wait on disk and nothing is lost.
Start reading at `committer.py`.
"""
