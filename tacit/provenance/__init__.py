"""Where a line of a note comes from, and how to retract everything that came from one source.

A line that tacit wrote carries a comment with its extractor, its sources and a checksum. A `Trace` follows
it to file, commit, conversation and turn. A purge removes all lines that were derived from an origin and
makes sure that they are not learned again; the words themselves stay in the transcript. Start reading at
`trace.py`. The format of the comment is in the package markdown.
"""
