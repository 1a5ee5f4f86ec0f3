"""The prompt of one turn: a text that fits the token budget, and a receipt that explains it.

A turn is frozen values going through functions: the request, who listens and what is allowed, the candidate
blocks, the selection, the rendered text. `Compiled` is the result: sections, what was dropped and why, the
`Receipt`. A step that fails or misses the deadline never breaks the turn; the receipt says what is missing.
`delivery/` brings compiled context to hosts that load files instead of asking for each turn. Start reading
at `compiler.py`.
"""
