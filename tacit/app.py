"""The only place that reads the config file and the environment and picks concrete parts."""

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
from tacit.config import Config, Files, Loaded, Workspace
from tacit.config.edit import with_word
from tacit.config.keys import flatten
from tacit.config.workspaces import with_workspace
from tacit.embed.protocol import Embedder, EmbedderError
from tacit.errors import ConfigError, TacitError, UsageError
from tacit.memory import Memory
from tacit.model.spending import Limits, Spent, total
from tacit.search.parts import Parts, Reranker
from tacit.store import files, setup
from tacit.store.home import CONFIG, Home, locate
from tacit.store.hooks import program_path
from tacit.store.trust import is_trusted
from tacit.store.workspaces import Workspaces

if TYPE_CHECKING:
    from tacit.lifecycle.wisdom.likeness import Vectors
    from tacit.llm.chat import Chat
    from tacit.llm.items import Ask
    from tacit.llm.recorded import Tape
    from tacit.store.ledger import Ledger, LedgerMeter
    from tacit.watch.gate import GatedActivator
    from tacit.workspace import Place

# Set for programs that tacit itself starts: what they say is neither kept nor learned.
WORKER = "TACIT_WORKER"
EMBED = "embed"  # as a task of the ledger
_OPENCLAW = "~/.openclaw/workspace"  # where OpenClaw keeps the one of its first agent


def now() -> datetime:
    return datetime.now(UTC)


def open_home(home: str | os.PathLike[str] | None = None, *, recover: bool = True) -> Memory:
    """Open a home: the one given, else $TACIT_HOME, else ~/tacit.

    What a crash left behind is put in order first; a disk that refuses that (full, read-only) does not stop
    anybody from reading.
    """
    place = locate(None if home is None else os.fspath(home), os.environ).require()
    config = load_config(place).config
    memory = memory_of(place, config, now)
    if recover:
        recover_quietly(memory)
    return memory


def memory_of(home: Home, config: Config, now: Callable[[], datetime]) -> Memory:
    """With the parts that the config names. Nothing is loaded before it is used."""
    if os.environ.get(WORKER):
        config = replace(config, capture=replace(config.capture, enabled=False))
    parts = parts_of(config, home)
    gate = gate_of(home, config, parts)

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
    """What cannot be put in order now (full disk, somebody else's lock) is left for the next time."""
    with suppress(TacitError, OSError):
        memory.recover()


def init_home(
    home: str | os.PathLike[str] | None = None,
    *,
    adopt: bool = False,
    workspaces: Sequence[str] = (),
    now: Callable[[], datetime] = now,
) -> tuple[Memory, setup.Report]:
    """`workspaces`: folders of agents whose files are read in place."""
    place = locate(None if home is None else os.fspath(home), os.environ)
    adopted = [_workspace(place, folder) for folder in workspaces]  # before anything is made
    starter = setup.starter_files(Path(__file__).parent / "starter", configuration.starter())
    program = program_path(sys.argv[0], sys.executable)
    report = setup.set_up(place, starter, program, adopt=adopt, now=now().astimezone())
    report.adopted += [folder for folder in adopted if adopt_workspace(place, folder)]
    return open_home(place.root), report


def adopt_workspace(home: Home, folder: str | os.PathLike[str], agent: str = "") -> bool:
    """Name a folder in the config as a workspace of the home; False where it is one already. The rest of the
    file stays as somebody wrote it."""
    path = _workspace(home, folder)
    with files.locked(home.lock):
        before = load_config(home).config
        if any(os.path.realpath(one.path) == os.path.realpath(path) for one in before.workspaces):
            return False
        one = Workspace(path, agent)
        data = home.config.read_bytes()
        text = with_workspace(data.decode(), one, CONFIG)
        wanted = replace(before, workspaces=(*before.workspaces, one))
        if text is None or _read_as(home, text) != wanted:
            line = f"workspaces: {configuration.show(wanted.workspaces)}"
            raise UsageError(f"{CONFIG} is better changed by hand here. Write this line: {line}")
        files.Tree(home.root).write(CONFIG, text.encode(), files.digest(data))
    return True


