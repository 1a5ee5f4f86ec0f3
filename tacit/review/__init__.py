"""Change requests: what waits for the owner, and how it is approved, rejected, edited or applied.

A `Draft` is a markdown file that a person can read and edit. Nothing is applied unless someone who may
approve it approved exactly this text, by its hash; a file that changed meanwhile is never overwritten. Who
decided, when and on which hash is in a log that only grows. Start reading at `model.py`, then `service.py`.
"""
