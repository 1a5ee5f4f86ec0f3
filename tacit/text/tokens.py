"""How many tokens a text costs, by the vocabulary o200k_base, without any network.

The weights are inside the splintr wheel. Other models count a little differently; a budget needs one
measure that never changes under it, not the right one for every model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splintr import AnyTokenizer

# The time splintr takes grows with the length, as it should, but one word of 5 MB makes it use a
# gigabyte and keep it. In pieces it stays small. Cut at a space nothing changes; only where 4,096
# characters have no space at all does each cut count a token or two too many.
_PIECE = 4096
_SURROGATE = re.compile("[\ud800-\udfff]")
_lock = Lock()


def count(text: str) -> int:
    """Tokens in `text`, for any string. `<|endoftext|>` written by someone is plain text."""
    encode = _tokenizer().encode_ordinary
    # Half a character or a byte that is not UTF-8 reaches a model as the replacement character.
    clean = _SURROGATE.sub("\ufffd", text)
    return sum(len(encode(piece)) for piece in _pieces(clean))


def _pieces(text: str) -> Iterator[str]:
    at = 0
    while len(text) - at > _PIECE:
        # Before the space, because a token takes the space in front of its word.
        space = text.rfind(" ", at + 1, at + _PIECE)
        end = space if space > 0 else at + _PIECE
        yield text[at:end]
        at = end
    yield text[at:]


def _tokenizer() -> AnyTokenizer:
    with _lock:  # two threads that come first would both load it
        return _load()


@cache
def _load() -> AnyTokenizer:
    from splintr import Tokenizer  # 75 ms and 40 MB with its weights, which most commands never need

    return Tokenizer.from_pretrained("o200k_base")
