from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.search.query import (
    MAX_QUERY_CHARS,
    MAX_TERMS,
    Query,
    Term,
    extract_intent,
    match_expression,
    parse_query,
)
from tacit.text.words import STOPWORDS, prepare_document
from tests.hostile import hostile

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)  # a Wednesday


def sought(text: object) -> list[str]:
    """The terms, those that are whole in angle brackets."""
    return [f"<{term.text}>" if term.whole else term.text for term in parse_query(text, NOW).terms]


@pytest.fixture(scope="module")
def finds() -> Callable[[str, str], bool]:
    """Whether the index finds a document by an expression."""
    apsw: Any = pytest.importorskip("apsw")
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize='porter unicode61 remove_diacritics 2')")

    def one(document: str, expression: str) -> bool:
        db.execute("DELETE FROM t")
        db.execute("INSERT INTO t VALUES (?)", (prepare_document(document),))
        return bool(list(db.execute("SELECT 1 FROM t WHERE t MATCH ?", (expression,))))

    return one


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Can you review the PR that just came in?", ["review", "PR", "came"]),
        ("What are my projects?", ["projects"]),
        ("What did we decide about the payment gateway?", ["decide", "payment", "gateway"]),
        ("Which docker registry does Acme use?", ["docker", "registry", "Acme", "use"]),
        ("is the server down?", ["server", "down"]),
        ("don't you know what’s up", ["know", "up"]),
        ("Was ist in Köln passiert?", ["köln", "passiert"]),
        ("Où est l'école de Marie ?", ["école", "Marie"]),
        ("¿Qué dijo el cliente?", ["dijo", "cliente"]),
        ("dov'è la chiave dell'ufficio", ["chiave", "ufficio"]),
        ("Waar is het rapport van gisteren?", ["rapport", "gisteren"]),
        ("Who is Bashir's wife?", ["Bashir", "wife"]),
        ("the war, the son, a hat: will they die?", ["war", "son", "hat", "die"]),
        ("gateway Gateway GATEWAY", ["gateway"]),
        ("and/or either", ["and/or", "either"]),
    ],
)
def test_words_that_tell_something_are_kept(text: str, terms: list[str]) -> None:
    assert sought(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("what is it?", ["what", "is", "it"]),
        ("don't", ["don't"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ("yesterday?", ["yesterday"]),
        ("What did we do two weeks ago?", ["two", "weeks", "ago"]),
    ],
)
def test_if_nothing_tells_the_common_words_are_kept(text: str, terms: list[str]) -> None:
    assert sought(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("file-based memory", ["<file-based>", "file", "based", "memory"]),
        ("#34", ["<hash034>", "34"]),
        ("C++", ["<cplusplus>"]),
        ("C# or .NET", ["<csharp>", "<dotnet>", "NET"]),
        ("qwen3-coder:30b", ["<qwen3-coder:30b>", "qwen3", "coder", "30b"]),
        ("src/app.py", ["<src/app.py>", "src", "app", "py"]),
        ("v1.2.3", ["<v1.2.3>", "v1"]),
        ("user@host", ["<user@host>", "user", "host"]),
        ("snake_case", ["<snake_case>", "snake", "case"]),
        ("getUserName()", ["<getUserName>", "get", "User", "Name"]),
        ("--no-verify", ["<flag0noverify>", "<no-verify>", "verify"]),
        ("qwen3", ["<qwen3>"]),
        ("to-do", ["<to-do>"]),
        ("https://example.org/a/b?x=1", ["<https://example.org/a/b>", "https", "example", "org", "<x=1>"]),
        ("O'Brien", ["<O'Brien>", "Brien"]),
        ("C, R, Go and UI", ["C", "R", "Go", "UI"]),
        ("on 2026-05-04", ["<2026-05-04>", "2026", "05", "04"]),
    ],
)
def test_identifiers_are_whole_and_their_parts_follow(text: str, terms: list[str]) -> None:
    assert sought(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ('the "night jar" relay', ["<night jar>", "night", "jar", "relay"]),
        ("“night jar”", ["<night jar>", "night", "jar"]),
        ("„night jar“", ["<night jar>", "night", "jar"]),
        ("« night jar »", ["<night jar>", "night", "jar"]),
        ("`night jar`", ["<night jar>", "night", "jar"]),
        ("the 'night jar'", ["<night jar>", "night", "jar"]),
        ('"to be"', ["<to be>"]),
        ('jar "jar"', ["<jar>"]),
        ('an open " quote', ["open", "quote"]),
        ('"" "  " "?!"', []),
    ],
)
def test_quoted_words_are_looked_for_together(text: str, terms: list[str]) -> None:
    assert sought(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("支付网关", ["支付", "付网", "网关"]),
        ("東京タワーの場所", ["東京", "京タ", "タワ", "ワー", "ーの", "の場", "場所"]),
        ("猫", ["猫"]),
        ("使用qwen3-coder模型", ["使用", "<qwen3-coder>", "qwen3", "coder", "模型"]),
        ("“全文検索”", ["<全文 文検 検索>", "全文", "文検", "検索"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
    ],
)
def test_scripts_without_spaces_and_marks(text: str, terms: list[str]) -> None:
    assert sought(text) == terms


def test_capitals_make_a_common_word_tell() -> None:
    assert sought("is IT in the US") == ["IT", "US"]
    assert sought("did Will meet us in May?") == ["Will", "meet", "May"]
    assert sought("Will it rain? May I?") == ["rain"]
    assert sought("WHAT DID IT SAY") == ["SAY"]


def test_words_that_only_say_when_are_not_looked_for() -> None:
    assert sought("what did Ana report two weeks ago?") == ["Ana", "report"]
    assert sought("what did Ana report last Tuesday?") == ["Ana", "report", "last", "Tuesday"]
    assert [term.text for term in parse_query("what did Ana report two weeks ago?").terms][-1] == "ago"


def test_of_too_many_terms_the_telling_ones_stay_in_order() -> None:
    many = " ".join(f"{chr(97 + n // 26)}{chr(97 + n % 26)}x" for n in range(100))
    terms = sought(f"{many} ask 42 about Acme and src/app.py considering everything")
    assert len(terms) == MAX_TERMS
    kept = ["42", "Acme", "<src/app.py>", "considering", "everything"]
    assert [term for term in terms if term in kept] == kept
    assert terms[0] == "aax"


def test_a_long_path_is_looked_for_by_its_parts() -> None:
    path = "/".join(f"folder{chr(97 + n)}" for n in range(26))
    assert all(not term.whole for term in parse_query(path).terms)
    assert len(parse_query(path).terms) == 26


@pytest.mark.parametrize(
    "text", [None, 5, b"payment", ["payment"], object(), "", " ", "?!", "🔥", "---", "\ud800", "\0"]
)
def test_what_is_no_question_has_no_terms(text: object) -> None:
    asked = parse_query(text, NOW)
    assert (asked.terms, asked.days, asked.names) == ((), None, ())
    assert match_expression(asked.terms) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  fix \n\n this\t", "fix this"),
        ("fix this\n```py\nfoo()\n```\n> old\nplease", "fix this please"),
        ("fix ```foo()``` please", "fix please"),
        ("```py\nfoo()\n```", "foo()"),
        ("> quoted", "> quoted"),
        ("> quoted\n```\nfoo()\n```", "> quoted"),
        ("a\0b\ud800c", "a b c"),
        ("word " * 1000, ("word " * 400).strip()),
        ("x" * 5000, "x" * MAX_QUERY_CHARS),
    ],
)
def test_the_text_is_what_somebody_said(text: str, said: str) -> None:
    assert parse_query(text).text == said


