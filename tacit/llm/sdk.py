"""Chat models by the providers' own SDKs, for runs: the extras tacit[openai] and tacit[anthropic].

The same names, the same keys and the same errors as tacit/llm/chat.py, which is used where no SDK is
installed and in turns: importing one takes longer than a turn may.

What an SDK would take from the environment by itself is not left to it: the key is the one that belongs to
the address, no organisation, no headers of somebody's shell, no redirects (they would carry the text
elsewhere), no tracing. It does not retry: tacit/llm/patient.py does, and every attempt is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Any

from tacit.llm.chat import (
    Answer,
    Asked,
    Chat,
    ChatError,
    Target,
    answer_of,
    bounds,
    no_text,
    target_of,
    text_in,
    whole,
)
from tacit.net.post import PostError, Purpose, address, retry_after, without_key

_PACKAGES = {"openai": "openai", "http": "openai", "anthropic": "anthropic"}
# Headers that are sent. Others an SDK takes from variables that belong to something else.
_SENT = frozenset({
    "host", "accept", "accept-encoding", "connection", "content-type", "content-length", "anthropic-version",
})  # fmt: skip
# What goes wrong before the question is sent, by the names that the SDKs' HTTP clients have for it.
_NOT_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"})
_GRACE = 0.5  # seconds for the SDK to notice by itself


def is_installed(provider: str) -> bool:
    return find_spec(_PACKAGES[provider]) is not None


def choose_sdk(model: str, environ: Mapping[str, str], setting: str) -> Chat | None:
    """None: the SDK of this model is not installed, or it has none."""
    if model.startswith("local:"):
        return None
    target = target_of(model, environ, setting)
    try:
        address(target.base, "chat model")
    except PostError as error:
        raise ChatError(str(error)) from None
    if not is_installed(target.provider):
        return None
    return Anthropic(target, setting) if target.provider == "anthropic" else OpenAI(target, setting)


class _Sdk:
    """What both have in common. The client is made when the first question is asked."""

    def __init__(self, target: Target, setting: str) -> None:
        where = address(target.base, "chat model")
        self._target = target._replace(base=where.place + where.path)
        self._place, self._purpose = where.place, Purpose("chat model", setting)
        self.name = self._target.name
        self._lock, self._made = Lock(), None

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> Answer:
        if seconds <= 0:
            raise ChatError(f"There was no time left to ask {self._place}.")
        asked = Asked(self._target.model, whole(system), whole(user), max_tokens)
        module = import_module(_PACKAGES[self._target.provider])
        with self._lock:
            client = self._made = self._made or self._client(module)
        try:
            said = within(seconds, lambda: self._ask(client.with_options(timeout=seconds), asked))
        except module.APIStatusError as error:
            raise self._refused(error) from None
        except (module.APITimeoutError, TimeoutError) as error:
            raise self._busy("did not answer in time", spent=_cause(error) not in _NOT_SENT) from None
        except module.APIConnectionError as error:
            cause = _cause(error)
            what = "cannot be reached" if cause in _NOT_SENT else "broke off its answer"
            raise self._busy(f"{what} ({cause})", spent=cause not in _NOT_SENT) from None
        except (module.APIError, ValueError) as error:  # a ValueError: it did not answer in JSON
            raise ChatError(f"{self._place} gave no answer: {self._words(str(error))}", spent=True) from None
        try:
            return self._read(said, asked)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise no_text(self._place, self._target.model) from None

    def _client(self, module: Any) -> Any:
        raise NotImplementedError

    def _ask(self, client: Any, asked: Asked) -> Any:
        raise NotImplementedError

    def _read(self, said: Any, asked: Asked) -> Answer:
        raise NotImplementedError

    def _http(self, module: Any) -> Any:
        return module.DefaultHttpxClient(follow_redirects=False, event_hooks={"request": [self._as_ours]})

    def _as_ours(self, request: Any) -> None:
        """Only what the protocol needs leaves this machine, and the key that belongs to this address."""
        for name in {name.lower() for name in request.headers} - _SENT:
            del request.headers[name]
        request.headers["User-Agent"] = "tacit"
        if self._target.key:
            request.headers["Authorization"] = f"Bearer {self._target.key}"

    def _refused(self, error: Any) -> ChatError:
        status = error.status_code
        what = f"answered with status {status}: {self._words(str(error))}"
        if status == 429 or status >= 500:
            return self._busy(what, wait=retry_after(error.response.headers.get("retry-after", "")))
        hint = (
            "Check the key and the name of the model."
            if status in (401, 403, 404)
            else f"Correct {self._purpose.setting}."
        )
        return ChatError(f"{self._place} {what}. {hint}")

    def _busy(self, what: str, *, wait: float | None = None, spent: bool = False) -> ChatError:
        told = f"{self._place} {what}. Try again later, or choose another {self._purpose.setting}."
        return ChatError(told, again=True, wait=wait, spent=spent)

    def _words(self, said: str) -> str:
        return without_key(said, self._target.key)


class OpenAI(_Sdk):
    def _client(self, module: Any) -> Any:
        return module.OpenAI(
            # Without some key no client can be made; what is sent is decided by `_as_ours`.
            api_key=self._target.key or "none",
            base_url=self._target.base,
            max_retries=0,
            http_client=self._http(module),
        )

    def _ask(self, client: Any, asked: Asked) -> Any:
        return client.chat.completions.create(
            model=asked.model,
            messages=[{"role": "system", "content": asked.system}, {"role": "user", "content": asked.user}],
            **bounds(self._target.provider, asked),
        )

    def _read(self, said: Any, asked: Asked) -> Answer:
        usage = said.usage
        counts = (usage.prompt_tokens, usage.completion_tokens) if usage is not None else (None, None)
        return answer_of(asked, text_in(said.choices[0].message.content), *counts)


class Anthropic(_Sdk):
    def _client(self, module: Any) -> Any:
        return module.Anthropic(
            api_key=self._target.key,
            base_url=self._target.base,
            max_retries=0,
            http_client=self._http(module),
            open_telemetry=False,
        )

    def _ask(self, client: Any, asked: Asked) -> Any:
        return client.messages.create(
            model=asked.model,
            system=asked.system,
            messages=[{"role": "user", "content": asked.user}],
            max_tokens=asked.max_tokens,
        )

    def _read(self, said: Any, asked: Asked) -> Answer:
        text = text_in([{"type": block.type, "text": getattr(block, "text", None)} for block in said.content])
        usage = said.usage
        counts = (usage.input_tokens, usage.output_tokens) if usage is not None else (None, None)
        return answer_of(asked, text, *counts)


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What the work returns or raises; TimeoutError when it takes longer. The SDKs count the time between two
    bytes, and a server may send one now and then for ever. The thread is left behind then."""
    done: list[Callable[[], Any]] = []

    def run() -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - it is raised again, in the thread that waits
            done.append(partial(_raise, error))
        else:
            done.append(lambda: value)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds + _GRACE)
    if not done:
        raise TimeoutError
    return done[0]()


def _cause(error: BaseException) -> str:
    return type(error.__cause__ or error).__name__


def _raise(error: Exception) -> None:
    raise error
