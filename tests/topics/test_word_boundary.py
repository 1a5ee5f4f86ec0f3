from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.text.words import UNSPACED_RUN
from tacit.topics.word_boundary import add_boundaries, is_outside

re2 = pytest.importorskip("re2")


def found(form: str, text: str) -> bool:
    options = re2.Options()
    options.case_sensitive = False
    return re2.compile(form, options).search(text) is not None


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("email|inbox|mail", ["my mail", "Inbox!", "(email)"], ["blackmail", "mailbox", "e_mail", "émail"]),
        (r"\b(email|inbox|mail)\b", ["my mail", "メールmailメール"], ["blackmail", "mailé", "ümail"]),
        ("PR", ["PR", "このPRを見て"], ["PRs", "sPR", "PRé"]),
        ("receipts?", ["receipt", "the receipts."], ["receiptss", "receiptä"]),
        ("Übung", ["Übung", "die übung."], ["Vorübung", "Übungen"]),
        (r"\bÜbung\b", ["Übung", "die übung."], ["Vorübung", "Übungen"]),
        (r"\bпочта\b", ["почта", "моя Почта!"], ["почтальон", "непочта"]),
        ("почт(а|у)", ["почту", "моя Почта!"], ["почтальон", "непочта"]),
        ("caf|café", ["café", "caf"], ["cafés", "cafés"]),
        ("緊急", ["これは緊急です", "緊急"], ["緊 急"]),
        ("(PR|緊急)", ["PR", "これは緊急です"], ["PRs"]),
        (r"\b(PR|緊急)\b", ["PR", "これは緊急です"], ["PRs"]),
        (r"C\+\+", ["C++", "C++11", "in c++"], ["VC++"]),
        ("!!!", ["wow!!!", "!!!"], ["!!"]),
        (r"\bdeploy", ["deployment", "deploy"], ["redeploy", "éDeploy"]),
        (r"^hello", ["hello world", "helloworld"], ["say hello"]),
        (r"bug$", ["debug", "a bug"], ["bugs"]),
        ("/mail/i", ["blackmail", "MAIL"], ["ma il"]),
        ("(?i)mail|post", ["MAIL"], ["blackmail"]),
        ("(foo|bar)+", ["foobar", "foo"], ["foobarx"]),
        (r"[a-z]+ing", ["walking"], ["walkings"]),
        (r"a\\b", ["a\\b"], ["a\\bc", "xa\\b"]),
        (r"\Qa.b\E", ["a.b"], ["xa.b", "a.bc", "axb"]),
        (r"x{2,3}", ["xx", "xxx"], ["xxxx", "x"]),
        (r"[^x]y", ["ay"], ["xy", "ayb"]),
        ("नमस्ते", ["नमस्ते जी"], ["नमस्तेजी"]),
    ],
)
def test_whole_words_are_meant_unless_a_pattern_says_otherwise(
    pattern: str, yes: list[str], no: list[str]
) -> None:
    forms = add_boundaries(pattern)
    assert [text for text in yes if not found(forms.exact, text)] == []
    assert [text for text in no if found(forms.exact, text)] == []
    assert [text for text in yes if not found(forms.loose, text)] == []


@pytest.mark.parametrize("pattern", ["(a", "a)", "*", "[a", "(" * 60 + "a" + ")" * 60, "(?P<n>a", "\\"])
def test_a_pattern_that_cannot_be_read_stays_as_it_is(pattern: str) -> None:
    assert add_boundaries(pattern)[:2] == (pattern, pattern)


PIECES = st.sampled_from(
    ["mail", "Post", "ü", "é", "急", "中文", "(", ")", "(?:", "|", "?", "+", "*", r"\b", r"\d", r"\w",
     "[a-zé]", "[^b]", " ", ".", "!", r"\.", "^", "$", "{2}", "1", "_", "д", r"\pL", "(?i)"]
)  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(["mail", "post", "ü", "é", "急", "中文", " ", ".", "!", "1", "_", "д", "b", "mailü"]),
    max_size=8,
).map("".join)


@given(st.lists(PIECES, max_size=6).map("".join), TEXTS)
def test_what_the_exact_form_finds_the_loose_form_finds(pattern: str, text: str) -> None:
    forms = add_boundaries(pattern)
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error:
        return
    if found(forms.exact, text):
        assert found(forms.loose, text)


@pytest.mark.parametrize("script", ["Latin", "Greek", "Cyrillic", "Arabic", "Hebrew", "Devanagari"])
def test_letters_of_scripts_with_spaces_belong_to_words(script: str) -> None:
    names = f"{script.upper()} "
    letters = [
        chr(code)
        for code in range(0x3000)
        if unicodedata.name(chr(code), "").startswith(names) and unicodedata.category(chr(code))[0] == "L"
    ]
    assert len(letters) > 20
    assert [letter for letter in letters if is_outside(letter)] == []


@given(st.characters(max_codepoint=0xFFFF, categories=["Zs", "Po", "Ps", "Pe", "Sc", "Cc"]))
def test_spaces_and_marks_of_the_common_scripts_end_a_word(character: str) -> None:
    in_use = (range(0x700), range(0x2000, 0x2C00), range(0x2E00, 0x3100), range(0xFE00, 0x10000))
    assert is_outside(character) or not any(ord(character) in block for block in in_use)


@given(st.characters(max_codepoint=0xFFFF))
def test_scripts_without_spaces_end_a_word(character: str) -> None:
    if UNSPACED_RUN.match(character) and not 0xA9E0 <= ord(character) <= 0xAA7F:
        assert is_outside(character)
