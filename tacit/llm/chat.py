"""Chat models by name, over plain HTTP.

    openai:MODEL                 OPENAI_API_KEY, and OPENAI_BASE_URL if it is not OpenAI's own
    anthropic:MODEL              ANTHROPIC_API_KEY, and ANTHROPIC_BASE_URL if it is not Anthropic's own
    http://host:port/v1#MODEL    any server that speaks OpenAI's way: Ollama, LM Studio, vLLM, llama.cpp.
                                 TACIT_CHAT_KEY is sent to it, if set
    local:smollm2, local:/FILE   a model in this process, by the extra tacit[local]: tacit/llm/local.py

One question is one HTTP request, in turns and in runs: docs/decisions/0013-models-by-http.md says why.

A key is sent only to its own service: the key of a provider never goes to an address from the config.
The temperature is 0 where that is allowed. Reasoning models are of little use with a low token limit: they
run out of tokens before they answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard

from tacit.errors import TacitError
from tacit.json_http import JsonPoster, PostError
from tacit.text import tokens

_OPENAI_BASE = "https://api.openai.com/v1"
_ANTHROPIC_BASE = "https://api.anthropic.com"
_ANTHROPIC_VERSION = "2023-06-01"
_REASONING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)


class ChatError(TacitError):
    """A chat model is unavailable or gave no answer. The caller goes on without it.

    `again`: a retry may succeed, after `wait` seconds if the server said so. `spent`: the question was sent
    and may be billed."""

    def __init__(
        self, message: str, *, again: bool = False, wait: float | None = None, spent: bool = False
    ) -> None:
        super().__init__(message)
        self.again, self.wait, self.spent = again, wait, spent


class NotAsked(ChatError):
    """Nothing was asked, and for a while nothing will be: there is no point in trying the next question."""


class OverLimit(NotAsked):
    """A limit of the day is reached, or the call could not be counted."""


class ChatAnswer(NamedTuple):
    text: str
    tokens_in: int
    tokens_out: int


class Chat(Protocol):
    """Safe to use from several threads at once."""

    @property
    def name(self) -> str:
        """Identifies the model: two with one name give the same answers."""

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        """The answer of the model and its tokens, within so many seconds. Raises ChatError."""


class ChatRequest(NamedTuple):
    model: str
    system: str
    user: str
    max_tokens: int
    provider: str = ""


class ChatDialect(NamedTuple):
    """How to ask a server, and where its answer has the text and the token counts."""

    path: str
    payload: Callable[[ChatRequest], object]
    text: Callable[[Any], str]
    counts: tuple[str, str]  # of what is read and what is written, in `usage`


class Target(NamedTuple):
    """What the name of a model stands for: provider, address and key."""

    provider: str  # openai, anthropic, http
    model: str
    base: str
    key: str

    @property
    def name(self) -> str:
        return f"{self.base}#{self.model}" if self.provider == "http" else f"{self.provider}:{self.model}"


class ChatEndpoint:
    def __init__(self, target: Target, dialect: ChatDialect, post: JsonPoster) -> None:
        self.name = target._replace(base=post.base).name
        self._target, self._dialect, self._post = target, dialect, post

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        if seconds <= 0:
            raise ChatError(f"There was no time left to ask {self._post.place}.")
        request = ChatRequest(
            self._target.model,
            join_surrogates(system),
            join_surrogates(user),
            max_tokens,
            self._target.provider,
        )
        try:
            # Runs retry, see tacit/llm/retry.py. A turn has no time for that.
            response = self._post(
                self._dialect.path, self._dialect.payload(request), seconds, seconds, again=False
            )
            text = self._dialect.text(response)
        except PostError as error:
            raise ChatError(str(error), again=error.again, wait=error.wait, spent=error.spent) from None
        except (KeyError, IndexError, TypeError, AttributeError):
            raise no_text_error(self._post.place, self._target.model) from None
        usage = response.get("usage")
        counts = [usage.get(name) if isinstance(usage, dict) else None for name in self._dialect.counts]
        return make_answer(request, text, *counts)


def no_text_error(place: str, model: str) -> ChatError:
    return ChatError(
        f"{place} answered with something other than text. Check that {model!r} is a chat model.", spent=True
    )


def make_answer(request: ChatRequest, text: str, tokens_in: object, tokens_out: object) -> ChatAnswer:
    """The answer with the server's own counts if it gives them; some servers report only zeros."""
    return ChatAnswer(
        text,
        tokens_in if _is_count(tokens_in) else tokens.count(request.system) + tokens.count(request.user),
        tokens_out if _is_count(tokens_out) else tokens.count(text),
    )


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value < 1 << 40


