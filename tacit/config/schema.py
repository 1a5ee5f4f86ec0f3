"""Every key of memory-config.yaml: its type, its default, its limits and what it does.

A new key is one field here. Parsing, `tacit config` and the starter file all follow from it.

No key holds a command, and none may ever: a config can arrive with a cloned folder. A key that makes
tacit reach the network or a path outside the home is marked `reaches`; it counts only in a home that
was set up on this machine.
"""

# ruff: noqa: RUF009 - the defaults are fields
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from tacit.hosts.base import load_hosts


class Override(NamedTuple):
    """One of sessions.rules: for sessions that meet all conditions, these settings replace those of their
    type. It contains only what the rule sets."""

    conditions: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        return dict((*self.conditions, *self.settings))


class Workspace(NamedTuple):
    """One of `workspaces`."""

    path: str
    agent: str = ""  # empty: its files are for all agents of the home
    name: str = ""  # as set in the file; `config.groups.assign_names` names the others

    def plain(self) -> str | dict[str, str]:
        """The shortest form in the file: only the path if nothing else is set."""
        parts = {name: value for name, value in self._asdict().items() if value}
        return self.path if len(parts) == 1 else parts


Value = bool | int | float | str | None | tuple[str, ...] | tuple[Override, ...] | tuple[Workspace, ...]
ValueKind = Literal[
    "flag", "whole", "number", "choice", "path", "zone", "name", "word", "owner", "file", "model", "index",
    "branch", "remote", "schedule", "override", "workspace", "price",
]  # fmt: skip

Audience = Literal["owner", "group", "anyone"]
Profile = Literal["lean", "full"]
Loading = Literal["always", "retrieve", "never"]
Mode = Literal["first", "each"]
Files = Literal["rules", "without-memory", "host"]
Trigger = Literal["on_session_end", "hourly", "manual"]
Policy = Literal["auto", "review", "owner"]
EXTRACTORS = ("decisions", "lessons", "people", "procedures", "facts", "journal")
# Tools that read and write the owner's own files; the output of others counts as a stranger's.
TRUSTED_TOOLS = ("read", "write", "edit", "apply_patch", "ls", "glob", "grep", "todo")

LANES = ("bootstrap", "runtime", "file", "daily")
SESSION_TYPES = (
    "main_session", "private_dm", "external_dm", "forum_topic", "group_chat", "subagent", "heartbeat_cron",
    "orchestration", "fallback",
)  # fmt: skip
# Words with which a host begins a part of a session key. A stranger can choose the text after some, so
# none of them may pass for a channel, and few for the name of a main session.
HOST_WORDS = frozenset({
    "agent", "main", "direct", "dm", "group", "channel", "room", "topic", "thread", "subagent", "cron", "run",
    "heartbeat", "acp", "boot", "hook", "dashboard", "explicit", "slash", "global", "unknown", "openai",
    "openai-user", "openresponses", "openresponses-user",
})  # fmt: skip


# Here and below, classes that hold no settings are NamedTuples: a dataclass takes four times as long to
# create, and every command imports this module.
class Rule(NamedTuple):
    kind: ValueKind
    about: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    nullable: bool = False
    many: bool = False
    reaches: bool = False
    example: tuple[str, ...] = ()  # lines for the starter file, where the default does not show how


def _rule(kind: ValueKind, about: str, **limits: Any) -> Mapping[str, Rule]:
    return {"rule": Rule(kind, about, **limits)}


def _key(default: Any, kind: ValueKind, about: str, **limits: Any) -> Any:
    """One key: its default, its type, what it does, and what limits it."""
    return field(default=default, metadata=_rule(kind, about, **limits))


