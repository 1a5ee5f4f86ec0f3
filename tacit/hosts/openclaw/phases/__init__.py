"""Moves a host from its own files to tacit's, in steps that can each be taken back.

0a  prepare: baseline, backups with a manifest, drafts. Nothing live changes.
0b  apply: approved drafts replace their files.
1   MEMORY.md on demand: it leaves the host's list, and SOUL.md says where it is.
2   files by the kind of session.
3   SOUL.md says when loaded files may be let go of.
4   SOUL.md says that TOOLS.md is read when needed.

The evidence is in `phases.jsonl` beside the drafts, and the current phase follows from it alone.
"""
