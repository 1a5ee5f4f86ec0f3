"""Words into the tokens of Llama 2, the vocabulary of the bundled table.

Any white space parts words, and each word is tokenized by itself behind the mark that stands for a space.
For words parted by one space this is what the `tokenizers` package gives, except that `<s>` and `</s>`
written by someone are plain text here. That package takes longer to load than a query may take.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from tacit.embed.protocol import EmbedderError

_SPACE = "\u2581"
_FIRST_BYTE = 3  # the token of byte 0; the other 255 follow
_NONE = 1 << 16  # above every token

# Merging takes time that grows with the square of the length, so a longer word is cut; what has no space
# for this long is a blob, or a script that does without spaces and loses a token or two at the cut.
_LONGEST = 200
_MOST_KEPT = 50_000
_MANY = 500


class Llama:
    """A tokenizer that remembers the words it has seen."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._words = _Words(vocabulary)

    def ids(self, text: str) -> array[int]:
        words = text.replace(_SPACE, " ").split()
        return array("H", b"".join(map(self._words.__getitem__, words)))


class _Words(dict[str, bytes]):
    """The tokens of each word, as the bytes of an array: joining those of a text then takes one call."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._known: dict[str, list[int]] = {}  # tokens of what words are made of

    def __missing__(self, word: str) -> bytes:
        marked = _SPACE + word
        parts = [marked[at : at + _LONGEST] for at in range(0, len(marked), _LONGEST)]
        tokens = array("H", [token for part in parts for token in self._tokens(part)]).tobytes()
        if len(parts) == 1:
            if len(self) >= _MOST_KEPT:
                self.clear()
                self._known.clear()
            self[word] = tokens
        return tokens

    def _tokens(self, part: str) -> list[int]:
        if len(self) < _MANY:  # a question is not worth looking through the vocabulary
            return self._merged(part)
        found: list[int] = []
        start = 0
        for at in range(1, len(part) + 1):
            if at == len(part) or part[at - 1 : at + 1] not in self._inside:
                run = part[start:at]
                if run not in self._known:
                    self._known[run] = self._merged(run)
                found += self._known[run]
                start = at
        return found

    @cached_property
    def _inside(self) -> set[str]:
        """Pairs of characters that stand in a token. No token reaches across any other pair, so a word may be
        cut there: "relay," and "relay:" are then tokenized once."""
        return {piece[at : at + 2] for piece in self._vocabulary for at in range(len(piece) - 1)}

    def _merged(self, part: str) -> list[int]:
        found: list[int] = []
        for piece in self._pieces(part):
            token = self._vocabulary.get(piece)
            if token is not None:
                found.append(token)
            else:  # one character that has no token of its own
                found += [_FIRST_BYTE + byte for byte in piece.encode("utf-8", "surrogatepass")]
        return found

    def _pieces(self, part: str) -> list[str]:
        """Neighbours that together are a token merge: the lowest token first, the leftmost of equals.

        The list of merges that comes with the vocabulary is in this order, but for runs of spaces, which
        no word has.
        """
        pieces = list(part)
        joined = [self._joined(left, right) for left, right in pairwise(pieces)]
        while joined and (lowest := min(joined)) < _NONE:
            at = joined.index(lowest)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            del joined[at]
            if at > 0:
                joined[at - 1] = self._joined(pieces[at - 1], pieces[at])
            if at < len(joined):
                joined[at] = self._joined(pieces[at], pieces[at + 1])
        return pieces

    def _joined(self, left: str, right: str) -> int:
        return self._vocabulary.get(left + right, _NONE)


def read_vocabulary(file: Path) -> dict[str, int]:
    """Only this part of the tokenizer's file: the merges beside it take twice as long to parse."""
    try:
        text = file.read_text("utf-8")
        found, _ = json.JSONDecoder().raw_decode(text, text.index("{", text.index('"vocab"')))
    except (OSError, ValueError, RecursionError):
        found = {}
    # The tokens are two bytes wide, and the table has a row for each.
    if not isinstance(found, dict) or list(found.values()) != list(range(len(found))) or len(found) > _NONE:
        found = {}
    if not found:
        raise EmbedderError(f"{file} holds no vocabulary. Install wordllama again.")
    return found
