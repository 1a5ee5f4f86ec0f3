"""The composition root: the only place that reads config and environment and picks concrete parts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tacit import config as configuration
from tacit.config import Config, Files, LoadedConfig, Workspace
from tacit.config.editing import add_workspace, set_word
from tacit.config.schema import flatten
from tacit.embeddings.protocol import Embedder, EmbedderError, Reranker
from tacit.errors import ConfigError, TacitError, UsageError
from tacit.git.hooks import find_program
from tacit.health import init
from tacit.health.access import is_trusted
from tacit.home import files
from tacit.home.layout import CONFIG, Home, find_home
from tacit.llm.ledger import Ledger, SpendingLimits, SpendTotal, sum_calls
from tacit.markdown.conflict_markers import find_marker_line
from tacit.memory import Memory
from tacit.search.index import SearchParts
from tacit.services import load_later, sqlite_backend
from tacit.workspaces.folders import Workspaces

if TYPE_CHECKING:
    from tacit.embeddings.registry import choose_embedder, choose_reranker, is_remote
    from tacit.llm.chat import Chat, open_or_unavailable
    from tacit.llm.ledger import LedgerMeter
    from tacit.llm.prices import find_price
    from tacit.llm.recording import Recording
    from tacit.llm.registry import ChatServices, choose_task
    from tacit.llm.retry import Breakers
    from tacit.llm.structured import Ask, make_ask
    from tacit.llm.tasks import find_model, find_models
    from tacit.rebuild.options import SetupMaker
    from tacit.topics.activation import GatedActivator
    from tacit.topics.decision_log import GateCache
else:
    choose_embedder = load_later("tacit.embeddings.registry", "choose_embedder")
    choose_reranker = load_later("tacit.embeddings.registry", "choose_reranker")
    is_remote = load_later("tacit.embeddings.registry", "is_remote")
    open_or_unavailable = load_later("tacit.llm.chat", "open_or_unavailable")
    find_price = load_later("tacit.llm.prices", "find_price")
    ChatServices = load_later("tacit.llm.registry", "ChatServices")
    choose_task = load_later("tacit.llm.registry", "choose_task")
    Breakers = load_later("tacit.llm.retry", "Breakers")
    make_ask = load_later("tacit.llm.structured", "make_ask")
    find_model = load_later("tacit.llm.tasks", "find_model")
    find_models = load_later("tacit.llm.tasks", "find_models")
    SetupMaker = load_later("tacit.rebuild.options", "SetupMaker")
    GateCache = load_later("tacit.topics.decision_log", "GateCache")
    GatedActivator = load_later("tacit.topics.activation", "GatedActivator")

# Set for programs that tacit itself starts: their conversations are neither kept nor learned from.
WORKER_VARIABLE = "TACIT_WORKER"
EMBED_TASK = "embed"  # a task name in the ledger


def utc_now() -> datetime:
    return datetime.now(UTC)


def open_home(home: str | os.PathLike[str] | None = None, *, recover: bool = True) -> Memory:
    """Open a home: the one given, else $TACIT_HOME, else ~/tacit.

    It recovers from a crash first; if the disk refuses that (full, read-only), reading still works.
    """
    place = find_home(None if home is None else os.fspath(home), os.environ).require()
    config = load_config(place).config
    memory = create_memory(place, config, utc_now)
    if recover:
        recover_quietly(memory)
    return memory


def create_memory(home: Home, config: Config, now: Callable[[], datetime]) -> Memory:
    """A Memory with the parts that the config names. Each part is loaded when it is first used."""
    if os.environ.get(WORKER_VARIABLE):
        config = replace(config, capture=replace(config.capture, enabled=False))
    parts = search_parts(config, home)
    gate = gate_factory(home, config, parts)

    return Memory(
        home,
        config,
        zone=zone_of(config),
        now=now,
        parts=parts,
        gate=gate,
        chat=lambda task: chat_for(config, task, home),
        ask=lambda task: ask_for(config, task, home),
    )


def recover_quietly(memory: Memory) -> None:
    """Recover, and leave what fails now (full disk, another process's lock) for the next time."""
    with suppress(TacitError, OSError):
        memory.recover()


def init_home(
    home: str | os.PathLike[str] | None = None,
    *,
    adopt: bool = False,
    workspaces: Sequence[str] = (),
    now: Callable[[], datetime] = utc_now,
) -> tuple[Memory, init.InitReport]:
    """Create or complete a home. `workspaces`: folders of agents whose files are read in place."""
    place = find_home(None if home is None else os.fspath(home), os.environ)
    adopted = [_resolve_workspace(place, folder) for folder in workspaces]  # before anything is created
    starter = init.load_starter_files(Path(init.__file__).parent / "starter", configuration.render_starter())
    program = find_program(sys.argv[0], sys.executable)
    report = init.initialize(place, starter, program, adopt=adopt, now=now().astimezone())
    report.adopted += [folder for folder in adopted if adopt_workspace(place, folder)]
    return open_home(place.root), report


def adopt_workspace(home: Home, folder: str | os.PathLike[str], agent: str = "") -> bool:
    """Add a folder to the workspaces in the config; False if it is there already. The rest of the file stays
    unchanged."""
    path = _resolve_workspace(home, folder)
    with files.hold_lock(home.lock):
        config = load_config(home).config
        if any(os.path.realpath(existing.path) == os.path.realpath(path) for existing in config.workspaces):
            return False
        workspace = Workspace(path, agent)
        data = home.config.read_bytes()
        text = add_workspace(data.decode(), workspace, CONFIG)
        changed = replace(config, workspaces=(*config.workspaces, workspace))
        if text is None or _try_parse(home, text) != changed:
            line = f"workspaces: {configuration.show(changed.workspaces)}"
            raise UsageError(f"{CONFIG} is better changed by hand here. Write this line: {line}")
        files.Tree(home.root).write(CONFIG, text.encode(), files.digest(data))
    return True


def set_inject_files(home: Home, which: Files) -> bool:
    """Set `inject.files` in the config; False if it has that value already."""
    with files.hold_lock(home.lock):
        config = load_config(home).config
        if config.inject.files == which:
            return False
        data = home.config.read_bytes()
        text = set_word(data.decode(), "inject", "files", which)
        if _try_parse(home, text) != replace(config, inject=replace(config.inject, files=which)):
            raise UsageError(f"{CONFIG} is better changed by hand here. Below inject, write: files: {which}")
        tree = files.Tree(home.root)
        tree.write(CONFIG, text.encode(), files.digest(data), tree.mode(CONFIG))
    return True


def _resolve_workspace(home: Home, folder: str | os.PathLike[str]) -> str:
    """The path of a folder, after checking that it can be a workspace of this home."""
    path = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isdir(path):
        raise UsageError(f"There is no folder {path}. Name the workspace of an agent.")
    if os.path.realpath(path) in ("/", os.path.realpath(os.path.expanduser("~"))):
        raise UsageError(f"{path} holds more than a workspace. Name the folder of one agent inside it.")
    for status in Workspaces(home, (Workspace(path),)).look():
        if status.trouble and not status.missing:
            raise UsageError(f"{path} {status.trouble}. Name the workspace of an agent.")
    return path


def _try_parse(home: Home, text: str) -> Config | None:
    """The text parsed as the config of this home; None if it is invalid."""
    try:
        return configuration.parse(text, where=CONFIG, environ=os.environ, trusted=is_trusted(home)).config
    except ConfigError:
        return None


def load_config(home: Home) -> LoadedConfig:
    try:
        text = home.config.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = home.config.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError(CONFIG, line, "is not UTF-8 text.", "Save the file as UTF-8.") from error
    if line := find_marker_line(text):
        todo = "Resolve them, and run the command again."
        raise ConfigError(CONFIG, line, "has unresolved merge conflict markers.", todo)
    return configuration.parse(
        text, where=CONFIG, environ=os.environ, trusted=is_trusted(home), root=str(home.root)
    )


def search_parts(config: Config, home: Home | None = None) -> SearchParts:
    """The parts of search. `home`: its ledger counts the calls of remote models."""
    settings = config.search

    def embedder() -> Embedder | None:
        meter = None
        if home is not None and is_remote(settings.embedding_model):
            meter = meter_of(config, home, EMBED_TASK, settings.embedding_model, hurried=True)
        return choose_embedder(
            settings.embedding_model, settings.embedding_dimensions, os.environ, meter=meter
        )

    def reranker() -> Reranker | None:
        return choose_reranker(settings.reranker)

    return SearchParts(
        sqlite_backend, embedder, reranker, settings.bm25_weight, settings.vector_weight, settings.spreading
    )


def gate_factory(home: Home, config: Config, parts: SearchParts) -> Callable[[], GatedActivator]:
    """The model that decides on uncertain topics: a chat model, else search's cross-encoder, else a rule."""
    settings = config.watchers

    def gate() -> GatedActivator:
        # A wrong setting must not stop turns.
        chat = open_or_unavailable(lambda: chat_for(config, "gate", home), settings.gate_model or "")
        reranker = None
        if chat is None:
            with suppress(EmbedderError):  # search reports it
                reranker = parts.reranker()
        return GatedActivator(
            chat=chat,
            reranker=reranker,
            answers=GateCache(home),
            threshold=settings.similarity_threshold,
            max_tokens=settings.gate_max_tokens,
        )

    return gate


def zone_of(config: Config) -> tzinfo | None:
    """The configured zone; None for the machine's own."""
    if config.timezone == "local":
        return None
    from zoneinfo import ZoneInfo  # loaded only if a zone is configured

    return ZoneInfo(config.timezone)


# ---------------------------------------------------------------- models


def chat_for(config: Config, task: str, home: Home, tape: Recording | None = None) -> Chat | None:
    """The chat model of a task, with metering and retries. None: no model is configured. Raises ChatError if
    the configured one cannot be used. `tape` records the calls, or plays them back."""
    around = ChatServices(
        meter=lambda task, model, hurried: meter_of(config, home, task, model, hurried=hurried),
        breaker=Breakers(home).of,
        timeout=float(config.models.seconds),
    )
    return choose_task(task, flatten(config), os.environ, around, tape)


def ask_for(config: Config, task: str, home: Home, tape: Recording | None = None) -> Ask | None:
    """The same for questions whose answers are lists of items. The ledger counts bad answers."""
    chat = chat_for(config, task, home, tape)
    if chat is None:
        return None
    if tape is not None and tape.mode == "replay":
        return make_ask(chat)
    model = find_model(task, flatten(config))[1]
    # A recorded question is asked once; playing it back repeats a bad answer.
    breaker = Breakers(home).of(f"{model} ({task})") if tape is None else None
    return make_ask(chat, bad=meter_of(config, home, task, model).bad, breaker=breaker)


def meter_of(config: Config, home: Home, task: str, model: str, *, hurried: bool = False) -> LedgerMeter:
    price = find_price(model, os.environ, config.models.prices)
    return ledger_of(config, home).meter(task, model, price, hurried=hurried)


def ledger_of(config: Config, home: Home) -> Ledger:
    """The ledger of model calls, by days of the home's zone."""
    zone = zone_of(config)
    return Ledger(home, lambda: utc_now().astimezone(zone), limits_of(config))


def make_setups(memory: Memory) -> SetupMaker:
    """Makes the setups of rebuilds: which extractors, and which models."""

    def open_ask(config: Config, task: str, tape: Recording | None) -> Ask | None:
        return ask_for(config, task, memory.home, tape)

    return SetupMaker(memory.home, memory.config, memory.git, open_ask)


class Spending(NamedTuple):
    """The state of the models and their use today."""

    models: dict[str, str]  # by task
    today: SpendTotal
    limits: SpendingLimits
    left_alone: dict[str, tuple[float, str]]  # models with open breakers: seconds, and why
    refused: str  # why the last call today was refused; empty: none was


def spending_report(config: Config, home: Home) -> Spending:
    models = find_models(flatten(config))
    calls = [call for day in ledger_of(config, home).days(1).values() for call in day]
    refused = [call.why for call in calls if call.outcome == "refused"]
    return Spending(models, sum_calls(calls), limits_of(config), Breakers(home).open(), "".join(refused[-1:]))


def limits_of(config: Config) -> SpendingLimits:
    models = config.models
    return SpendingLimits(models.daily_calls, models.daily_tokens, models.daily_usd)
