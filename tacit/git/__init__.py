"""Everything that runs git: commits, history, refs, hooks, repair."""
