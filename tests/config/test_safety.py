"""A config may come with a cloned folder, or be damaged: it reaches nothing and crashes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.config import Config, LoadedConfig, parse, render_starter
from tacit.config.conversion import show
from tacit.config.schema import KEYS, OVERRIDE_KEYS, flatten
from tacit.errors import ConfigError

REACHING = {
    "workspaces": "[/etc]",
    "search.embedding_model": "text-embedding-3-small",
    "search.embedding_dimensions": "1536",
    "search.reranker": "ms-marco-minilm",
    "search.index": "'postgresql://evil.example/x'",
    "watchers.gate_model": "haiku",
    "lifecycle.model": "haiku",
    "lifecycle.extract_model": "haiku",
    "lifecycle.condense_model": "haiku",
    "git.auto_push": "true",
    "git.remote": "'https://evil.example/x.git'",
    "git.commit_message_model": "haiku",
    "sessions.directory": "/tmp/out",
    "inject.daily_directory": "/tmp/out",
    "serve.tcp_port": "8080",
    "openclaw.wisdom_model": "haiku",
    "openclaw.soul_model": "haiku",
}


class Forbidden(Mapping[str, str]):
    """An environment that nobody may look into."""

    def __getitem__(self, name: str) -> str:
        raise AssertionError(f"{name} was read")

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the environment was listed")

    def __len__(self) -> int:
        raise AssertionError("the environment was listed")

    def __contains__(self, name: object) -> bool:
        raise AssertionError(f"{name} was asked for")


def foreign(text: str) -> LoadedConfig:
    return parse(text, where="memory-config.yaml", environ=Forbidden(), trusted=False)


def inside(name: str, value: str) -> str:
    for part in reversed(name.split(".")):
        value = f"{{{part}: {value}}}"
    return value


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, where="f", environ={}, trusted=True)
    return str(caught.value)


def test_the_list_of_keys_that_reach_outside_is_this_one() -> None:
    assert {name for name, key in KEYS.items() if key.rule.reaches} == set(REACHING)


@pytest.mark.parametrize("name", REACHING)
def test_a_foreign_home_reaches_nothing_and_says_so(name: str) -> None:
    loaded = foreign(inside(name, REACHING[name]))
    assert loaded.config == Config()
    assert loaded.origins[name] == "default"
    assert [str(problem) for problem in loaded.problems] == [
        (
            f"memory-config.yaml:1: {name!r} stays {show(KEYS[name].default)}: this home was not set up "
            "on this machine, so it may not reach outside. "
            "If you trust it, run `tacit init DIR` with its directory."
        )
    ]
    assert loaded.problems[0].level == "warning"


def test_a_foreign_home_may_set_what_stays_inside() -> None:
    loaded = foreign("owners: [ada]\ngit: {auto_push: false, branch: trunk}\nworkspaces: []")
    assert loaded.config.owners == ("ada",)
    assert loaded.config.git.branch == "trunk"
    assert loaded.problems == ()


@pytest.mark.parametrize("value", ["$SECRET", "x-${SECRET}", "~", "~/x", "$5"])
def test_a_foreign_home_reads_nothing_from_the_environment(value: str) -> None:
    loaded = foreign(f"owners: ['{value}']")
    assert loaded.config == Config()
    assert [str(problem) for problem in loaded.problems] == [
        (
            "memory-config.yaml:1: 'owners' stays []: this home was not set up on this machine, so "
            "environment variables and '~' are not expanded in it. "
            "If you trust it, run `tacit init DIR` with its directory."
        )
    ]


@pytest.mark.parametrize("rule", ["{peer: $SECRET, lanes: []}", "{agent: a, files: [SOUL.md, '~/x.md']}"])
def test_a_foreign_home_reads_nothing_from_the_environment_by_a_rule_either(rule: str) -> None:
    loaded = foreign(f"sessions:\n  rules:\n    - {{agent: a, lanes: []}}\n    - {rule}\n")
    assert loaded.config == Config()
    assert loaded.rules == ()
    assert [str(problem) for problem in loaded.problems] == [
        (
            "memory-config.yaml:2: 'sessions.rules' stays []: this home was not set up on this machine, so "
            "environment variables and '~' are not expanded in it. "
            "If you trust it, run `tacit init DIR` with its directory."
        )
    ]


def test_a_foreign_home_may_have_rules_but_none_that_is_too_wide() -> None:
    assert foreign("sessions: {rules: [{agent: a, lanes: []}]}").config.sessions.rules
    with pytest.raises(ConfigError, match="must not be 'owner'"):
        foreign("sessions: {rules: [{type: group_chat, audience: owner}]}")


def test_a_foreign_home_can_still_write_a_dollar_sign() -> None:
    assert foreign("owners: [a$$b]").config.owners == ("a$b",)


def test_a_foreign_model_takes_its_dimensions_along_when_it_is_ignored() -> None:
    loaded = foreign("search: {embedding_model: x, embedding_dimensions: 1536}")
    assert loaded.config.search == Config().search
    assert len(loaded.problems) == 2


@pytest.mark.parametrize(
    "remote",
    ["ext::sh -c id", "ext::id", "-oProxyCommand=id", "--upload-pack=id", "ssh://-oProxyCommand=id/x",
     "git@-oProxyCommand:x", "fd::7", "http://plain.example/x", "a b", "file://relative", "x::y",
     "https://-x/y", "ssh://a@-x/y"],
)  # fmt: skip
def test_a_remote_that_could_run_something_is_refused(remote: str) -> None:
    assert "'git.remote' must be a remote's name" in refused(f"git: {{remote: '{remote}'}}")


@pytest.mark.parametrize(
    "branch", ["-f", "a..b", "a b", "a~1", "/a", "a/", "a.lock", "x.lock/y", "@{u}", "a:b"]
)
def test_a_branch_that_git_would_take_for_something_else_is_refused(branch: str) -> None:
    assert "'git.branch' must be a branch name" in refused(f"git: {{branch: '{branch}'}}")


@pytest.mark.parametrize("model", ["-m", "a b", "a;b", "`id`", "./x", "../x"])
def test_a_model_is_a_name_or_an_absolute_path(model: str) -> None:
    assert "must be a model's name or an absolute path" in refused(f"watchers: {{gate_model: '{model}'}}")


ANCHORS = (
    "anchors and aliases ('&name', '*name') are not allowed. Write the value out, or quote it if it is text."
)
TAGS = "tags ('!name') are not allowed. Write the plain value, or quote it if it is text."
BAD_YAML = "f: this is not valid YAML. Look for an escape like '\\U'."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("git: &a\n  branch: x\nsearch: *a", "f:1: " + ANCHORS),
        ("a: 1\nb: *a", "f:2: " + ANCHORS),
        ("git:\n  <<: {branch: x}", ("f:2: unknown key 'git.<<'. Keys of 'git': auto_commit, auto_push, "
         "remote, branch, explore_days, auto_tag_daily, auto_tag_weekly, commit_message_model.")),
        ("timezone: !!python/object/apply:os.system ['id']", "f:1: " + TAGS),
        ("timezone: !!str 5", "f:1: " + TAGS),
        ("timezone: ! 5", "f:1: " + TAGS),
        ("[" * 50_000, "f:1: nesting is deeper than 8 levels. No key is that deep."),
        ("{a: " * 9, "f:1: nesting is deeper than 8 levels. No key is that deep."),
        ("a: 1\nb: \0", "f:2: character U+0000 is not allowed. Remove it."),
        ("\ud800", "f:1: character U+D800 is not allowed. Remove it."),
        ('timezone: "\\U99999999"', BAD_YAML),
        ("%YAML " + "1" * 5000 + ".1\n---\na: 1", BAD_YAML),
        ("#" * 70_000, "f: the file is longer than 65536 characters. Shorten it."),
        ('git: {branch: "a\\0b"}', "f:1: 'git.branch' must be a branch name, but is the text 'a\\x00b'."),
        ('owners: ["\\ud800"]', ("f:1: 'owners' must be a list where each item is an id (not '*'), "
         "but is the text '\\ud800'.")),
        ('owners: ["a\\e[0mb"]', ("f:1: 'owners' must be a list where each item is an id (not '*'), "
         "but is the text 'a\\x1b[0mb'.")),
    ],
)  # fmt: skip
def test_tricks_of_yaml_are_refused_by_name(text: str, expected: str) -> None:
    assert refused(text) == expected


def test_control_characters_cannot_come_in_through_a_variable() -> None:
    with pytest.raises(ConfigError, match="'owners' must be a list"):
        parse("owners: [$A]", where="f", environ={"A": "x\ny"}, trusted=True)


def loads_or_says_why(text: str, trusted: bool) -> None:
    said = "f: nothing"
    try:
        parse(text, where="f", environ={"HOME": "/home/ada"}, trusted=trusted)
    except ConfigError as error:
        said = str(error)
    assert said.startswith("f:")
    assert said.isprintable()


@given(st.text(alphabet=st.characters(), max_size=200), st.booleans())
@example('"\\U99999999"', True)
@settings(max_examples=500, deadline=None)
def test_no_text_whatsoever_raises_anything_but_a_config_error(text: str, trusted: bool) -> None:
    loads_or_says_why(text, trusted)


RULE_PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["main_session", "external_dm", "group_chat", "fallback", "x"]),
        "agent": st.text(max_size=6),
        "channel": st.text(max_size=6),
        "peer": st.text(max_size=6),
        "topic": st.sampled_from(["15", 15, "*", "~", "$X"]),
        "files": st.one_of(st.none(), st.lists(st.sampled_from(["SOUL.md", "USER.md", "x"]), max_size=2)),
        "audience": st.sampled_from(["owner", "group", "anyone", 7]),
        "token_budget": st.one_of(st.none(), st.integers(0, 2000)),
        "lanes": st.one_of(st.none(), st.lists(st.sampled_from(["file", "runtime", "x"]), max_size=2)),
    },
)


@given(st.lists(RULE_PARTS, max_size=3))
@settings(max_examples=500, deadline=None)
def test_rules_are_either_taken_as_they_are_written_or_refused(rules: list[dict[str, object]]) -> None:
    """What was taken can be shown and read again, and no rule gives a type more than it may have."""
    try:
        loaded = parse(inside("sessions.rules", json.dumps(rules)), where="f", environ={}, trusted=True)
    except ConfigError:
        return
    again = inside("sessions.rules", show(loaded.config.sessions.rules))
    assert parse(again, where="f", environ={}, trusted=True).config == loaded.config
    for rule in loaded.config.sessions.rules:
        named = rule.to_dict()
        widest = getattr(Config().sessions, named["type"]).audience if "type" in named else "anyone"
        allowed = ("anyone", "group", "owner")
        assert allowed.index(named.get("audience", "anyone")) <= allowed.index(widest)


SCRAPS = [*"{}[]:,-?!&*|>%@`'\"#~$\\ \n\t", "\n  ", ": ", "- ", "<<", "---\n", "...\n", "%YAML 1.1\n",
          "%TAG ! x\n", "!!int ", "!<x>", '"\\x', '"\\u12', '"\\U0011', "0x", "0b1", "1:30", "1_0", "1e9",
          ".inf", "=", "null", "true", "2026-01-01", "${HOME}", "$",
          "\x85", "\u2028", "\ufeff", "\r", "é", "9" * 30,
          *(part for name in KEYS for part in name.split(".")), *OVERRIDE_KEYS]  # fmt: skip


@given(st.lists(st.sampled_from(SCRAPS), max_size=25).map("".join), st.booleans())
@settings(max_examples=1500, deadline=None)
def test_no_heap_of_yaml_scraps_raises_anything_but_a_config_error(text: str, trusted: bool) -> None:
    loads_or_says_why(text, trusted)


@given(st.data(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_no_damage_to_a_good_file_raises_anything_but_a_config_error(
    data: st.DataObject, trusted: bool
) -> None:
    lines = render_starter().replace("#", "").splitlines()[3:]
    start = data.draw(st.integers(0, len(lines)))
    text = "\n".join(lines[start : start + 15])
    cut = data.draw(st.integers(0, len(text)))
    loads_or_says_why(text[:cut] + data.draw(st.sampled_from(SCRAPS)) + text[cut:], trusted)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.text(max_size=5), max_size=3),
)


@given(st.sampled_from(sorted(KEYS)), scalars)
@settings(max_examples=500, deadline=None)
def test_a_value_is_either_taken_as_it_is_written_or_refused(name: str, value: object) -> None:
    """What was taken can be shown and read again."""
    try:
        loaded = parse(
            inside(name, json.dumps(value)), where="f", environ={"HOME": "/home/ada"}, trusted=True
        )
    except ConfigError:
        return
    again = inside(name, show(flatten(loaded.config)[name]))
    assert parse(again, where="f", environ={}, trusted=True).config == loaded.config
