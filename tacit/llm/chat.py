"""The name of a chat model → something that answers.

    openai:MODEL                 OPENAI_API_KEY, and OPENAI_BASE_URL if it is not OpenAI's own
    anthropic:MODEL              ANTHROPIC_API_KEY, and ANTHROPIC_BASE_URL if it is not Anthropic's own
    http://host:port/v1#MODEL    any server that speaks OpenAI's way: Ollama, LM Studio, vLLM, llama.cpp.
                                 TACIT_CHAT_KEY is sent to it, if set

A key goes only where it is meant to go: that of a provider never to an address that the config names.
The temperature is 0. Models that think first are of little use where few tokens are allowed: their answer
ends before it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from tacit.errors import TacitError
from tacit.net.post import Post, PostError, Purpose, bearer

_OPENAI_BASE = "https://api.openai.com/v1"
_ANTHROPIC_BASE = "https://api.anthropic.com"
_ANTHROPIC_VERSION = "2023-06-01"


class ChatError(TacitError):
    """A chat model cannot be had, or gave no answer. The turn goes on without it."""


class Chat(Protocol):
    """Safe to use from several threads at once."""

    @property
    def name(self) -> str:
        """Names the answers: two of one name would say the same."""

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> str:
        """What the model says, within so many seconds, or ChatError."""


class Asked(NamedTuple):
    model: str
    system: str
    user: str
    max_tokens: int


class Dialect(NamedTuple):
    """How a server wants to be asked, and where in its answer the text is."""

    path: str
    payload: Callable[[Asked], object]
    text: Callable[[Any], str]


class Endpoint:
    def __init__(self, label: str, model: str, dialect: Dialect, post: Post) -> None:
        self.name = f"{label}:{model}" if label != "http" else f"{post.base}#{model}"
        self._model, self._dialect, self._post = model, dialect, post

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> str:
        if seconds <= 0:
            raise ChatError(f"There was no time left to ask {self._post.place}.")
        asked = Asked(self._model, _whole(system), _whole(user), max_tokens)
        try:
            # A turn waits for the answer: better none than one after a pause.
            said = self._post(self._dialect.path, self._dialect.payload(asked), seconds, seconds, again=False)
            return self._dialect.text(said)
        except PostError as error:
            raise ChatError(str(error)) from None
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ChatError(
                f"{self._post.place} answered with something other than text. "
                f"Check that {self._model!r} is a chat model."
            ) from None


def choose_chat(model: str, environ: Mapping[str, str], setting: str = "watchers.gate_model") -> Chat:
    """The chat model that the value of a setting means. Nothing is sent anywhere until it is asked."""
    try:
        found = _chosen(model, environ, Purpose("chat model", setting))
    except PostError as error:
        raise ChatError(str(error)) from None
    if found is None:
        raise ChatError(
            f"{setting} is {model[:80]!r}, which is no chat model. "
            "Use openai:MODEL, anthropic:MODEL or http://host:port/v1#MODEL."
        )
    return found


class Unavailable:
    """Says to every question why there is no answer, so that a setting that is wrong stops no turn."""

    def __init__(self, model: str, why: ChatError) -> None:
        self.name, self._why = model, why

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> str:  # noqa: ARG002
        raise ChatError(str(self._why))


def chat_or_why(model: str, environ: Mapping[str, str], setting: str = "watchers.gate_model") -> Chat:
    """As `choose_chat`, for where nothing may be raised."""
    try:
        return choose_chat(model, environ, setting)
    except ChatError as error:
        return Unavailable(model, error)


def _chosen(model: str, environ: Mapping[str, str], purpose: Purpose) -> Chat | None:
    kind, _, name = model.partition(":")
    if kind == "openai" and name:
        key = _key(environ, "OPENAI_API_KEY", model)
        base = environ.get("OPENAI_BASE_URL") or _OPENAI_BASE
        return Endpoint(kind, name, OPENAI, Post(base, purpose, key=key))
    if kind == "anthropic" and name:
        key = _key(environ, "ANTHROPIC_API_KEY", model)
        base = environ.get("ANTHROPIC_BASE_URL") or _ANTHROPIC_BASE
        return Endpoint(kind, name, ANTHROPIC, Post(base, purpose, key=key, headers=_anthropic_headers))
    base, _, name = model.partition("#")
    if kind in ("http", "https") and name:
        post = Post(base, purpose, key=environ.get("TACIT_CHAT_KEY", ""), headers=bearer)
        return Endpoint("http", name, OPENAI, post)
    return None


def _key(environ: Mapping[str, str], variable: str, model: str) -> str:
    key = environ.get(variable, "")
    if not key.strip():
        raise ChatError(f"{model!r} needs a key in the variable {variable}, which is not set. Set it.")
    return key


def _whole(text: str) -> str:
    """Halves of characters, which servers refuse, are joined to a character or replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _openai_payload(asked: Asked) -> object:
    return {
        "model": asked.model,
        "messages": [
            {"role": "system", "content": asked.system},
            {"role": "user", "content": asked.user},
        ],
        # The newer name, max_completion_tokens, is unknown to most other servers; this one all know.
        "max_tokens": asked.max_tokens,
        "temperature": 0,
    }


def _openai_text(answer: Any) -> str:
    return _text(answer["choices"][0]["message"]["content"])


def _anthropic_payload(asked: Asked) -> object:
    return {
        "model": asked.model,
        "system": asked.system,
        "messages": [{"role": "user", "content": asked.user}],
        "max_tokens": asked.max_tokens,
        "temperature": 0,
    }


def _anthropic_headers(key: str) -> Mapping[str, str]:
    return {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}


def _text(content: Any) -> str:
    """A string, or the text among blocks; blocks of thinking are no answer."""
    if isinstance(content, str):
        return content
    texts = [block["text"] for block in content if block["type"] == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(texts)
    return "".join(texts)


OPENAI = Dialect("/chat/completions", _openai_payload, _openai_text)
ANTHROPIC = Dialect("/v1/messages", _anthropic_payload, lambda answer: _text(answer["content"]))
