"""Settings as people write them for hosts."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.hosts.openclaw import json5


def test_comments_trailing_commas_quotes_and_bare_names_are_read() -> None:
    text = """\ufeff// mine
    {
      a: 'it\\'s', "b": [1, .5, +2, -0x10, 1e3, 5.,], /* two
      lines */ $c: "a line \\
that goes on", ünder_score: true, n: null, // end
    }
    """
    assert json5.parse(text) == {
        "a": "it's",
        "b": [1, 0.5, 2, -16, 1000.0, 5.0],
        "$c": "a line that goes on",
        "ünder_score": True,
        "n": None,
    }
    assert not json5.is_plain(text)


def test_a_slash_inside_text_is_no_comment() -> None:
    assert json5.parse("{url: 'http://127.0.0.1/v1', b: \"/* no */\"}") == {
        "url": "http://127.0.0.1/v1",
        "b": "/* no */",
    }


def test_escapes_make_the_characters_that_they_mean() -> None:
    assert json5.parse(r"'\x41\u00e4\n\q\0\ud83d\ude00'") == "Aä\nq\0😀"


def test_numbers_beyond_all_numbers_are_numbers() -> None:
    low, none = json5.parse("[-Infinity, NaN]")
    assert low == -math.inf
    assert math.isnan(none)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{a 1}", "line 1: ':' is missing"),
        ("[1 2]", "line 1: ',' is missing"),
        ("{\n a: }", "line 2: a value is missing"),
        ("{a: 1} x", "line 1: something stands behind the end"),
        ("[truex]", "line 1: 'truex' is no value"),
        ("'open", "line 1: a value is missing"),
        ("{1: 2}", "line 1: a name is missing"),
        ("", "line 1: a value is missing"),
        ("[" * 5000, "line 1: it is nested too deeply"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=f"^{what}$".replace("(", "\\(")):
        json5.parse(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_what_is_json_reads_the_same_with_a_comment_before_it(value: Any) -> None:
    assert json5.parse("// a comment\n" + json.dumps(value)) == value
