"""Models that say what a test tells them to, in this process. Real protocols: tests/llm/test_contract.py."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tacit.llm.chat import ChatAnswer, ChatError


class Asked(NamedTuple):
    system: str
    user: str
    max_tokens: int
    seconds: float


class Says:
    """One thing after the other; the last one for ever."""

    def __init__(self, *says: str | ChatError | BaseException, name: str = "fake:m") -> None:
        self.name, self.asked = name, list[Asked]()
        self._says = list(says)

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        self.asked.append(Asked(system, user, max_tokens, seconds))
        said = self._says[min(len(self.asked), len(self._says)) - 1]
        if isinstance(said, BaseException):
            raise said
        return ChatAnswer(said, len(user), len(said))


class Meter:
    """Remembers what it is told."""

    def __init__(self, refuses: BaseException | None = None) -> None:
        self.told = list[tuple[object, ...]]()
        self._refuses = refuses

    def begin(self, tokens_in: int, tokens_out: int) -> str:
        if self._refuses is not None:
            raise self._refuses
        self.told.append(("begin", tokens_in, tokens_out))
        return "id"

    def end(self, call: str, outcome: str, tokens_in: int, tokens_out: int, why: str = "") -> None:
        self.told.append((outcome, tokens_in, tokens_out, why))

    def bad(self, why: str) -> None:
        self.told.append(("bad", why))


def outcomes(told: Iterable[tuple[object, ...]]) -> list[object]:
    return [one[0] for one in told]
