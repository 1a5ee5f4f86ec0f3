"""How compiled context reaches its host: files loaded at the start, text for each turn, or a context file."""
