"""The notes that a home reads: its own, and the files of attached workspaces.

A workspace is a folder of an agent. Its files are read in place, as `workspace/NAME/…`, and never written.
`NoteStore` reads and writes single notes, each write only if the note is still what the writer read. Start
reading at `folders.py`.
"""
