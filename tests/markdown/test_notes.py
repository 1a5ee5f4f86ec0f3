from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from enum import StrEnum
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.errors import StoreError
from tacit.markdown import frontmatter
from tacit.markdown.notes import Note, decode, encode, find_title, parse, set_fields
from tacit.text import yaml_reader
from tacit.text.yaml_reader import MAX_DEPTH, YamlError, YamlFinding, to_value


def headed(yaml: str, body: str = "body\n") -> Note:
    return parse(f"---\n{yaml}\n---\n{body}")


# Bytes


@given(st.binary())
def test_every_byte_string_comes_back(data: bytes) -> None:
    assert encode(decode(data)) == data


@given(st.text())
def test_every_text_can_be_written_as_utf8(text: str) -> None:
    assert encode(text).decode("utf-8") == text


def test_half_a_character_becomes_the_replacement_character() -> None:
    assert encode("a\ud800b\udfffc\udc00") == "a\ufffdb\ufffdc\ufffd".encode()


def test_two_halves_that_meet_become_the_character() -> None:
    assert encode("\ud83d" + "\ude00") == "😀".encode()
    assert encode("\ud83d" + "\udc80") == "💀".encode()


def test_bytes_that_are_not_utf8_stay_beside_halves() -> None:
    assert encode(decode(b"\xff") + "\ud800") == b"\xff\xef\xbf\xbd"


@given(st.text(alphabet=st.characters(categories=["Cs"]) | st.characters(), max_size=20))
def test_any_string_at_all_can_be_encoded(text: str) -> None:
    assert encode(decode(encode(text))) == encode(text)


# Head and body


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("---\na: 1\n---\nbody", "---\na: 1\n---\n"),
        ("\ufeff---\r\na: 1\r\n---\r\nbody\r\n", "\ufeff---\r\na: 1\r\n---\r\n"),
        ("---\ra: 1\r---\rbody\r", "---\ra: 1\r---\r"),
        ("---  \na: 1\n--- \t\nbody", "---  \na: 1\n--- \t\n"),
        ("---\n---\nbody", "---\n---\n"),
        ("---\n\n---\n", "---\n\n---\n"),
        ("---\na: 1\n---", "---\na: 1\n---"),
        ("---\na: 1\n---\n---\nb: 2\n---\n", "---\na: 1\n---\n"),
        ("---\na: |\n  ---\n---\nx", "---\na: |\n  ---\n---\n"),
        ("", ""),
        ("body\n---\na: 1\n---\n", ""),
        ("\n---\na: 1\n---\n", ""),
        (" ---\na: 1\n---\n", ""),
        ("----\na: 1\n----\n", ""),
        ("--- x\na: 1\n---\n", ""),
        ("---\na: 1\n", ""),
        ("---", ""),
        ("\ufeffbody", ""),
    ],
)
def test_the_head_ends_where_its_fence_does(text: str, head: str) -> None:
    note = parse(text)
    assert (note.head, note.body) == (head, text[len(head) :])
    assert note.text == text
    if head.strip("-\ufeff \t\r\n"):
        assert "a" in note.fields


yaml_pieces = st.sampled_from(
    [
        "a",
        "b: ",
        "key: v\n",
        "\n",
        "\n  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "# c",
        "'",
        '"',
        "|+\n",
        ">\n",
        "? ",
        "! ",
        "!!str ",
        "&x ",
        "*x",
        "\t",
        "\u2028",
        "\x85",
        "\r\n",
        "\r",
        "0x1",
        "2026-01-01",
        "yes",
        "~",
        "%YAML 1.1\n",
        "---",
        "...\n",
        "😀",
        "\ufeff",
        '"\\ud800"',
        '"\\UFFFFFFFF"',
        "<<: ",
        "=",
        "!!int ",
        "!!python/name:os.system ",
        "\0",
        "\udce9",
        ".nan",
        "12:30",
    ]
)
heads = st.lists(yaml_pieces, max_size=14).map("".join)


