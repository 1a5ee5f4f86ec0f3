"""Turns text into vectors: with a table of words, a small network, or a remote model."""
