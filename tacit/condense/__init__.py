"""Condense many pages into few lines: daily summaries, the week in MEMORY.md, a monthly review, pruning and
archiving.

Every step takes texts and returns values (`DailySummary`, `WeeklyRollup`, `MonthlyReview`, `PruneResult`)
without I/O; only the service reads files, writes drafts and makes the one commit. Without a model each step
selects existing sentences and rewords none; with a model, its answer is checked against the sources before
it is used. A period is condensed once, also by two machines that share a remote. Start reading at
`plan.py`, which has the order of the steps.
"""
