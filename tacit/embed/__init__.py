"""Text into vectors: a table of words, a small network, or a model behind an address."""