@given(heads, st.sampled_from(["\n", "\r\n", "\r"]))
@example("%YAML 1." + "1" * 5000 + "\n", "\n")
def test_anything_can_be_read_and_nothing_is_lost(yaml: str, eol: str) -> None:
    text = f"---{eol}{yaml}{eol}---{eol}body"
    note = parse(text)
    assert note.text == text
    assert note.body.endswith("body")
    assert parse(yaml).text == yaml


def test_values_have_their_types() -> None:
    fields = headed(
        "s: text\ni: 42\nf: 1.5\nt: true\nn: null\nd: 2026-03-01\nl: [a, 1]\nm:\n  k: v\n"
        "z: 2026-03-01T10:00:00Z\nlocal: 2026-03-01 10:00:00.25\noff: 2026-03-01T10:00:00+02:00"
    ).fields
    assert dict(fields) == {
        "s": "text",
        "i": 42,
        "f": 1.5,
        "t": True,
        "n": None,
        "d": date(2026, 3, 1),
        "l": ["a", 1],
        "m": {"k": "v"},
        "z": datetime(2026, 3, 1, 10, tzinfo=UTC),
        "local": datetime.fromisoformat("2026-03-01T10:00:00.25"),
        "off": datetime(2026, 3, 1, 10, tzinfo=timezone(timedelta(hours=2))),
    }


def test_times_of_day_and_leading_zeros_stay_text() -> None:
    assert dict(headed("at: 12:30\nphone: 0123\nlong: 1:30.5").fields) == {
        "at": "12:30",
        "phone": "0123",
        "long": "1:30.5",
    }


def test_keys_are_the_text_as_written() -> None:
    assert list(headed("on: 1\n2026: 2\nnull: 3\n2026-01-01: 4\n<<: {a: 1}\n=: 5").fields) == [
        "on",
        "2026",
        "null",
        "2026-01-01",
        "<<",
        "=",
    ]


def test_fields_cannot_be_changed_in_place() -> None:
    with pytest.raises(TypeError):
        headed("a: 1").fields["a"] = 2  # type: ignore[index]


def test_notes_with_the_same_text_are_equal_and_hashable() -> None:
    assert {headed("a: .nan"), headed("a: .nan")} == {headed("a: .nan")}


@pytest.mark.parametrize(
    ("yaml", "line", "word"),
    [
        ("a: 1\nb: [", 4, "YAML"),
        ("a: 1\n\tb: 2", 3, "YAML"),
        ("a: b: c", 2, "YAML"),
        ("- a\n- b", 2, "key: value"),
        ("just words", 2, "key: value"),
        ("a: 1\nb: !!python/object/apply:os.system ['true']", 3, "python/object"),
        ("a: !!binary aGk=", 2, "binary"),
        ("a: !mine {}", 2, "!mine"),
        ("a: !!str [x]", 2, "str"),
        ("a: &x [1]\n\nb: *x", 4, "Aliases"),
        ("a: 1\n" + "b: " + "[" * 5000, 3, "deep"),
        ("a: 1\n...\n%YAML 1.1", 5, "YAML"),
        ("a: 1\n--- b: 2", 3, "YAML"),
        ("a: 1\n--- \\\n  b: 2", 3, "second"),
        ("a: 1\n? [x]\n: y", 3, "key"),
        ("a: 1\nb: x\0", 3, "U+0000"),
        ("a: 1\nb: \udce9", 3, "0xE9"),
        ('a: "\\UFFFFFFFF"', 2, "YAML"),
        ("# x\n" * 100_000, 2, "KB"),
    ],
    ids=lambda value: ascii(value)[:40],  # pytest-xdist cannot carry a lone surrogate
)
def test_a_broken_head_gives_a_problem_on_its_line_and_leaves_the_body(
    yaml: str, line: int, word: str
) -> None:
    note = headed(yaml)
    assert dict(note.fields) == {}
    assert note.body == "body\n"
    [problem] = note.problems
    assert (problem.line, problem.level) == (line, "error")
    assert word in problem.what
    assert problem.todo


def test_an_alias_bomb_is_refused_at_once() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(7)
    )
    assert "Aliases" in headed(bomb).problems[0].what


