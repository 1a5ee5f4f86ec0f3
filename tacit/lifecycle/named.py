"""Which of the things that have names a text is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tacit.text.words import fold, unspaced


class Names:
    """Names with what each of them stands for. Several may stand for one."""

    def __init__(self, names: Mapping[str, str]) -> None:
        # Sorted, so that of names that fold to the same the same one counts whatever the order.
        self._meant = {fold(name): (name, one) for name, one in sorted(names.items(), reverse=True)}
        self._pattern = _any_of(name for name in self._meant if len(name) > 1)

    def all_in(self, text: str) -> list[tuple[str, str]]:
        """What is named, each once and with its name, in the order in which they are named. Where a name is
        part of another one, the longer one counts."""
        if self._pattern is None:
            return []
        found: dict[str, str] = {}
        for match in self._pattern.finditer(fold(text)):
            name, one = self._meant[match[0]]
            found.setdefault(one, name)
        return [(name, one) for one, name in found.items()]

    def one_in(self, text: str) -> str | None:
        """The one that is named; None where it is none, or cannot be told."""
        found = self.all_in(text)
        return found[0][1] if len(found) == 1 else None


def _any_of(names: Iterator[str]) -> re.Pattern[str] | None:
    ordered = sorted(names, key=lambda name: (-len(name), name))
    each = [re.escape(name) if unspaced(name) else rf"(?<!\w){re.escape(name)}(?!\w)" for name in ordered]
    return re.compile("|".join(each)) if each else None
