"""memory-config.yaml: what it accepts, and the one message for each way to get it wrong."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import pytest

from tacit.config import Config, LoadedConfig, Override, Workspace, parse, render_starter
from tacit.config.editing import add_workspace
from tacit.config.schema import KEYS, SECTIONS
from tacit.errors import ConfigError

ENVIRON = {"HOME": "/home/ada", "AGENTS": "/srv/agents", "EMPTY": "", "RELATIVE": "some/where"}
EMAIL_LIKE = "git@example.org:ada/memory.git"


def load(text: str, *, trusted: bool = True) -> LoadedConfig:
    return parse(text, where="memory-config.yaml", environ=ENVIRON, trusted=trusted)


def message(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(text)
    return str(caught.value).removeprefix("memory-config.yaml:")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "~\n", "git:\nsearch:\n", "{}"])
def test_a_file_that_says_nothing_means_the_defaults(text: str) -> None:
    loaded = load(text)
    assert loaded.config == Config()
    assert loaded.problems == ()
    assert set(loaded.origins.values()) == {"default"}


def test_the_defaults_work_offline_and_push_nowhere() -> None:
    config = Config()
    assert config.git.auto_push is False
    assert config.git.remote is None
    assert config.search.embedding_model == "bundled"
    assert config.search.index == "sqlite"
    assert (config.watchers.gate_model, config.lifecycle.model, config.git.commit_message_model) == (
        None,
    ) * 3
    assert config.workspaces == ()


def test_the_sample_of_the_source_document_loads_with_its_own_values() -> None:
    """Only the gate's answer of one token had to grow."""
    loaded = load(
        """
context_compiler:
  token_budget: 8192                    # Target context size
  identity_budget_kb: 17
  memory_budget_kb: 3
  journal_budget_kb: 4
  topic_budget_kb: 6

search:
  bm25_weight: 0.4
  vector_weight: 0.6
  embedding_model: text-embedding-3-small
  embedding_dimensions: 1536

watchers:
  similarity_threshold: 0.15
  gate_model: haiku
  gate_max_tokens: 8

lifecycle:
  commit_interval_minutes: 30
  journal_retention_days: 90
  memory_line_cap: 200
  extraction_trigger: on_session_end     # on_session_end | hourly | manual
  condensation_schedule: "0 23 * * *"    # Daily at 23:00
  pruning_schedule: "0 0 * * 0"          # Weekly Sunday midnight

git:
  auto_commit: true
  auto_push: true
  auto_tag_daily: true
  commit_message_model: haiku
"""
    )
    assert loaded.config.search.embedding_dimensions == 1536
    assert loaded.config.watchers.gate_model == "haiku"
    assert loaded.config.git.auto_push is True
    assert [str(problem) for problem in loaded.problems] == [
        (
            "memory-config.yaml:30: 'git.auto_push' is true, but 'git.remote' is null, so nothing is pushed. "
            "Set git.remote."
        )
    ]


def test_each_value_says_which_line_it_comes_from() -> None:
    loaded = load("# mine\ngit:\n  auto_commit: no\n\ntimezone: Europe/Berlin\n")
    assert loaded.config.git.auto_commit is False
    assert loaded.config.timezone == "Europe/Berlin"
    assert loaded.origins["git.auto_commit"] == "memory-config.yaml:3"
    assert loaded.origins["timezone"] == "memory-config.yaml:5"
    assert loaded.origins["git.branch"] == "default"
    assert list(loaded.origins) == list(KEYS)


def test_an_origin_names_the_file_without_its_folder() -> None:
    loaded = parse("owners: [ada]", where="/home/ada/tacit/memory-config.yaml", environ={}, trusted=True)
    assert loaded.origins["owners"] == "memory-config.yaml:1"


def test_a_session_type_can_change_one_of_its_settings_and_keep_the_rest() -> None:
    sessions = load("sessions:\n  group_chat:\n    token_budget: 2000\n").config.sessions
    assert sessions.group_chat.token_budget == 2000
    assert sessions.group_chat.files == ("SOUL.md", "TOOLS_COMPACT.md")
    assert sessions.private_dm == Config().sessions.private_dm


