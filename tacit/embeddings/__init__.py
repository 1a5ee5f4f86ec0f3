"""Turns text into vectors: with a table of words, a small network, or a remote model, all behind one
`Embedder` protocol.

`registry.py` chooses the embedder by the value of `search.embedding_model`. The bundled table needs no
network and takes tens of microseconds per text; heavy packages are imported only by the embedder that needs
them. An embedder that fails raises `EmbedderError`, and search goes on with words alone. Rerankers, which
score a question and a chunk together, are here too. Start reading at `protocol.py`.
"""