def test_a_head_never_closed_is_body_with_a_problem() -> None:
    note = parse("---\na: 1\n\ntext", "topics/x.md")
    assert (note.head, note.body) == ("", "---\na: 1\n\ntext")
    assert str(note.problems[0]).startswith("topics/x.md:1: ")


def test_a_key_that_is_there_twice_is_reported_and_the_last_one_counts() -> None:
    note = headed("a: 1\nb: 2\na: 3")
    assert dict(note.fields) == {"a": 3, "b": 2}
    assert [(problem.line, problem.level) for problem in note.problems] == [(4, "error")]


def test_thousands_of_problems_are_all_reported() -> None:
    assert len(headed("a: 1\n" * 40_000).problems) == 39_999


@pytest.mark.parametrize("value", ["2026-13-45", "9" * 5000, "0x" + "f" * 5000, "!!int abc", "!!bool maybe"])
def test_a_date_or_number_that_makes_no_sense_stays_text_with_a_warning(value: str) -> None:
    note = headed(f"a: 1\nb: {value}")
    assert note.fields["b"] == value.rsplit(" ", 1)[-1]
    assert [(problem.line, problem.level) for problem in note.problems] == [(3, "warning")]


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_problems_count_lines_of_any_ending(eol: str) -> None:
    text = eol.join(["\ufeff---", "a: \u2028", "  1", "b: [", "---", "body"])
    assert [problem.line for problem in parse(text).problems] == [5]


def test_both_parsers_agree_with_each_other() -> None:
    """The one in C is for speed; whoever installs PyYAML without it must read the same."""

    @given(heads.filter(lambda text: "\ufeff" not in text and "\t" not in text))
    def agree(yaml: str) -> None:
        results = []
        for fast in (True, False):
            findings: list[YamlFinding] = []
            try:
                value = to_value(yaml_reader._build_tree(yaml, fast, MAX_DEPTH), findings.append)
                results.append(repr((value, findings)))
            except YamlError as error:
                results.append("" if error.kind in ("character", "syntax", "escape") else repr(error))
        assert "" in results or results[0] == results[1]

    agree()


@given(
    st.datetimes()
    | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-7, minutes=-30))]))
)
def test_timestamps_are_read_as_yaml_does(moment: datetime) -> None:
    assert headed(f"at: {moment.isoformat(sep=' ')}").fields["at"] == moment