def test_a_rule_for_some_sessions_holds_what_it_names_and_no_more() -> None:
    loaded = load(
        "sessions:\n  rules:\n    - {topic: '15', type: forum_topic, files: [SOUL.md, OPS.md]}\n"
        "    - agent: shop\n      lanes: []\n      token_budget: null\n"
    )
    assert loaded.config.sessions.rules == (
        Override((("type", "forum_topic"), ("topic", "15")), (("files", ("SOUL.md", "OPS.md")),)),
        Override((("agent", "shop"),), (("token_budget", None), ("lanes", ()))),
    )
    assert loaded.config.sessions.rules[0].to_dict() == {
        "type": "forum_topic", "topic": "15", "files": ("SOUL.md", "OPS.md"),
    }  # fmt: skip
    assert loaded.origins["sessions.rules"] == "memory-config.yaml:2"
    assert loaded.rules == ("memory-config.yaml:3", "memory-config.yaml:4")
    assert list(loaded.origins) == list(KEYS)


def test_without_rules_no_rule_stands_anywhere() -> None:
    assert load("sessions: {rules: []}").rules == ()


def test_variables_are_expanded_in_a_rule_as_elsewhere() -> None:
    loaded = parse(
        "sessions: {rules: [{peer: $GROUP, lanes: []}, {peer: a$$b, lanes: []}]}",
        where="f", environ={"GROUP": "-100"}, trusted=True,
    )  # fmt: skip
    assert [rule.conditions for rule in loaded.config.sessions.rules] == [
        (("peer", "-100"),), (("peer", "a$b"),),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("[{agent: a, lanes: []}, {agent: a, type: subagent, lanes: []}]", True),
        ("[{agent: a, lanes: []}, {agent: a, token_budget: 999}]", True),
        ("[{agent: a, type: subagent, lanes: []}, {agent: a, lanes: []}]", False),
        ("[{agent: a, lanes: []}, {agent: b, lanes: []}]", False),
    ],
)
def test_a_rule_that_can_never_count_is_told(rules: str, told: bool) -> None:
    problems = [str(problem) for problem in load(f"sessions: {{rules: {rules}}}").problems]
    message = (
        "memory-config.yaml:1: this rule of 'sessions.rules' never counts: that on line 1 holds wherever it "
        "does. Put this one before it."
    )
    assert problems == ([message] if told else [])


def test_a_whole_number_is_fine_where_a_number_is_wanted() -> None:
    weight = load("search: {vector_weight: 1}").config.search.vector_weight
    assert weight == 1
    assert isinstance(weight, float)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("~/agents", "/home/ada/agents"),
        ("'~'", "/home/ada"),
        ("$AGENTS/one", "/srv/agents/one"),
        ("'${AGENTS}-two'", "/srv/agents-two"),
        ("/srv/$$cheap", "/srv/$cheap"),
        ("/srv/a/../b//c/", "/srv/b/c"),
        ("$EMPTY/srv", "/srv"),
    ],
)
def test_home_and_variables_are_expanded_in_paths(written: str, meant: str) -> None:
    assert load(f"workspaces: [{written}]").config.workspaces == (Workspace(meant),)


def test_a_workspace_is_a_path_or_a_group() -> None:
    text = "workspaces:\n- /srv/a\n- {path: ~/b, agent: shop}\n- path: /srv/c\n  name: c-2\n"
    assert load(text).config.workspaces == (
        Workspace("/srv/a"),
        Workspace("/home/ada/b", agent="shop"),
        Workspace("/srv/c", name="c-2"),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[{agent: shop}]", "a group in 'workspaces' has no path. Add the folder"),
        ("[{path: srv}]", "'workspaces' must be a list where each item is an absolute path"),
        ("[{path: /a, nmae: b}]", "unknown key 'workspaces.nmae'. Did you mean 'name'?"),
        ("[{path: /a, name: ../b}]", "'workspaces.name' must be a plain word"),
        ("[{path: /a, name: .}]", "'workspaces.name' must be a plain word"),
        ("[{path: /a, path: /b}]", "is there twice"),
        ("[/a, {path: /a, agent: x}]", "'workspaces' names '/a' twice. Keep one."),
        ("[{path: /a, name: x}, {path: /b, name: x}]", "two of 'workspaces' have the name 'x'."),
        ("/a", "'workspaces' must be a list where each item is an absolute path or a group of path, agent"),
        ("[[/a]]", "'workspaces' must be a list where each item is an absolute path"),
    ],
)
def test_a_workspace_that_is_not_right_is_refused(text: str, told: str) -> None:
    assert told in message(f"workspaces: {text}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "timezone: UTC",
        render_starter(),
        "workspaces: []\n",
        "workspaces: [/a]  # mine\ngit: {explore_days: 3}\n",
        "workspaces:\n  - /a\n  - {path: /b}\ngit:\n  explore_days: 3\n",
        "workspaces:\n- path: /a\n  agent: shop\n# the end\n",
    ],
)
def test_one_more_workspace_changes_nothing_else(text: str) -> None:
    before = load(text).config
    new = add_workspace(text, Workspace("/srv/my $agents", agent="shop"), "memory-config.yaml")
    assert new is not None
    assert load(new).config == replace(
        before, workspaces=(*before.workspaces, Workspace("/srv/my $agents", agent="shop"))
    )
    kept = [line for line in text.split("\n") if not line.lstrip("#").startswith("workspaces")]
    assert [line for line in new.split("\n") if line in kept] == kept


