from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text import tokens
from tacit.text.tokens import count


def test_words_are_counted_as_o200k_does() -> None:
    assert count("hello world") == 2


def test_nothing_costs_nothing() -> None:
    assert count("") == 0


def test_a_control_token_written_in_a_note_is_plain_text() -> None:
    assert count("<|endoftext|>") == 7


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_can_be_counted(text: str) -> None:
    assert count(text) <= 4 * len(text)


def test_lone_surrogates_and_nul_can_be_counted() -> None:
    assert count("a\ud800b\udce9\0") > 0


def test_cutting_prose_changes_nothing() -> None:
    prose = "".join(
        f"Note {n}: the deploy took {n * 7} minutes, and Anna's fix held.\n\n" for n in range(2000)
    )
    whole = tokens._tokenizer().encode_ordinary(prose)
    assert count(prose) == len(whole)


def test_cutting_one_long_word_counts_hardly_more() -> None:
    word = "abcdefghij" * 10_000
    whole = len(tokens._tokenizer().encode_ordinary(word))
    assert whole <= count(word) <= whole + 2 * (len(word) // 4096)


@pytest.mark.parametrize("unit", ["a", " ", "\n", "😀", "\u0301", "\0", "=", "\ud800"], ids=ascii)
def test_five_megabytes_of_one_character_are_counted(unit: str) -> None:
    assert count(unit * 5_000_000) > 0


def test_threads_that_come_first_together_load_it_once() -> None:
    tokens._load.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(count, ["one two three"] * 32)) == {3}
    assert tokens._load.cache_info().misses == 1


def test_counting_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a socket was asked for")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    tokens._load.cache_clear()
    assert count("offline") == 1


def test_counting_needs_no_network_in_native_code_either() -> None:
    """A replaced `socket.socket` would not stop the tokenizer, which is not written in Python."""
    told = subprocess.run([sys.executable, "-c", _NO_DESCRIPTORS], capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stdout.strip()) == (0, "2"), told.stderr


# A network namespace would need rights; a limit of no further file descriptors needs none, and without a
# descriptor there is no socket, nor a downloaded file. The imports come first, since they open files.
_NO_DESCRIPTORS = """
import resource, splintr
from tacit.text.tokens import count
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
try:
    import socket
    socket.socket()
except OSError:
    print(count("hello world"))
"""


def test_the_tokenizer_is_loaded_only_when_asked() -> None:
    script = "import sys, tacit.text.tokens; print('splintr' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert told.stdout.strip() == "False"