def choose_files(home: Home, which: Files) -> bool:
    """Set `inject.files` in the config; False where it is so already."""
    with files.locked(home.lock):
        before = load_config(home).config
        if before.inject.files == which:
            return False
        data = home.config.read_bytes()
        text = with_word(data.decode(), "inject", "files", which)
        if _read_as(home, text) != replace(before, inject=replace(before.inject, files=which)):
            raise UsageError(f"{CONFIG} is better changed by hand here. Below inject, write: files: {which}")
        tree = files.Tree(home.root)
        tree.write(CONFIG, text.encode(), files.digest(data), tree.mode(CONFIG))
    return True


def _workspace(home: Home, folder: str | os.PathLike[str]) -> str:
    """The path of a folder that can be a workspace of this home."""
    path = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isdir(path):
        raise UsageError(f"There is no folder {path}. Name the workspace of an agent.")
    if os.path.realpath(path) in ("/", os.path.realpath(os.path.expanduser("~"))):
        raise UsageError(f"{path} holds more than a workspace. Name the folder of one agent inside it.")
    for seen in Workspaces(home, (Workspace(path),)).look():
        if seen.trouble and not seen.missing:
            raise UsageError(f"{path} {seen.trouble}. Name the workspace of an agent.")
    return path


def _read_as(home: Home, text: str) -> Config | None:
    """What a text would mean as the config of this home; None where it could not be read."""
    try:
        return configuration.parse(text, where=CONFIG, environ=os.environ, trusted=is_trusted(home)).config
    except ConfigError:
        return None


def load_config(home: Home) -> Loaded:
    try:
        text = home.config.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = home.config.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError(CONFIG, line, "is not UTF-8 text.", "Save the file as UTF-8.") from error
    return configuration.parse(
        text, where=CONFIG, environ=os.environ, trusted=is_trusted(home), root=str(home.root)
    )


def parts_of(config: Config, home: Home | None = None) -> Parts:
    """What to search with. `home`: whose ledger counts the calls of a model that is reached by network."""
    wanted = config.search

    def embedder() -> Embedder | None:
        from tacit.embed.choose import choose, is_remote  # ssl and json, for models reached by network

        meter = None
        if home is not None and is_remote(wanted.embedding_model):
            meter = meter_of(config, home, EMBED, wanted.embedding_model, hurried=True)
        return choose(wanted.embedding_model, wanted.embedding_dimensions, os.environ, meter=meter)

    def reranker() -> Reranker | None:
        from tacit.embed.choose import choose_reranker

        return choose_reranker(wanted.reranker)

    return Parts(embedder, reranker, wanted.bm25_weight, wanted.vector_weight, wanted.spreading)


def gate_of(home: Home, config: Config, parts: Parts) -> Callable[[], GatedActivator]:
    """Who is asked about topics in doubt: a chat model, else the cross-encoder of search, else a rule."""
    wanted = config.watchers

    def gate() -> GatedActivator:
        from tacit.llm.chat import ChatError, Unavailable
        from tacit.store.gatelog import GateCache
        from tacit.watch.gate import GatedActivator

        chat: Chat | None
        try:
            chat = chat_for(config, "gate", home)
        except ChatError as error:  # a setting that is wrong stops no turn
            chat = Unavailable(wanted.gate_model or "", error)
        reranker = None
        if chat is None:
            with suppress(EmbedderError):  # search says so
                reranker = parts.reranker()
        return GatedActivator(
            chat=chat,
            reranker=reranker,
            answers=GateCache(home),
            threshold=wanted.similarity_threshold,
            max_tokens=wanted.gate_max_tokens,
        )

    return gate


def zone_of(config: Config) -> tzinfo | None:
    """None stands for the machine's own zone."""
    if config.timezone == "local":
        return None
    from zoneinfo import ZoneInfo  # only who names a zone pays for loading it

    return ZoneInfo(config.timezone)


