"""Tokenizes text for Llama 2, the vocabulary of the bundled table.

White space separates words, and each word is tokenized separately, with the space marker in front. For words
separated by one space the result is that of the `tokenizers` package, except that `<s>` and `</s>` in a text
are plain text here. That package takes longer to load than a query may take.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from tacit.embeddings.protocol import EmbedderError

_SPACE = "\u2581"
_FIRST_BYTE = 3  # the token of byte 0; the other 255 follow
_NO_TOKEN = 1 << 16  # above every token

# The time for merging is quadratic in the length, so longer words are split. Such a word is a blob, or text
# in a script without spaces, which loses a token or two at the split.
_MAX_WORD_CHARS = 200
_MAX_CACHED_WORDS = 50_000
_MIN_WORDS_TO_SPLIT = 500


class LlamaTokenizer:
    """A tokenizer that caches words."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._words = _WordCache(vocabulary)

    def ids(self, text: str) -> array[int]:
        words = text.replace(_SPACE, " ").split()
        return array("H", b"".join(map(self._words.__getitem__, words)))


class _WordCache(dict[str, bytes]):
    """The tokens of each word, as the bytes of an array, so that those of a text are joined in one call."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._tokens_by_part: dict[str, list[int]] = {}  # tokens of parts of words

    def __missing__(self, word: str) -> bytes:
        marked = _SPACE + word
        parts = [marked[start : start + _MAX_WORD_CHARS] for start in range(0, len(marked), _MAX_WORD_CHARS)]
        tokens = array("H", [token for part in parts for token in self._tokenize(part)]).tobytes()
        if len(parts) == 1:
            if len(self) >= _MAX_CACHED_WORDS:
                self.clear()
                self._tokens_by_part.clear()
            self[word] = tokens
        return tokens

    def _tokenize(self, part: str) -> list[int]:
        if len(self) < _MIN_WORDS_TO_SPLIT:  # for a single query, scanning the vocabulary would take longer
            return self._lookup_pieces(part)
        tokens: list[int] = []
        start = 0
        for end in range(1, len(part) + 1):
            if end == len(part) or part[end - 1 : end + 1] not in self._pairs_inside_tokens:
                run = part[start:end]
                if run not in self._tokens_by_part:
                    self._tokens_by_part[run] = self._lookup_pieces(run)
                tokens += self._tokens_by_part[run]
                start = end
        return tokens

    @cached_property
    def _pairs_inside_tokens(self) -> set[str]:
        """Pairs of characters inside tokens. No token spans any other pair, so a word can be split there:
        "relay" in "relay," and "relay:" is then tokenized once."""
        return {piece[start : start + 2] for piece in self._vocabulary for start in range(len(piece) - 1)}

    def _lookup_pieces(self, part: str) -> list[int]:
        tokens: list[int] = []
        for piece in self._merge_pieces(part):
            token = self._vocabulary.get(piece)
            if token is not None:
                tokens.append(token)
            else:  # a character without a token of its own
                tokens += [_FIRST_BYTE + byte for byte in piece.encode("utf-8", "surrogatepass")]
        return tokens

    def _merge_pieces(self, part: str) -> list[str]:
        """Merge neighbours that together are a token: the lowest token first, the leftmost of equals.

        The list of merges in the tokenizer's file has this order, except for runs of spaces, which no word
        has.
        """
        pieces = list(part)
        joined_tokens = [self._joined_token(left, right) for left, right in pairwise(pieces)]
        while joined_tokens and (lowest := min(joined_tokens)) < _NO_TOKEN:
            position = joined_tokens.index(lowest)
            pieces[position : position + 2] = [pieces[position] + pieces[position + 1]]
            del joined_tokens[position]
            if position > 0:
                joined_tokens[position - 1] = self._joined_token(pieces[position - 1], pieces[position])
            if position < len(joined_tokens):
                joined_tokens[position] = self._joined_token(pieces[position], pieces[position + 1])
        return pieces

    def _joined_token(self, left: str, right: str) -> int:
        return self._vocabulary.get(left + right, _NO_TOKEN)


def read_vocabulary(file: Path) -> dict[str, int]:
    """Read only the vocabulary from the tokenizer's file: parsing the merges takes twice as long."""
    try:
        text = file.read_text("utf-8")
        vocabulary, _ = json.JSONDecoder().raw_decode(text, text.index("{", text.index('"vocab"')))
    except (OSError, ValueError, RecursionError):
        vocabulary = {}
    # The tokens are two bytes wide, and the table has a row for each.
    if (
        not isinstance(vocabulary, dict)
        or list(vocabulary.values()) != list(range(len(vocabulary)))
        or len(vocabulary) > _NO_TOKEN
    ):
        vocabulary = {}
    if not vocabulary:
        raise EmbedderError(f"{file} holds no vocabulary. Install wordllama again.")
    return vocabulary
