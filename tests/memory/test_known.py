"""A line is followed to its file, its commit and the words it was made of."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tacit.errors import UsageError
from tacit.learn import window_proposals
from tacit.learn.model import Change, ChangeSet, Source
from tacit.markdown import comment
from tacit.memory import Memory
from tacit.transcripts import purged as purging
from tests.memory.homes import opened

NOTE = "knowledge/reference/glazes.md"
NOW = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
SAID = "We take Reif 3b,\ntwo coats on the blue bowls."


@pytest.fixture
def memory(home: Path) -> Memory:
    return opened(home, lambda: NOW)


@pytest.fixture
def path(memory: Memory) -> str:
    """Of a transcript in which something was decided."""
    with memory.session(session_key="agent:main:main") as session:
        session.message("agent", "Which glaze for the bowls?")
        session.message("user", SAID, speaker="Hanna")
        session.tool("fetch", "https://glazes.example", "Reif 3b melts at 1215 degrees")
    assert session.path
    return session.path


def put(memory: Memory, *lines: str, to: str = NOTE) -> None:
    text = "# Glazes\n\n" + "".join(f"{line}\n" for line in lines)
    (memory.home.root / to).parent.mkdir(parents=True, exist_ok=True)
    (memory.home.root / to).write_text(text)


def learned(path: str, text: str = "- 2026-03-04: Reif 3b, two coats") -> str:
    return comment.attach(text, "decisions/1", [comment.source_name(path, 2)], "owner")


def test_a_learned_line_leads_to_its_commit_and_the_words_themselves(memory: Memory, path: str) -> None:
    put(memory, learned(path))
    commit = memory.work().commits[-1]
    [found] = memory.why_known("Reif 3b, two coats")
    assert (found.path, found.line, found.how) == (NOTE, 3, "generated")
    assert (found.extractor, found.trust, found.text) == (
        "decisions/1",
        "owner",
        "- 2026-03-04: Reif 3b, two coats",
    )
    assert found.since is not None
    assert (found.since.commit, found.since.when, found.since.author) == (commit, NOW, "tacit")
    [words] = found.words
    assert (words.transcript, words.number, words.role, words.speaker, words.text) == (
        path,
        2,
        "user",
        "Hanna",
        SAID,
    )
    assert words.at == NOW
    assert words.before == "agent: Which glaze for the bowls?"


def test_capitals_and_accents_do_not_hide_a_line(memory: Memory, path: str) -> None:
    put(memory, learned(path, "- 2026-03-04: Für Schüsseln Reif 3b"))
    assert memory.why_known("fur  schusseln REIF")[0].path == NOTE


def test_a_line_by_hand_leads_to_who_committed_it(memory: Memory) -> None:
    put(memory, "- Moss is green")
    assert memory.why_known("Moss is green")[0].since is None
    memory.work()
    [found] = memory.why_known("Moss is green")
    assert (found.how, found.words, found.trust) == ("written", (), "")
    assert found.since is not None
    assert found.since.subject.startswith("memory: ")


def test_a_superseded_line_is_told_as_such_with_the_commit_that_first_had_it(
    memory: Memory, path: str
) -> None:
    put(memory, learned(path))
    first = memory.work().commits[-1]
    put(memory, comment.mark_superseded(learned(path), "2026-03-05"))
    memory.work()
    [found] = memory.why_known("Reif 3b, two coats")
    assert found.is_superseded
    assert found.since is not None
    assert found.since.commit == first


def test_a_line_that_somebody_changed_still_tells_where_it_was_from(memory: Memory, path: str) -> None:
    put(memory, learned(path).replace("two coats", "three coats"))
    [found] = memory.why_known("three coats")
    assert (found.how, found.words[0].number) == ("edited", 2)


def test_what_stands_in_conversations_only_is_told_with_whose_word_it_is(memory: Memory, path: str) -> None:
    [mine] = memory.why_known("two coats on the blue bowls")
    assert (mine.path, mine.how, mine.trust, mine.words[0].number) == (path, "said", "owner", 2)
    assert mine.since is not None
    [tools] = memory.why_known("melts at 1215")
    assert (tools.trust, tools.words[0].role, tools.words[0].speaker) == ("web", "tool", "fetch")


def test_what_waits_is_told_too(memory: Memory, path: str) -> None:
    put(memory, learned(path, "- Kontora is cheap"), to="drafts/memory.md")
    source = Source("k", 2, "user", transcript=path)
    change = Change(NOTE, None, "Kontora is cheaper", "2026-03-04", "fact", source, "web", "facts/1")
    window_proposals.offer(memory.home, ChangeSet("k", "s", "2026-03-04", "cues/1", "why", (change,)))
    found = memory.why_known("Kontora is cheap")
    assert [(one.how, one.words[0].number) for one in found] == [("drafted", 2), ("proposed", 2)]


def test_words_that_are_gone_or_purged_are_told_as_such(memory: Memory, path: str) -> None:
    gone = comment.attach("- Kontora is cheap", "facts/1", ["2020/01/01/0000-x-y#3"], "agent")
    put(memory, learned(path), gone)
    assert memory.why_known("Kontora")[0].words[0].state == "gone"
    purging.record_purge(
        memory.home, at="2026-03-04", origin="x", sources=[comment.source_name(path)], by="me"
    )
    assert memory.why_known("Reif 3b, two coats")[0].words[0].state == "purged"


def test_where_it_stands_nowhere_the_nearest_is_shown_and_said_to_be(memory: Memory, path: str) -> None:
    put(memory, "- Moss is green", learned(path, "- 2026-03-04: The kiln in the yard fires on Fridays"))
    memory.work()
    found = memory.why_known("When does the kiln in the yard fire?")
    assert found[0].is_nearest
    assert (found[0].path, found[0].line, found[0].words[0].number) == (NOTE, 4, 2)


def test_of_nothing_nothing_is_known(memory: Memory) -> None:
    assert memory.why_known("zyxwvut qqq") == []
    with pytest.raises(UsageError, match="TEXT"):
        memory.why_known("  ")
