from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text.words import (
    clean,
    find_aliases,
    fold,
    is_unspaced,
    prepare_document,
    prepare_query,
    split_camel_case,
)
from tests.hostile import hostile


def added(text: str) -> list[str]:
    """What `indexable` puts at the end of a text that it does not change otherwise."""
    fed = prepare_document(text)
    assert fed.startswith(text)
    return fed[len(text) :].split()


@pytest.fixture(scope="module")
def tokens() -> Callable[[str], list[str]]:
    """The words that the index makes of a text."""
    apsw: Any = pytest.importorskip("apsw")
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61 remove_diacritics 2')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")

    def of(text: str) -> list[str]:
        db.execute("DELETE FROM t")
        db.execute("INSERT INTO t VALUES (?)", (text,))
        return [row[0] for row in db.execute("SELECT term FROM v ORDER BY offset")]

    return of


@pytest.mark.parametrize(
    "text",
    [
        "",
        "We moved the payment gateway on Tuesday.",
        "# Heading\n## Another\n\n---\n\n- **bold** and *thin*\n1. one\n",
        "| a | b |\n|---|:--|\n",
        "[there](#anchor) &#39; a#b page/#part ####",
        "ana@example.org *.py ..up 3.5 end.Next -v a--b <!--x--> PRs and IDs",
        "$5 and $ 5, i++ and a ++ b, C+++",
        "snake_case __init__ CONSTANT_NAME",
    ],
)
def test_ordinary_text_and_markdown_stay_as_they_are(text: str) -> None:
    assert prepare_document(text) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("C++", ["cplusplus"]),
        ("in c++17, g++ and Clang++", ["cplusplus", "gplusplus", "clangplusplus"]),
        ("C# and F#.", ["csharp", "fsharp"]),
        (".NET, `.env` and ~/.config", ["dotnet", "dotenv", "dotconfig"]),
        ("closes #34 (#35)", ["hash034", "hash035"]),
        ("#tag", ["hash0tag"]),
        ("ask @ana_r", ["at0anar"]),
        ("$HOME and ${PATH}", ["dollar0home", "dollar0path"]),
        ("git commit --no-verify --amend", ["flag0noverify", "flag0amend"]),
        ("#34 #34", ["hash034"]),
    ],
)
def test_a_name_with_a_symbol_gets_a_word_of_its_own(text: str, words: list[str]) -> None:
    assert added(text) == words
    assert list(dict.fromkeys(alias.word for alias in find_aliases(text))) == words


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("getUserName", ["get", "User", "Name"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("parseHTTPResponse2Json", ["parse", "HTTP", "Response", "Json"]),
        ("on GitHub", ["Git", "Hub"]),
        ("iPhone", ["Phone"]),
        ("my_fooBar.bazQux()", ["foo", "Bar", "baz", "Qux"]),
        ("PRs, IDs, APIs, Word, WORD, word", []),
        ("k" + "eY" * 40, []),
    ],
)
def test_camel_case_comes_apart(text: str, parts: list[str]) -> None:
    assert list(dict.fromkeys(split_camel_case(text))) == parts
    assert added(text) == parts


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("全文検索", "全文 文検 検索"),
        ("猫", "猫"),
        ("我用Python编程", "我用 python 编程"),
        ("東京タワー、大阪", "東京 京タ タワ ワー 、 大阪"),
        ("한국어 검색", "한국 국어 검색"),
        ("ภาษาไทย", "ภา าษ ษา าไ ไท ทย"),
        ("ﾊﾟｿｺﾝ", "パソ ソコ コン"),
    ],
)
def test_scripts_without_spaces_become_pairs(text: str, pairs: str) -> None:
    assert prepare_query(text).split() == pairs.split()
    assert is_unspaced(clean(text))


def test_the_marks_of_thai_and_khmer_do_not_cut_pairs(tokens: Callable[[str], list[str]]) -> None:
    for text in ("เก็บข้อมูล", "ខ្មែរ", "မြန်မာ", "ລາວ"):
        assert {len(token) for token in tokens(prepare_query(text))} == {2}


def test_the_last_letter_of_a_run_is_added_for_documents_only() -> None:
    assert prepare_document("我的猫").split() == ["我的", "的猫", "猫"]
    assert prepare_query("我的猫").split() == ["我的", "的猫"]
    assert prepare_document("猫").split() == ["猫"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Köln", unicodedata.normalize("NFD", "Köln")),
        ("ABC 123", "ＡＢＣ　１２３"),
        ("fine", "ﬁne"),
        ("Straße", "STRASSE"),
        ("ΟΔΌΣ", "οδος"),
        ("ёлка", "Елка"),
        ("cooperate", "co\u00adoperate"),
        ("العَرَبِيَّة", "العربية"),
        ("שָׁלוֹם", "שלום"),
        ("が", "か\u3099"),
        ("한", unicodedata.normalize("NFD", "한")),
        ("done", "done🥳"),
        ("500", "₽500"),
        ("İstanbul", "istanbul"),
        ("C++", "Ｃ＋＋"),
        ("Crème Brûlée", "creme brulee"),
    ],
)
def test_what_looks_the_same_is_the_same_to_the_index(
    one: str, other: str, tokens: Callable[[str], list[str]]
) -> None:
    assert tokens(prepare_document(one)) == tokens(prepare_document(other)) != []


def test_what_the_database_refuses_becomes_a_space() -> None:
    assert prepare_document("a\0b") == "a b"
    assert prepare_document("a\ud800b\udfffc é") == "a b c é"
    assert prepare_document("\0\ud800").strip() == ""


def test_names_compare_without_case_and_accents() -> None:
    assert fold("José ÁLVAREZ") == fold("jose alvarez") == "jose alvarez"
    assert fold("각") != fold("가")


@given(hostile)
def test_any_text_can_be_stored(text: str) -> None:
    for made in (prepare_document(text), prepare_query(text), clean(text), fold(text)):
        assert "\0" not in made
        made.encode()


@given(hostile)
def test_composed_or_not_makes_no_difference(text: str) -> None:
    text = text.replace("\0", " ").encode("utf-8", "replace").decode()
    assert clean(unicodedata.normalize("NFD", text)) == clean(unicodedata.normalize("NFC", text))


@given(hostile)
def test_cleaning_again_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(codec="ascii")))
def test_ascii_only_grows_at_the_end(text: str) -> None:
    assert prepare_document(text).startswith(text.replace("\0", " "))


@pytest.mark.parametrize(
    "unit", ["aA", "c++ ", "#", "--a", "$a_", "e\u0301", "\u0300\u0327", "中", "ก็", "\ud800"]
)
def test_ten_thousand_times_anything_gives_no_more_than_it_should(unit: str) -> None:
    """Mostly here to end at all: marks in disorder once took the square of their number."""
    text = unit * 50_000
    assert len(prepare_document(text)) <= 3 * len(text) + 100
