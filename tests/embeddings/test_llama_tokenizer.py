"""The tokenizer is our own; the one it has to equal is in the `tokenizers` package."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.embeddings import static_table
from tacit.embeddings.protocol import EmbedderError
from tacit.embeddings.static_table import LlamaTokenizer, read_vocabulary
from tacit.embeddings.weights import package_folder
from tests.hostile import hostile

FILE = (package_folder("wordllama") or Path()) / "tokenizers" / "l2_supercat_tokenizer_config.json"
VOCABULARY = read_vocabulary(FILE)
OURS = LlamaTokenizer(VOCABULARY)
SPECIAL = ("<s>", "</s>", "<unk>")


@pytest.fixture(scope="module")
def theirs() -> Callable[[str], list[int]]:
    tokenizers = pytest.importorskip("tokenizers", reason="it comes with wordllama, and is not there")
    tokenizer = tokenizers.Tokenizer.from_file(str(FILE))
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def plain(text: str) -> str:
    """Words parted by one space, none too long, without what the other one takes for control tokens."""
    for special in SPECIAL:
        text = text.replace(special, " ")
    text = "".join(" " if "\ud800" <= letter <= "\udfff" else letter for letter in text)
    return " ".join(word[:190] for word in text.replace("\u2581", " ").split())


def same(text: str, theirs: Callable[[str], list[int]]) -> bool:
    text = plain(text)
    return OURS.ids(text).tolist() == (theirs(text) if text else [])


def test_code_and_prose_have_the_same_tokens(theirs: Callable[[str], list[int]]) -> None:
    root = Path(tacit.__file__).parent.parent
    files = [*root.glob("tacit/**/*.py"), *root.glob("docs/**/*.md"), *root.glob("tests/**/*.py")]
    texts = [file.read_text("utf-8") for file in files]
    assert len(texts) > 100
    assert [text for text in texts if not same(text, theirs)] == []


def test_every_piece_alone_repeated_and_beside_others_has_the_same_tokens(
    theirs: Callable[[str], list[int]],
) -> None:
    pieces, dice = list(VOCABULARY), random.Random(5)
    some = dice.sample(pieces, 3000)
    texts = [*some, *(piece * 3 for piece in some), *(a + b for a, b in pairwise(some))]
    assert [text for text in texts if not same(text, theirs)] == []


SCRIPTS = {
    "latin": (0x21, 0x24F),
    "greek": (0x370, 0x3FF),
    "cyrillic": (0x400, 0x52F),
    "arabic": (0x600, 0x6FF),
    "devanagari": (0x900, 0x97F),
    "thai": (0xE00, 0xE7F),
    "kana": (0x3040, 0x30FF),
    "han": (0x4E00, 0x9FFF),
    "hangul": (0xAC00, 0xD7A3),
    "emoji": (0x1F300, 0x1FAFF),
    "digits": (0x30, 0x39),
    "signs": (0x21, 0x2F),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_has_the_same_tokens(script: str, theirs: Callable[[str], list[int]]) -> None:
    dice = random.Random(script)
    texts = [
        "".join(chr(dice.randint(*SCRIPTS[script])) if dice.random() > 0.2 else " " for _ in range(60))
        for _ in range(300)
    ]
    assert [text for text in texts if not same(text, theirs)] == []


@given(st.text() | hostile)
def test_any_text_has_the_same_tokens(theirs: Callable[[str], list[int]], text: str) -> None:
    assert same(text, theirs)


@given(st.text(st.characters()) | hostile)
def test_any_string_can_be_tokenized_and_no_word_is_lost(text: str) -> None:
    ids = OURS.ids(text)
    assert all(0 <= token < len(VOCABULARY) for token in ids)
    assert bool(ids) == bool(text.replace("\u2581", " ").split())


def test_white_space_of_any_kind_parts_words_alike() -> None:
    assert OURS.ids("red\n\n\tcar \u3000 boat\u2581") == OURS.ids("red car boat")


def test_control_tokens_written_in_a_note_are_plain_text() -> None:
    assert len(OURS.ids("</s>")) > 1
    assert len(OURS.ids("<0x0A>")) > 1


def test_a_word_without_end_is_cut_and_takes_no_place_in_memory() -> None:
    fresh = LlamaTokenizer(VOCABULARY)
    assert len(fresh.ids("x1" * 50_000)) >= 50_000
    assert not fresh._words


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_table, "_MAX_CACHED_WORDS", 10)
    fresh = LlamaTokenizer(VOCABULARY)
    for number in range(100):
        assert fresh.ids(f"w{number}") == OURS.ids(f"w{number}")
        assert len(fresh._words) <= 10


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", '{"vocab": ', '{"vocab": {}}', '{"vocab": {"a": 1}}', '{"vocab": {"a": "0"}}', "\xff"],
)
def test_a_file_without_a_vocabulary_is_told(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(EmbedderError, match="holds no vocabulary"):
        read_vocabulary(file)
    with pytest.raises(EmbedderError, match="holds no vocabulary"):
        read_vocabulary(tmp_path / "missing.json")


def test_only_the_vocabulary_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text('{"model": {"vocab": ' + json.dumps({"a": 0, "b": 1}) + ', "merges": [this is not parsed')
    assert read_vocabulary(file) == {"a": 0, "b": 1}
