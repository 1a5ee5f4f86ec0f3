"""Pure functions on strings: words, tokens, sentences, dates, language, mood.

Nothing here touches files, processes or the clock, and nothing knows what a home is. Word lists cover the
languages that the tests name; an unknown language gets less, never an error. Start reading at `words.py`.
"""
