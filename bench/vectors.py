"""What is lost and gained by comparing signs first: against the cosine with every vector, by numpy.

Quantized vectors are those in the index. Exact ones are the means that they were rounded from; the question's
vector is the same for both.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from time import perf_counter

import apsw
import numpy as np
from numpy.typing import NDArray

from bench import corpus
from bench.index import MANY, searcher_of
from bench.pairs import Measured, Timed, paired
from bench.query import all_asked, connected
from tacit.embed import static
from tacit.embed.llama import Llama, read_vocabulary
from tacit.embed.packages import package_folder
from tacit.embed.weights import Weights
from tacit.index.opening import open_index
from tacit.index.sqlite import SqliteIndex
from tacit.model.search import EVERYTHING
from tacit.text.passages import embedded_text

Matrix = NDArray[np.float32]
_DEPTH = 100
_ALL = (
    "FROM passages p JOIN knowledge_meta m ON m.id = p.file JOIN embedded e USING(digest)"
    " WHERE e.vector IS NOT NULL ORDER BY p.id"
)
_CLOSE = 1e-6  # cosines that differ by less are equal


def measure(folder: Path) -> list[Measured]:
    del folder  # nothing is written
    file = searcher_of(corpus.indexed(MANY)).file
    asked = [one.vector for one in all_asked(MANY)]
    bare = connected(file)
    ids, quantized = _quantized(bare)
    exact = _exact(bare)
    bare.close()
    assert (quantized * exact).sum(axis=1).min() > 0.99, "these are not the vectors of the same texts"
    index = open_index(file)
    print(f"\nvectors: {len(ids):,} passages, {len(asked)} questions, the share of the nearest that is found")
    nearest = [[one.id for one in index.nearest(vector, EVERYTHING, _DEPTH)] for vector in asked]
    remarks = []
    for name, matrix in (("quantized", quantized), ("exact", exact)):
        ten, hundred = (_recall(nearest, asked, ids, matrix, depth) for depth in (10, _DEPTH))
        remarks.append(f"{name} @10 {ten:.4f} @{_DEPTH} {hundred:.4f}")
        print(f"  against {remarks[-1]}")
    print()
    found = paired(
        f"vectors: the nearest {_DEPTH} of {len(ids):,}",
        "numpy, all in memory",
        _floor(quantized, asked),
        _ours(index, asked),
        samples=corpus.ASKED,
        warm=20,
    )
    index.close()
    return [replace(found, remark="recall: " + ", ".join(remarks))]


def _recall(
    nearest: Sequence[Sequence[int]],
    asked: Sequence[bytes],
    ids: NDArray[np.int64],
    matrix: Matrix,
    depth: int,
) -> float:
    """The share of the nearest that is found. One as near as the last of them is as good."""
    rows = {int(one): row for row, one in enumerate(ids)}
    right = 0
    for found, vector in zip(nearest, asked, strict=True):
        cosines = matrix @ _unit(vector)
        last = np.partition(cosines, -depth)[-depth]
        right += sum(bool(cosines[rows[one]] >= last - _CLOSE) for one in found[:depth])
    return right / (depth * len(asked))


def _ours(index: SqliteIndex, asked: Sequence[bytes]) -> Timed:
    turn = cycle(asked)

    def once() -> float:
        vector = next(turn)
        began = perf_counter()
        index.nearest(vector, EVERYTHING, _DEPTH)
        return perf_counter() - began

    return once


def _floor(matrix: Matrix, asked: Sequence[bytes]) -> Timed:
    turn = cycle(asked)

    def once() -> float:
        vector = next(turn)
        began = perf_counter()
        cosines = np.einsum(
            "ij,j->i", matrix, _unit(vector)
        )  # @ would take both cores, as nothing of ours does
        best = np.argpartition(cosines, -_DEPTH)[-_DEPTH:]
        best[np.argsort(-cosines[best])].tolist()
        return perf_counter() - began

    return once


def _unit(vector: bytes) -> Matrix:
    numbers = np.frombuffer(vector, np.int8).astype(np.float32)
    return np.asarray(numbers / np.linalg.norm(numbers), np.float32)


def _units(rows: Matrix) -> Matrix:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _quantized(bare: apsw.Connection) -> tuple[NDArray[np.int64], Matrix]:
    rows = list(bare.execute(f"SELECT p.id, e.vector {_ALL}"))
    numbers = np.frombuffer(b"".join(vector for _, vector in rows), np.int8).reshape(len(rows), -1)
    return np.array([number for number, _ in rows]), _units(numbers.astype(np.float32))


def _exact(bare: apsw.Connection) -> Matrix:
    """The weighted mean of the vectors of each text's tokens: tacit.embed.static before it rounds."""
    folder = package_folder("wordllama")
    assert folder
    vocabulary = read_vocabulary(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    matrix = Weights(folder / "weights" / "l2_supercat_256.safetensors").table("embedding.weight").matrix()
    weights = np.array([static.weight(token, piece) for piece, token in vocabulary.items()], np.float32)
    matrix *= weights[:, None]
    away = np.array(static.AWAY or [0.0] * matrix.shape[1], np.float32)
    ids = Llama(vocabulary).ids
    means = []
    for text in _texts(bare):
        tokens = np.frombuffer(ids(text), np.uint16)
        means.append(matrix[tokens].sum(axis=0) / weights[tokens].sum() - away)
    return _units(np.array(means))


def _texts(bare: apsw.Connection) -> list[str]:
    sql = f"SELECT m.title, p.section, p.speaker, p.text {_ALL}"
    return [
        embedded_text(title, json.loads(section), speaker, text)
        for title, section, speaker, text in bare.execute(sql)
    ]
