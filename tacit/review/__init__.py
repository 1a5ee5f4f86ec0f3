"""Change requests: what waits for the owner, and how it is approved, rejected, edited or applied.

There are two kinds. A `ChangeRequest` for notes is a markdown file in drafts/ of a home, and approving it
applies it. A `CuratedFile` of a workspace has a draft beside it, which is promoted after its approval. In
both only someone who may approve it approves exactly this text, by its hash; a file that changed meanwhile is
never overwritten; a log that only grows says who decided, when and on which hash. Start reading at
`model.py`, then `service.py` and `curated_files.py`.
"""