def test_yaml_is_imported_only_when_a_head_is_read() -> None:
    script = (
        "import sys; from tacit.markdown.notes import parse; parse('# x'); print('yaml' in sys.modules);"
        "parse('---\\na: 1\\n---\\n'); print('yaml' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert told.stdout.split() == ["False", "True"]


# Title


def test_the_title_is_the_first_level_one_heading_outside_code() -> None:
    assert find_title(headed("a: 1", "## no\n```\n# no\n```\n# Yes #\n# later")) == "Yes"
    assert find_title(parse("\ufeff# Marked\n")) == "Marked"
    assert find_title(parse("no heading")) is None


# Changing fields

WRITTEN = """\
---
# who and what
type: topic   # the kind
"name": 'Anna''s'
triggers: [a, b] # words
subscriptions:  # these
  - one # first
  - two # second
text: |
  two
  lines

nested:
  x: 1

  # inside
  y: 2
empty:
unknown: !!str 12
# the end
---
# Title
"""


def test_one_changed_field_changes_one_line() -> None:
    changed = set_fields(parse(WRITTEN), {"type": "person"})
    assert changed.text == WRITTEN.replace("type: topic   # the kind", "type: person   # the kind")


def test_comments_order_and_quoting_of_the_rest_survive() -> None:
    changed = set_fields(
        parse(WRITTEN),
        {
            "name": "Bo",
            "triggers": ["x", "yes", "a, b"],
            "subscriptions": None,
            "text": "one line",
            "nested": {"z": [{"k": 1, "l": [1, 2]}, "m"]},
            "empty": False,
            "new": date(2026, 3, 1),
        },
    )
    assert (
        changed.text
        == """\
---
# who and what
type: topic   # the kind
"name": Bo
triggers: [x, "yes", "a, b"] # words
text: one line

nested:
  z:
    - k: 1
      l: [1, 2]
    - m
empty: false
unknown: !!str 12
# the end
new: 2026-03-01
---
# Title
"""
    )


def test_the_comment_beside_a_key_stays_when_its_value_was_below() -> None:
    assert "subscriptions: [x]  # these\ntext" in set_fields(parse(WRITTEN), {"subscriptions": ["x"]}).text
    assert "a: x # note\n" in set_fields(headed("a: | # note\n  long\n  text"), {"a": "x"}).text
    assert "a: # note\n  - b: 1\n" in set_fields(headed("a: 1 # note"), {"a": [{"b": 1}]}).text


def test_blank_lines_kept_by_a_text_go_with_it() -> None:
    assert set_fields(headed("a: |+\n  x\n\n\nb: 1"), {"a": None}).head == "---\nb: 1\n---\n"
    assert set_fields(headed("a: |\n  x\n\n\nb: 1"), {"a": 2}).head == "---\na: 2\n\n\nb: 1\n---\n"


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_line_endings_stay(eol: str) -> None:
    text = WRITTEN.replace("\n", eol)
    changed = set_fields(parse("\ufeff" + text), {"nested": {"a": 1}, "new": 1})
    assert changed.text.startswith("\ufeff---" + eol)
    assert changed.text.count(eol) == changed.text.replace("\r\n", "\n").replace("\r", "\n").count("\n")


def test_an_indented_head_stays_indented() -> None:
    assert set_fields(headed("  a: 1\n  b: 2"), {"a": {"x": 1}, "c": 3}).head == (
        "---\n  a:\n    x: 1\n  b: 2\n  c: 3\n---\n"
    )


def test_a_value_that_is_already_there_keeps_its_spelling() -> None:
    note = headed("a: 'x'\nb: 0x10")
    assert set_fields(note, {"a": "x", "b": 16, "c": None}) is note


def test_one_and_true_are_not_the_same() -> None:
    assert set_fields(headed("a: 1"), {"a": True}).head == "---\na: true\n---\n"


def test_a_note_without_head_gets_one() -> None:
    assert set_fields(parse("body\r\n"), {"a": 1}).text == "---\r\na: 1\r\n---\r\nbody\r\n"
    assert set_fields(parse("\ufeffbody"), {"a": 1}).text == "\ufeff---\na: 1\n---\nbody"
    assert set_fields(parse(""), {"a": 1}).text == "---\na: 1\n---\n"


def test_an_empty_head_can_be_filled_and_emptied() -> None:
    note = parse("---\n---\nbody")
    assert set_fields(note, {"a": 1}).text == "---\na: 1\n---\nbody"
    assert set_fields(set_fields(note, {"a": 1}), {"a": None}) == note


@pytest.mark.parametrize("yaml", ["a: [", "a: 1\na: 2", "- x", "{a: 1}", "? a\n: 1", "a: *b"])
def test_a_head_that_cannot_be_changed_safely_is_left_alone(yaml: str) -> None:
    with pytest.raises(StoreError):
        set_fields(headed(yaml), {"a": 5})


def test_a_head_never_closed_is_left_alone() -> None:
    with pytest.raises(StoreError, match="never closed"):
        set_fields(parse("---\na: 1\n"), {"a": 2})


def test_a_warning_does_not_stop_a_change() -> None:
    assert set_fields(headed("a: 2026-99-99"), {"b": 1}).head == "---\na: 2026-99-99\nb: 1\n---\n"


def test_names_of_problems_survive_a_change() -> None:
    note = parse("---\na: 2026-99-99\n---\n", "people/anna.md")
    assert set_fields(note, {"b": 1}).problems == note.problems


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, {"a": {1, 2}}, 10**2000, b"x"], ids=lambda value: type(value).__name__
)
def test_what_yaml_cannot_hold_is_refused(value: object) -> None:
    with pytest.raises(StoreError):
        set_fields(parse(""), {"a": value})


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(StoreError):
        set_fields(parse(""), {"a": loop})


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "No",
        "1",
        "0x1",
        "1e3",
        "null",
        "~",
        "",
        "2026-01-01",
        "12:30",
        "a: b",
        "a #b",
        "#",
        "a\nb",
        "it's",
        '"q"',
        "  lead",
        "trail ",
        "\0",
        "\ud800",
        "\ud83d\ude00",
        "x\udce9",
        "- x",
        "[x]",
        "{x}",
        "&a",
        "*a",
        "!t",
        "%",
        "@",
        "`",
        "\u2028",
        "\x85",
        "\ufeff",
        "\uffff",
        "\x7f",
        "---",
        "...",
        "=",
        "<<",
        "\\",
        "a\\nb",
        "é",
        "😀",
        "\t",
        "\r\n",
        "?",
        "|",
    ],
    ids=ascii,
)
def test_text_that_yaml_would_misread_comes_back(text: str) -> None:
    note = set_fields(parse("body"), {"a": text, "b": [text, text], "c": {text: text}})
    assert dict(note.fields) == {"a": text, "b": [text, text], "c": {text: text}}
    assert parse(decode(encode(note.text))).fields == note.fields


