"""Language models over the network or on this machine, behind one `Chat` protocol.

Every call is made for a task with a minimum tier, is written to the ledger with its tokens and price, and
is refused beyond the day's limits. Failures are retried, and a circuit breaker stops calls to a model that
keeps failing. Answers are checked against the form that was asked for and can be recorded and replayed,
which is how tests run without a model. tacit works without any model. Start reading at `chat.py`.
"""
