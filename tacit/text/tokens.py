"""Counts the tokens of a text with the vocabulary o200k_base, without network access.

The vocabulary is inside the splintr wheel. Other models count a little differently; a budget needs one
measure that never changes, not the exact one for every model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splintr import AnyTokenizer

# The time of splintr grows linearly, but for one word of 5 MB it allocates a gigabyte and keeps it. In chunks
# it stays small. A split at a space changes nothing; without any space in 4,096 characters each split counts
# a token or two too many.
_CHUNK_CHARS = 4096
_SURROGATE = re.compile("[\ud800-\udfff]")
_lock = Lock()


def count(text: str) -> int:
    """Tokens in `text`, for any string. A literal `<|endoftext|>` is plain text."""
    encode = _tokenizer().encode_ordinary
    # Half a character or a byte that is not UTF-8 reaches a model as the replacement character.
    clean = _SURROGATE.sub("\ufffd", text)
    return sum(len(encode(chunk)) for chunk in _split_chunks(clean))


def _split_chunks(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > _CHUNK_CHARS:
        # Before the space, because a token takes the space in front of its word.
        space = text.rfind(" ", start + 1, start + _CHUNK_CHARS)
        end = space if space > 0 else start + _CHUNK_CHARS
        yield text[start:end]
        start = end
    yield text[start:]


def _tokenizer() -> AnyTokenizer:
    with _lock:  # otherwise two first threads would both load it
        return _load()


@cache
def _load() -> AnyTokenizer:
    from splintr import Tokenizer  # 75 ms and 40 MB with its weights, which most commands never need

    return Tokenizer.from_pretrained("o200k_base")
