"""Activates topics in three tiers, each narrower than the last, and logs the decisions."""
