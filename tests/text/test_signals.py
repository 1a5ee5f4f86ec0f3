from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text.signals import find_code_blocks, find_urgency, find_urls, normalize_language


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("```python\nx = 1\n```", ["python"]),
        ("Look:\n```py title=a.py\nx\n```\nand\n~~~ts\ny\n~~~", ["python", "typescript"]),
        ("```\nls\n```", [""]),
        ("```{.bash}\nls\n```", ["bash"]),
        ("So:\n    for x in y:\n        print(x)\n    return z(1)\n", [""]),
        ("\tint a;\n\tint b;\n\treturn a + b;", [""]),
        ("    - milk (two)\n    - eggs = 6\n    - flour;", []),
        ("    A quiet line\n    and another\n    and a third", []),
        ("    x = 1\n\n    y = 2", []),
        ("`inline` and ``more``", []),
        ("", []),
    ],
)
def test_code_is_fenced_or_three_indented_lines_that_look_like_it(text: str, blocks: list[str]) -> None:
    assert find_code_blocks(text) == blocks


def test_a_programming_language_has_one_name() -> None:
    assert (
        normalize_language("PY") == normalize_language("python3") == normalize_language("Python") == "python"
    )
    assert normalize_language("c++") == "cpp"
    assert normalize_language("brainfuck") == "brainfuck"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://github.com/a/b/pull/3.", ["//github.com/a/b/pull/3"]),
        ("(https://www.GitHub.com/A)", ["//github.com/A"]),
        ("https://en.wikipedia.org/wiki/Kiln_(oven)", ["//en.wikipedia.org/wiki/Kiln_(oven)"]),
        ("https://user@evil.example/x", ["//evil.example/x"]),
        ("https://github.com@evil.example/x", ["//evil.example/x"]),
        ("try github.com/a/b", ["github.com/a/b"]),
        ("mail ana@github.com", []),
        ("https://localhost:8080/x", ["//localhost:8080/x"]),
        ("これ https://例え.jp/道。", ["//例え.jp/道"]),
        ("no address", []),
    ],
)
def test_addresses_are_found_without_what_stands_around_them(text: str, found: list[str]) -> None:
    assert find_urls(text) == found


@pytest.mark.parametrize(
    "text",
    ["The shop is down!!!", "URGENT: call me", "need this asap", "Bitte SOFORT melden",
     "das ist dringend", "C'est urgent",
     "緊急です", "至急お願いします", "这件事很紧急", "马上来", "THE SERVER IS DOWN",
     "what?!?!", "срочно нужна помощь", "긴급 상황"],
)  # fmt: skip
def test_urgency_shows(text: str) -> None:
    assert find_urgency(text)


@pytest.mark.parametrize(
    "text",
    ["All fine!", "It is not urgent", "das ist nicht dringend",
     "The API returns JSON and XML over HTTP to us", "insurgents", "OK", "IBM AND",
     "What?!", "不紧急", "", "die Dringlichkeit"],
)  # fmt: skip
def test_calm_is_not_urgent(text: str) -> None:
    assert find_urgency(text) == ""


@given(st.text(alphabet="ab.-/:@! `\n\tA(", max_size=300))
def test_any_text_can_be_looked_at(text: str) -> None:
    find_code_blocks(text), find_urls(text), find_urgency(text)
