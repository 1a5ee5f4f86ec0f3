"""Forgetting: a text, a session or an origin goes from files, logs, index and every commit.

First a plan says what would be removed (`ErasurePlan`), then the removal writes a new history and switches
to it, then a proof searches everything again. Killed at any point, it can be run again and finishes; other
writers are refused meanwhile. The report never says that nothing is left while something is. Start reading
at `plan.py`; `erasure.py` is the interface of a thing to forget.
"""
