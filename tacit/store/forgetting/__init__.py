"""Forgetting: a text, a session or an origin goes from files, logs, index and every commit.

forget.py      what would go, that it goes, and the proof that nothing is left: start reading here
ready.py       whether it may be done now
what.py        what a thing to forget must be able to say; passage.py and sessions.py are the two kinds
words.py       a text in all its spellings, and a file without it
transcript.py  a transcript without a text
worktree.py    the files of a work tree
derived.py     logs, caches and records in `.tacit`
history.py     which commits hold it
rewrite.py     the new objects, into one pack (pack.py)
switch.py      refs, indexes and logs over to them, and what git leaves lying about
"""
