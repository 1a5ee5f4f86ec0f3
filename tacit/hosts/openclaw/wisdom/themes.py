"""Groups lessons about the same thing by joining the two most similar groups, again and again.

Deterministic: the same lessons in the same order give the same themes.
"""

from __future__ import annotations

from tacit.hosts.openclaw.wisdom.similarity import MIN_SIMILARITY, Likeness

MIN_LESSONS = 3  # lessons that a pattern must cover


def find_themes(likeness: Likeness) -> list[list[int]]:
    """Groups of lesson numbers, the largest first. Lessons that are similar to few others are in no group."""
    import numpy as np

    similarities = likeness.among()
    groups: list[list[int] | None] = [[index] for index in range(len(similarities))]
    np.fill_diagonal(similarities, -1)
    while len(similarities) > 1:
        index = int(np.argmax(similarities))
        first_index, second_index = divmod(index, len(similarities))
        if similarities[first_index, second_index] < MIN_SIMILARITY:
            break
        first, second = groups[first_index], groups[second_index]
        assert first is not None
        assert second is not None
        # The average over all pairs: similarity to a single member is not enough to join.
        share = len(first) / (len(first) + len(second))
        joined = similarities[first_index] * share + similarities[second_index] * (1 - share)
        similarities[first_index, :], similarities[:, first_index] = joined, joined
        similarities[second_index, :], similarities[:, second_index] = -1, -1
        similarities[first_index, first_index] = -1
        groups[first_index], groups[second_index] = sorted(first + second), None
    large = [group for group in groups if group is not None and len(group) >= MIN_LESSONS]
    return sorted(large, key=lambda group: (-len(group), group))
