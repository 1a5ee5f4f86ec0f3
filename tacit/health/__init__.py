"""A home as a whole: init, trust, permissions, status, doctor.

These look at everything that a home holds, so they stand above all that they look at. `init` can be repeated:
it adds what is missing and mends what is broken. `doctor` only reads. `status.py` must stay cheap: it imports
nothing heavy and starts no process. Start reading at `init.py`, then `doctor.py`.
"""
