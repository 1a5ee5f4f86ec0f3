"""The daemon: one warm process for a home that listens on a socket and runs the operations of
`tacit.operations`.

The event loop reads requests, checks access and keeps deadlines; a limited pool of threads does the work. A
request that would be late is refused at once, a long or hostile one holds up no other, and a thread that
hangs is replaced. Background jobs run here by their schedules. The package holds no rules of its own. Start
reading at `main.py`, then `router.py`.
"""
