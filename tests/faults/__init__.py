"""What the product promises when things break, tested by breaking them.

`python -m tests.faults` is the long form and prints a table of figures; test_faults_short.py is a sample of
the same parts for every `make test`.

An *acknowledgement* is the return of a call that keeps something. Everything here asks one question, in
invariants.py: after the fault and after the next command, is everything acknowledged there exactly once, and
everything else whole?
"""
