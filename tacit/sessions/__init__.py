"""What kind of conversation a session is, and which of its messages are worth searching for."""
