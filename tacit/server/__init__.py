"""The daemon: one warm process for a home that listens on a socket and runs the operations of
`tacit.operations`.

instance.py   the lock on the home, and where the daemon listens
http.py       HTTP/1.1 on one connection, and the limit on connections
pool.py       worker threads, their queues, and hung threads
router.py     from a request to an operation and back
auth.py       access checks
jobs.py       background jobs
metrics.py    /metrics
log.py        .tacit/daemon.log
"""
