"""Measures quality: how well search finds what it should, what reaches the prompt, and what the extractors
learn.

Question sets come from public collections or from a home's own file of questions (`questions.py`); every set
runs through the same search and the same compiler as a user's turn (`search_quality.py`,
`prompt_quality.py`). The constants of relevance are fitted here and stand in
`tacit/search/calibrations.json`. This is what `tacit eval` and `tacit compare` call. Start reading at
`search_quality.py`.
"""
