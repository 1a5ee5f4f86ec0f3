"""Claude Code, Codex and similar programs, whose hooks call tacit's relay with one JSON event each."""
