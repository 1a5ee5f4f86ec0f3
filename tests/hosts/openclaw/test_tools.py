"""TOOLS.md → TOOLS_COMPACT.md: values are copied, reasons stay behind."""

from __future__ import annotations

import re

import pytest

from tacit.hosts.openclaw.compact_files import HEADERS, MAX_TOKENS, ToolRow, compact_text, find_problems
from tacit.text import tokens
from tests.workspaces import text

TOOLS = text("TOOLS.md")


def rows(written: str) -> list[tuple[str, str, str]]:
    return [row[:3] for row in compact_text(written).rows]


def test_a_grown_tools_file_becomes_a_lookup_list_under_the_headers_that_have_content() -> None:
    made = compact_text(TOOLS)
    assert (
        made.text
        == """# Tools, compact

## Browser
- shop: Chrome profile "Workshop"
- bank: Firefox profile "Bank"

## Mission Control
- Mission Control: 3410
- Till service: 8190
- Label printer queue: 6310

## Telegram Topics
- Bench: 14
- Orders: 22
- Ideas: 37

## Cursor CLI
- Quick fixes: `cursor-agent --model auto --print`
- Careful work: `cursor-agent --model sonnet-4.5 --force`

## Model CLI
- Local model: `ollama run qwen3.5:35b --keepalive 10m`

## TTS
- Voice: "Alma", speed 0.95
- Language: German for the shop, English for letters

## Camera
- bench-cam: over the stand, rtsp://192.0.2.7:8554/bench
- door-cam: the entrance, photos only
"""
    )
    assert tokens.count(made.text) <= MAX_TOKENS
    assert find_problems(made.text, "D", TOOLS) == []


def test_every_number_of_it_stands_in_the_line_that_it_names() -> None:
    for row in compact_text(TOOLS).rows:
        line = TOOLS.splitlines()[row.line - 1]
        assert all(number in line for number in re.findall(r"\d+", row.value))


@pytest.mark.parametrize(
    ("line", "name", "number"),
    [
        ("14 Ideas", "Ideas", "14"),
        ("- 15: Ops", "Ops", "15"),
        ("- SigInt → 51", "SigInt", "51"),
        ("- `75` Research", "Research", "75"),
        ("- BioThread (topic 12)", "BioThread", "12"),
        ("| Projects | 79 | all of them |", "Projects", "79"),
    ],
)
def test_topic_ids_are_read_in_many_forms(line: str, name: str, number: str) -> None:
    assert rows(f"## Telegram topics\n\n{line}\n") == [("Telegram Topics", name, number)]


def test_ports_are_named_by_what_stands_before_them() -> None:
    assert rows(
        "- Redis: 10.0.0.4:6379, because it was free\n- The till runs on http://localhost:8190/ now\n"
    ) == [
        ("Ports", "Redis", "10.0.0.4:6379"),
        ("Ports", "till", "8190"),
    ]
    assert rows("We meet at 10:30, since 2024 on 2025 mornings.\n") == []


def test_what_has_no_room_is_left_out_and_told() -> None:
    made = compact_text(
        "## Ports\n\n" + "\n".join(f"- Service number {n}: port {4000 + n}" for n in range(60))
    )
    assert tokens.count(made.text) <= MAX_TOKENS
    assert made.beyond
    assert len(made.rows) + len(made.beyond) == 60
    assert made.beyond[-1] == ToolRow("Ports", "Service number 59", "4059", 62)


def test_the_linter_finds_prose_too_many_tokens_and_what_is_missing() -> None:
    lost = compact_text(TOOLS).text.replace("- Bench: 14\n", "")
    assert [problem.level for problem in find_problems(lost, "D", TOOLS)] == ["warning"]
    prose = "## Browser\n- bank: Firefox, because the bank logs out at every other page\n"
    assert "This is prose" in str(find_problems(prose, "D")[0])
    assert "300 is the most" in str(find_problems("- a: 1\n" * 200, "D")[-1])
    assert "none of the headers" in str(find_problems("## Kitchen\n- kettle: slow\n", "D")[0])
    assert {"Browser", "Mission Control", "Telegram Topics", "Cursor CLI", "TTS", "Camera"} <= set(HEADERS)


def test_a_tools_file_with_nothing_to_look_up_makes_an_empty_list() -> None:
    assert compact_text("# Tools\n\nAsk Marit.\n").text == "# Tools, compact\n"
    assert compact_text("").rows == ()
