"""Search: updates the index, answers queries, and explains the rank of each hit."""
