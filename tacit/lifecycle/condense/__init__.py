"""Many pages become few lines: a day's summary, the week in MEMORY.md, the month's look at what sleeps.

    asking      what a model may be asked, and what counts as an answer
    checks      what a rewritten note must have kept
    day         conversations of a day → lines for its journal page
    week        journal pages of a week → MEMORY.md
    month       projects and people of whom nothing was heard
    plan        all of it in its order, with pruning and archiving behind it

Every step takes texts and gives values; nothing is read or written here. Without a model each has a form that
only chooses among sentences that are there.
"""
