"""Values rendered as text for people."""