def test_terms_come_from_what_somebody_said() -> None:
    assert sought("fix this\n```py\nfoo()\n```\n> quoted words") == ["fix"]


def test_days_are_looked_for_when_it_is_known_what_day_it_is() -> None:
    asked = parse_query("what did we do yesterday?", NOW)
    assert asked.days is not None
    assert asked.days.first == asked.days.last == date(2026, 5, 12)
    assert parse_query("what did we do yesterday?").days is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("what did ANA RUIZ say?", ("Ana Ruiz",)),
        ("what did ana say?", ("Ana Ruiz",)),
        ("Ana's plan", ("Ana Ruiz",)),
        ("the banana", ()),
        ("Ruiz?", ()),
        ("the Night Jar Relay in Koln", ("night jar relay", "Köln")),
        ("late at night", ()),
        ("something new", ()),
        ("relay night jar", ()),
        ("Köln, then Ana", ("Köln", "Ana Ruiz")),
        ("山田太郎はどこ", ("山田",)),
        ("a file-based thing", ("file-based",)),
    ],
)
def test_known_names_are_noticed(text: str, names: tuple[str, ...]) -> None:
    known = {"Ana Ruiz", "night jar relay", "Köln", "New York", "山田", "file-based", "", "?"}
    assert parse_query(text, names=known).names == names


