"""The name of a chat model → something that answers.

    openai:MODEL                 OPENAI_API_KEY, and OPENAI_BASE_URL if it is not OpenAI's own
    anthropic:MODEL              ANTHROPIC_API_KEY, and ANTHROPIC_BASE_URL if it is not Anthropic's own
    http://host:port/v1#MODEL    any server that speaks OpenAI's way: Ollama, LM Studio, vLLM, llama.cpp.
                                 TACIT_CHAT_KEY is sent to it, if set
    local:smollm2, local:/FILE   a model in this process, by the extra tacit[local]: tacit/llm/local.py

Here is the form for turns: one HTTP request and nothing to import. Runs, which can wait for an import, use
the providers' own SDKs where they are installed: tacit/llm/sdk.py.

A key goes only where it is meant to go: that of a provider never to an address that the config names.
The temperature is 0 where it may be. Models that think first are of little use where few tokens are allowed:
their answer ends before it begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard

from tacit.errors import TacitError
from tacit.net.post import Post, PostError, Purpose, bearer
from tacit.text import tokens

_OPENAI_BASE = "https://api.openai.com/v1"
_ANTHROPIC_BASE = "https://api.anthropic.com"
_ANTHROPIC_VERSION = "2023-06-01"


class ChatError(TacitError):
    """A chat model cannot be had, or gave no answer. What asked goes on without it.

    `again`: it may be better next time, after `wait` seconds if the server said so. `spent`: the question was
    sent and may be on the bill."""

    def __init__(
        self, message: str, *, again: bool = False, wait: float | None = None, spent: bool = False
    ) -> None:
        super().__init__(message)
        self.again, self.wait, self.spent = again, wait, spent


class NotAsked(ChatError):
    """Nothing was asked, and for a while nothing will be: the next question need not be tried."""


class OverLimit(NotAsked):
    """A limit of the day is reached, or nobody could count the call."""


class Answer(NamedTuple):
    text: str
    tokens_in: int
    tokens_out: int


class Chat(Protocol):
    """Safe to use from several threads at once."""

    @property
    def name(self) -> str:
        """Names the answers: two of one name would say the same."""

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> Answer:
        """What the model says and what it took, within so many seconds, or ChatError."""


class Asked(NamedTuple):
    model: str
    system: str
    user: str
    max_tokens: int
    provider: str = ""


class Dialect(NamedTuple):
    """How a server wants to be asked, where in its answer the text is, and where the tokens are."""

    path: str
    payload: Callable[[Asked], object]
    text: Callable[[Any], str]
    counts: tuple[str, str]  # of what is read and what is written, in `usage`


class Target(NamedTuple):
    """What the name of a model means: whom to ask, where and with which key."""

    provider: str  # openai, anthropic, http
    model: str
    base: str
    key: str

    @property
    def name(self) -> str:
        return f"{self.base}#{self.model}" if self.provider == "http" else f"{self.provider}:{self.model}"


class Endpoint:
    def __init__(self, target: Target, dialect: Dialect, post: Post) -> None:
        self.name = target._replace(base=post.base).name
        self._target, self._dialect, self._post = target, dialect, post

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> Answer:
        if seconds <= 0:
            raise ChatError(f"There was no time left to ask {self._post.place}.")
        asked = Asked(self._target.model, whole(system), whole(user), max_tokens, self._target.provider)
        try:
            # Whoever is patient asks again: see tacit/llm/patient.py. A turn has no time for that.
            said = self._post(self._dialect.path, self._dialect.payload(asked), seconds, seconds, again=False)
            text = self._dialect.text(said)
        except PostError as error:
            raise ChatError(str(error), again=error.again, wait=error.wait, spent=error.spent) from None
        except (KeyError, IndexError, TypeError, AttributeError):
            raise no_text(self._post.place, self._target.model) from None
        usage = said.get("usage")
        counts = [usage.get(name) if isinstance(usage, dict) else None for name in self._dialect.counts]
        return answer_of(asked, text, *counts)


def no_text(place: str, model: str) -> ChatError:
    return ChatError(
        f"{place} answered with something other than text. Check that {model!r} is a chat model.", spent=True
    )


def answer_of(asked: Asked, text: str, tokens_in: object, tokens_out: object) -> Answer:
    """With the server's own counts where it tells them; some tell nothing but zeros."""
    return Answer(
        text,
        tokens_in if _is_count(tokens_in) else tokens.count(asked.system) + tokens.count(asked.user),
        tokens_out if _is_count(tokens_out) else tokens.count(text),
    )


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 < value < 1 << 40


