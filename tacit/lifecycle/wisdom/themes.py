"""Lessons that are about the same thing, found by joining the two groups that are most alike, again and
again.

Deterministic: the same lessons in the same order make the same themes.
"""

from __future__ import annotations

from tacit.lifecycle.wisdom.likeness import ALIKE, Likeness

FEWEST = 3  # lessons that a pattern must cover


def themes(likeness: Likeness) -> list[list[int]]:
    """Groups of lessons by their numbers, the largest first. Lessons that are like few others are in none."""
    import numpy as np

    between = likeness.among()
    groups: list[list[int] | None] = [[at] for at in range(len(between))]
    np.fill_diagonal(between, -1)
    while len(between) > 1:
        at = int(np.argmax(between))
        one, other = divmod(at, len(between))
        if between[one, other] < ALIKE:
            break
        first, second = groups[one], groups[other]
        assert first is not None
        assert second is not None
        # The average likeness of all pairs: one that is like a single member does not drag its friends in.
        share = len(first) / (len(first) + len(second))
        joined = between[one] * share + between[other] * (1 - share)
        between[one, :], between[:, one] = joined, joined
        between[other, :], between[:, other] = -1, -1
        between[one, one] = -1
        groups[one], groups[other] = sorted(first + second), None
    found = [group for group in groups if group is not None and len(group) >= FEWEST]
    return sorted(found, key=lambda group: (-len(group), group))