def parse_target(model: str, environ: Mapping[str, str], setting: str) -> Target:
    kind, _, name = model.partition(":")
    if kind == "openai" and name:
        base = environ.get("OPENAI_BASE_URL") or _OPENAI_BASE
        return Target(kind, name, base, _require_key(environ, "OPENAI_API_KEY", model))
    if kind == "anthropic" and name:
        base = environ.get("ANTHROPIC_BASE_URL") or _ANTHROPIC_BASE
        return Target(kind, name, base, _require_key(environ, "ANTHROPIC_API_KEY", model))
    base, _, name = model.partition("#")
    if kind in ("http", "https") and name:
        return Target("http", name, base, environ.get("TACIT_CHAT_KEY", "").strip())
    raise ChatError(
        f"{setting} is {model[:80]!r}, which is no chat model. "
        "Use openai:MODEL, anthropic:MODEL, http://host:port/v1#MODEL or local:smollm2."
    )


class UnavailableChat:
    """Answers every question with the same error, so that a wrong setting does not stop a turn."""

    def __init__(self, model: str, error: ChatError) -> None:
        self.name, self._why = model, error

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:  # noqa: ARG002
        raise ChatError(str(self._why))


def open_or_unavailable(open_chat: Callable[[], Chat | None], model: str) -> Chat | None:
    """The chat model; if it cannot be used, one that answers every question with the reason."""
    try:
        return open_chat()
    except ChatError as error:
        return UnavailableChat(model, error)


def _require_key(environ: Mapping[str, str], variable: str, model: str) -> str:
    key = environ.get(variable, "")
    if not key.strip():
        raise ChatError(f"{model!r} needs a key in the variable {variable}, which is not set. Set it.")
    return key


def strip_reasoning(answer: str) -> str:
    """The answer without the thoughts that some models write before it, also if they never end."""
    return _REASONING.sub("", answer)


def join_surrogates(text: str) -> str:
    """Join split surrogate pairs and replace lone surrogates, which servers refuse."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _openai_payload(request: ChatRequest) -> object:
    return {
        "model": request.model,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.user},
        ],
        **make_limits(request.provider, request),
    }


def make_limits(provider: str, request: ChatRequest) -> dict[str, int]:
    """The token limit and temperature. OpenAI's reasoning models refuse a temperature and the old name of the
    limit; most other servers know only that name."""
    if provider == "openai" and _REASONING_MODELS.match(request.model):
        return {"max_completion_tokens": request.max_tokens}
    return {"max_tokens": request.max_tokens, "temperature": 0}


_REASONING_MODELS = re.compile(r"o\d|gpt-[5-9]")


def _openai_text(answer: Any) -> str:
    return extract_text(answer["choices"][0]["message"]["content"])


def _anthropic_payload(request: ChatRequest) -> object:
    return {
        "model": request.model,
        "system": request.system,
        "messages": [{"role": "user", "content": request.user}],
        "max_tokens": request.max_tokens,  # no temperature: newer models refuse it
    }


def anthropic_headers(key: str) -> Mapping[str, str]:
    return {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}


def extract_text(content: Any) -> str:
    """The text of an answer: a string, or the text blocks of a list. Blocks of reasoning do not count."""
    if isinstance(content, str):
        return content
    texts = [block["text"] for block in content if block["type"] == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(texts)
    return "".join(texts)


OPENAI = ChatDialect(
    "/chat/completions", _openai_payload, _openai_text, ("prompt_tokens", "completion_tokens")
)
ANTHROPIC = ChatDialect(
    "/v1/messages",
    _anthropic_payload,
    lambda answer: extract_text(answer["content"]),
    ("input_tokens", "output_tokens"),
)
