"""Search: keeping the index true, asking it, and saying why a hit is where it is."""
