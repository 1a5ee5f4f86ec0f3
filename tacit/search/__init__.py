"""Search: keeps the index up to date with the files, answers questions, and explains the rank of each hit.

A `Query` goes to an `Index` with a `Scope` that says what may be seen; words and vectors are searched,
fused and ranked, and links between notes add a little. A `Hit` carries its relevance from 0 to 1 and its
reasons. The index can be deleted at any time: an index that grew equals one built from scratch, and without
one the files themselves are searched. Every number that decides ranking is in `weights.py`. Start reading
at `searcher.py`.
"""
