"""Conversations: their format on disk, capture, verification, and who said each turn."""
