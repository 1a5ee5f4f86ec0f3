"""Recall and speed of comparing signs first, against the cosine with every vector, by numpy.

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
from tacit.embeddings import static_table
from tacit.embeddings.static_table import LlamaTokenizer, read_vocabulary
from tacit.embeddings.weights import Weights, package_folder
from tacit.search.documents import embedded_text
from tacit.search.model import EVERYTHING
from tacit.search.sqlite.index import SqliteIndex, open_index

Matrix = NDArray[np.float32]
_DEPTH = 100
_ALL_PASSAGES = (
    "FROM passages p JOIN knowledge_meta m ON m.id = p.file JOIN embedded e USING(digest)"
    " WHERE e.vector IS NOT NULL ORDER BY p.id"
)
_TOLERANCE = 1e-6  # cosines that differ by less are equal


def measure(folder: Path) -> list[Measured]:
    del folder  # nothing is written
    file = searcher_of(corpus.indexed(MANY)).file
    vectors = [statements.vector for statements in all_asked(MANY)]
    bare = connected(file)
    ids, quantized = _read_quantized(bare)
    exact = _compute_exact(bare)
    bare.close()
    assert (quantized * exact).sum(axis=1).min() > 0.99, "these are not the vectors of the same texts"
    index = open_index(file)
    print(
        f"\nvectors: {len(ids):,} passages, {len(vectors)} questions, the share of the nearest that is found"
    )
    nearest = [[hit.id for hit in index.vectors.nearest(vector, EVERYTHING, _DEPTH)] for vector in vectors]
    remarks = []
    for name, matrix in (("quantized", quantized), ("exact", exact)):
        ten, hundred = (_measure_recall(nearest, vectors, ids, matrix, depth) for depth in (10, _DEPTH))
        remarks.append(f"{name} @10 {ten:.4f} @{_DEPTH} {hundred:.4f}")
        print(f"  against {remarks[-1]}")
    print()
    result = paired(
        f"vectors: the nearest {_DEPTH} of {len(ids):,}",
        "numpy, all in memory",
        _time_numpy(quantized, vectors),
        _time_index(index, vectors),
        samples=corpus.ASKED,
        warm=20,
    )
    index.close()
    return [replace(result, remark="recall: " + ", ".join(remarks))]


def _measure_recall(
    nearest: Sequence[Sequence[int]],
    vectors: Sequence[bytes],
    ids: NDArray[np.int64],
    matrix: Matrix,
    depth: int,
) -> float:
    """The share of the nearest that is found. A hit as near as the last of them counts too."""
    rows = {int(number): row for row, number in enumerate(ids)}
    right = 0
    for ids_found, vector in zip(nearest, vectors, strict=True):
        cosines = matrix @ _unit_vector(vector)
        threshold = np.partition(cosines, -depth)[-depth]
        right += sum(bool(cosines[rows[number]] >= threshold - _TOLERANCE) for number in ids_found[:depth])
    return right / (depth * len(vectors))


def _time_index(index: SqliteIndex, vectors: Sequence[bytes]) -> Timed:
    vector_cycle = cycle(vectors)

    def once() -> float:
        vector = next(vector_cycle)
        began = perf_counter()
        index.vectors.nearest(vector, EVERYTHING, _DEPTH)
        return perf_counter() - began

    return once


def _time_numpy(matrix: Matrix, vectors: Sequence[bytes]) -> Timed:
    vector_cycle = cycle(vectors)

    def once() -> float:
        vector = next(vector_cycle)
        began = perf_counter()
        cosines = np.einsum(
            "ij,j->i", matrix, _unit_vector(vector)
        )  # @ would take both cores, as nothing of ours does
        best = np.argpartition(cosines, -_DEPTH)[-_DEPTH:]
        best[np.argsort(-cosines[best])].tolist()
        return perf_counter() - began

    return once


def _unit_vector(vector: bytes) -> Matrix:
    numbers = np.frombuffer(vector, np.int8).astype(np.float32)
    return np.asarray(numbers / np.linalg.norm(numbers), np.float32)


def _unit_rows(rows: Matrix) -> Matrix:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def _read_quantized(bare: apsw.Connection) -> tuple[NDArray[np.int64], Matrix]:
    rows = list(bare.execute(f"SELECT p.id, e.vector {_ALL_PASSAGES}"))
    numbers = np.frombuffer(b"".join(vector for _, vector in rows), np.int8).reshape(len(rows), -1)
    return np.array([number for number, _ in rows]), _unit_rows(numbers.astype(np.float32))


def _compute_exact(bare: apsw.Connection) -> Matrix:
    """The weighted mean of the vectors of each text's tokens, before static_table rounds it."""
    folder = package_folder("wordllama")
    assert folder
    vocabulary = read_vocabulary(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    matrix = Weights(folder / "weights" / "l2_supercat_256.safetensors").table("embedding.weight").matrix()
    weights = np.array(
        [static_table.token_weight(token, piece) for piece, token in vocabulary.items()], np.float32
    )
    matrix *= weights[:, None]
    offset = np.array(static_table.MEAN_OFFSET or [0.0] * matrix.shape[1], np.float32)
    ids = LlamaTokenizer(vocabulary).ids
    means = []
    for text in _read_texts(bare):
        tokens = np.frombuffer(ids(text), np.uint16)
        means.append(matrix[tokens].sum(axis=0) / weights[tokens].sum() - offset)
    return _unit_rows(np.array(means))


def _read_texts(bare: apsw.Connection) -> list[str]:
    sql = f"SELECT m.title, p.section, p.speaker, p.text {_ALL_PASSAGES}"
    return [
        embedded_text(title, json.loads(section), speaker, text)
        for title, section, speaker, text in bare.execute(sql)
    ]
