"""Markdown as a home keeps it: notes with frontmatter, their sections, lists, links and chunks."""