def test_a_list_over_several_lines_is_left_to_a_person() -> None:
    assert add_workspace("workspaces: [/a,\n  /b]\n", Workspace("/c"), "memory-config.yaml") is None


def test_what_a_variable_holds_is_not_expanded_again() -> None:
    loaded = parse("owners: [$A]", where="f", environ={"A": "$B ~ ${C}"}, trusted=True)
    assert loaded.config.owners == ("$B ~ ${C}",)


@pytest.mark.parametrize(
    "good",
    [
        "timezone: UTC",
        "timezone: America/Argentina/Ushuaia",
        "owners: ['+491234', telegram:77]",
        "search: {index: 'postgresql://db.example/tacit'}",
        "search: {embedding_model: /opt/models/e5, embedding_dimensions: 384}",
        "search: {bm25_weight: 0}",
        "lifecycle: {pruning_schedule: '*/15 0-6,20 1 1-12/2 7'}",
        "git: {remote: origin}",
        f"git: {{remote: '{EMAIL_LIKE}'}}",
        "git: {remote: 'https://user:secret@example.org/memory.git'}",
        "git: {remote: 'ssh://git@example.org:22/memory.git'}",
        "git: {remote: ~/backup.git}",
        "git: {branch: team/main-2}",
        "sessions: {fallback: {files: null}}",
        "sessions: {main_session: {audience: anyone}}",
        "inject: {lanes: []}",
        "sessions: {group_chat: {lanes: [runtime, file]}, subagent: {lanes: []}, fallback: {lanes: null}}",
        "sessions: {main_keys: [home, dashboard]}",
        "sessions: {main_keys: [main, explicit, telegram]}",
        "sessions: {main_session: {files: null}, group_chat: {files: [SOUL.md, USER.md]}}",
        "sessions: {orchestration: {files: [SOUL.md, MEMORY.md]}, external_dm: {files: [SOUL.md, SOUL.md]}}",
        "owners: ['@ana:example.org', 'signal:uuid:0c', 'matrix:@ana:example.org']",
        "sessions: {main_keys: []}",
        "sessions: {rules: [{type: main_session, audience: owner}]}",
        "sessions: {rules: [{type: main_session, audience: anyone, files: [SOUL.md]}]}",
        "sessions: {rules: [{type: fallback, files: null}]}",
        "sessions: {rules: [{agent: a, audience: anyone, files: [SOUL.md]}]}",
        "sessions: {rules: [{channel: nextcloud-talk, peer: '@ana:example.org', topic: $$x, lanes: [file]}]}",
        "lifecycle: {memory_warn_lines: 200, memory_line_cap: 200, memory_block_lines: 200}",
    ],
)
def test_values_people_use_are_accepted(good: str) -> None:
    load(good)


