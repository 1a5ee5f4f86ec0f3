"""Sections by their places: taken and replaced without touching anything else."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from tacit.markdown.sections import find_sections, replace_section, split_sections

SOUL = """---
role: soul  # no heading
---
above

# Fenn
I am.

## Wisdom
old
### inside
more

## Vibe

```
## Wisdom
```
dry
"""


def test_a_section_runs_to_the_next_heading_of_its_rank_and_code_holds_none() -> None:
    assert [(one.level, one.title, one.line) for one in split_sections(SOUL)] == [
        (0, "", 4), (1, "Fenn", 6), (2, "Wisdom", 9), (3, "inside", 11), (2, "Vibe", 14),
    ]  # fmt: skip
    wisdom = split_sections(SOUL)[2]
    assert wisdom.text(SOUL) == "## Wisdom\nold\n### inside\nmore\n\n"
    assert wisdom.own(SOUL) == "## Wisdom\nold\n"


def test_each_of_many_headings_ends_where_the_next_of_its_rank_or_a_higher_one_begins() -> None:
    levels = [3, 1, 2, 6, 6, 2, 3, 1, 4]
    text = "".join(f"{'#' * level} x\n" for level in levels)
    for at, one in enumerate(split_sections(text)):
        following = [other for other in split_sections(text)[at + 1 :] if other.level <= one.level]
        assert one.end == (following[0].start if following else len(text))


def test_many_headings_take_as_long_as_they_are_many() -> None:
    taken = []
    for number in (10_000, 40_000):
        began = time.process_time()
        split_sections("# x\n" * number)
        taken.append(time.process_time() - began)
    assert taken[1] < 10 * taken[0] + 0.3


def test_replacing_a_section_leaves_every_other_byte_as_it_is() -> None:
    new = replace_section(SOUL, "wisdom", 2, "## Wisdom\n\nnew\n")
    before, after = SOUL.split("## Wisdom\nold\n### inside\nmore")
    assert new == f"{before}## Wisdom\n\nnew{after}"


def test_a_section_that_is_not_there_is_added_at_the_end() -> None:
    assert (
        replace_section("# Fenn\n\nI am.", "Wisdom", 2, "## Wisdom\nnew")
        == "# Fenn\n\nI am.\n\n## Wisdom\nnew\n"
    )
    assert replace_section("", "Wisdom", 2, "## Wisdom\nnew\n") == "## Wisdom\nnew\n"


def test_the_line_ends_of_the_file_are_kept() -> None:
    text = "# Fenn\r\n\r\n## Wisdom\r\nold\r\n\r\n## Vibe\r\ndry\r\n"
    new = replace_section(text, "Wisdom", 2, "## Wisdom\n\nnew\n")
    assert new == "# Fenn\r\n\r\n## Wisdom\r\n\r\nnew\r\n\r\n## Vibe\r\ndry\r\n"


@given(st.text(alphabet="#ab \n\r`-", max_size=80), st.text(alphabet="ab \n", max_size=20))
def test_what_was_put_in_is_found_again_and_replacing_it_twice_changes_nothing(text: str, body: str) -> None:
    if len(find_sections(text, "Wisdom", 2)) or "`" in text or text.startswith("---"):
        return  # inside code, or a head, a heading is none
    once = replace_section(text, "Wisdom", 2, f"## Wisdom\n{body}")
    assert len(find_sections(once, "Wisdom", 2)) == 1
    assert replace_section(once, "Wisdom", 2, f"## Wisdom\n{body}").split() == once.split()
