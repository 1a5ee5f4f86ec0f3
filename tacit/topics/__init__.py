"""Activates topics (playbooks) in three tiers, each narrower than the last, and logs the decisions.

A `Topic` is a note with triggers. `PatternMatcher` finds topics whose triggers match the message,
`SimilarityScorer` measures how much the message is about them, and a model or a rule decides the few that
stay in doubt. Patterns that users write run in linear time. Every decision is logged and can be given
feedback, from which better thresholds are proposed. Start reading at `pipeline.py`.
"""
