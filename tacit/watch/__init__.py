"""What wakes topics: three tiers, each narrower, and the log of what they decided."""
