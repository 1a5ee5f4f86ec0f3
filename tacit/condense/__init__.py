"""Condense many pages into few lines: daily summaries, the week in MEMORY.md, and a monthly review.

    model_answers   what a model is shown, and which answers are valid
    rewrite_checks  what a rewritten note must keep
    calendar        which days, weeks and months are due
    day             conversations of a day → lines for its journal page
    week            journal pages of a week → MEMORY.md
    month           quiet projects and people
    prune           MEMORY.md over its cap → a shorter one
    archive         what moves to archive/
    plan            all steps in order
    service         carries the plan out: files, drafts, one commit
    leases          which of several machines does it

Every step except the service takes texts and returns values, without I/O. Without a model each step only
selects from existing sentences.
"""