def open_workspace(home: str | os.PathLike[str] | None = None, given: str | None = None) -> Place:
    """The folder of an agent: the one given, else that of the config, else OpenClaw's own."""
    from tacit.workspace import Place

    owner = locate(None if home is None else os.fspath(home), os.environ).require()
    config = load_config(owner).config
    zone = zone_of(config)

    def vectors() -> Vectors | None:
        with suppress(EmbedderError):  # words do as well
            embedder = parts_of(config, owner).embedder()
            return None if embedder is None else embedder.documents
        return None

    return Place(
        _workspace_root(config, given),
        config,
        now=lambda: now().astimezone(zone),
        vectors=vectors,
        wisdom_chat=lambda: chat_for(config, "wisdom", owner),
        soul_chat=lambda: chat_for(config, "identity", owner),
    )


def _workspace_root(config: Config, given: str | None) -> Path:
    if given is None and len(config.workspaces) > 1:
        raise UsageError(
            f"Which workspace? Name one with --workspace: {', '.join(one.path for one in config.workspaces)}."
        )
    name = given or next((one.path for one in config.workspaces), _OPENCLAW)
    root = Path(os.path.abspath(os.path.expanduser(name)))
    if root.is_dir():
        return root
    if given is None and not config.workspaces:
        raise UsageError(
            f"There is no workspace: {root} is not there, and workspaces in {CONFIG} names none. "
            "Name one with --workspace DIR."
        )
    raise UsageError(f"There is no folder {root}. Name another one with --workspace DIR.")


# ---------------------------------------------------------------- models


def chat_for(config: Config, task: str, home: Home, tape: Tape | None = None) -> Chat | None:
    """The chat model of a task, counted and patient. None: no model is configured, and none is asked.
    Raises ChatError where the one that is configured cannot be had. `tape`: what is asked is kept there, or
    played back from there."""
    from tacit.llm.choose import Around, choose_task
    from tacit.store.breakers import Breakers

    around = Around(
        meter=lambda task, model, hurried: meter_of(config, home, task, model, hurried=hurried),
        breaker=Breakers(home).of,
        timeout=float(config.models.seconds),
    )
    return choose_task(task, flatten(config), os.environ, around, tape)


def ask_for(config: Config, task: str, home: Home, tape: Tape | None = None) -> Ask | None:
    """The same for questions whose answers are lists of items. What is bad is told to the ledger."""
    from tacit.llm.items import ask_by
    from tacit.llm.tasks import named_model
    from tacit.store.breakers import Breakers

    chat = chat_for(config, task, home, tape)
    if chat is None:
        return None
    if tape is not None and tape.mode == "replay":
        return ask_by(chat)
    model = named_model(task, flatten(config))[1]
    # What is recorded is asked once, and answered as badly when it is played back.
    breaker = Breakers(home).of(f"{model} ({task})") if tape is None else None
    return ask_by(chat, bad=meter_of(config, home, task, model).bad, breaker=breaker)


def meter_of(config: Config, home: Home, task: str, model: str, *, hurried: bool = False) -> LedgerMeter:
    from tacit.llm.prices import price_of

    price = price_of(model, os.environ, config.models.prices)
    return ledger_of(config, home).meter(task, model, price, hurried=hurried)


def ledger_of(config: Config, home: Home) -> Ledger:
    """What was asked of models, by days of the home's zone."""
    from tacit.store.ledger import Ledger

    zone = zone_of(config)
    return Ledger(home, lambda: now().astimezone(zone), limits_of(config))


class Spending(NamedTuple):
    """How things stand with models."""

    models: dict[str, str]  # by task
    today: Spent
    limits: Limits
    left_alone: dict[str, tuple[float, str]]  # because they failed: seconds, and why
    refused: str  # why the last call was that was refused today; empty: none was


def spending(config: Config, home: Home) -> Spending:
    from tacit.llm.tasks import TASKS, named_model
    from tacit.store.breakers import Breakers

    settings = flatten(config)
    models = {task: model for task in TASKS if (model := named_model(task, settings)[1])}
    calls = [call for day in ledger_of(config, home).days(1).values() for call in day]
    refused = [call.why for call in calls if call.outcome == "refused"]
    return Spending(models, total(calls), limits_of(config), Breakers(home).open(), "".join(refused[-1:]))


def limits_of(config: Config) -> Limits:
    models = config.models
    return Limits(models.daily_calls, models.daily_tokens, models.daily_usd)
