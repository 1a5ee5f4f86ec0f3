"""What a session may not see is in nothing that it gets: no hit, snippet, title, reason or trace."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tacit as product
from tacit.config import Config
from tacit.home.layout import Home
from tacit.memory import Memory
from tacit.search.model import Found, Scope
from tacit.search.searcher import Searcher
from tests.conftest import Tacit
from tests.search.fakes import Meaning, parts, unreadable_parts

GROUP, OTHER_GROUP = "agent:main:telegram:group:-100", "agent:main:telegram:group:-200"
DIRECT = "agent:main:telegram:direct:48210011"
START = datetime(2026, 5, 2, 9, tzinfo=UTC)

# Every file is about the kiln and has one word that no other has.
NOTES = {
    "knowledge/reference/anyone.md": "---\naudience: anyone\n---\n# Walnut\n\nThe kiln and a walnut.\n",
    "knowledge/reference/group.md": "---\naudience: group\n---\n# Cedar\n\nThe kiln and a cedar.\n",
    "knowledge/reference/owner.md": "---\naudience: owner\n---\n# Larch\n\nThe kiln and a larch.\n",
    "knowledge/reference/typo.md": "---\naudience: gruop\n---\n# Maple\n\nThe kiln and a maple.\n",
    "knowledge/reference/head.md": "---\naudience: [\n---\n# Spruce\n\nThe kiln and a spruce.\n",
    "knowledge/reference/shared.md": "# Birch\n\nThe kiln and a birch.\n",
    "knowledge/procedures/how.md": "# Alder\n\nThe kiln and an alder.\n",
    "knowledge/people/zorn.md": "---\nname: Ana Zorn\n---\n\nThe kiln and a hazel.\n",
    "knowledge/memory/kiln.md": "# Rowan\n\nThe kiln and a rowan.\n",
    "knowledge/journal/2026-05-01.md": "# Elder\n\nThe kiln and an elder.\n",
    "knowledge/projects/shop/context.md": "# Willow\n\nThe kiln and a willow.\n",
    "topics/kiln.md": "# Poplar\n\nThe kiln and a poplar.\n",
    "archive/reference/old.md": "# Aspen\n\nThe kiln and an aspen.\n",
    "knowledge/reference/main.md": "---\nagent: main\n---\n# Beech\n\nThe kiln and a beech.\n",
    "knowledge/reference/bench.md": "---\nagent: werkbank\n---\n# Linden\n\nThe kiln and a linden.\n",
    "knowledge/reference/both.md": "---\nagent: [main, werkbank]\n---\n# Yew\n\nThe kiln and a yewtree.\n",
    "knowledge/reference/any-bench.md": (
        "---\nagent: werkbank\naudience: anyone\n---\n# Quince\n\nThe kiln and a quince.\n"
    ),
}
TALKS = {
    "agent:main:main": "chestnut",
    GROUP: "hornbeam",
    OTHER_GROUP: "sycamore",
    f"{GROUP}:topic:7": "juniper",
    DIRECT: "cypress",
    "agent:werkbank:main": "mulberry",
    "agent:werkbank:telegram:group:-100": "acacia",
}
WORDS = {
    "walnut", "cedar", "larch", "maple", "spruce", "birch", "alder", "hazel", "rowan", "elder", "willow",
    "poplar", "aspen", "beech", "linden", "yewtree", "quince", *TALKS.values(),
}  # fmt: skip

ANYONE = {"walnut"}
FOR_GROUPS = ANYONE | {"cedar", "birch", "alder", "poplar", "aspen", "beech", "yewtree"}
OF_BENCH = {"linden", "quince", "mulberry", "acacia"}
OF_MAIN = {"beech"} | set(TALKS.values()) - OF_BENCH


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Path:
    root = tmp_path_factory.mktemp("privacy") / "home"
    memory = product.init(root)
    (root / "memory-config.yaml").write_text("git:\n  auto_commit: false\nsearch:\n  embedding_model: none\n")
    memory = product.open(root)
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for number, (key, word) in enumerate(TALKS.items()):
        at = START + timedelta(hours=number)
        session = memory.session(key, session_id=f"s{number}", started=at)
        session.message("user", f"The kiln and a {word}.", at=at, speaker=f"{word} speaker")
        session.end(at=at)
    return root


@pytest.fixture(params=["words", "vectors", "files"])
def memory(request: pytest.FixtureRequest, filled: Path) -> Memory:
    chosen = parts(Meaning) if request.param == "vectors" else parts()
    found = Memory(Home(filled), Config(), zone=UTC, now=lambda: START, parts=chosen)
    if request.param == "files":
        found.__dict__["searcher"] = Searcher(Home(filled), unreadable_parts())
    return found


def seen(value: object) -> set[str]:
    """Which of the words stand anywhere in a value."""
    text = json.dumps(value, default=str, ensure_ascii=False).casefold()
    return {word for word in WORDS if word in text}


def searched(memory: Memory, key: str | None) -> set[str]:
    """What a session gets by asking for what all have, and for each word by name."""
    found = seen([asdict(hit) for hit in memory.search("kiln", limit=200, session_key=key)])
    for word in sorted(WORDS)[:: 8 if memory.services.searcher.generation() is None else 1]:
        hits = memory.search(f"kiln {word}", limit=200, session_key=key)
        found |= seen([{**asdict(hit), "why": {**asdict(hit.why), "words": ()}} for hit in hits])
    return found


@pytest.mark.parametrize(
    ("key", "visible"),
    [
        (None, WORDS),
        ("agent:main:main", WORDS - OF_BENCH),
        ("agent:werkbank:main", WORDS - OF_MAIN),
        ("agent:new:main", WORDS - OF_BENCH - OF_MAIN - {"yewtree"}),
        (GROUP, FOR_GROUPS | {"hornbeam"}),
        (OTHER_GROUP, FOR_GROUPS | {"sycamore"}),
        (f"{GROUP}:topic:7", FOR_GROUPS | {"juniper"}),
        ("agent:main:telegram:group:-300", FOR_GROUPS),
        ("agent:main:slack:channel:C1", FOR_GROUPS),
        ("agent:werkbank:telegram:group:-100", (FOR_GROUPS - {"beech"}) | {"linden", "quince", "acacia"}),
        (DIRECT, ANYONE),
        ("agent:main:telegram:direct:666", ANYONE),
        ("agent:werkbank:telegram:direct:666", ANYONE | {"quince"}),
        ("agent:main:subagent:0c1d", FOR_GROUPS),
        ("agent:main:cron:daily", WORDS - OF_BENCH),
    ],
)
def test_each_session_sees_what_it_may_and_nothing_else(
    memory: Memory, key: str | None, visible: set[str]
) -> None:
    assert searched(memory, key) == visible


@pytest.mark.parametrize(
    "key",
    [
        "",
        " ",
        "main",
        "garbage",
        "agent",
        "agent:main",
        "agent:main:",
        "agent:main:main:",
        "agent:main:main:x",
        "x:agent:main:main",
        "AGENT:main:main",
        " agent:main:main",
        "agent:main:main\n",
        "agent:main:Main",
        "agent:main:main\0",
        "agent:*:*",
        "%",
        "\ud800",
        "a" * 100_000,
    ],
)
def test_a_key_that_nobody_knows_opens_nothing(memory: Memory, key: str) -> None:
    assert seen([asdict(hit) for hit in memory.search("kiln", limit=200, session_key=key)]) == ANYONE


@pytest.mark.parametrize("key", ["agent:group:telegram:direct:666", "agent:main:irc:direct:channel"])
def test_the_name_of_an_agent_or_of_a_person_makes_no_group(memory: Memory, key: str) -> None:
    """Only the place in the key that says what kind of session it is."""
    assert seen([asdict(hit) for hit in memory.search("kiln", limit=200, session_key=key)]) == ANYONE


def test_the_main_session_of_nobody_opens_nothing(memory: Memory) -> None:
    hits = memory.search("kiln", limit=200, session_key="agent::main")
    assert seen([asdict(hit) for hit in hits]) == ANYONE


def test_a_category_does_not_widen_what_a_session_sees(memory: Memory) -> None:
    for key in (GROUP, DIRECT):
        assert memory.search("kiln", category="journal", session_key=key) == []
        assert memory.search("kiln", category="person", session_key=key) == []


def everything_of(found: Found) -> set[str]:
    trace = {key: value for key, value in found.trace.items() if key != "scope"}
    return seen([[asdict(hit) for hit in found.hits], found.channels, found.degraded, trace])


def test_a_trace_holds_nothing_that_was_hidden(memory: Memory) -> None:
    found = memory.find("the kiln", Scope(audience="anyone", agents=("main",)), 200)
    assert everything_of(found) == ANYONE


def test_a_trace_does_not_tell_the_whole_name_of_a_hidden_person(memory: Memory) -> None:
    """The question has the first name; the other one stands in a file that only the owner sees."""
    found = memory.find("what about Ana and the kiln?", Scope(audience="group", agents=("main",)), 200)
    assert "zorn" not in json.dumps([asdict(hit) for hit in found.hits], default=str).casefold()
    assert "zorn" not in json.dumps(found.trace, default=str).casefold()


@pytest.mark.parametrize("memory", ["words", "vectors"], indirect=True)
@pytest.mark.parametrize("word", ["kiln", "walnut", "birch"])
def test_what_is_found_does_not_depend_on_words_in_hidden_files(memory: Memory, word: str) -> None:
    """Else a group learns, by asking, which words its owner wrote."""
    scope = Scope(audience="group", agents=("main",))
    hidden = memory.find(f"{word} larch", scope, 200)
    nowhere = memory.find(f"{word} zelkova", scope, 200)
    assert [hit.path for hit in hidden.hits] == [hit.path for hit in nowhere.hits]


# The command line


@pytest.mark.parametrize("form", [("--explain",), ("--explain", "--json")])
def test_cli_search_shows_an_audience_only_what_is_for_it(filled: Path, form: tuple[str, ...]) -> None:
    tacit = Tacit(filled)
    for audience, agent, visible in (("anyone", "main", ANYONE), ("group", "main", FOR_GROUPS)):
        done = tacit("search", "kiln", "-n", "200", "--audience", audience, "--agent", agent, *form)
        assert done.code == 0
        assert seen(done.stdout + done.stderr) == visible
    assert seen(tacit("search", "kiln", "-n", "200", *form).stdout) == WORDS
