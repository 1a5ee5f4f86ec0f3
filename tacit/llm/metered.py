"""A chat model whose every call is counted before it is made and after."""

from __future__ import annotations

from tacit.errors import LimitReached
from tacit.llm.chat import Answer, Chat, ChatError, OverLimit
from tacit.model.spending import Meter
from tacit.text import tokens

_FRAME = 16  # tokens that a server puts around two messages
_MARGIN = 1.25  # other models cut words into more tokens than the one whose table counts them here


class Metered:
    def __init__(self, chat: Chat, meter: Meter) -> None:
        self.name = chat.name
        self._chat, self._meter = chat, meter

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> Answer:
        asked = round(_MARGIN * (tokens.count(system) + tokens.count(user))) + _FRAME
        try:
            call = self._meter.begin(asked, max_tokens)
        except LimitReached as error:
            raise OverLimit(str(error)) from None
        try:
            answer = self._chat.answer(system, user, max_tokens=max_tokens, seconds=seconds)
        except ChatError as error:
            most = (asked, max_tokens) if error.spent else (0, 0)
            self._meter.end(call, "failed", *most, str(error))
            raise
        except BaseException as error:
            self._meter.end(call, "failed", asked, max_tokens, type(error).__name__)
            raise
        self._meter.end(call, "ok", answer.tokens_in, answer.tokens_out)
        return answer
