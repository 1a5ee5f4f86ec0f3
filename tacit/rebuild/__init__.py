"""Learn everything again from the transcripts, on a branch and in a work tree of its own; compare; merge.

A rebuild starts from notes without the lines that were learned automatically, reads all conversations in
order, and commits as it goes, so that it continues after a kill and asks no model twice. The home is not
touched until the merge, which is one commit. Start reading at `service.py`.
"""