def test_a_known_name_is_looked_for_whole_and_is_never_a_common_word() -> None:
    asked = parse_query("will the night jar relay work", names=["night jar relay", "Will"])
    assert asked.terms[:2] == (Term("will"), Term("night jar relay", True))


def test_match_quotes_and_joins() -> None:
    assert match_expression([Term("a"), Term("b c", True)]) == '"a" OR "b c"'
    assert match_expression([Term('a"b')]) == '"a""b"'
    assert match_expression([Term("猫"), Term("東京")]) == '"猫"* OR "東京"'
    assert match_expression([]) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, None),
        (5, None),
        ("", None),
        ("too short", None),
        ("long enough", "long enough"),
        ("```\nall of it is code\n```", None),
        ("> all of it is quoted", None),
        ("look at this\n```\nfoo\n```\n> and that\n  again ", "look at this again"),
        ("你好吗", None),
        ("数据库呢？", "数据库呢？"),
        ("数据库呢", "数据库呢"),
        ("word " * 100, ("word " * 56).strip()),
        ("x" * 300, "x" * 280),
    ],
)
def test_intent(text: object, said: str | None) -> None:
    assert extract_intent(text) == said


def test_no_stop_word_is_a_content_word_of_english() -> None:
    content = (
        "die war hat bin man den son pour plus comment par car ai sin era hay con come dove door want os ci"
    )
    assert STOPWORDS.isdisjoint(content.split())
    assert all(word == word.casefold() and "’" not in word for word in STOPWORDS)


# With the real index.


@pytest.mark.parametrize(
    ("document", "question"),
    [
        ("We moved the payment gateways to Acme.", "What did we decide about the payment gateway?"),
        ("A file-based memory", "file-based memory"),
        ("Fixed in #34.", "#34"),
        ("Written in C++17.", "C++"),
        ("Das Treffen in Köln", "koln"),
        ("Das Treffen in Koln", "Köln"),
        ("我的猫很可爱", "猫"),
        ("他有一只猫", "猫"),
        ("我们把支付网关迁移了", "支付网关"),
        ("東京タワーに行った", "タワー"),
        ("calls getUserName() first", "user name"),
        ("the user name is set", "getUserName"),
        ("run get_user_name", "getUserName"),
        ("ＡＢＣ", "abc"),
        ("Die Straße", "STRASSE"),
        ("don't", "don’t"),
        ("set $HOME", "$HOME"),
        ("ข้อมูลภาษาไทย", "ภาษา"),
    ],
)
def test_a_question_finds_its_answer(document: str, question: str, finds: Callable[[str, str], bool]) -> None:
    assert finds(document, match_expression(parse_query(question).terms))


def test_a_symbol_tells_apart(finds: Callable[[str, str], bool]) -> None:
    for document, question in (("plain C", "C++"), ("34 things", "#34"), ("the home", "$HOME")):
        whole = [term for term in parse_query(question).terms if term.whole]
        assert whole
        assert not finds(document, match_expression(whole))


