"""The search index in one SQLite file."""
