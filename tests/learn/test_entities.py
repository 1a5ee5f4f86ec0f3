"""What a text is about, by the names in it."""

from __future__ import annotations

from tacit.learn.entities import NameIndex

PROJECTS = NameIndex(
    {
        "shop": "shop",
        "Web-Shop": "shop",
        "kiln log": "kilnlog",
        "shop admin": "admin",
        "窯場": "kiln",
        "x": "x",
    }
)


def test_a_name_counts_as_a_whole_word_in_any_case() -> None:
    assert PROJECTS.one_in("The SHOP is open") == "shop"
    assert PROJECTS.one_in("The workshop is open") is None
    assert PROJECTS.one_in("新しい窯場です") == "kiln"


def test_names_of_one_letter_name_nothing() -> None:
    assert PROJECTS.one_in("x marks it") is None


def test_two_that_are_named_are_none_and_two_names_of_one_are_one() -> None:
    assert PROJECTS.one_in("shop and kiln log") is None
    assert PROJECTS.one_in("shop, that is the web-shop") == "shop"
    assert [one for _, one in PROJECTS.all_in("kiln log before shop")] == ["kilnlog", "shop"]


def test_of_a_name_within_another_the_longer_counts() -> None:
    assert PROJECTS.one_in("the shop admin is slow") == "admin"


def test_no_names_name_nothing() -> None:
    assert NameIndex({}).one_in("shop") is None
