"""A task and the settings → the chat model that does it, or None where no setting names one.

From the inside out: the provider; counted (every attempt is one call); patient, for runs; remembered, where a
run is to be played back. A turn gets the provider by plain HTTP and counted, and nothing that waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tacit.llm.chat import Chat, choose_chat
from tacit.llm.metered import Metered
from tacit.llm.patient import Breaker, Patient
from tacit.llm.recorded import Recorded, Tape
from tacit.llm.sdk import choose_sdk
from tacit.llm.tasks import TASKS, Task, named_model
from tacit.llm.tiers import require_tier
from tacit.model.spending import Meter


class Around(NamedTuple):
    """What stands around a model: handed in, because it is kept in files of the home."""

    meter: Callable[[str, str, bool], Meter]  # task, model, whether a turn waits
    breaker: Callable[[str], Breaker]  # model
    timeout: float  # seconds of one attempt


def choose_task(
    task: str,
    settings: Mapping[str, object],
    environ: Mapping[str, str],
    around: Around,
    tape: Tape | None = None,
) -> Chat | None:
    """Raises ChatError where a setting names a model that cannot be had or is not good enough."""
    setting, model = named_model(task, settings)
    if not model:
        return None
    if tape is not None and tape.mode == "replay":
        return Recorded(tape, task, None, model)
    about = TASKS[task]
    require_tier(model, environ, setting, about.least)
    chat = _counted(task, about, model, _provider(about, model, environ, setting), around)
    # By the name in the setting: what is played back must not depend on where the server was.
    return chat if tape is None else Recorded(tape, task, chat, model)


def _provider(about: Task, model: str, environ: Mapping[str, str], setting: str) -> Chat:
    if about.in_turns:
        return choose_chat(model, environ, setting)
    return choose_sdk(model, environ, setting) or choose_chat(model, environ, setting, breaks=False)


def _counted(task: str, about: Task, model: str, provider: Chat, around: Around) -> Chat:
    metered = Metered(provider, around.meter(task, model, about.in_turns))
    if about.in_turns:
        return metered
    return Patient(metered, around.breaker(model), timeout=around.timeout)
