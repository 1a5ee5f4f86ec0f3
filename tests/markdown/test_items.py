"""Items of notes by their lines."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tacit.markdown.note_page import read_items, remove_items, split_lines
from tests.condense import sampled
from tests.condense.sampled import MEMORY

NOTE = """---
type: memory
---

# Core Memory
Prose, and no item.

## Key Decisions

### Shop
- 2026-10-05: First
  goes on
lazily so

  and after a blank line
- [ ] Second (superseded 2026-10-19)
* 2026-10-06: Third

Prose again.

```
- code
```
| - | table |
## Active Context
1. **2026-10-07**: Fourth
"""


def test_items_have_their_words_day_section_and_lines() -> None:
    found = read_items(NOTE)
    assert [(one.said, one.day, one.section) for one in found] == [
        ("First", "2026-10-05", "Key Decisions / Shop"),
        ("Second", "", "Key Decisions / Shop"),
        ("Third", "2026-10-06", "Key Decisions / Shop"),
        ("Fourth", "2026-10-07", "Active Context"),
    ]
    assert found[0].raw == "- 2026-10-05: First\n  goes on\nlazily so\n\n  and after a blank line"
    assert [one.is_superseded for one in found] == [False, True, False, False]


def test_taking_some_out_leaves_every_other_byte() -> None:
    first, second, *_ = read_items(NOTE)
    assert remove_items(NOTE, [second]) == NOTE.replace("- [ ] Second (superseded 2026-10-19)\n", "")
    assert remove_items(NOTE, [first]) == NOTE.replace(f"{first.raw}\n", "")
    assert remove_items(NOTE, [], {3: "- other"}) == NOTE.replace("* 2026-10-06: Third", "- other")
    windows = NOTE.replace("\n", "\r\n")
    changed = remove_items(NOTE, [second], {3: "- other"})
    assert remove_items(windows, [read_items(windows)[1]], {3: "- other"}) == changed.replace("\n", "\r\n")


def test_the_sample_s_memory_is_all_items() -> None:
    text = sampled.notes()[MEMORY]
    assert len(read_items(text)) == sum(line.startswith("- ") for line in text.split("\n"))
    assert all(one.day for one in read_items(text))


@given(st.text(st.sampled_from("-*# \n\t\r`1.a>|(<!>\u2028\x0c"), max_size=80))
def test_no_text_is_too_odd(text: str) -> None:
    assert "".join(split_lines(text)) == text
    found = read_items(text)
    assert remove_items(text, []) == text
    assert all(one.start < one.stop for one in found)
    assert all(one.stop <= other.start for one, other in pairwise(found))
    kept = [
        line
        for at, line in enumerate(split_lines(text))
        if not any(one.start <= at < one.stop for one in found)
    ]
    assert remove_items(text, found) == "".join(kept)
