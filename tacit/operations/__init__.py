"""The operations of a home: one list that the daemon's routes, the client and the API reference come from.

`catalog.py` is the list: name, HTTP method, path and fields of each operation, and what a client may do while
no daemon runs. `handlers.py` has one function per operation; requests and answers are JSON objects, which
`fields.py` reads. The client loads the list and not the handlers, which need most of the package. Start
reading at `catalog.py`.
"""
