"""The way of a host from its own files to tacit's, in steps that can each be taken back.

0a  prepare: baseline, backups with a manifest, drafts. Nothing live changes.
0b  apply: the drafts that somebody approved take their places.
1   MEMORY.md on demand: it leaves the host's list, and SOUL.md says where it is.
2   files by the kind of session.
3   SOUL.md says when files that were loaded may be let go of.
4   SOUL.md says that TOOLS.md is read when needed.

What happened stands in `phases.jsonl` beside the drafts, and where the migration is follows from that alone.
"""