def choose_chat(
    model: str, environ: Mapping[str, str], setting: str = "watchers.gate_model", *, breaks: bool = True
) -> Chat:
    """The chat model that the value of a setting means. Nothing is sent anywhere until it is asked.
    `breaks`: a server that failed a few times is left alone for a while, as long as this process lives."""
    if model.startswith("local:"):
        from tacit.llm.local import choose_local  # an extra

        return choose_local(model, setting)
    target, purpose = target_of(model, environ, setting), Purpose("chat model", setting)
    headers = _anthropic_headers if target.provider == "anthropic" else bearer
    try:
        post = Post(target.base, purpose, key=target.key, headers=headers, breaks=breaks)
    except PostError as error:
        raise ChatError(str(error)) from None
    return Endpoint(target, ANTHROPIC if target.provider == "anthropic" else OPENAI, post)


def target_of(model: str, environ: Mapping[str, str], setting: str) -> Target:
    kind, _, name = model.partition(":")
    if kind == "openai" and name:
        base = environ.get("OPENAI_BASE_URL") or _OPENAI_BASE
        return Target(kind, name, base, _key(environ, "OPENAI_API_KEY", model))
    if kind == "anthropic" and name:
        base = environ.get("ANTHROPIC_BASE_URL") or _ANTHROPIC_BASE
        return Target(kind, name, base, _key(environ, "ANTHROPIC_API_KEY", model))
    base, _, name = model.partition("#")
    if kind in ("http", "https") and name:
        return Target("http", name, base, environ.get("TACIT_CHAT_KEY", "").strip())
    raise ChatError(
        f"{setting} is {model[:80]!r}, which is no chat model. "
        "Use openai:MODEL, anthropic:MODEL, http://host:port/v1#MODEL or local:smollm2."
    )


class Unavailable:
    """Says to every question why there is no answer, so that a setting that is wrong stops no turn."""

    def __init__(self, model: str, why: ChatError) -> None:
        self.name, self._why = model, why

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> Answer:  # noqa: ARG002
        raise ChatError(str(self._why))


def _key(environ: Mapping[str, str], variable: str, model: str) -> str:
    key = environ.get(variable, "")
    if not key.strip():
        raise ChatError(f"{model!r} needs a key in the variable {variable}, which is not set. Set it.")
    return key


def whole(text: str) -> str:
    """Halves of characters, which servers refuse, are joined to a character or replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _openai_payload(asked: Asked) -> object:
    return {
        "model": asked.model,
        "messages": [
            {"role": "system", "content": asked.system},
            {"role": "user", "content": asked.user},
        ],
        **bounds(asked.provider, asked),
    }


def bounds(provider: str, asked: Asked) -> dict[str, int]:
    """OpenAI's own models that think refuse both a temperature and the old name of the limit. Most other
    servers know that name alone, whatever their models are called."""
    if provider == "openai" and _THINKS.match(asked.model):
        return {"max_completion_tokens": asked.max_tokens}
    return {"max_tokens": asked.max_tokens, "temperature": 0}


_THINKS = re.compile(r"o\d|gpt-[5-9]")


def _openai_text(answer: Any) -> str:
    return text_in(answer["choices"][0]["message"]["content"])


def _anthropic_payload(asked: Asked) -> object:
    return {
        "model": asked.model,
        "system": asked.system,
        "messages": [{"role": "user", "content": asked.user}],
        "max_tokens": asked.max_tokens,  # no temperature: newer models refuse it
    }


def _anthropic_headers(key: str) -> Mapping[str, str]:
    return {"x-api-key": key, "anthropic-version": _ANTHROPIC_VERSION}


def text_in(content: Any) -> str:
    """A string, or the text among blocks; blocks of thinking are no answer."""
    if isinstance(content, str):
        return content
    texts = [block["text"] for block in content if block["type"] == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(texts)
    return "".join(texts)


OPENAI = Dialect("/chat/completions", _openai_payload, _openai_text, ("prompt_tokens", "completion_tokens"))
ANTHROPIC = Dialect(
    "/v1/messages",
    _anthropic_payload,
    lambda answer: text_in(answer["content"]),
    ("input_tokens", "output_tokens"),
)