RULES = (
    "a list where each item is a group of conditions (type, agent, channel, peer, topic) and settings "
    "(files, audience, token_budget, lanes)"
)
WRONG = [
    # unknown keys
    ("git:\n  auto_comit: true", "2: unknown key 'git.auto_comit'. Did you mean 'git.auto_commit'?"),
    ("token_budget: 1", "1: unknown key 'token_budget'. Did you mean 'context_compiler.token_budget'?"),
    ("git: {bm25_wait: 1}", "1: unknown key 'git.bm25_wait'. Did you mean 'search.bm25_weight'?"),
    ("git: {Auto-Commit: 1}", "1: unknown key 'git.Auto-Commit'. Did you mean 'git.auto_commit'?"),
    ("serch: {}", "1: unknown key 'serch'. Did you mean 'search'?"),
    (
        "watchers: {zzz: 1}",
        ("1: unknown key 'watchers.zzz'. "
        "Keys of 'watchers': similarity_threshold, gate_model, gate_max_tokens."),
    ),
    (
        "zzzzzz: 1",
        ("1: unknown key 'zzzzzz'. Keys at the top: timezone, owners, workspaces, context_compiler, search, "
        "watchers, lifecycle, review, git, capture, memory, inject, serve, sessions, openclaw, models."),
    ),
    ('"\\e[31m": 1', "1: unknown key '\\x1b[31m'. " + "Keys at the top: timezone, owners, workspaces, "
     "context_compiler, search, "
     "watchers, lifecycle, review, git, capture, memory, inject, serve, sessions, openclaw, models."),
    (
        "git.auto_commit: true",
        ("1: the key 'git.auto_commit' has a dot. "
        "Write the part after the dot indented below the part before it."),
    ),
    ("? [a, b]\n: 1", "1: a key must be a plain word, but is a list. Remove it."),
    # twice
    ("git:\n  branch: a\n  branch: b", "3: the key 'git.branch' is there twice, first on line 2. Keep one."),
    ("git: {}\nsearch: {}\ngit: {}", "3: the key 'git' is there twice, first on line 1. Keep one."),
    # sections
    ("- a\n- b", "1: the file must hold keys, but is a list. Write 'key: value' lines."),
    ("\njust words", "2: the file must hold keys, but is the text 'just words'. Write 'key: value' lines."),
    ("git: true", "1: 'git' must hold keys, but is true. Write 'key: value' lines indented below it."),
    # types
    (
        'lifecycle:\n  memory_line_cap: "200"',
        ("2: 'lifecycle.memory_line_cap' must be a whole number from 1 to 100000, but is the text '200'. "
        "Remove the quotes."),
    ),
    (
        "lifecycle: {memory_line_cap: true}",
        "1: 'lifecycle.memory_line_cap' must be a whole number from 1 to 100000, but is true.",
    ),
    (
        "lifecycle: {memory_line_cap: 200.0}",
        ("1: 'lifecycle.memory_line_cap' must be a whole number from 1 to 100000, but is 200.0. "
        "Write it in plain digits like 30."),
    ),
    (
        "inject: {deadline_ms: 0x10}",
        ("1: 'inject.deadline_ms' must be a whole number from 10 to 60000, but is 0x10. "
        "Write it in plain digits like 30."),
    ),
    (
        "inject: {deadline_ms: }",
        "1: 'inject.deadline_ms' must be a whole number from 10 to 60000, but is empty.",
    ),
    (
        "inject: {deadline_ms: [1]}",
        "1: 'inject.deadline_ms' must be a whole number from 10 to 60000, but is a list.",
    ),
    (
        "inject: {strong: 1e-1}",
        ("1: 'inject.strong' must be a number from 0 to 1, but is the text '1e-1'. "
        "Write it in plain digits like 0.5."),
    ),
    (
        "inject: {strong: .nan}",
        "1: 'inject.strong' must be a number from 0 to 1, but is .nan. Write it in plain digits like 0.5.",
    ),
    (
        "inject: {strong: high}",
        "1: 'inject.strong' must be a number from 0 to 1, but is the text 'high'.",
    ),
    (
        "git: {auto_commit: 'true'}",
        "1: 'git.auto_commit' must be true or false, but is the text 'true'. Remove the quotes.",
    ),
    ("git: {auto_commit: 1}", "1: 'git.auto_commit' must be true or false, but is 1."),
    (
        "git: {auto_commit: {a: 1}}",
        "1: 'git.auto_commit' must be true or false, but is a group of keys.",
    ),
    ("git: {branch: 7}", "1: 'git.branch' must be a branch name, but is 7. Put it in quotes."),
    (
        "git: {branch: 2026-01-02}",
        "1: 'git.branch' must be a branch name, but is 2026-01-02. Put it in quotes.",
    ),
    (
        "owners: ada",
        ("1: 'owners' must be a list where each item is an id (not '*'), but is the text 'ada'. "
        "Write it as [a, b]."),
    ),
    (
        "owners:\n  - ada\n  - 77",
        "3: 'owners' must be a list where each item is an id (not '*'), but is 77. Put it in quotes.",
    ),
    (
        "owners: ['*']",
        "1: 'owners' must be a list where each item is an id (not '*'), but is the text '*'.",
    ),
    (
        "capture: {exclude_agents: ['']}",
        "1: 'capture.exclude_agents' must be a list where each item is an agent's id, but is the text ''.",
    ),
    # limits
    (
        "context_compiler: {token_budget: 5}",
        "1: 'context_compiler.token_budget' must be a whole number from 256 to 1000000, but is 5.",
    ),
    (
        "watchers: {gate_max_tokens: 1}",
        "1: 'watchers.gate_max_tokens' must be a whole number from 2 to 64, but is 1.",
    ),
    (
        "search: {bm25_weight: -0.1}",
        "1: 'search.bm25_weight' must be a number from 0 to 1000, but is -0.1.",
    ),
    (
        "git: {explore_days: " + "9" * 5000 + "}",
        "1: 'git.explore_days' must be a whole number from 1 to 3650, but is " + "9" * 59 + "….",
    ),
    # allowed values
    (
        "context_compiler: {profile: leen}",
        ("1: 'context_compiler.profile' must be one of lean, full, but is the text 'leen'. "
        "Did you mean 'lean'?"),
    ),
    (
        "lifecycle: {extraction_trigger: sometimes}",
        ("1: 'lifecycle.extraction_trigger' must be one of on_session_end, hourly, manual, "
        "but is the text 'sometimes'."),
    ),
    (
        "inject: {lanes: [runtime, files]}",
        ("1: 'inject.lanes' must be a list where each item is one of bootstrap, runtime, file, daily, "
        "but is the text 'files'. Did you mean 'file'?"),
    ),
    (
        "timezone: Europe/Belin",
        ("1: 'timezone' must be 'local' or a time zone like Europe/Berlin, but is the text 'Europe/Belin'. "
        "Did you mean 'Europe/Berlin'?"),
    ),
    (
        "timezone: ../../etc/passwd",
        ("1: 'timezone' must be 'local' or a time zone like Europe/Berlin, but is the text "
        "'../../etc/passwd'."),
    ),
    (
        "lifecycle: {pruning_schedule: 0 0 * *}",
        ("1: 'lifecycle.pruning_schedule' must be five cron fields of numbers and * , - / "
        "like '0 23 * * *', but is the text '0 0 * *'."),
    ),
    (
        "sessions: {subagent: {files: [../SOUL.md]}}",
        ("1: 'sessions.subagent.files' must be a list where each item is the plain name of a .md file, "
        "or null, but is the text '../SOUL.md'."),
    ),
    # paths and variables
    (
        "workspaces: [agents]",
        ("1: 'workspaces' must be a list where each item is an absolute path, but is the text 'agents'. "
        "Start it with '/', with '~/' or with a variable that holds an absolute path."),
    ),
    (
        "workspaces: [~bob/agents]",
        ("1: 'workspaces' must be a list where each item is an absolute path, but is the text '~bob/agents'. "
        "Start it with '/', with '~/' or with a variable that holds an absolute path."),
    ),
    (
        "workspaces: [$RELATIVE]",
        ("1: 'workspaces' must be a list where each item is an absolute path, but is the text '$RELATIVE'. "
        "Start it with '/', with '~/' or with a variable that holds an absolute path."),
    ),
    (
        "workspaces:\n- /a\n- ${NO_SUCH}/b",
        ("3: 'workspaces' uses the variable 'NO_SUCH', which is not set. "
        "Set it, or write '$$' for a dollar sign."),
    ),
    (
        "owners: [$5]",
        "1: 'owners' has a '$' that names no variable: '$5'. Write '$$' for a dollar sign.",
    ),
    # YAML itself
    (
        "git:\n\tauto_commit: true",
        ("2: this is not valid YAML: found character '\\t' that cannot start any token. "
        "Indent with spaces, and quote text that holds ': ', ' #', '{' or '['."),
    ),
    (
        "a: b: c",
        ("1: this is not valid YAML: mapping values are not allowed here. "
        "Indent with spaces, and quote text that holds ': ', ' #', '{' or '['."),
    ),
    (
        "a: 1\n---\nb: 1",
        ("2: this is not valid YAML: but found another document. "
        "Indent with spaces, and quote text that holds ': ', ' #', '{' or '['."),
    ),
    # between keys
    (
        "lifecycle:\n  memory_line_cap: 150",
        ("2: 'lifecycle.memory_warn_lines' (180, the default) must not be above "
        "'lifecycle.memory_line_cap' (150). Set both."),
    ),
    (
        "lifecycle:\n  memory_block_lines: 190",
        ("2: 'lifecycle.memory_line_cap' (200, the default) must not be above "
        "'lifecycle.memory_block_lines' (190). Set both."),
    ),
    (
        "inject:\n  strong: 0.3\n  confidence_gate: 0.4",
        "3: 'inject.confidence_gate' (0.4) must not be above 'inject.strong' (0.3). Set both.",
    ),
    (
        "search:\n  bm25_weight: 0\n  vector_weight: 0.0",
        "3: 'search.bm25_weight' and 'search.vector_weight' are both 0. Give one of them a weight.",
    ),
    (
        "search: {embedding_dimensions: 1536}",
        ("1: 'search.embedding_dimensions' is 1536, but the bundled model has 256. "
        "Remove it, or name another model in 'search.embedding_model'."),
    ),
    (
        "sessions: {group_chat: {files: [USER.md]}}",
        "1: 'sessions.group_chat.files' lacks SOUL.md. Every session loads it: add it.",
    ),
    (
        "sessions: {external_dm: {audience: owner}}",
        "1: 'sessions.external_dm.audience' must not be 'owner': others read such sessions. Allowed: anyone.",
    ),
    (
        "sessions: {subagent: {audience: owner}}",
        ("1: 'sessions.subagent.audience' must not be 'owner': others read such sessions. "
        "Allowed: anyone, group."),
    ),
    # rules for some sessions
    (
        "sessions: {rules: {type: main_session}}",
        ("1: 'sessions.rules' must be " + RULES + ", but is a group of keys. "
        "Write it as [{type: …, files: …}]."),
    ),
    (
        "sessions:\n  rules:\n    - main_session",
        ("3: 'sessions.rules' must be " + RULES + ", but is the text 'main_session'. "
        "Write it as {type: …, files: …}."),
    ),
    (
        "sessions: {rules: }",
        "1: 'sessions.rules' must be " + RULES + ", but is empty. Write it as [{type: …, files: …}].",
    ),
    (
        "sessions:\n  rules:\n  - {}",
        ("3: a rule in 'sessions.rules' has no condition, so it would hold for all sessions. "
        "Add one of type, agent, channel, peer, topic."),
    ),
    (
        "sessions:\n  rules:\n  - agent: a\n    lanes: []\n  - token_budget: 999",
        ("5: a rule in 'sessions.rules' has no condition, so it would hold for all sessions. "
        "Add one of type, agent, channel, peer, topic."),
    ),
    (
        "sessions: {rules: [{agent: a}]}",
        "1: a rule in 'sessions.rules' sets nothing. Add one of files, audience, token_budget, lanes.",
    ),
    (
        "sessions:\n  rules:\n  - agent: a\n    audiense: anyone",
        "4: unknown key 'sessions.rules.audiense'. Did you mean 'sessions.rules.audience'?",
    ),
    (
        "sessions: {rules: [{zzz: 1}]}",
        ("1: unknown key 'sessions.rules.zzz'. Keys of a rule: type, agent, channel, peer, topic, files, "
        "audience, token_budget, lanes."),
    ),
    (
        "sessions:\n  rules:\n  - agent: a\n    agent: b\n    lanes: []",
        "4: the key 'sessions.rules.agent' is there twice, first on line 3. Keep one.",
    ),
    (
        "sessions: {rules: [{agent.x: a}]}",
        ("1: the key 'agent.x' has a dot. "
        "Write the part after the dot indented below the part before it."),
    ),
    (
        "sessions: {rules: [{type: group_chta, lanes: []}]}",
        ("1: 'sessions.rules.type' must be one of main_session, private_dm, external_dm, forum_topic, "
        "group_chat, subagent, heartbeat_cron, orchestration, fallback, but is the text 'group_chta'. "
        "Did you mean 'group_chat'?"),
    ),
    (
        "sessions: {rules: [{topic: 15, lanes: []}]}",
        "1: 'sessions.rules.topic' must be an id (not '*'), but is 15. Put it in quotes.",
    ),
    (
        "sessions: {rules: [{peer: '*', lanes: []}]}",
        "1: 'sessions.rules.peer' must be an id (not '*'), but is the text '*'.",
    ),
    (
        "sessions: {rules: [{channel: 'telegram:7', lanes: []}]}",
        "1: 'sessions.rules.channel' must be a plain word, but is the text 'telegram:7'.",
    ),
    (
        "sessions: {rules: [{agent: a, lanes: [runtim]}]}",
        ("1: 'sessions.rules.lanes' must be a list where each item is one of bootstrap, runtime, file, "
        "daily, or null, but is the text 'runtim'. Did you mean 'runtime'?"),
    ),
    (
        "sessions:\n  rules:\n  - type: group_chat\n    files: [USER.md]",
        "4: 'sessions.rules.files' lacks SOUL.md. Every session loads it: add it.",
    ),
    (
        "sessions:\n  rules:\n  - agent: a\n    lanes: []\n  - type: group_chat\n    audience: owner",
        ("6: 'sessions.rules.audience' must not be 'owner': others read such sessions. "
        "Allowed: anyone, group."),
    ),
    (
        "sessions: {rules: [{type: fallback, audience: group}]}",
        "1: 'sessions.rules.audience' must not be 'group': others read such sessions. Allowed: anyone.",
    ),
    (
        "sessions: {rules: [{agent: a, audience: group}]}",
        ("1: 'sessions.rules.audience' must not be 'group' in a rule without 'type': "
        "it would hold for strangers too. Add a type, or set it to anyone."),
    ),
    (
        "sessions: {rules: [{channel: telegram, peer: '7', audience: owner}]}",
        ("1: 'sessions.rules.audience' must not be 'owner' in a rule without 'type': "
        "it would hold for strangers too. Add a type, or set it to anyone."),
    ),
    (
        "sessions: {rules: [{topic: '15', files: [SOUL.md, USER.md]}]}",
        ("1: 'sessions.rules.files' must not be more than SOUL.md in a rule without 'type': "
        "it would hold for strangers too. Add a type."),
    ),
    (
        "sessions: {rules: [{agent: a, files: null}]}",
        ("1: 'sessions.rules.files' must not be more than SOUL.md in a rule without 'type': "
        "it would hold for strangers too. Add a type."),
    ),
    (
        "sessions: {main_keys: ['agent:main']}",
        ("1: 'sessions.main_keys' must be a list where each item is a plain word, "
        "but is the text 'agent:main'."),
    ),
    (
        "sessions: {main_keys: [mаin]}",  # a Cyrillic letter in it
        "1: 'sessions.main_keys' must be a list where each item is a plain word, but is the text 'mаin'.",
    ),
    (
        "sessions: {main_keys: [main, Hook]}",
        ("1: 'sessions.main_keys' must not have 'Hook': hosts begin keys of other sessions with it. "
        "Remove it."),
    ),
    (
        "sessions: {main_keys: [direct]}",
        ("1: 'sessions.main_keys' must not have 'direct': hosts begin keys of other sessions with it. "
        "Remove it."),
    ),
    (
        "sessions:\n  group_chat:\n    files: null",
        ("3: 'sessions.group_chat.files' must not be null: others read such sessions, and the host's own "
        "list has your files. Name the files."),
    ),
    (
        "sessions: {rules: [{type: subagent, agent: a, files: null}]}",
        ("1: 'sessions.rules.files' must not be null: others read such sessions, and the host's own list has "
        "your files. Name the files."),
    ),
    (
        "sessions: {forum_topic: {files: [SOUL.md, Memory.MD.md, memory.md]}}",
        "1: 'sessions.forum_topic.files' must not have MEMORY.md: others read such sessions. Remove it.",
    ),
    (
        "sessions: {fallback: {files: [SOUL.md, MEMORY.md]}}",
        "1: 'sessions.fallback.files' must not have MEMORY.md: others read such sessions. Remove it.",
    ),
    (
        "sessions: {rules: [{type: group_chat, files: [SOUL.md, MEMORY.md]}]}",
        "1: 'sessions.rules.files' must not have MEMORY.md: others read such sessions. Remove it.",
    ),
    (
        "sessions: {external_dm: {files: [SOUL.md, USER.md]}}",
        ("1: 'sessions.external_dm.files' must not be more than SOUL.md: strangers read such sessions. "
        "Set it to [SOUL.md]."),
    ),
    (
        "sessions: {rules: [{type: external_dm, channel: x, files: [SOUL.md, TOOLS.md]}]}",
        ("1: 'sessions.rules.files' must not be more than SOUL.md: strangers read such sessions. "
        "Set it to [SOUL.md]."),
    ),
    (
        "owners: ['telegram:']",
        ("1: 'owners' must be a list where each item is an id (not '*'), but is the text 'telegram:'. "
        "Write the channel, a colon and the id without blanks, like telegram:7."),
    ),
    (
        "owners: ['telegram: 7']",
        ("1: 'owners' must be a list where each item is an id (not '*'), but is the text 'telegram: 7'. "
        "Write the channel, a colon and the id without blanks, like telegram:7."),
    ),
    (
        "owners: ['google chat:7']",
        ("1: 'owners' must be a list where each item is an id (not '*'), but is the text 'google chat:7'. "
        "Write the channel, a colon and the id without blanks, like telegram:7."),
    ),
    (
        "owners: ['telegram:*']",
        "1: 'owners' must be a list where each item is an id (not '*'), but is the text 'telegram:*'.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WRONG)
def test_a_wrong_file_gets_one_message_with_line_and_remedy(text: str, expected: str) -> None:
    assert message(text) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("git:\n  branch: 7\n  auto_comit: 1\n", 2),
        ("git:\n  auto_comit: 1\n  branch: 7\n", 2),
        ("git:\n  branch: main\nserch: 1\ngit: {}\n", 3),
        ("inject:\n  strong: 0.01\nlifecycle:\n  memory_line_cap: 1\n", 2),
    ],
)
def test_of_several_faults_the_first_by_line_is_reported(text: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    "schedule",
    ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *",
     "a * * * *", "1,,2 * * * *", "@daily", "* * * * * *", "* * * *  *", "1; * * * *"],
)  # fmt: skip
def test_a_cron_line_that_can_never_be_right_is_refused(schedule: str) -> None:
    assert "must be five cron fields" in message(f"lifecycle: {{pruning_schedule: '{schedule}'}}")


