"""Chat models by the providers' own SDKs, for runs: the extras tacit[openai] and tacit[anthropic].

The same names, keys and errors as tacit/llm/chat.py, which is used if no SDK is installed and in turns:
importing an SDK takes longer than a turn may.

The SDKs read nothing from the environment: the key is the one that belongs to the address; no organisation,
no headers from the user's shell, no redirects (they would send the text elsewhere), no tracing. They do not
retry: tacit/llm/retry.py does, and every attempt is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from threading import Lock, Thread
from typing import Any

from tacit.json_http import PostError, Purpose, parse_address, parse_retry_after, redact_key
from tacit.llm.chat import (
    Chat,
    ChatAnswer,
    ChatError,
    ChatRequest,
    Target,
    extract_text,
    join_surrogates,
    make_answer,
    make_limits,
    no_text_error,
    parse_target,
)

_PACKAGES = {"openai": "openai", "http": "openai", "anthropic": "anthropic"}
# Headers that are sent. An SDK takes others from variables that belong to something else.
_SENT_HEADERS = frozenset({
    "host", "accept", "accept-encoding", "connection", "content-type", "content-length", "anthropic-version",
})  # fmt: skip
# Errors before the question is sent, by their class names in the SDKs' HTTP clients.
_UNSENT_ERRORS = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"}
)
_GRACE_S = 0.5  # seconds for the SDK to notice by itself


def is_installed(provider: str) -> bool:
    return find_spec(_PACKAGES[provider]) is not None


def choose_sdk(model: str, environ: Mapping[str, str], setting: str) -> Chat | None:
    """None if the SDK of this model is not installed or does not exist."""
    if model.startswith("local:"):
        return None
    target = parse_target(model, environ, setting)
    try:
        parse_address(target.base, "chat model")
    except PostError as error:
        raise ChatError(str(error)) from None
    if not is_installed(target.provider):
        return None
    return AnthropicChat(target, setting) if target.provider == "anthropic" else OpenAIChat(target, setting)


class _Sdk:
    """The common part of both. The client is made when the first question is asked."""

    def __init__(self, target: Target, setting: str) -> None:
        endpoint = parse_address(target.base, "chat model")
        self._target = target._replace(base=endpoint.place + endpoint.path)
        self._place, self._purpose = endpoint.place, Purpose("chat model", setting)
        self.name = self._target.name
        self._lock, self._sdk_client = Lock(), None

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        if seconds <= 0:
            raise ChatError(f"There was no time left to ask {self._place}.")
        request = ChatRequest(self._target.model, join_surrogates(system), join_surrogates(user), max_tokens)
        module = import_module(_PACKAGES[self._target.provider])
        with self._lock:
            client = self._sdk_client = self._sdk_client or self._make_client(module)
        try:
            response = run_within(seconds, lambda: self._ask(client.with_options(timeout=seconds), request))
        except module.APIStatusError as error:
            raise self._status_error(error) from None
        except (module.APITimeoutError, TimeoutError) as error:
            raise self._retry_error(
                "did not answer in time", spent=_cause_name(error) not in _UNSENT_ERRORS
            ) from None
        except module.APIConnectionError as error:
            cause = _cause_name(error)
            problem = "cannot be reached" if cause in _UNSENT_ERRORS else "broke off its answer"
            raise self._retry_error(f"{problem} ({cause})", spent=cause not in _UNSENT_ERRORS) from None
        except (module.APIError, ValueError) as error:  # a ValueError: it did not answer in JSON
            raise ChatError(
                f"{self._place} gave no answer: {self._mask_key(str(error))}", spent=True
            ) from None
        try:
            return self._read(response, request)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise no_text_error(self._place, self._target.model) from None

    def _make_client(self, module: Any) -> Any:
        raise NotImplementedError

    def _ask(self, client: Any, request: ChatRequest) -> Any:
        raise NotImplementedError

    def _read(self, response: Any, request: ChatRequest) -> ChatAnswer:
        raise NotImplementedError

    def _make_http_client(self, module: Any) -> Any:
        return module.DefaultHttpxClient(
            follow_redirects=False, event_hooks={"request": [self._clean_headers]}
        )

    def _clean_headers(self, request: Any) -> None:
        """Only what the protocol needs leaves this machine, and the key that belongs to this address."""
        for name in {name.lower() for name in request.headers} - _SENT_HEADERS:
            del request.headers[name]
        request.headers["User-Agent"] = "tacit"
        if self._target.key:
            request.headers["Authorization"] = f"Bearer {self._target.key}"

    def _status_error(self, error: Any) -> ChatError:
        status = error.status_code
        problem = f"answered with status {status}: {self._mask_key(str(error))}"
        if status == 429 or status >= 500:
            return self._retry_error(
                problem, wait=parse_retry_after(error.response.headers.get("retry-after", ""))
            )
        hint = (
            "Check the key and the name of the model."
            if status in (401, 403, 404)
            else f"Correct {self._purpose.setting}."
        )
        return ChatError(f"{self._place} {problem}. {hint}")

    def _retry_error(self, problem: str, *, wait: float | None = None, spent: bool = False) -> ChatError:
        message = f"{self._place} {problem}. Try again later, or choose another {self._purpose.setting}."
        return ChatError(message, again=True, wait=wait, spent=spent)

    def _mask_key(self, text: str) -> str:
        return redact_key(text, self._target.key)


class OpenAIChat(_Sdk):
    def _make_client(self, module: Any) -> Any:
        return module.OpenAI(
            # The client requires some key; `_clean_headers` decides what is sent.
            api_key=self._target.key or "none",
            base_url=self._target.base,
            max_retries=0,
            http_client=self._make_http_client(module),
        )

    def _ask(self, client: Any, request: ChatRequest) -> Any:
        return client.chat.completions.create(
            model=request.model,
            messages=[
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            **make_limits(self._target.provider, request),
        )

    def _read(self, response: Any, request: ChatRequest) -> ChatAnswer:
        usage = response.usage
        counts = (usage.prompt_tokens, usage.completion_tokens) if usage is not None else (None, None)
        return make_answer(request, extract_text(response.choices[0].message.content), *counts)


class AnthropicChat(_Sdk):
    def _make_client(self, module: Any) -> Any:
        return module.Anthropic(
            api_key=self._target.key,
            base_url=self._target.base,
            max_retries=0,
            http_client=self._make_http_client(module),
            open_telemetry=False,
        )

    def _ask(self, client: Any, request: ChatRequest) -> Any:
        return client.messages.create(
            model=request.model,
            system=request.system,
            messages=[{"role": "user", "content": request.user}],
            max_tokens=request.max_tokens,
        )

    def _read(self, response: Any, request: ChatRequest) -> ChatAnswer:
        text = extract_text(
            [{"type": block.type, "text": getattr(block, "text", None)} for block in response.content]
        )
        usage = response.usage
        counts = (usage.input_tokens, usage.output_tokens) if usage is not None else (None, None)
        return make_answer(request, text, *counts)


def run_within(seconds: float, work: Callable[[], Any]) -> Any:
    """The result of `work`, or its exception; TimeoutError if it takes longer. The timeouts of the SDKs apply
    between two bytes, and a slow server could stream for ever. After a timeout the thread is abandoned."""
    outcome: list[Callable[[], Any]] = []

    def run() -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - it is raised again, in the thread that waits
            outcome.append(partial(_raise, error))
        else:
            outcome.append(lambda: value)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds + _GRACE_S)
    if not outcome:
        raise TimeoutError
    return outcome[0]()


def _cause_name(error: BaseException) -> str:
    return type(error.__cause__ or error).__name__


def _raise(error: Exception) -> None:
    raise error
