"""Measures quality: how well search finds what it should, what reaches the prompt, and what the extractors
learn.

Question sets come from public collections or from a home's own file of questions (`sets.py`); every set
runs through the same search and the same compiler as a user's turn (`run.py`, `budgets.py`). Constants of
ranking are fitted here and stand in `tacit/search/weights.py`. This is what `tacit eval` calls. Start
reading at `run.py`.
"""
