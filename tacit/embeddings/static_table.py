"""Embeds a text as the mean of its tokens' vectors from a table: no network, tens of microseconds.

`bundled` is the default: the WordLlama table from the package of that name. A query is summed in plain
Python, because importing numpy takes longer than everything else a one-shot command does; documents are
summed by numpy. Both give the same bytes: the summands are multiples of 1/4096, and few enough at a time that
every sum is exact, so neither the order of addition nor the width of the numbers makes a difference.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from math import frexp, ldexp
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.embeddings.protocol import EmbedderError, not_finite_error, replace_surrogates, scale_to_bytes
from tacit.embeddings.weights import TensorTable, Weights, fingerprint, import_optional, package_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_POOLING_VERSION = (
    "p1"  # raise it with every change of `weight`, `AWAY` or the tokens, to replace old vectors
)

_STEPS_PER_UNIT = 4096
_ROUNDING_OFFSET = (
    1.5 * 2**52 / _STEPS_PER_UNIT
)  # adding and subtracting it rounds to the nearest multiple of a step
_MAX_EXACT_INTEGER = 2**24  # 32-bit floats hold every integer up to this

_NUMPY_MIN_TOKENS = 4096  # tokens from which numpy is worth its import
_WORD = re.compile(r"\w+[+#]*")  # punctuation of a query carries no meaning
_TEXTS_PER_BLOCK = 256  # texts scaled together
_MAX_CACHED_NUMBERS = 2**18  # numbers in cached rows of queries: 8 MB


def token_weight(token: int, piece: str) -> float:  # noqa: ARG001
    """The weight of a token of the bundled table. Above 0; twelve bits of it are used."""
    return 1.0


# Subtracted from every mean before scaling, if set: what all texts have in common distinguishes none.
MEAN_OFFSET: tuple[float, ...] = ()


class _Arrays(NamedTuple):
    matrix: NDArray[np.float32]  # the table, each row times its weight
    weights: NDArray[np.float64]
    most: int  # rows that may be summed at once


class StaticEmbedder:
    """An embedder over one table. `ids` gives the tokens of a text, which are row numbers."""

    def __init__(
        self,
        name: str,
        table: TensorTable,
        ids: Callable[[str], array[int]],
        weigh: Callable[[int], float] = lambda token: 1.0,
        away: Sequence[float] = (),
    ) -> None:
        self.name, self.dimensions = name, table.columns
        self._table, self._ids, self._weigh = table, ids, weigh
        self._away = away or [0.0] * table.columns
        self._row = lru_cache(_MAX_CACHED_NUMBERS // table.columns)(self._weighted_row)

    def query(
        self,
        text: str,
        weigh: Callable[[str], float] | None = None,
        seconds: float | None = None,  # noqa: ARG002 - there is nothing to wait for
    ) -> bytes | None:
        sums, total = [0.0] * self.dimensions, 0.0
        for token, times in self._count_tokens(text, weigh).items():
            share, row = self._row(token)
            total += times * share
            sums = [partial + times * number for partial, number in zip(sums, row, strict=True)]
        if total == 0.0:
            return None
        return scale_to_bytes(
            [partial / total - mean for partial, mean in zip(sums, self._away, strict=True)]
        )

    def _count_tokens(self, text: str, weigh: Callable[[str], float] | None) -> dict[int, float]:
        """The count of each token in the text, weighted by its word."""
        if weigh is None:
            return dict(Counter(self._ids(text)))
        counts: dict[int, float] = {}
        for word in _WORD.findall(text):
            weight = weigh(word)
            for token in self._ids(word):
                counts[token] = counts.get(token, 0.0) + weight
        return counts

    def _weighted_row(self, token: int) -> tuple[float, tuple[float, ...]]:
        """The weight of a token, and its row multiplied by it."""
        share = self._weigh(token)
        return share, tuple(self._scale_row(share, self._table.row(token)))

    def _scale_row(self, share: float, row: Sequence[float]) -> list[float]:
        return [share * number for number in row]

    def documents(
        self,
        texts: Sequence[str],
        seconds: float | None = None,  # noqa: ARG002 - there is nothing to wait for
    ) -> list[bytes | None]:
        blocks = [texts[start : start + _TEXTS_PER_BLOCK] for start in range(0, len(texts), _TEXTS_PER_BLOCK)]
        return [vector for block in blocks for vector in self._embed_block(block)]

    def _embed_block(self, texts: Sequence[str]) -> Iterator[bytes | None]:
        import numpy as np  # 80 ms, which a query has no time for

        pooled = [self._sum_tokens(self._ids(text)) for text in texts]
        totals = np.array([total for _, total in pooled])[:, None]
        known = totals > 0.0
        means = np.array([sums for sums, _ in pooled]) / np.where(known, totals, 1.0) - known * self._away
        largest = np.abs(means).max(axis=1, keepdims=True)
        has_direction = largest > 0.0
        rows = np.rint(means / np.where(has_direction, largest, 1.0) * 127).astype(np.int8)
        return (
            row.tobytes() if points else None for row, points in zip(rows, has_direction[:, 0], strict=True)
        )

    def _sum_tokens(self, ids: array[int]) -> tuple[NDArray[np.float64], float]:
        """The sum of the weighted vectors of the tokens, and the sum of their weights."""
        import numpy as np

        matrix, weights, most = self._arrays
        tokens = np.frombuffer(ids, f"u{ids.itemsize}")
        sums = np.zeros(self.dimensions)
        for start in range(0, len(tokens), most):
            rows = matrix[tokens[start : start + most]]
            sums += np.ones(len(rows), np.float32) @ rows
        return sums, float(weights[tokens].sum())

    @cached_property
    def _arrays(self) -> _Arrays:
        return self._weighted_arrays()

    def _weighted_arrays(self) -> _Arrays:
        import numpy as np

        matrix = self._table.matrix()
        if not np.isfinite(matrix).all():
            raise not_finite_error()
        weights = np.array([self._weigh(token) for token in range(self._table.rows)], np.float64)
        matrix *= weights.astype(np.float32)[:, None]
        return _Arrays(matrix, weights, _NUMPY_MIN_TOKENS)


class ExactStaticEmbedder(StaticEmbedder):
    """A table with numbers of at most eleven bits and weights of at most twelve, for exact sums."""

    def query(
        self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
    ) -> bytes | None:
        if weigh is None and len(self._ids(text)) > _NUMPY_MIN_TOKENS:
            return self.documents([text])[0]
        return super().query(text, weigh, seconds)

    def _scale_row(self, share: float, row: Sequence[float]) -> list[float]:
        return [share * number + _ROUNDING_OFFSET - _ROUNDING_OFFSET for number in row]

    def _weighted_arrays(self) -> _Arrays:
        import numpy as np

        matrix, weights, _ = super()._weighted_arrays()
        matrix *= _STEPS_PER_UNIT
        np.rint(matrix, out=matrix)
        most = max(1, int(_MAX_EXACT_INTEGER / np.abs(matrix).max(initial=1.0)))
        matrix /= _STEPS_PER_UNIT
        return _Arrays(matrix, weights, most)


def open_bundled() -> StaticEmbedder:
    """The table of 32,000 tokens and 256 dimensions inside the wordllama package."""
    folder = package_folder("wordllama")
    if folder is None:
        raise EmbedderError("The bundled model is missing. Run: pip install wordllama")
    numbers = folder / "weights" / "l2_supercat_256.safetensors"
    words = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    table = Weights(numbers).table("embedding.weight")
    vocabulary = read_vocabulary(words)
    if len(vocabulary) != table.rows:
        raise EmbedderError(f"{words} and {numbers} do not belong together. Install wordllama again.")
    pieces = list(vocabulary)
    name = f"wordllama/{fingerprint(numbers, words)}/{table.columns}/{_POOLING_VERSION}"
    ids = LlamaTokenizer(vocabulary).ids
    return ExactStaticEmbedder(
        name, table, ids, lambda token: _round_to_twelve_bits(token_weight(token, pieces[token])), MEAN_OFFSET
    )


def _round_to_twelve_bits(number: float) -> float:
    mantissa, exponent = frexp(number)
    return ldexp(round(mantissa * _STEPS_PER_UNIT), exponent - 12)


# ---------------------------------------------------------------- the tokens of the bundled table


_SPACE = "\u2581"
_FIRST_BYTE = 3  # the token of byte 0; the other 255 follow
_NO_TOKEN = 1 << 16  # above every token

# The time for merging is quadratic in the length, so longer words are split. Such a word is a blob, or text
# in a script without spaces, which loses a token or two at the split.
_MAX_WORD_CHARS = 200
_MAX_CACHED_WORDS = 50_000
_MIN_WORDS_TO_SPLIT = 500


class LlamaTokenizer:
    """Tokenizes text for Llama 2, and caches words.

    White space separates words, and each word is tokenized separately, with the space marker in front. For
    words separated by one space the result is that of the `tokenizers` package, except that `<s>` and `</s>`
    in a text are plain text here. That package takes longer to load than a query may take.
    """

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


# ---------------------------------------------------------------- folders in the model2vec format


_MODEL2VEC_POOLING = "p1"


def open_model2vec(folder: Path) -> StaticEmbedder:
    """A table and a tokenizer.json; config.json is ignored. The table may be mapped (many tokens share a row)
    and weighted, as after `model2vec` reduced it."""
    numbers, words = folder / "model.safetensors", folder / "tokenizer.json"
    weights = Weights(numbers)
    mapping = [int(row) for row in weights.numbers("mapping")] if "mapping" in weights else []
    table = weights.table("embeddings", mapping)
    tokenizer, unknown = _load_tokenizer(words)
    if max(tokenizer.get_vocab().values(), default=0) >= table.rows:
        raise EmbedderError(f"{words} and {numbers} do not belong together. Install the model again.")
    shares = weights.numbers("weights") if "weights" in weights else ()
    if shares and len(shares) != table.rows:
        raise EmbedderError(f"{numbers} has not one weight for each token. Install the model again.")
    name = f"{folder.name}/{fingerprint(numbers, words)}/{table.columns}/model2vec-{_MODEL2VEC_POOLING}"
    return StaticEmbedder(
        name, table, _make_tokenizer(tokenizer, unknown), shares.__getitem__ if shares else lambda token: 1.0
    )


def _load_tokenizer(file: Path) -> tuple[Any, int | None]:
    """The tokenizer, and its token for unknown words."""
    load = import_optional("tokenizers", "onnx").Tokenizer
    try:
        text = file.read_text("utf-8")
        tokenizer = load.from_str(text)
        model = json.loads(text)["model"]
    except OSError as error:
        raise EmbedderError(f"{file} cannot be read: {error.strerror}. Install the model again.") from None
    except Exception as error:  # noqa: BLE001  # the package raises no narrower kind
        raise EmbedderError(f"{file} is no tokenizer ({error}). Install the model again.") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    unknown = model.get("unk_token")
    return tokenizer, model.get("unk_id") if unknown is None else tokenizer.token_to_id(unknown)


def _make_tokenizer(tokenizer: Any, unknown: int | None) -> Callable[[str], array[int]]:
    def ids(text: str) -> array[int]:
        tokens = tokenizer.encode(replace_surrogates(text), add_special_tokens=False).ids
        return array("I", [token for token in tokens if token != unknown])

    return ids
