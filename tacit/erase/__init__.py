"""Forgetting: a text, a session or an origin goes from files, logs, index and every commit.

plan.py           plan, removal, and the proof that nothing is left: start reading here
service.py        the same for a home: text, session or origin
preconditions.py  whether it is possible now
target.py         the interface of a thing to forget; passage.py and sessions.py are the two kinds
spellings.py      a text in all its spellings, and a file without it
transcript.py     a transcript without a text
worktree.py       the files of a work tree
derived.py        logs, caches and records in `.tacit`
history.py        which commits contain it
rewrite.py        the new objects, into one pack (pack.py)
switch.py         switches refs, indexes and logs to them, and cleans up leftovers of git
"""
