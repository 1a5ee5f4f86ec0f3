"""Find which named things (people, projects) a text mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tacit.text.words import fold, is_unspaced


class NameIndex:
    """Names and what each stands for. Several names may stand for one thing."""

    def __init__(self, names: Mapping[str, str]) -> None:
        # Sorted, so that the result does not depend on the order of names that fold to the same.
        self._by_folded_name = {
            fold(name): (name, target) for name, target in sorted(names.items(), reverse=True)
        }
        self._pattern = _compile_names(name for name in self._by_folded_name if len(name) > 1)

    def all_in(self, text: str) -> list[tuple[str, str]]:
        """Names with their targets, each target once, in order of appearance. If a name is part of another
        one, the longer one counts."""
        if self._pattern is None:
            return []
        names: dict[str, str] = {}
        for match in self._pattern.finditer(fold(text)):
            name, target = self._by_folded_name[match[0]]
            names.setdefault(target, name)
        return [(name, target) for target, name in names.items()]

    def one_in(self, text: str) -> str | None:
        """The only target that is named; None if there is none or more than one."""
        mentions = self.all_in(text)
        return mentions[0][1] if len(mentions) == 1 else None


def _compile_names(names: Iterator[str]) -> re.Pattern[str] | None:
    ordered = sorted(names, key=lambda name: (-len(name), name))
    patterns = [
        re.escape(name) if is_unspaced(name) else rf"(?<!\w){re.escape(name)}(?!\w)" for name in ordered
    ]
    return re.compile("|".join(patterns)) if patterns else None