@dataclass(frozen=True, slots=True)
class ContextCompilerSettings:
    token_budget: int = _key(8192, "whole", "Maximum tokens of one compiled turn.", low=256, high=1_000_000)
    identity_budget_kb: int = _key(
        17, "whole", "Maximum size of identity files per turn, in KB.", low=1, high=1024
    )
    memory_budget_kb: int = _key(3, "whole", "Maximum size of MEMORY.md per turn, in KB.", low=0, high=1024)
    journal_budget_kb: int = _key(
        4, "whole", "Maximum size of the journal per turn, in KB.", low=0, high=1024
    )
    projects_budget_kb: int = _key(
        1, "whole", "Maximum size of the list of active projects per turn, in KB.", low=0, high=1024
    )
    topic_budget_kb: int = _key(
        6, "whole", "Maximum size of topics and their subscriptions per turn, in KB.", low=0, high=1024
    )
    profile: Profile = _key(
        "lean",
        "choice",
        "Identity files per turn: lean loads only what the session type needs, full loads all.",
        choices=get_args(Profile),
    )
    memory_md: Loading = _key(
        "retrieve",
        "choice",
        "MEMORY.md in the owner's sessions: always whole, relevant parts only (retrieve), or never.",
        choices=get_args(Loading),
    )
    journal: Loading = _key(
        "retrieve",
        "choice",
        "Today's and yesterday's journal: always whole, relevant parts only (retrieve), or never.",
        choices=get_args(Loading),
    )
    projects: Loading = _key(
        "always",
        "choice",
        "Active projects in the owner's sessions: always whole, relevant parts only (retrieve), or never.",
        choices=get_args(Loading),
    )
    history_floor_share: float = _key(
        0.25, "number", "Share of the budget reserved for the conversation.", low=0, high=0.9
    )
    knowledge_floor_share: float = _key(
        0.15, "number", "Share of the budget reserved for retrieved text.", low=0, high=0.9
    )
    max_injected_chars: int = _key(
        4000,
        "whole",
        "Maximum characters of retrieved text and its frame, in a turn that names no budget.",
        low=0,
        high=1_000_000,
    )
    max_snippet_chars: int = _key(
        800,
        "whole",
        "Maximum characters of one retrieved snippet, in a turn that names no budget.",
        low=80,
        high=100_000,
    )
    half_life_days: float = _key(
        7.0,
        "number",
        "Days after which the small bonus for a recent journal page is halved.",
        low=0.1,
        high=36_500,
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    bm25_weight: float = _key(0.4, "number", "Weight of matching words in the ranking.", low=0, high=1000)
    vector_weight: float = _key(0.6, "number", "Weight of similar meaning in the ranking.", low=0, high=1000)
    spreading: float = _key(
        0.5,
        "number",
        "Share of a hit's score that notes linked with it receive if no word finds them; 0 turns it off.",
        low=0,
        high=0.9,
    )
    embedding_model: str = _key(
        "bundled",
        "model",
        "Model that turns text into vectors: bundled (works offline), a model's name, or its folder.",
        reaches=True,
    )
    # The dimensions belong to the model: if the model falls back, they must fall back with it.
    embedding_dimensions: int = _key(
        256,
        "whole",
        "Length of the vectors of a model on the network; a local model knows its own.",
        low=1,
        high=65_536,
        reaches=True,
    )
    reranker: str = _key(
        "none",
        "model",
        "Cross-encoder that ranks the best hits again: none, ms-marco-minilm, or a folder.",
        reaches=True,
    )
    index: str = _key(
        "sqlite",
        "index",
        "Where the index is stored: sqlite (inside the home) or a postgresql:// address.",
        reaches=True,
    )


@dataclass(frozen=True, slots=True)
class WatcherSettings:
    similarity_threshold: float = _key(
        0.15,
        "number",
        "Minimum similarity at which a message activates a topic that has no threshold of its own.",
        low=0,
        high=1,
    )
    gate_model: str | None = _key(
        None,
        "model",
        "Model that decides whether a topic in doubt applies; null decides by score without a model.",
        nullable=True,
        reaches=True,
    )
    # One token is not enough: some models begin with a space or a newline and the answer is lost.
    gate_max_tokens: int = _key(8, "whole", "Maximum tokens of an answer of the gate model.", low=2, high=64)


@dataclass(frozen=True, slots=True)
class LifecycleSettings:
    commit_interval_minutes: int = _key(
        30, "whole", "Minutes between two automatic commits.", low=1, high=10_080
    )
    journal_retention_days: int = _key(
        90, "whole", "Days after which a journal page moves to archive/.", low=1, high=36_500
    )
    memory_warn_lines: int = _key(
        180, "whole", "Lines of MEMORY.md above which a commit warns.", low=1, high=100_000
    )
    memory_line_cap: int = _key(
        200, "whole", "Lines of MEMORY.md above which pruning is due.", low=1, high=100_000
    )
    memory_block_lines: int = _key(
        220, "whole", "Lines of MEMORY.md above which a commit is refused.", low=1, high=100_000
    )
    extraction_trigger: Trigger = _key(
        "on_session_end", "choice", "When conversations are turned into notes.", choices=get_args(Trigger)
    )
    condensation_schedule: str = _key("0 23 * * *", "schedule", "When the day is condensed, as a cron line.")
    pruning_schedule: str = _key("0 0 * * 0", "schedule", "When MEMORY.md is pruned, as a cron line.")
    auto_apply: bool = _key(
        True, "flag", "Changes that only add text are applied automatically; false makes drafts of them too."
    )
    model: str | None = _key(
        None,
        "model",
        "Model that extracts and condenses; null uses the built-in rules without a model.",
        nullable=True,
        reaches=True,
    )
    extract_model: str | None = _key(
        None, "model", "Model for extraction only; null uses lifecycle.model.", nullable=True, reaches=True
    )
    condense_model: str | None = _key(
        None,
        "model",
        "Model for condensing and pruning only; null uses lifecycle.model.",
        nullable=True,
        reaches=True,
    )
    extractors: tuple[str, ...] = _key(
        EXTRACTORS,
        "word",
        "What to extract from conversations; name your own extractors here too.",
        many=True,
    )
    trusted_tools: tuple[str, ...] = _key(
        TRUSTED_TOOLS,
        "word",
        "Tools whose output is trusted; what an agent says after others is reviewed.",
        many=True,
    )


def _policy(default: Policy, about: str) -> Any:
    return _key(default, "choice", about, choices=get_args(Policy))


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """The policy for each kind of change to notes: auto applies it; review needs an approval; owner needs one
    from the approvers. Text from strangers is always reviewed."""

    decisions: Policy = _policy("auto", "New decisions are added.")
    lessons: Policy = _policy("auto", "New lessons are added.")
    people: Policy = _policy("auto", "What was learned about people is added.")
    procedures: Policy = _policy("review", "New procedures are added.")
    facts: Policy = _policy("auto", "New facts are added.")
    journal: Policy = _policy("auto", "A summary of the day is added to its journal page.")
    others: Policy = _policy("review", "Results of your own extractors are added.")
    supersede: Policy = _policy(
        "auto", "A line that tacit wrote is marked as superseded when a later one contradicts it."
    )
    memory: Policy = _policy("review", "MEMORY.md is rewritten by the weekly rollup or pruned.")
    archive: Policy = _policy("auto", "Old journal pages move to archive/.")
    evict: Policy = _policy("review", "Notes that nothing refers to move to archive/.")
    approvers: tuple[str, ...] = _key((), "name", "Who may approve where the policy is owner.", many=True)


@dataclass(frozen=True, slots=True)
class GitSettings:
    auto_commit: bool = _key(True, "flag", "Changes in the home are committed automatically.")
    auto_push: bool = _key(
        False, "flag", "Commits are pushed to git.remote, including whole conversations.", reaches=True
    )
    remote: str | None = _key(
        None, "remote", "Where auto_push pushes to; null pushes nowhere.", nullable=True, reaches=True
    )
    branch: str = _key("main", "branch", "Branch that holds the knowledge.")
    explore_days: int = _key(7, "whole", "Days after which an explore/ branch is deleted.", low=1, high=3650)
    auto_tag_daily: bool = _key(True, "flag", "A day with changes gets a tag memory/daily/YYYY-MM-DD.")
    auto_tag_weekly: bool = _key(True, "flag", "A week with changes gets a tag memory/weekly/YYYY-Www.")
    commit_message_model: str | None = _key(
        None,
        "model",
        "Model that writes commit messages; null builds them from the change without a model.",
        nullable=True,
        reaches=True,
    )


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    enabled: bool = _key(True, "flag", "Conversations are stored as transcripts.")
    exclude_agents: tuple[str, ...] = _key(
        (), "name", "Agents whose conversations are never stored.", many=True
    )
    idle_seal_hours: int = _key(
        12, "whole", "Hours without a message after which a session is closed.", low=1, high=8760
    )


@dataclass(frozen=True, slots=True)
class MemorySettings:
    read_only: bool | None = _key(
        None,
        "flag",
        "Agents only read, and nothing is added to notes; null: only while tacit is the host's memory slot.",
        nullable=True,
    )


@dataclass(frozen=True, slots=True)
class InjectSettings:
    enabled: bool = _key(True, "flag", "Turns get context.")
    exclude_agents: tuple[str, ...] = _key((), "name", "Agents that never get context.", many=True)
    mode: Mode = _key(
        "each",
        "choice",
        "Retrieve for each message, or only for the first of a session.",
        choices=get_args(Mode),
    )
    lanes: tuple[str, ...] = _key(
        ("bootstrap", "runtime"),
        "choice",
        "Delivery modes: file and daily also write a copy, for hosts without a prompt hook.",
        choices=LANES,
        many=True,
    )
    files: Files = _key(
        "rules",
        "choice",
        "Files that a host loads: those of the session's rule, its own except MEMORY.md, or all its own.",
        choices=get_args(Files),
    )
    deadline_ms: int = _key(
        250,
        "whole",
        "Milliseconds after which a turn continues with the results it has.",
        low=10,
        high=60_000,
    )
    confidence_gate: float = _key(
        0.12, "number", "Minimum relevance of the best hit; below it nothing is injected.", low=0, high=1
    )
    strong: float = _key(
        0.75, "number", "Relevance from which one hit is enough; below it two must agree.", low=0, high=1
    )
    repeat_after_turns: int | None = _key(
        None,
        "whole",
        "Turns after which the same text may be injected again; null: once per session, unless it changed.",
        low=1,
        high=10_000,
        nullable=True,
    )
    shed_after_turns: int | None = _key(
        None,
        "whole",
        "Turns after which a loaded file that is no longer used is unloaded; null always loads it.",
        low=1,
        high=10_000,
        nullable=True,
    )
    cache_seconds: int = _key(
        60, "whole", "Seconds for which the same question is answered from the cache.", low=0, high=3600
    )
    debounce_ms: int = _key(
        500,
        "whole",
        "Milliseconds in which the same message counts as the same turn, and mode first searches only once.",
        low=0,
        high=60_000,
    )
    daily_directory: str | None = _key(
        None,
        "path",
        "Folder of daily notes for the delivery mode daily; null means knowledge/journal in the home.",
        nullable=True,
        reaches=True,
    )


@dataclass(frozen=True, slots=True)
class ServeSettings:
    tcp_port: int | None = _key(
        None,
        "whole",
        "Port on 127.0.0.1 where `tacit serve` also listens, for clients with the token; null: none.",
        low=1,
        high=65_535,
        nullable=True,
        reaches=True,
    )
    workers: int = _key(4, "whole", "Requests that are handled at the same time.", low=1, high=64)
    waiting: int = _key(
        32, "whole", "Requests that may wait; further ones are refused at once.", low=0, high=10_000
    )
    max_request_kb: int = _key(1024, "whole", "Maximum size of a request, in KB.", low=16, high=65_536)
    request_seconds: int = _key(
        30,
        "whole",
        "Seconds after which a request times out; turns have their own deadline.",
        low=1,
        high=3600,
    )


@dataclass(frozen=True, slots=True)
class SessionRule:
    """The settings of one type of session. The defaults, one per type, are in `Sessions`."""

    files: tuple[str, ...] | None = field(
        metadata=_rule(
            "file",
            "Identity files that this type loads; null leaves the host's list.",
            nullable=True,
            many=True,
        )
    )
    audience: Audience = field(
        metadata=_rule(
            "choice", "Whose knowledge this type may see; never wider than the default.",
            choices=get_args(Audience),
        )
    )  # fmt: skip
    token_budget: int | None = _key(
        None,
        "whole",
        "Tokens for a turn of this type; null means context_compiler.token_budget.",
        low=256,
        high=1_000_000,
        nullable=True,
    )
    lanes: tuple[str, ...] | None = _key(
        None,
        "choice",
        "Delivery modes for this type; null means inject.lanes.",
        choices=LANES,
        nullable=True,
        many=True,
    )


_OWNER_FILES = ("SOUL.md", "USER.md", "TOOLS_COMPACT.md")
_GROUP_FILES = ("SOUL.md", "TOOLS_COMPACT.md")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    main_session: SessionRule = SessionRule(_OWNER_FILES, "owner")
    private_dm: SessionRule = SessionRule(_OWNER_FILES, "owner")
    external_dm: SessionRule = SessionRule(("SOUL.md",), "anyone")
    forum_topic: SessionRule = SessionRule(_GROUP_FILES, "group")
    group_chat: SessionRule = SessionRule(_GROUP_FILES, "group")
    subagent: SessionRule = SessionRule(("SOUL.md",), "group")
    heartbeat_cron: SessionRule = SessionRule(("SOUL.md", "HEARTBEAT.md"), "owner")
    orchestration: SessionRule = SessionRule(("SOUL.md", "AGENTS.md"), "owner")
    # In a session of unknown type every sender may be a stranger.
    fallback: SessionRule = SessionRule(None, "anyone")
    orchestration_agents: tuple[str, ...] = _key(
        (), "name", "Agents whose main sessions count as orchestration.", many=True
    )
    main_keys: tuple[str, ...] = _key(
        ("main",),
        "word",
        "Last words of the keys of main sessions (the host's session.mainKey); you may add dashboard or "
        "explicit.",
        many=True,
    )
    rules: tuple[Override, ...] = _key(
        (),
        "override",
        "Settings for some sessions only: the first rule whose conditions are all met applies.",
        many=True,
        example=(
            "rules:  # conditions: type, agent, channel, peer, topic; settings as above",
            '  - {type: forum_topic, topic: "15", files: [SOUL.md, OPS.md], token_budget: 4096}',
            "  - {agent: shop, audience: anyone, lanes: [runtime]}",
        ),
    )
    directory: str | None = _key(
        None,
        "path",
        "Folder for the copies of the delivery mode file, one per session; null: under .tacit/.",
        nullable=True,
        reaches=True,
    )


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Limits for calls of models. The models themselves are set beside their work: lifecycle.model and so on.
    Without one of those no model is asked."""

    daily_calls: int | None = _key(
        2000,
        "whole",
        "Maximum calls of models per day, all tasks together; null: no limit.",
        low=0,
        high=10_000_000,
        nullable=True,
    )
    daily_tokens: int | None = _key(
        2_000_000,
        "whole",
        "Maximum tokens that models read and write per day; null: no limit.",
        low=0,
        high=100_000_000_000,
        nullable=True,
    )
    daily_usd: float | None = _key(
        1.0,
        "number",
        "Maximum dollars per day, for which each model needs a price; null: no limit.",
        low=0,
        high=1_000_000,
        nullable=True,
    )
    seconds: int = _key(
        180,
        "whole",
        "Seconds for one call of a model in a run; turns have their own deadline.",
        low=1,
        high=3600,
    )
    prices: tuple[str, ...] = _key(
        (),
        "price",
        "Dollars per million tokens read and written, by the start of a model's name.",
        many=True,
        example=('prices: ["anthropic:claude-haiku-4-5 1 5", "https://models.example.com/v1#m 0.2 0.8"]',),
    )


HOST_SECTIONS = {host.name: host.load(host.settings).SETTINGS for host in load_hosts() if host.settings}


@dataclass(frozen=True, slots=True)
class Config:
    timezone: str = _key(
        "local", "zone", "Time zone that decides which day it is: local, or a name like Europe/Berlin."
    )
    owners: tuple[str, ...] = _key(
        (), "owner", "Your ids on the channels from which you write, as the host spells them.", many=True
    )
    workspaces: tuple[Workspace, ...] = _key(
        (),
        "workspace",
        "Folders of agents, whose files are read in place in addition to those of the home.",
        many=True,
        reaches=True,
        example=("workspaces: [~/assistant, {path: ~/shop, agent: shop, name: shop}]",),
    )
    context_compiler: ContextCompilerSettings = ContextCompilerSettings()
    search: SearchSettings = SearchSettings()
    watchers: WatcherSettings = WatcherSettings()
    lifecycle: LifecycleSettings = LifecycleSettings()
    review: ReviewSettings = ReviewSettings()
    git: GitSettings = GitSettings()
    capture: CaptureSettings = CaptureSettings()
    memory: MemorySettings = MemorySettings()
    inject: InjectSettings = InjectSettings()
    serve: ServeSettings = ServeSettings()
    sessions: SessionSettings = SessionSettings()
    # The section of each host, from the host's own module.
    for _name, _defaults in HOST_SECTIONS.items():
        __annotations__[_name], locals()[_name] = type(_defaults), _defaults
    del _name, _defaults
    models: ModelSettings = ModelSettings()


class ConfigKey(NamedTuple):
    name: str  # dotted: git.auto_commit
    rule: Rule
    default: Value


Section = TypeVar("Section")


def _walk(section: Any, prefix: str) -> Iterator[ConfigKey]:
    for part in fields(section):
        name, value = prefix + part.name, getattr(section, part.name)
        if is_dataclass(value):
            yield from _walk(value, name + ".")
        else:
            rule = part.metadata["rule"]  # a mapping if it is a host's, which imports nothing from here
            yield ConfigKey(name, rule if isinstance(rule, Rule) else Rule(**rule), value)


CONDITIONS: Mapping[str, Rule] = {
    "type": Rule("choice", "The type of the session.", choices=SESSION_TYPES),
    "agent": Rule("name", "The agent whose session it is."),
    "channel": Rule("word", "The channel, as it stands in the session key."),
    "peer": Rule("owner", "The other side of a direct message, or the group."),
    "topic": Rule("owner", "The topic or thread."),
}
OVERRIDE_KEYS: Mapping[str, ConfigKey] = {
    name: ConfigKey(f"sessions.rules.{name}", rule, None)
    for name, rule in (
        *CONDITIONS.items(),
        *((part.name, part.metadata["rule"]) for part in fields(SessionRule)),
    )
}
WORKSPACE_KEYS: Mapping[str, ConfigKey] = {
    # A plain path means the same as a group with only a path, and gives the same errors.
    "path": ConfigKey("workspaces", Rule("path", "The folder.", many=True), None),
    "agent": ConfigKey("workspaces.agent", Rule("name", "The agent that its files belong to."), None),
    "name": ConfigKey("workspaces.name", Rule("word", "How paths name it, instead of by its folder."), None),
}
DEFAULTS = Config()
KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _walk(DEFAULTS, "")}
SECTIONS = frozenset(name[:dot] for name in KEYS for dot, letter in enumerate(name) if letter == ".")


def flatten(config: Config) -> dict[str, Value]:
    return {key.name: key.default for key in _walk(config, "")}


def build_config(values: Mapping[str, Value]) -> Config:
    """The defaults, with these dotted keys replaced."""
    return _apply_values(DEFAULTS, "", values)


def _apply_values(section: Section, prefix: str, values: Mapping[str, Value]) -> Section:
    changes: dict[str, Any] = {}
    for part in fields(section):  # type: ignore[arg-type]  # always one of the classes above
        name = prefix + part.name
        if name in SECTIONS:
            changes[part.name] = _apply_values(getattr(section, part.name), name + ".", values)
        elif name in values:
            changes[part.name] = values[name]
    return replace(section, **changes)  # type: ignore[type-var]