class Mood(StrEnum):
    GOOD = "good"


def test_values_come_back_as_plain_values() -> None:
    moment = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    note = set_fields(
        parse(""), {"a": Mood.GOOD, "b": (1, 2), "c": moment, "d": math.inf, "e": 1e300, "f": [None]}
    )
    assert type(note.fields["a"]) is str
    assert dict(note.fields) == {
        "a": "good",
        "b": [1, 2],
        "c": moment,
        "d": math.inf,
        "e": 1e300,
        "f": [None],
    }


any_text = st.text(alphabet=st.characters(categories=["Cs"]) | st.characters(), max_size=12)
offsets = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-3))])
scalars = (
    any_text
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.dates()
    | st.datetimes(timezones=st.none() | offsets).map(lambda moment: moment.replace(fold=0))
)
values = st.recursive(
    scalars | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
some_keys = st.sampled_from(
    ["type", "name", "triggers", "subscriptions", "text", "nested", "empty", "unknown"]
)


@given(st.dictionaries(some_keys | any_text, values, max_size=4))
def test_any_value_comes_back_and_the_other_fields_stay(changes: dict[str, object]) -> None:
    before = parse(WRITTEN)
    after = set_fields(before, changes)
    expected = {**before.fields, **changes}
    kept = {key: value for key, value in expected.items() if value is not None or key not in changes}
    assert repr(dict(after.fields)) == repr(kept)
    assert after.body == before.body


@given(heads, st.sampled_from(["a", "key", "new", "b"]), st.sampled_from(["x", None, [{"k": 1}], "a: b"]))
def test_a_change_on_any_head_is_right_or_refused(yaml: str, key: str, value: object) -> None:
    note = headed(yaml)
    try:
        changed = set_fields(note, {key: value})
    except StoreError:
        return
    assert changed.fields.get(key) == value
    assert changed.body == note.body


_WORDS = st.sampled_from(
    ["title", "tags", "x", "on", "yes", "No", "null", "Kiln log", "a-b", "2026-02-16", "2026-02-30", "12"]
)
_VALUES = st.one_of(
    _WORDS,
    _WORDS.map('"{}"'.format),
    st.lists(_WORDS, min_size=1, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    st.text(st.sampled_from("ab:# ,[]{}\"'-.~y0é\t"), max_size=8),
)


@given(st.lists(st.tuples(_WORDS, _VALUES), max_size=4))
def test_simple_heads_read_as_yaml_reads_them(entries: list[tuple[str, str]]) -> None:
    head = "".join(f"{key}: {value}\n" for key, value in entries)
    simple = frontmatter._read_simple(head)
    if simple is not None:
        fields, findings = frontmatter._read_fields(head)
        assert (simple, []) == (fields, findings)
        assert list(map(type, simple.values())) == list(map(type, fields.values()))
