"""What a host is: a program that runs agents, to which tacit gives memory; and which hosts there are.

A host is a folder beside this file with a module `host`, which has one `HOST`, and its name in HOSTS below.
It has to have a name and a module that translates its records. All else is optional: an agent's folder,
settings, tasks for models, commands, texts for agents. A host that tacit can be installed into has `install`,
`uninstall` and `doctor` among its commands.

Every command reads these objects as it starts, so a module `host` imports only this one, and members name the
modules that have the code.
"""

from __future__ import annotations

from importlib import import_module

from tacit.errors import UsageError

TYPE_CHECKING = False  # as in typing, which would cost every command several milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal, Protocol, TypeAlias

    class Translation(Protocol):
        """Turns records of the host into operations of tacit. Pure: a record as the host sends it goes in,
        bodies of operations come out. Their session keys are the host's own, as `agent:NAME:…`."""

        def turn(self, body: Mapping[str, Any], /) -> Body:
            """The body of an operation that a session asks for: a turn, a search, one of the tools."""

        def event(self, body: Mapping[str, Any], /) -> list[OperationCall]:
            """What happened on the host: messages, tool calls, the end of a session."""

        def bootstrap_entries(self, session_key: str, files: Sequence[Mapping[str, Any]], /) -> list[Body]:
            """The files of a rule, as entries that the host accepts in its own list."""


HOSTS = ["openclaw", "hooks"]

Body: TypeAlias = "dict[str, Any]"  # of a request


class OperationCall:
    """The name of an operation in tacit.operations, and the body of its request."""

    __slots__ = ("body", "operation")

    def __init__(self, operation: str, body: Body) -> None:
        self.operation, self.body = operation, body


class ModelTask:
    """A task for a model, under its name in the ledger. `setting` names the model, `tier` the lowest tier
    that may do it."""

    __slots__ = ("about", "name", "setting", "tier")

    def __init__(self, name: str, setting: str, tier: Literal["small", "local", "cloud"], about: str) -> None:
        self.name, self.setting, self.tier, self.about = name, setting, tier, about


class Command:
    """A command that the host adds to the command line; `module` is in the host's folder, `after` names the
    command that it follows in lists, empty for the end."""

    __slots__ = ("about", "after", "module", "name")

    def __init__(self, name: str, module: str, about: str, *, after: str = "") -> None:
        self.name, self.module, self.about, self.after = name, module, about, after


class Snippet:
    """A text that tells agents without a plugin how to use memory. `where`: the file to paste it into;
    `is_shared`: people other than the owner may talk to these agents; `by_session_type`: their sessions have
    several types, each with its own files."""

    __slots__ = ("by_session_type", "is_shared", "name", "title", "where")

    def __init__(
        self, name: str, title: str, where: str, *, is_shared: bool, by_session_type: bool = False
    ) -> None:
        self.name, self.title, self.where = name, title, where
        self.is_shared, self.by_session_type = is_shared, by_session_type


class Host:
    """`name` is that of its folder, of its requests, of its section in the config and of its folder in
    `.tacit`. `translation` and `settings` name modules: one with the functions of `Translation`, one with
    SETTINGS, the defaults of the section in the config. `workspace`: the folder of the host's first agent."""

    def __init__(
        self,
        name: str,
        *,
        translation: str = "events",
        workspace: str = "",
        settings: str = "",
        model_tasks: Sequence[ModelTask] = (),
        commands: Sequence[Command] = (),
        snippets: Sequence[Snippet] = (),
    ) -> None:
        self.name, self.workspace = name, workspace
        self.translation, self.settings = translation, settings
        self.model_tasks, self.commands, self.snippets = model_tasks, commands, snippets

    def load(self, module: str) -> Any:
        """A module of the host's folder."""
        return import_module(f"tacit.hosts.{self.name}.{module}")

    def load_translation(self) -> Translation:
        translation: Translation = self.load(self.translation)
        return translation


def load_hosts() -> list[Host]:
    return [import_module(f"tacit.hosts.{name}.host").HOST for name in HOSTS]


def find_translation(body: Mapping[str, Any]) -> Translation | None:
    """The translation of the host that a request names. None: it names none, and already uses tacit's own
    fields."""
    name = body.get("host")
    if name is None:
        return None
    host = next((host for host in load_hosts() if host.name == name), None)
    if host is None:
        raise UsageError(f"'host' must be one of {', '.join(HOSTS)}.")
    return host.load_translation()
