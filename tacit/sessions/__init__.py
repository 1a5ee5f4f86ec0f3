"""What kind of conversation a session is, who takes part in it, and what it may see.

A session key is read by its whole segments into a `SessionKind`; the config's rules turn kind, agent,
channel and sender into a `SessionProfile`: files, audience, budget. A session counts as the owner's only
when that can be proved. Start reading at `keys.py`, then `policy.py`.
"""
