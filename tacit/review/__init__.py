"""Change requests: what waits for the owner, and how it is approved, rejected, edited or applied."""
