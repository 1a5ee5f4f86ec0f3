"""`tacit topics`: what people read about their playbooks, the JSON, the exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.test_doctor import fingerprint

if TYPE_CHECKING:
    from tests.conftest import Tacit

MAIL = """---
type: topic
description: Sorting the inbox
triggers:
  - type: pattern
    match: "PR|pull request"
  - type: keywords
    words: [inbox, mail, letters, post]
  - type: cron
    schedule: "0 8 * * *"
  - type: webhook
    source: shop
    event: order_created
subscriptions:
  - knowledge/reference/mail.md
  - knowledge/reference/gone.md
activation: gated
priority: high
similarity_threshold: 0.2
max_context_kb: 1
audience: owner
---

# Mail

## Instructions

1. Answer the old letters in the inbox first.
"""
PLAIN = "---\ntype: topic\ntriggers: [kiln]\nactivation: auto\n---\n# Kiln\n\nRing Hanna.\n"
STEERING = """---
type: topic
triggers:
  - type: pattern
    match: "as an AI"
    scope: output
    correction_hint: Speak as yourself.
---
# Voice

Plain words.
"""


@pytest.fixture
def topics(home: Path) -> Path:
    folder = home / "topics"
    (folder / "weekly-review.md").unlink()
    (folder / "mail.md").write_text(MAIL)
    (home / "knowledge" / "reference" / "mail.md").write_text("# Mail\n\nThe office opens at nine.\n")
    return folder


def listed(tacit: Tacit) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tacit("topics", "--json").stdout)
    return found


# ---------------------------------------------------------------- list


def test_the_list_says_what_wakes_each_topic_and_what_is_missing(topics: Path, tacit: Tacit) -> None:
    (topics / "kiln.md").write_text(PLAIN)
    ran = tacit("topics")
    assert (ran.code, ran.stderr) == (0, "")
    header, kiln, mail, blank, problem = ran.stdout.splitlines()
    assert header.split() == ["topic", "activation", "priority", "subscribes", "for", "activates", "on"]
    assert kiln.split() == ["kiln", "auto", "medium", "0", "pattern", '"kiln"']
    assert mail.split()[:7] == ["mail", "gated", "high", "2,", "1", "not", "there"]
    assert 'owner  pattern "PR|pull request", keywords inbox' in mail
    assert blank == ""
    assert problem.startswith("warning: topics/mail.md:16: It subscribes to knowledge/reference/gone.md:")


@pytest.mark.usefixtures("topics")
def test_list_is_what_no_action_does_and_options_may_stand_on_both_sides(home: Path, tacit: Tacit) -> None:
    expected = tacit("topics", "list", "--json").stdout
    nowhere = {"TACIT_HOME": str(home / "none")}
    for arguments in (["--json"], ["--json", "list"], ["--json", "--home", str(home), "list"]):
        assert tacit("topics", *arguments, "--home", str(home), env=nowhere).stdout == expected
    assert tacit("topics", "list", env=nowhere).code == 1


@pytest.mark.usefixtures("topics")
def test_the_list_as_json_has_every_field(tacit: Tacit) -> None:
    found = listed(tacit)
    (mail,) = found["topics"]
    assert mail["triggers"][2:] == [
        {"type": "cron", "scope": "input", "schedule": "0 8 * * *"},
        {"type": "webhook", "scope": "input", "source": "shop", "event": "order_created"},
    ]
    assert mail["subscriptions"] == [
        {"path": "knowledge/reference/mail.md", "problem": None},
        {"path": "knowledge/reference/gone.md", "problem": "there is no such file"},
    ]
    assert (mail["name"], mail["audience"], mail["similarity_threshold"]) == ("mail", "owner", 0.2)
    assert [(one["where"], one["line"], one["level"]) for one in found["problems"]] == [
        ("topics/mail.md", 16, "warning")
    ]


def test_a_home_without_topics_says_what_one_is(topics: Path, tacit: Tacit) -> None:
    (topics / "mail.md").unlink()
    assert tacit("topics").stdout.startswith("There are no topics.")
    assert listed(tacit) == {"topics": [], "problems": []}
    assert tacit("topics", "try", "hello").stdout == "No topic activates for “hello”.\n"


def test_by_hand_and_by_similarity_are_named_in_the_list(topics: Path, tacit: Tacit) -> None:
    (topics / "hand.md").write_text("---\nactivation: manual\ntriggers: [x]\n---\n# H\nDo.\n")
    (topics / "like.md").write_text("---\nsimilarity: true\nagent: kim\n---\n# L\nDo.\n")
    rows = tacit("topics").stdout.splitlines()
    assert rows[1].split() == ["hand", "manual", "medium", "0", "its", "name"]
    assert rows[2].split() == ["like", "gated", "medium", "0", "kim", "similarity"]


# ---------------------------------------------------------------- what is wrong

BAD = {
    "mixed": (
        "---\ntriggers:\n  - type: pattern\n    match: invoice\n  activation: gated\n---\n# M\nDo.\n",
        "error: topics/mixed.md:5: `activation` among the triggers",
    ),
    "modes": (
        "---\ntriggers: [x]\nactivation: sometimes\n---\n# M\nDo.\n",
        "error: topics/modes.md:3: activation is 'sometimes', so manual is used. Write one of: auto,",
    ),
    "ahead": (
        "---\ntriggers:\n  - hello\n  - 'foo(?=bar)'\n---\n# A\nDo.\n",
        'error: topics/ahead.md: Trigger 2: the pattern "foo(?=bar)" cannot be used: RE2 has no lookahead',
    ),
    "broken": ("---\na: [\n---\n# B\nDo.\n", "error: topics/broken.md:3: The frontmatter is not valid YAML"),
    "empty": ("", "error: topics/empty.md: There is nothing in it"),
    "asleep": ("# A\nDo.\n", "warning: topics/asleep.md: Nothing wakes it"),
    "out": (
        "---\ntriggers: [x]\nsubscriptions: [../../etc/passwd]\n---\n# O\nDo.\n",
        "error: topics/out.md:3: The subscription '../../etc/passwd' leads out of the home",
    ),
    "folder": (
        "---\ntriggers: [x]\nsubscriptions:\n- knowledge/reference\n---\n# F\nDo.\n",
        "warning: topics/folder.md:4: It subscribes to knowledge/reference: ",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named_and_the_others_work(topics: Path, tacit: Tacit, name: str) -> None:
    text, said = BAD[name]
    (topics / f"{name}.md").write_text(text)
    ran = tacit("topics")
    (line,) = [line for line in ran.stdout.splitlines() if f"topics/{name}.md" in line]
    assert line.startswith(said)
    assert ran.code == (1 if said.startswith("error") else 0)
    assert tacit("topics", "try", "what is in my inbox?").stdout.startswith("1 topic activates")
    assert said in tacit("topics", "show", name).stdout


def test_what_is_no_plain_text_is_named_and_the_others_work(topics: Path, tacit: Tacit) -> None:
    (topics / "binary.md").write_bytes(bytes(range(256)) * 9)
    (topics / "link.md").symlink_to(topics / "mail.md")
    (topics / "team").symlink_to(topics.parent)
    (topics / "twice.md").hardlink_to(topics / "binary.md")
    (topics / "folder.md").mkdir()
    os.mkfifo(topics / "pipe.md")
    ran = tacit("topics")
    assert ran.code == 1
    for said in (
        "error: topics/binary.md: cannot be read: ",
        "warning: topics/folder.md: is a folder",
        "error: topics/link.md: is a link",
        "error: topics/pipe.md: is no plain file",
        "error: topics/team: is a link",
        "error: topics/twice.md: cannot be read: ",
    ):
        assert said in ran.stdout
    assert [topic["name"] for topic in listed(tacit)["topics"]] == ["mail"]
    (topics / "twice.md").unlink()
    assert "error: topics/binary.md: is not text" in tacit("topics").stdout


def test_of_two_of_one_name_the_first_is_used(topics: Path, tacit: Tacit) -> None:
    for folder in ("a", "b"):
        (topics / folder).mkdir()
        (topics / folder / "kiln.md").write_text(PLAIN)
    ran = tacit("topics")
    assert ran.code == 1
    assert "error: topics/b/kiln.md: has the same name as topics/a/kiln.md, which is used." in ran.stdout
    assert ran.stdout.count("\n  kiln ") == 1


def test_a_pattern_that_would_run_away_elsewhere_does_not_here(topics: Path, tacit: Tacit) -> None:
    (topics / "evil.md").write_text("---\nactivation: auto\ntriggers: ['(a+)+$']\n---\n# E\nDo.\n")
    assert tacit("topics", "try", "-", stdin="a" * 20_000 + "b" + "a" * 4_000, timeout=20).code == 0


def test_names_and_patterns_cannot_move_the_cursor(topics: Path, tacit: Tacit) -> None:
    text = '---\ntriggers: ["kiln\\e[2J"]\nactivation: "\\e[2J"\ndescription: "\\e[2J"\n---\n# \x1b[2J\nDo.\n'
    (topics / "a\x1b[2J.md").write_text(text)
    ran = [tacit("topics"), tacit("topics", "show", "a\x1b[2J"), tacit("topics", "try", "kiln \x1b[2J")]
    assert "\x1b" not in "".join(one.stdout + one.stderr for one in ran)
    assert [one.code for one in ran] == [1, 1, 0]


# ---------------------------------------------------------------- show


@pytest.mark.usefixtures("topics")
def test_show_tells_everything_about_a_topic(tacit: Tacit) -> None:
    ran = tacit("topics", "show", "mail")
    facts = [line.split(maxsplit=1) for line in ran.stdout.splitlines()]
    assert ["mail", "Mail"] in facts
    assert "trigger 1      pattern, match PR|pull request\n" in ran.stdout
    assert "trigger 2      keywords, words inbox, mail, letters, post\n" in ran.stdout
    assert "trigger 4      webhook, source shop, event order_created\n" in ran.stdout
    assert "threshold      0.2, its own\n" in ran.stdout
    assert "subscribes to  knowledge/reference/gone.md: there is no such file\n" in ran.stdout
    assert "of at most 256 tokens (max_context_kb 1)\n" in ran.stdout
    assert "warning: topics/mail.md:16:" in ran.stdout
    assert ran.code == 0


def test_show_counts_tokens_and_says_what_is_too_much(topics: Path, home: Path, tacit: Tacit) -> None:
    seen = json.loads(tacit("topics", "show", "topics/mail.md", "--json").stdout)
    assert set(seen["tokens"]) == {"topics/mail.md", "knowledge/reference/mail.md"}
    assert seen["tokens_in_all"] == sum(seen["tokens"].values()) < seen["tokens_at_most"] == 256
    assert seen["exceeds"] is False
    (home / "knowledge" / "reference" / "mail.md").write_text("word " * 250)
    assert json.loads(tacit("topics", "show", "mail", "--json").stdout)["exceeds"] is True
    assert "too much, so the end is cut" in tacit("topics", "show", "mail").stdout


def test_a_body_of_a_megabyte_is_shown_by_its_size(topics: Path, tacit: Tacit) -> None:
    (topics / "large.md").write_text("---\ntriggers: [large]\n---\n# Large\n\n" + "word " * 200_000)
    ran = tacit("topics", "show", "large")
    assert len(ran.stdout) < 2000
    assert json.loads(tacit("topics", "show", "large", "--json").stdout)["tokens_in_all"] > 190_000


def test_show_of_a_file_that_cannot_be_used_says_why(topics: Path, tacit: Tacit) -> None:
    (topics / "broken.md").write_text("---\na: [\n---\n")
    ran = tacit("topics", "show", "broken")
    assert (ran.code, ran.stdout.splitlines()[0]) == (1, "broken cannot be used.")
    seen = json.loads(tacit("topics", "show", "broken", "--json").stdout)
    assert seen["problems"][0]["line"] == 3
    assert tacit("topics", "show", "nosuch").code == 2


# ---------------------------------------------------------------- try


def test_try_shows_every_tier_and_writes_nothing(topics: Path, home: Path, tacit: Tacit) -> None:
    (topics / "kiln.md").write_text(PLAIN)
    before = fingerprint(home)
    ran = tacit("topics", "try", "Any letters in the inbox?")
    lines = ran.stdout.splitlines()
    assert lines[0] == "1 topic activates for “Any letters in the inbox?”."
    assert lines[2] == "mail  gated, high priority"
    assert lines[3].split(maxsplit=1) == ["triggers", 'keyword "inbox", "letters"']
    assert [line.split()[0] for line in lines[4:6]] == ["score", "verdict"]
    assert "tfidf" in lines[4]
    assert fingerprint(home) == before


def test_try_shows_what_the_gate_says(topics: Path, tacit: Tacit) -> None:
    (topics / "mail.md").write_text(MAIL.replace("priority: high", "priority: medium"))
    ran = tacit("topics", "try", "Any letters in the inbox?")
    assert "verdict   ask the gate: score" in ran.stdout
    assert "gate      yes, by rule: score" in ran.stdout
    (awake,) = json.loads(tacit("topics", "try", "Any letters in the inbox?", "--json").stdout)["awake"]
    assert (awake["gate_result"], awake["by"], awake["outcome"]) == (True, "rule", "activated")
    assert awake["score"] > 0.2
    assert set(awake["channels"]) == {"tfidf", "bm25", "jaccard", "ngrams", "mood"}


def test_try_says_that_the_gate_could_not_be_asked(topics: Path, home: Path, tacit: Tacit) -> None:
    (topics / "mail.md").write_text(MAIL.replace("priority: high", "priority: medium"))
    (home / "memory-config.yaml").write_text("watchers:\n  gate_model: http://127.0.0.1:1#none\n")
    seen = json.loads(tacit("topics", "try", "Any letters in the inbox?", "--json").stdout)
    (asleep,) = seen["asleep"]
    assert seen["awake"] == []
    assert (asleep["outcome"], asleep["by"], asleep["gate_result"]) == ("rejected", "error", None)
    assert "127.0.0.1" in tacit("topics", "try", "Any letters in the inbox?").stdout


def test_try_says_what_the_nearest_lack(topics: Path, tacit: Tacit) -> None:
    (topics / "kiln.md").write_text(PLAIN)
    (topics / "clay.md").write_text(PLAIN.replace("auto", "manual").replace("# Kiln", "# Clay"))
    seen = json.loads(tacit("topics", "try", "Hanna, the kiln", "--json").stdout)
    assert [one["topic"] for one in seen["awake"]] == ["kiln"]
    assert seen["asleep"][0]["topic"] == "clay"
    assert seen["asleep"][0]["matches"] == [{"type": "pattern", "text": 'pattern "kiln"'}]
    assert seen["asleep"][0]["reason"].endswith("activates only when it is asked for")
    ran = tacit("topics", "try", "sorting the old things first")
    assert ran.stdout.startswith("No topic activates for")
    assert (
        "no trigger matched, and it does not wake by similarity alone; it activates on pattern" in ran.stdout
    )


def test_try_is_asked_as_one_session(topics: Path, tacit: Tacit) -> None:
    ran = tacit("topics", "try", "my inbox", "--session-key", "agent:main:telegram:group:7")
    assert ran.stdout.startswith("No topic activates")
    assert "not for this session: its audience is owner, this is group" in ran.stdout
    (topics / "mail.md").write_text(MAIL.replace("audience: owner", "agent: kim"))
    assert "it is for the agent kim" in tacit("topics", "try", "my inbox").stdout
    ran = tacit("topics", "try", "my inbox", "--session-key", "agent:kim:main")
    assert ran.stdout.startswith("1 topic activates")


def test_try_takes_paths_that_tools_touched(topics: Path, tacit: Tacit) -> None:
    glob = "---\nactivation: auto\ntriggers:\n  - type: glob\n    match: '*.py'\n---\n# Python\nDo.\n"
    (topics / "python.md").write_text(glob)
    ran = tacit("topics", "try", "go on", "--path", "README", "--path", "src/main.py")
    assert "triggers  path src/main.py\n" in ran.stdout


@pytest.mark.usefixtures("topics")
def test_try_says_that_a_turn_would_skip_the_message(tacit: Tacit) -> None:
    assert tacit("topics", "try", "ok").stdout.startswith("A turn would activate no topic for it: ")
    assert json.loads(tacit("topics", "try", "ok", "--json").stdout)["skipped"]
    assert not json.loads(tacit("topics", "try", "my inbox", "--json").stdout)["skipped"]


def test_try_output_shows_which_topic_corrects_the_agent(topics: Path, home: Path, tacit: Tacit) -> None:
    (topics / "voice.md").write_text(STEERING)
    (topics / "mute.md").write_text(STEERING.replace("    correction_hint: Speak as yourself.\n", ""))
    before = fingerprint(home)
    ran = tacit("topics", "try", "--output", "I speak as an AI here.")
    assert ran.stdout.startswith("1 topic activates for")
    assert "  says      Speak as yourself.\n" in ran.stdout
    assert "mute" in ran.stdout.partition("Inactive")[2]
    assert "give the trigger a correction_hint" in ran.stdout
    assert "mail" not in ran.stdout
    seen = json.loads(tacit("topics", "try", "--output", "Hello.", "--json").stdout)
    assert seen["awake"] == []
    assert {one["topic"]: one["reason"] for one in seen["asleep"]}["voice"] == "no trigger matched"
    assert fingerprint(home) == before


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("text", ["", "\x00\x1b[2J", "a" * 1_000_000, "\udcff", "--> <!--"])
def test_try_takes_any_text(tacit: Tacit, text: str) -> None:
    ran = tacit("topics", "try", "-", stdin=text)
    assert (ran.code, ran.stderr) == (0, "")
    assert "\x1b" not in ran.stdout


# ---------------------------------------------------------------- due


def every_minute(topics: Path) -> None:
    (topics / "mail.md").write_text(MAIL.replace("0 8 * * *", "* * * * *"))


@pytest.mark.usefixtures("topics")
def test_due_names_topics_whose_schedule_came_due(home: Path, tacit: Tacit) -> None:
    before = fingerprint(home)
    ran = tacit("topics", "due")
    (line, todo) = ran.stdout.splitlines()
    assert line.startswith("  mail  20")
    assert line.endswith(" 08:00  0 8 * * *")
    assert todo.endswith('tacit compile "" --cron NAME')
    (one,) = json.loads(tacit("topics", "due", "--json").stdout)
    at = datetime.fromisoformat(one["at"])
    assert (one["topic"], at.hour, at.minute) == ("mail", 8, 0)
    assert at <= datetime.now(at.tzinfo) < at + timedelta(hours=25)
    assert fingerprint(home) == before


def test_what_was_said_to_be_done_is_not_due_again(topics: Path, home: Path, tacit: Tacit) -> None:
    every_minute(topics)
    assert len(json.loads(tacit("topics", "due", "--json", "--done").stdout)) == 1
    done = json.loads((home / ".tacit" / "due.json").read_text())["done"]
    assert datetime.fromisoformat(done).tzinfo is not None
    (topics / "mail.md").write_text(MAIL.replace("0 8 * * *", "0 0 1 1 *"))
    assert tacit("topics", "due").stdout.startswith("Nothing came due since")
    assert len(json.loads(tacit("topics", "due", "--json", "--since", "2000-01-01").stdout)) == 1
    assert json.loads((home / ".tacit" / "due.json").read_text())["done"] == done


@pytest.mark.parametrize(
    "kept", ["", "[]", '{"done": 7}', '{"done": "soon"}', '{"done": "2999-01-01T00:00:00+00:00"}', "\0"]
)
def test_a_moment_that_cannot_be_is_passed_over(topics: Path, home: Path, tacit: Tacit, kept: str) -> None:
    every_minute(topics)
    (home / ".tacit" / "due.json").write_text(kept)
    ran = tacit("topics", "due", "--json", "--done")
    assert (ran.code, len(json.loads(ran.stdout))) == (0, 1)
    assert "so the last 24 hours count" in ran.stderr
    assert tacit("topics", "due").stderr == ""


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize(
    ("since", "count"),
    [
        ("2 days", 1), ("48 hours ago", 1), ("yesterday", 1), ("1000 weeks", 1), ("2026-01-01T08:00", 1),
        ("2026-01-01T08:00+05:00", 1), ("2999-01-01", 0), ("0 minutes", 0),
    ],
)  # fmt: skip
def test_since_takes_dates_and_spans(tacit: Tacit, since: str, count: int) -> None:
    assert len(json.loads(tacit("topics", "due", "--json", "--since", since).stdout)) == count


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("since", ["", "soon", "3 fortnights", "0001-01-01T00:00+14:00"])
def test_since_that_is_no_moment_is_usage(tacit: Tacit, since: str) -> None:
    assert tacit("topics", "due", f"--since={since}").code == 2


def test_the_hour_is_that_of_the_season(topics: Path, tacit: Tacit) -> None:
    for name, schedule in (("winter", "0 8 1 1 *"), ("summer", "0 8 1 7 *")):
        (topics / f"{name}.md").write_text(MAIL.replace("0 8 * * *", schedule))
    seen = json.loads(tacit("topics", "due", "--json", "--since", "60 weeks").stdout)
    hours = {one["topic"]: one["at"].partition("T")[2] for one in seen}
    assert (hours["winter"], hours["summer"]) == ("08:00:00+01:00", "08:00:00+02:00")


@pytest.mark.usefixtures("topics")
def test_the_homes_zone_decides_when_it_is_eight(home: Path, tacit: Tacit) -> None:
    (home / "memory-config.yaml").write_text("timezone: Asia/Kolkata\n")
    (one,) = json.loads(tacit("topics", "due", "--json").stdout)
    assert one["at"].endswith("T08:00:00+05:30")


def test_a_topic_that_cannot_be_read_is_told_once_and_json_stays_json(topics: Path, tacit: Tacit) -> None:
    (topics / "broken.md").write_text("---\na: [\n---\n")
    ran = tacit("topics", "due", "--json")
    assert ran.stderr == "warning: not every topic could be read as it is meant. See: tacit topics\n"
    assert len(json.loads(ran.stdout)) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_what_nobody_could_read_is_due_again(topics: Path, home: Path, tacit: Tacit) -> None:
    every_minute(topics)
    command = [sys.executable, "-m", "tacit", "--home", str(home), "topics", "due", "--json", "--done"]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.DEVNULL, env=environment)
    assert done.returncode == 1
    assert not (home / ".tacit" / "due.json").exists()
    assert len(json.loads(tacit("topics", "due", "--json").stdout)) == 1


@pytest.mark.parametrize(
    "arguments", [["nosuch"], ["show"], ["try"], ["try", "a", "b"], ["due", "x"], ["list", "x"]]
)
def test_wrong_arguments_are_usage(tacit: Tacit, arguments: list[str]) -> None:
    assert tacit("topics", *arguments).code == 2
