"""Chooses the chat model of a task from the settings, or None if no setting names one.

From the inside out: the provider; metered (every attempt is one call); retried, in runs; recorded, if the run
is to be replayed. A turn gets the provider, metered, and nothing that waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tacit.circuit_breaker import CircuitBreaker
from tacit.json_http import JsonPoster, PostError, Purpose, bearer_header
from tacit.llm.chat import ANTHROPIC, OPENAI, Chat, ChatEndpoint, ChatError, anthropic_headers, parse_target
from tacit.llm.ledger import Meter
from tacit.llm.local import choose_local
from tacit.llm.recording import RecordedChat, Recording
from tacit.llm.retry import MeteredChat, RetryingChat
from tacit.llm.tasks import TASKS, Task, find_model, require_tier


def choose_chat(
    model: str, environ: Mapping[str, str], setting: str = "watchers.gate_model", *, breaks: bool = True
) -> Chat:
    """The chat model that the value of a setting means. Nothing is sent before the first question.
    `breaks`: a server that failed a few times is paused for a while, within this process."""
    if model.startswith("local:"):
        return choose_local(model, setting)
    target, purpose = parse_target(model, environ, setting), Purpose("chat model", setting)
    headers = anthropic_headers if target.provider == "anthropic" else bearer_header
    try:
        post = JsonPoster(target.base, purpose, key=target.key, headers=headers, breaks=breaks)
    except PostError as error:
        raise ChatError(str(error)) from None
    return ChatEndpoint(target, ANTHROPIC if target.provider == "anthropic" else OPENAI, post)


class ChatServices(NamedTuple):
    """The services around a model, handed in because they use files of the home."""

    meter: Callable[[str, str, bool], Meter]  # task, model, whether a turn waits
    breaker: Callable[[str], CircuitBreaker]  # model
    timeout: float  # seconds of one attempt


def choose_task(
    task: str,
    settings: Mapping[str, object],
    environ: Mapping[str, str],
    around: ChatServices,
    tape: Recording | None = None,
) -> Chat | None:
    """Raises ChatError if a setting names a model that is unavailable or not good enough."""
    setting, model = find_model(task, settings)
    if not model:
        return None
    if tape is not None and tape.mode == "replay":
        return RecordedChat(tape, task, None, model)
    definition = TASKS[task]
    require_tier(model, environ, setting, definition.least)
    # In runs the breaker of the home counts failures, across processes.
    provider = choose_chat(model, environ, setting, breaks=definition.in_turns)
    chat = _wrap(task, definition, model, provider, around)
    # By the name in the setting: a replay must not depend on the address of the server.
    return chat if tape is None else RecordedChat(tape, task, chat, model)


def _wrap(task: str, definition: Task, model: str, provider: Chat, around: ChatServices) -> Chat:
    metered = MeteredChat(provider, around.meter(task, model, definition.in_turns))
    if definition.in_turns:
        return metered
    return RetryingChat(metered, around.breaker(model), timeout=around.timeout)
