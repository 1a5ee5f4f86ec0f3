"""A home in which somebody talks, with a clock that the test sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tacit.app import load_config
from tacit.home import files
from tacit.home.layout import CONFIG, Home
from tacit.llm.structured import Ask
from tacit.memory import Memory

OWNER = "agent:main:main"
GROUP = "agent:main:telegram:group:-100"
MEMORY = "knowledge/memory/MEMORY.md"


@dataclass
class Life:
    root: Path
    now: datetime = datetime(2026, 3, 2, 9, tzinfo=UTC)
    ask: Ask | None = None

    @property
    def memory(self) -> Memory:
        home = Home(self.root)
        return Memory(
            home, load_config(home).config, zone=UTC, now=lambda: self.now, ask=lambda task: self.ask
        )

    def set(self, settings: str) -> None:
        """Settings at the end of the config."""
        file = self.root / CONFIG
        names = {line.split(":")[0] for line in settings.splitlines() if line and line[0] != " "}
        kept, section = [], ""
        for line in file.read_text().split("\n"):
            section = line.split(":")[0] if line[:1] not in ("", " ", "#") else section
            kept += [line] if section not in names else []
        file.write_text("\n".join(kept) + f"\n{settings}\n")

    def talk(
        self,
        *said: str | tuple[str, str] | tuple[str, str, str],
        key: str = OWNER,
        name: str | None = None,
        speaker: str | None = None,
    ) -> str:
        """A whole conversation; returns the path of its transcript. A pair is a role and a text, three are a
        tool's name, what it was asked and what it gave."""
        session = self.memory.session(key, session_id=name, started=self.now)
        for one in said:
            self.now += timedelta(minutes=1)
            if isinstance(one, str):
                session.message("user", one, speaker=speaker)
            elif len(one) == 2:
                session.message(one[0], one[1])
            else:
                session.tool(*one)
        sealed = session.end()
        assert sealed is not None
        return sealed.path

    def pass_time(self, **span: float) -> None:
        self.now += timedelta(**span)

    def text(self, path: str = MEMORY) -> str:
        return (self.root / path).read_text()

    def lines(self, path: str = MEMORY) -> list[str]:
        return [line for line in self.text(path).split("\n") if line.startswith("- ")]


def answering(answer: Callable[[str, str], Sequence[Mapping[str, Any]]]) -> Ask:
    """A model whose items are made of the task and what it was shown."""

    def ask(task: str, system: str, user: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return list(answer(task, user))

    return ask


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[None]:
    """What is done in it ends before it changes a file of the home for the so-manieth time."""
    left = [number]
    with monkeypatch.context() as patch:
        for name in ("write", "put", "remove"):
            patch.setattr(files.Tree, name, _counting(getattr(files.Tree, name), left))
        with pytest.raises(Killed):
            yield


def _counting(real: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def change(*given: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        return real(*given)

    return change


def archived_text(life: Life) -> str:
    return "".join(file.read_text() for file in sorted((life.root / "archive").rglob("*.md")))