PIECES = st.sampled_from(
    [
        "C++",
        "C#",
        "#34",
        ".env",
        "--no-verify",
        "$HOME",
        "@ana",
        "中文検索",
        "猫",
        "ภาษาไทย",
        "ខ្មែរ",
        "한국어",
        "हिन्दी",
        "don't",
        "l'école",
        "O'Brien",
        "night-jar",
        '"night',
        "`jar",
        "src/app.py",
        "v1.2.3",
        "getUserName",
        "HTTPServer",
        "Straße",
        "Ａ",
        "ﬁ",
        "é",
        "é",
        "ё",
        "Ά",
        "ς",
        "العَرَبِيَّة",
        "İ",
        "½",
        "²",
        "🥳",
        "₽500",
        "\xad",
        "\u200d",
        "(",
        ")",
        "[x](#y)",
        "#",
        "##",
        "---",
        "**",
        "<",
        ">",
        ",",
        ".",
        ":",
        "/",
        "-",
        "_",
        "'",
        "’",
        "«",
        "»",
        "“",
        "”",
        "the",
        "yesterday",
    ]
)
WRITTEN = st.one_of(
    st.characters(max_codepoint=0x17F),
    st.characters(min_codepoint=0x391, max_codepoint=0x3C9, categories=["Lu", "Ll"]),
    st.characters(min_codepoint=0x410, max_codepoint=0x44F),
    st.characters(min_codepoint=0xE01, max_codepoint=0xE3A),
    st.characters(min_codepoint=0x3041, max_codepoint=0x3096),
    st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
    st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3),
    st.characters(min_codepoint=0x1F300, max_codepoint=0x1F9FF, categories=["So", "Sk"]),
    st.sampled_from("\ud800\udfff\0\u2028\u200b…—"),
)
TEXTS = st.lists(st.one_of(PIECES, st.text(WRITTEN, max_size=5), st.sampled_from(" \n")), max_size=12).map(
    "".join
)


@given(TEXTS)
def test_every_term_of_a_document_finds_the_document(finds: Callable[[str, str], bool], text: str) -> None:
    for term in parse_query(text, NOW).terms:
        assert finds(text, match_expression([term])), term


@given(st.one_of(hostile, TEXTS))
def test_the_index_takes_every_expression(finds: Callable[[str, str], bool], text: str) -> None:
    expression = match_expression(parse_query(text, NOW, ["Ana Ruiz", text[:5]]).terms)
    if expression:
        finds(text, expression)


@given(st.one_of(hostile, TEXTS, st.none(), st.integers(), st.binary(), st.lists(st.text())))
def test_nothing_raises_and_terms_are_ready_to_be_quoted(text: object) -> None:
    asked = parse_query(text, NOW, ["Ana Ruiz", "中", "\ud800"])
    folded = [term.text.casefold() for term in asked.terms]
    assert isinstance(asked, Query)
    assert len(asked.text) <= MAX_QUERY_CHARS
    assert len(folded) <= MAX_TERMS
    assert len(set(folded)) == len(folded)
    assert all('"' not in term and "\0" not in term and term.strip() == term for term in folded)
    assert all(any(letter.isalnum() or "\ue000" <= letter <= "\uf8ff" for letter in term) for term in folded)
    said = extract_intent(text)
    assert said is None or 4 <= len(said) <= 280


@given(st.text(st.characters(categories=["L"]), min_size=1))
def test_no_question_with_words_is_left_without_terms(text: str) -> None:
    assert parse_query(text).terms


@pytest.mark.parametrize(
    "unit", ["a ", "a-", "'", '"a', "中a", "の", "l'", "\u0301\u0327", "aB", "```", "> ", "\n", "~~~\n"]
)
def test_a_long_text_is_read_to_twenty_thousand_characters(unit: str) -> None:
    assert parse_query((unit * 100_000) + " beyond").terms == parse_query(unit * 20_000).terms
