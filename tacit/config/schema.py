"""Every key of memory-config.yaml: its type, its default, its limits and what it does.

A new key is one field here. Parsing, `tacit config` and the starter file all follow from it.

No key holds a command, and none may ever: a config can arrive with a cloned folder. A key that makes
tacit reach the network or a path outside the home is marked `reaches`; it counts only in a home that
was set up on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from tacit.hosts.registry import load_hosts


class Override(NamedTuple):
    """One of sessions.rules: for sessions that meet all conditions, these settings replace those of their
    type. It contains only what the rule sets."""

    conditions: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, Any], ...]

    def named(self) -> dict[str, Any]:
        return dict((*self.conditions, *self.settings))


class Workspace(NamedTuple):
    """One of `workspaces`."""

    path: str
    agent: str = ""  # empty: its files are for all agents of the home
    name: str = ""  # as set in the file; `config.workspaces.adopted` names the others

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
# Words with which a host begins a part of a session key. Some are followed by text that anybody can choose,
# so none of them may pass for a channel, and few for the name of a main session.
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


@dataclass(frozen=True, slots=True)
class ContextCompilerSettings:
    token_budget: int = field(
        default=8192,
        metadata=_rule("whole", "Tokens that one compiled turn may hold.", low=256, high=1_000_000),
    )
    identity_budget_kb: int = field(
        default=17,
        metadata=_rule("whole", "Most kilobytes of identity files in a turn.", low=1, high=1024),
    )
    memory_budget_kb: int = field(
        default=3, metadata=_rule("whole", "Most kilobytes of MEMORY.md in a turn.", low=0, high=1024)
    )
    journal_budget_kb: int = field(
        default=4, metadata=_rule("whole", "Most kilobytes of journal in a turn.", low=0, high=1024)
    )
    projects_budget_kb: int = field(
        default=1,
        metadata=_rule("whole", "Most kilobytes of the list of active projects in a turn.", low=0, high=1024),
    )
    topic_budget_kb: int = field(
        default=6,
        metadata=_rule("whole", "Most kilobytes of topics and what they subscribe to.", low=0, high=1024),
    )
    profile: Profile = field(
        default="lean",
        metadata=_rule(
            "choice",
            "Identity files per turn: lean loads only what the session type needs, full loads all.",
            choices=get_args(Profile),
        ),
    )
    memory_md: Loading = field(
        default="retrieve",
        metadata=_rule(
            "choice",
            "MEMORY.md in the owner's sessions: loaded whole, as passages that fit, or not at all.",
            choices=get_args(Loading),
        ),
    )
    journal: Loading = field(
        default="retrieve",
        metadata=_rule(
            "choice",
            "Today's and yesterday's journal: loaded whole, as passages that fit, or not at all.",
            choices=get_args(Loading),
        ),
    )
    projects: Loading = field(
        default="always",
        metadata=_rule(
            "choice",
            "The list of active projects in the owner's sessions: loaded whole, as passages, or not at all.",
            choices=get_args(Loading),
        ),
    )
    history_floor_share: float = field(
        default=0.25,
        metadata=_rule("number", "Share of the budget that the conversation always keeps.", low=0, high=0.9),
    )
    knowledge_floor_share: float = field(
        default=0.15,
        metadata=_rule("number", "Share of the budget that retrieved passages always keep.", low=0, high=0.9),
    )
    max_injected_chars: int = field(
        default=4000,
        metadata=_rule(
            "whole",
            "Most characters of retrieved passages and what frames them, in a turn that names no budget.",
            low=0,
            high=1_000_000,
        ),
    )
    max_snippet_chars: int = field(
        default=800,
        metadata=_rule(
            "whole",
            "Most characters of one passage in a turn that names no budget of its own.",
            low=80,
            high=100_000,
        ),
    )
    half_life_days: float = field(
        default=7.0,
        metadata=_rule(
            "number",
            "Days after which the small bonus of a recent journal page has halved.",
            low=0.1,
            high=36_500,
        ),
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    bm25_weight: float = field(
        default=0.4, metadata=_rule("number", "Weight of matching words in the ranking.", low=0, high=1000)
    )
    vector_weight: float = field(
        default=0.6, metadata=_rule("number", "Weight of similar meaning in the ranking.", low=0, high=1000)
    )
    spreading: float = field(
        default=0.5,
        metadata=_rule(
            "number",
            "Share of a hit's relevance for notes that are linked with it and that no word found; 0: none.",
            low=0,
            high=0.9,
        ),
    )
    embedding_model: str = field(
        default="bundled",
        metadata=_rule(
            "model",
            "What turns text into vectors: bundled works offline, else a model's name or its folder.",
            reaches=True,
        ),
    )
    # The dimensions belong to the model: if the model falls back, they must fall back with it.
    embedding_dimensions: int = field(
        default=256,
        metadata=_rule(
            "whole",
            "Length of the vectors of a model that is reached by network; local ones know theirs.",
            low=1,
            high=65_536,
            reaches=True,
        ),
    )
    reranker: str = field(
        default="none",
        metadata=_rule(
            "model",
            "A cross-encoder that reads the best hits once more: none, ms-marco-minilm or a folder.",
            reaches=True,
        ),
    )
    index: str = field(
        default="sqlite",
        metadata=_rule(
            "index",
            "Where the index is kept: sqlite (inside the home) or a postgresql:// address.",
            reaches=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class WatcherSettings:
    similarity_threshold: float = field(
        default=0.15,
        metadata=_rule(
            "number", "Similarity from which a message wakes a topic that sets none itself.", low=0, high=1
        ),
    )
    gate_model: str | None = field(
        default=None,
        metadata=_rule(
            "model",
            "Model asked whether a doubtful topic applies; null decides by score and calls no model.",
            nullable=True,
            reaches=True,
        ),
    )
    # One token is not enough: some models begin with a space or a newline and the answer is lost.
    gate_max_tokens: int = field(
        default=8, metadata=_rule("whole", "Most tokens the gate model may answer with.", low=2, high=64)
    )


@dataclass(frozen=True, slots=True)
class LifecycleSettings:
    commit_interval_minutes: int = field(
        default=30, metadata=_rule("whole", "Minutes between two automatic commits.", low=1, high=10_080)
    )
    journal_retention_days: int = field(
        default=90,
        metadata=_rule("whole", "Days after which a journal page moves to archive/.", low=1, high=36_500),
    )
    memory_warn_lines: int = field(
        default=180,
        metadata=_rule("whole", "Above this many lines of MEMORY.md a commit warns.", low=1, high=100_000),
    )
    memory_line_cap: int = field(
        default=200,
        metadata=_rule("whole", "Above this many lines of MEMORY.md pruning is due.", low=1, high=100_000),
    )
    memory_block_lines: int = field(
        default=220,
        metadata=_rule(
            "whole", "Above this many lines of MEMORY.md a commit is refused.", low=1, high=100_000
        ),
    )
    extraction_trigger: Trigger = field(
        default="on_session_end",
        metadata=_rule("choice", "When conversations are turned into notes.", choices=get_args(Trigger)),
    )
    condensation_schedule: str = field(
        default="0 23 * * *", metadata=_rule("schedule", "When the day is condensed, as a cron line.")
    )
    pruning_schedule: str = field(
        default="0 0 * * 0", metadata=_rule("schedule", "When MEMORY.md is pruned, as a cron line.")
    )
    auto_apply: bool = field(
        default=True,
        metadata=_rule("flag", "Notes that only add apply by themselves; false makes them drafts too."),
    )
    model: str | None = field(
        default=None,
        metadata=_rule(
            "model",
            "Model that extracts and condenses; null uses the built-in rules and calls no model.",
            nullable=True,
            reaches=True,
        ),
    )
    extract_model: str | None = field(
        default=None,
        metadata=_rule(
            "model", "Model for extracting alone; null uses lifecycle.model.", nullable=True, reaches=True
        ),
    )
    condense_model: str | None = field(
        default=None,
        metadata=_rule(
            "model", "Model for condensing and pruning alone; null uses lifecycle.model.",
            nullable=True, reaches=True,
        ),
    )  # fmt: skip
    extractors: tuple[str, ...] = field(
        default=EXTRACTORS,
        metadata=_rule("word", "What is looked for in conversations; your own by their names.", many=True),
    )
    trusted_tools: tuple[str, ...] = field(
        default=TRUSTED_TOOLS,
        metadata=_rule(
            "word", "Tools after which an agent's word is its own; after others it is reviewed.",
            many=True,
        ),
    )  # fmt: skip


def _policy(about: str) -> Mapping[str, Rule]:
    return _rule("choice", about, choices=get_args(Policy))


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """The policy for each kind of change to notes: auto applies it; review needs an approval; owner needs one
    from the approvers. Text from strangers is always reviewed."""

    decisions: Policy = field(default="auto", metadata=_policy("New decisions are added."))
    lessons: Policy = field(default="auto", metadata=_policy("New lessons are added."))
    people: Policy = field(default="auto", metadata=_policy("What was learned of people is added."))
    procedures: Policy = field(default="review", metadata=_policy("How things are done is added."))
    facts: Policy = field(default="auto", metadata=_policy("New facts are added."))
    journal: Policy = field(default="auto", metadata=_policy("The day is added to its journal page."))
    others: Policy = field(default="review", metadata=_policy("What your own extractors find is added."))
    supersede: Policy = field(
        default="auto", metadata=_policy("A line that tacit wrote is marked when a later one contradicts it.")
    )
    memory: Policy = field(
        default="review", metadata=_policy("MEMORY.md is rewritten by the weekly rollup or pruned.")
    )
    archive: Policy = field(default="auto", metadata=_policy("Old journal pages move to archive/."))
    evict: Policy = field(
        default="review", metadata=_policy("Notes that nothing refers to move to archive/.")
    )
    approvers: tuple[str, ...] = field(
        default=(),
        metadata=_rule("name", "Who may approve where the policy is owner.", many=True),
    )


@dataclass(frozen=True, slots=True)
class GitSettings:
    auto_commit: bool = field(
        default=True, metadata=_rule("flag", "Changes in the home are committed by themselves.")
    )
    auto_push: bool = field(
        default=False,
        metadata=_rule(
            "flag", "Commits are pushed to git.remote, whole conversations included.", reaches=True
        ),
    )
    remote: str | None = field(
        default=None,
        metadata=_rule("remote", "Where auto_push goes; null is nowhere.", nullable=True, reaches=True),
    )
    branch: str = field(default="main", metadata=_rule("branch", "Branch that holds the knowledge."))
    explore_days: int = field(
        default=7, metadata=_rule("whole", "Days an explore/ branch may live.", low=1, high=3650)
    )
    auto_tag_daily: bool = field(
        default=True, metadata=_rule("flag", "A day with changes gets a tag memory/daily/YYYY-MM-DD.")
    )
    auto_tag_weekly: bool = field(
        default=True, metadata=_rule("flag", "A week with changes gets a tag memory/weekly/YYYY-Www.")
    )
    commit_message_model: str | None = field(
        default=None,
        metadata=_rule(
            "model",
            "Model that words commit messages; null builds them from the change and calls no model.",
            nullable=True,
            reaches=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class CaptureSettings:
    enabled: bool = field(default=True, metadata=_rule("flag", "Conversations are kept as transcripts."))
    exclude_agents: tuple[str, ...] = field(
        default=(), metadata=_rule("name", "Agents whose conversations are never kept.", many=True)
    )
    idle_seal_hours: int = field(
        default=12,
        metadata=_rule("whole", "Hours without a message after which a session is closed.", low=1, high=8760),
    )


@dataclass(frozen=True, slots=True)
class MemorySettings:
    read_only: bool | None = field(
        default=None,
        metadata=_rule(
            "flag",
            "Agents only read: nothing is added to notes; null: while tacit is the host's memory slot.",
            nullable=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class InjectSettings:
    enabled: bool = field(default=True, metadata=_rule("flag", "Turns get context at all."))
    exclude_agents: tuple[str, ...] = field(
        default=(), metadata=_rule("name", "Agents that never get context.", many=True)
    )
    mode: Mode = field(
        default="each",
        metadata=_rule(
            "choice", "Retrieve on each message, or only on a session's first.", choices=get_args(Mode)
        ),
    )
    lanes: tuple[str, ...] = field(
        default=("bootstrap", "runtime"),
        metadata=_rule(
            "choice",
            "Ways to the host: file and daily also write a copy for hosts without a prompt hook.",
            choices=LANES,
            many=True,
        ),
    )
    files: Files = field(
        default="rules",
        metadata=_rule(
            "choice",
            "Files that a host loads: those of the session's rule, its own but MEMORY.md, or all its own.",
            choices=get_args(Files),
        ),
    )
    deadline_ms: int = field(
        default=250,
        metadata=_rule(
            "whole", "Milliseconds after which a turn goes on with what is ready.", low=10, high=60_000
        ),
    )
    confidence_gate: float = field(
        default=0.12,
        metadata=_rule(
            "number", "Relevance that the best passage needs; below it nothing is given.", low=0, high=1
        ),
    )
    strong: float = field(
        default=0.75,
        metadata=_rule(
            "number", "Relevance from which one passage is enough; below it two must agree.", low=0, high=1
        ),
    )
    repeat_after_turns: int | None = field(
        default=None,
        metadata=_rule(
            "whole",
            "Turns after which a session may get a passage again; null gives it once, unless it changed.",
            low=1,
            high=10_000,
            nullable=True,
        ),
    )
    shed_after_turns: int | None = field(
        default=None,
        metadata=_rule(
            "whole",
            "Turns without a use after which a file that was used is no longer loaded; null always loads it.",
            low=1,
            high=10_000,
            nullable=True,
        ),
    )
    cache_seconds: int = field(
        default=60,
        metadata=_rule("whole", "Seconds the same question is answered from the cache.", low=0, high=3600),
    )
    debounce_ms: int = field(
        default=500,
        metadata=_rule(
            "whole",
            "Milliseconds in which the same message is the same turn, and mode first searches for no other.",
            low=0,
            high=60_000,
        ),
    )
    daily_directory: str | None = field(
        default=None,
        metadata=_rule(
            "path",
            "Folder of the daily notes that the daily lane adds to; null is knowledge/journal in the home.",
            nullable=True,
            reaches=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class ServeSettings:
    tcp_port: int | None = field(
        default=None,
        metadata=_rule(
            "whole",
            "Port on 127.0.0.1 where `tacit serve` listens as well, for who has the token; null is none.",
            low=1,
            high=65_535,
            nullable=True,
            reaches=True,
        ),
    )
    workers: int = field(
        default=4, metadata=_rule("whole", "Requests that are worked on at the same time.", low=1, high=64)
    )
    waiting: int = field(
        default=32,
        metadata=_rule(
            "whole", "Requests that may wait; the next one is refused at once.", low=0, high=10_000
        ),
    )
    max_request_kb: int = field(
        default=1024, metadata=_rule("whole", "Most kilobytes of one request.", low=16, high=65_536)
    )
    request_seconds: int = field(
        default=30,
        metadata=_rule(
            "whole", "Seconds after which a request that is no turn is given up.", low=1, high=3600
        ),
    )


@dataclass(frozen=True, slots=True)
class SessionRule:
    """The settings of one type of session. The defaults, one per type, are in `Sessions`."""

    files: tuple[str, ...] | None = field(
        metadata=_rule(
            "file", "Identity files this type loads; null leaves the host's list.", nullable=True, many=True
        )
    )
    audience: Audience = field(
        metadata=_rule(
            "choice", "Whose knowledge this type may see; never wider than the default.",
            choices=get_args(Audience),
        )
    )  # fmt: skip
    token_budget: int | None = field(
        default=None,
        metadata=_rule(
            "whole",
            "Tokens for a turn of this type; null means context_compiler.token_budget.",
            low=256,
            high=1_000_000,
            nullable=True,
        ),
    )
    lanes: tuple[str, ...] | None = field(
        default=None,
        metadata=_rule(
            "choice", "Ways to the host for this type; null means inject.lanes.",
            choices=LANES, nullable=True, many=True,
        ),
    )  # fmt: skip


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
    # In a session of unknown type anybody may be a stranger.
    fallback: SessionRule = SessionRule(None, "anyone")
    orchestration_agents: tuple[str, ...] = field(
        default=(), metadata=_rule("name", "Agents whose main sessions count as orchestration.", many=True)
    )
    main_keys: tuple[str, ...] = field(
        default=("main",),
        metadata=_rule(
            "word",
            "Last words of the keys of main sessions (the host's session.mainKey); you may add dashboard or "
            "explicit.",
            many=True,
        ),
    )
    rules: tuple[Override, ...] = field(
        default=(),
        metadata=_rule(
            "override",
            "Settings for some sessions only: the first rule whose conditions all hold counts.",
            many=True,
            example=(
                "rules:  # conditions: type, agent, channel, peer, topic; settings as above",
                '  - {type: forum_topic, topic: "15", files: [SOUL.md, OPS.md], token_budget: 4096}',
                "  - {agent: shop, audience: anyone, lanes: [runtime]}",
            ),
        ),
    )
    directory: str | None = field(
        default=None,
        metadata=_rule(
            "path",
            "Folder for the per-session copies of the file lane; null keeps them under .tacit/.",
            nullable=True,
            reaches=True,
        ),
    )


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Limits for calls of models. The models themselves are set beside their work: lifecycle.model and so on.
    Without one of those no model is asked."""

    daily_calls: int | None = field(
        default=2000,
        metadata=_rule(
            "whole", "Most calls of models in a day, all tasks together; null is no limit.",
            low=0, high=10_000_000, nullable=True,
        ),
    )  # fmt: skip
    daily_tokens: int | None = field(
        default=2_000_000,
        metadata=_rule(
            "whole", "Most tokens that models read and write in a day; null is no limit.",
            low=0, high=100_000_000_000, nullable=True,
        ),
    )  # fmt: skip
    daily_usd: float | None = field(
        default=1.0,
        metadata=_rule(
            "number", "Most dollars in a day; a model without a price is refused then; null is no limit.",
            low=0, high=1_000_000, nullable=True,
        ),
    )  # fmt: skip
    seconds: int = field(
        default=180,
        metadata=_rule(
            "whole", "Seconds that one call of a run may take; turns have their own deadline.",
            low=1, high=3600,
        ),
    )  # fmt: skip
    prices: tuple[str, ...] = field(
        default=(),
        metadata=_rule(
            "price",
            "Dollars per million tokens, read and written, for models that begin so, before built-in ones.",
            many=True,
            example=(
                'prices: ["anthropic:claude-haiku-4-5 1 5", "https://models.example.com/v1#m 0.2 0.8"]',
            ),
        ),
    )


HOST_SECTIONS = {host.name: host.load(host.settings).SETTINGS for host in load_hosts() if host.settings}


@dataclass(frozen=True, slots=True)
class Config:
    timezone: str = field(
        default="local",
        metadata=_rule("zone", "Zone that decides which day it is: local or a name like Europe/Berlin."),
    )
    owners: tuple[str, ...] = field(
        default=(),
        metadata=_rule(
            "owner", "Your ids on the channels you write from, as the host spells them.", many=True
        ),
    )
    workspaces: tuple[Workspace, ...] = field(
        default=(),
        metadata=_rule(
            "workspace",
            "Folders of agents whose files are read in place, beside the home's own.",
            many=True,
            reaches=True,
            example=("workspaces: [~/assistant, {path: ~/shop, agent: shop, name: shop}]",),
        ),
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