def test_a_home_variable_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("workspaces: [~/x]", where="f", environ={}, trusted=True)
    assert str(caught.value) == (
        "f:1: 'workspaces' uses the variable 'HOME', which is not set. "
        "Set it, or write '$$' for a dollar sign."
    )


def test_a_message_never_shows_what_a_variable_holds() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("git: {branch: 'x $TOKEN'}", where="f", environ={"TOKEN": "hunter2"}, trusted=True)
    assert "hunter2" not in str(caught.value)


def test_a_machine_without_zone_table_accepts_any_well_formed_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.config.conversion._known_zones", set)
    assert load("timezone: Mars/Olympus").config.timezone == "Mars/Olympus"


def test_the_config_is_frozen_and_slotted_throughout() -> None:
    config = Config()
    with pytest.raises(FrozenInstanceError):
        config.git.auto_push = True  # type: ignore[misc]
    sections = [config, *(getattr(config, part.name) for part in fields(config))]
    assert all(not hasattr(section, "__dict__") for section in sections if is_dataclass(section))


def test_every_key_says_in_one_sentence_what_it_does() -> None:
    for key in KEYS.values():
        assert key.rule.about.endswith("."), key.name
        assert ". " not in key.rule.about, key.name
        assert key.rule.about[0].isupper() or key.rule.about.startswith("explore"), key.name


def test_no_key_is_also_a_section() -> None:
    assert not SECTIONS & set(KEYS)


def test_importing_the_package_loads_neither_yaml_nor_zones() -> None:
    code = "import sys, tacit.config; print(sorted({'yaml', 'zoneinfo', 'difflib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
