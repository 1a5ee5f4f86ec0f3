"""Markdown as a home keeps it: notes with frontmatter, their sections, lists, links and chunks.

Pure functions on text. What a person wrote may be wrong: that is a Problem in the result, never an
exception, and a text that is read and written again stays the same byte for byte. `Note` is the main value.
Start reading at `notes.py`.
"""
