"""Whatever strangers write, and by whatever way it comes: what is made of it is known as theirs, and none of
it becomes knowledge by itself. Nothing is told by the words, since words cannot be told apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tacit.learn import window_proposals
from tacit.learn.model import Change, Source
from tacit.learn.window_proposals import extract
from tacit.markdown.comment import is_trusted
from tacit.memory import Memory
from tacit.transcripts.attribution import AttributedTranscript
from tests.memory.homes import GROUP, NOW, OWNER, STRANGER, opened
from tests.security.poison import CRUDE, PLAIN, payloads

PAYLOADS = payloads()
Way = Callable[[Memory, str], str]


def read_by(tool: str, summary: str) -> Way:
    """A tool gave it back in the owner's own session, and the agent tells it at once and once more later."""

    def said(memory: Memory, poison: str) -> str:
        with memory.session(session_key=OWNER) as session:
            session.message("user", "Please have a look")
            session.tool(tool, summary, poison)
            session.message("agent", f"I read it. {poison}")
            session.message("agent", f"We decided: {poison}")
        assert session.path
        return session.path

    return said


def written_in(key: str) -> Way:
    def said(memory: Memory, poison: str) -> str:
        with memory.session(session_key=key) as session:
            session.message("user", poison, speaker="Mallory")
            session.message("agent", f"Noted: {poison}")
        assert session.path
        return session.path

    return said


def imported(memory: Memory, poison: str) -> str:
    """A transcript that somebody put there, of a session that is not the owner's."""
    path = "raw/conversations/2026/03/04/0900-imported-x.md"
    head = "---\nsession_id: imported\nstarted: 2026-03-04T09:00:00+01:00\nended: 2026-03-04T09:10:00+01:00\n"
    body = f"# x\n\n## 09:00 — user\n\n{poison}\n\n## 09:01 — agent\n\n{poison}\n"
    text = f"{head}session_key: import:mail\n---\n\n{body}"
    file = memory.home.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return path


WAYS: dict[str, Way] = {
    "tool": read_by("exec", "cat letter.txt"),
    "web": read_by("web_fetch", "https://thief.example"),
    "mail": read_by("read_inbox", "unread"),
    "url of a trusted tool": read_by("read", "path=https://thief.example"),
    "direct message": written_in(STRANGER),
    "group": written_in(GROUP),
    "import": imported,
}


@pytest.fixture
def memory(home: Path) -> Memory:
    (home / "memory-config.yaml").write_text("owners: ['7']\n")
    return opened(home, lambda: NOW)


def everything(heard: AttributedTranscript) -> Iterator[Change]:
    """The worst extractor there can be: every turn becomes knowledge."""
    for one in heard.said:
        source = Source(heard.session_key, one.number, one.role, one.speaker, transcript=heard.transcript)
        yield Change("knowledge/memory/MEMORY.md", None, one.text, heard.day, "fact", source, one.trust)


def test_there_are_enough_of_them() -> None:
    assert (len(CRUDE), len(PLAIN), len(set(PAYLOADS))) == (10, 14, len(PAYLOADS))


@pytest.mark.parametrize("way", WAYS)
def test_all_that_is_made_of_it_is_known_as_a_strangers(memory: Memory, way: str) -> None:
    carried = 0
    for poison in PAYLOADS:
        heard = memory.services.attribution.attribute(WAYS[way](memory, poison))
        assert heard is not None
        changes = [change for change in everything(heard) if poison[:40] in change.text]
        carried += bool(changes)
        assert [change.text for change in changes if is_trusted(change.trust)] == []
    assert carried >= len(PAYLOADS) - 2  # one that looks like a block of our own is no word of anybody


@pytest.mark.parametrize("way", WAYS)
def test_no_note_gets_a_word_of_it_by_itself_whoever_extracts(
    memory: Memory, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules, and a model that copies everything that it is shown: learned and condensed."""

    def copies(task: str, system: str, user: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        turns = re.findall(r"^\[(\d+)\] \w+: (.+)$", user, re.MULTILINE)
        return [{"text": text[:290], "turn": int(number), "name": "x"} for number, text in turns]

    for poison in PAYLOADS:
        WAYS[way](memory, poison)
    monkeypatch.setattr(memory.services, "_ask", lambda task: copies if task == "extract" else None)
    before = notes_of(memory)
    done = memory.services.extractor.learn_pending()
    memory.services.condenser.condense_due()
    changed = {path for path, text in notes_of(memory).items() if before.get(path) != text}
    stood = " ".join(text for path, text in notes_of(memory).items() if path in changed)
    assert [poison for poison in PAYLOADS if poison[:60] in stood] == []
    assert done.drafts
    holding = [one for one in memory.reviews.waiting() if any(p[:40] in one.body for p in PAYLOADS)]
    assert holding
    assert all(draft.trust in ("other", "tool", "web") for draft in holding)


def notes_of(memory: Memory) -> dict[str, str]:
    root = memory.home.root
    files = (file for folder in ("knowledge", "topics") for file in (root / folder).rglob("*.md"))
    return {str(file.relative_to(root)): file.read_text() for file in files}


def test_the_extractor_without_a_model_keeps_the_trust_of_the_turn(memory: Memory) -> None:
    """It is given the turns of one trust at a time, as every extractor is."""
    heard = memory.services.attribution.attribute(WAYS["direct message"](memory, PLAIN[0]))
    assert heard is not None
    found = extract(heard.said[:1], session_key="k", session_id="s", made_at=NOW)
    assert found is not None
    assert {change.trust for change in found.changes} == {"other"}


@pytest.mark.parametrize("way", ["tool", "web", "mail"])
def test_an_agent_that_is_told_to_remember_it_only_proposes_it(memory: Memory, way: str) -> None:
    for number, poison in enumerate(PAYLOADS):
        with memory.session(session_key=OWNER) as session:
            session.message("user", "Please have a look")
            tool, summary = {"tool": ("exec", "x"), "web": ("fetch", "x"), "mail": ("mail", "x")}[way]
            session.tool(tool, summary, poison)
            assert memory.remember(f"{number} {poison}", "memory").path == ""
    assert "thief" not in (memory.home.root / "knowledge/memory/MEMORY.md").read_text()
    waiting = [change for one in window_proposals.list_waiting(memory.home) for change in one.changes]
    assert len(waiting) == len(PAYLOADS)
    assert not any(is_trusted(change.trust) for change in waiting)


def test_what_the_owner_says_stays_the_owners_also_where_it_sounds_like_poison(memory: Memory) -> None:
    for poison in PAYLOADS:
        with memory.session(session_key=OWNER) as session:
            session.message("user", poison)
        assert session.path
        heard = memory.services.attribution.attribute(session.path)
        assert heard is None or {one.trust for one in heard.said} <= {"owner"}
