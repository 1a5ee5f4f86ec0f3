"""A message costs what its length costs, whatever stands in it: nobody can make tacit slow with one.

Compared are the CPU seconds for a text and for one four times as long, or for the same text in lines. The
limits are generous: what grew with the square of the length was above them by far.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest

import tacit as product
from tacit.context.request import sanitize
from tacit.context.shorten import excerpt_around, shorten, shorten_middle
from tacit.learn.patterns import classify_sentence, find_cues, find_statements
from tacit.markdown import comment, links
from tacit.markdown.chunker import split_chunks, split_message
from tacit.markdown.sections import split_sections
from tacit.markdown.strip import strip_note
from tacit.memory import Memory
from tacit.privacy import delimiters, redaction, strip_injected
from tacit.search.documents import read_document
from tacit.search.query import parse_query
from tacit.search.query_filter import filter_query
from tacit.text import dates, signals, tokens, words
from tacit.text.sentences import mask_quotes, split_sentences
from tacit.transcripts import format as transcript
from tests.security.long_messages import SHAPES, in_lines, prose

NOW = datetime(2026, 3, 4, tzinfo=UTC)
OWNER = "agent:main:main"
SMALL = 8_000  # characters
TIMES = 4
STEEP = 10.0  # times as long, for a text that is four times as long
NOISE = 0.3  # seconds
TRIES = 3
SLOW = 4.0  # seconds, where most take some milliseconds

Read = Callable[[str], object]
READERS: dict[str, Read] = {
    "redaction": redaction.clean,
    "private tags": redaction.is_left_open,
    "what may be kept": sanitize,
    "what tacit gave": strip_injected.remove_injected,
    "marks": comment.remove_superseded,
    "guard": filter_query,
    "question": lambda text: parse_query(text, NOW, ("Ana Ruiz", "漢字")),
    "days": lambda text: dates.find_days(text, date(2026, 3, 4)),
    "words": words.prepare_document,
    "folding": words.fold,
    "tokens": tokens.count,
    "chunks": split_chunks,
    "pieces": split_message,
    "sections": split_sections,
    "links": lambda text: links.find_links("knowledge/a.md", text),
    "note": lambda text: read_document("knowledge/reference/a.md", text, NOW.date()),
    "frontmatter": lambda text: read_document("knowledge/a.md", f"---\n{text}\n---\nx", NOW.date()),
    "transcript": lambda text: transcript.parse(text, "raw/conversations/a.md"),
    "tool result": transcript.shorten,
    "sentences": lambda text: list(split_sentences(text)),
    "quotations": mask_quotes,
    "cues": lambda text: classify_sentence(text, find_cues(text)),
    "what is told": find_statements,
    "code": signals.find_code_blocks,
    "urls": signals.find_urls,
    "fences": lambda text: (
        delimiters.strip_invisible(text),
        delimiters.choose_delimiter([text]),
        delimiters.escape_turns(text),
    ),
    "comments": strip_note,
    "shortened": lambda text: shorten(text, 500, tokens.count),
    "middle out": lambda text: shorten_middle(text, 500, tokens.count),
    "a part": lambda text: excerpt_around(text, 900, ["harbour", "prefer", "文字"]),
}


def cpu(read: Callable[[], object]) -> float:
    began = time.process_time()
    read()
    return time.process_time() - began


@pytest.mark.parametrize("shape", SHAPES)
def test_what_reads_a_message_takes_as_long_as_it_is(shape: str) -> None:
    small, large = SHAPES[shape](SMALL), SHAPES[shape](TIMES * SMALL)
    steep = {}
    for name, read in READERS.items():
        for _ in range(TRIES):  # a busy machine makes single readings several times too high
            once, more = cpu(lambda read=read: read(small)), cpu(lambda read=read: read(large))  # type: ignore[misc]
            if more <= min(SLOW, STEEP * once + NOISE):
                break
        else:
            steep[name] = (round(once, 3), round(more, 3))
    assert not steep


def _kept_and_asked(memory: Memory, text: str) -> float:
    """All that happens to a message in one turn and in those after it."""

    def everything() -> None:
        session = memory.session(session_key=OWNER)
        session.message("user", text)
        session.message("agent", text)
        session.tool("read", text, text)
        memory.services.searcher.update()
        memory.turn("What did Quentin decide about the harbour deploy?", session_key=OWNER)
        memory.turn(text, session_key=OWNER, history=[("user", text), ("agent", text), ("tool", text)])
        memory.search(text)
        session.end()
        memory.work()

    return cpu(everything)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_of_any_shape_costs_about_what_one_in_lines_costs(
    memory: Memory, shape: str, in_lines_took: float
) -> None:
    assert _kept_and_asked(memory, SHAPES[shape](60_000)) < 6 * in_lines_took + 2.0


@pytest.fixture(scope="module")
def in_lines_took(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> float:
    root = tmp_path_factory.mktemp("lines") / "home"
    product.init(root)
    return _kept_and_asked(product.open(root), in_lines(60_000))


def test_a_turn_beside_one_long_line_costs_about_what_it_costs_beside_the_same_in_lines(
    memory: Memory,
) -> None:
    def turn_beside(text: str, session_key: str) -> float:
        session = memory.session(session_key=session_key)
        session.message("user", text)
        session.end()
        memory.services.searcher.update()
        memory.turn("harbour", session_key=OWNER)  # models are loaded, files are looked at
        return cpu(lambda: memory.turn("What did Quentin decide?", session_key=OWNER, seconds=600))

    lines = turn_beside(in_lines(300_000), "agent:main:telegram:group:1")
    line = turn_beside(prose(300_000), "agent:main:telegram:group:2")
    assert line < 4 * lines + 0.5
