"""Counts every call of a chat model before and after it is made."""

from __future__ import annotations

from tacit.errors import LimitReached
from tacit.llm.chat import Chat, ChatAnswer, ChatError, OverLimit
from tacit.llm.spending import Meter
from tacit.text import tokens

_FRAME_TOKENS = 16  # tokens that a server puts around two messages
_MARGIN = 1.25  # other models may split text into more tokens than the vocabulary that counts them here


class MeteredChat:
    def __init__(self, chat: Chat, meter: Meter) -> None:
        self.name = chat.name
        self._chat, self._meter = chat, meter

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        tokens_in = round(_MARGIN * (tokens.count(system) + tokens.count(user))) + _FRAME_TOKENS
        try:
            call = self._meter.begin(tokens_in, max_tokens)
        except LimitReached as error:
            raise OverLimit(str(error)) from None
        try:
            answer = self._chat.answer(system, user, max_tokens=max_tokens, seconds=seconds)
        except ChatError as error:
            spent = (tokens_in, max_tokens) if error.spent else (0, 0)
            self._meter.end(call, "failed", *spent, str(error))
            raise
        except BaseException as error:
            self._meter.end(call, "failed", tokens_in, max_tokens, type(error).__name__)
            raise
        self._meter.end(call, "ok", answer.tokens_in, answer.tokens_out)
        return answer
