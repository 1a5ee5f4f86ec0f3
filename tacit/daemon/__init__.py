"""One warm process for a home: it listens on a socket and answers what `tacit.api` lists.

place.py      who holds the home, and where it can be asked
http.py       HTTP/1.1 on one connection, and how many of them there may be
pool.py       the threads that work, what may wait for them, and what to do when one hangs
server.py     from a request to an operation and back
metrics.py    what /metrics tells
log.py        what .tacit/daemon.log tells
"""
