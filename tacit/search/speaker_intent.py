"""Which speaker a question asks about: "what did you suggest" means the agent, "did I say" the user."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from tacit.text.words import fold

_USER = (
    "i me my mine myself we us our ours i'm i've i'd i'll we've"
    " ich mir mich mein meine meinem meinen meiner meines wir uns unser unsere unserem unseren"
    " je j'ai moi mon ma mes nous notre nos yo mi mis nosotros nuestro nuestra io mio mia noi nostro"
)
_AGENT = (
    "you your yours you've you'd"
    " du dir dich dein deine deinem deinen deiner sie ihnen ihr ihre"
    " tu toi ton ta tes vous votre vos usted tú tuyo"
)
_USER_UNSPACED = ("私", "僕", "俺", "我", "うち", "自分", "咱")
_AGENT_UNSPACED = ("あなた", "きみ", "君", "你", "您")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")


def parse_speaker_roles(question: str) -> tuple[frozenset[str], frozenset[str]]:
    """The roles that the question asks about, and all its words, folded."""
    text = fold(question[:2000]).replace("’", "'")
    words = frozenset(_WORD.findall(text))
    roles = set()
    if not words.isdisjoint(_fold_words(_USER)) or any(pronoun in text for pronoun in _USER_UNSPACED):
        roles.add("user")
    if not words.isdisjoint(_fold_words(_AGENT)) or any(pronoun in text for pronoun in _AGENT_UNSPACED):
        roles.add("agent")
    return frozenset(roles), words | {word.removesuffix("'s") for word in words}


@cache
def _fold_words(text: str) -> frozenset[str]:
    return frozenset(map(fold, text.split()))


def is_asked_about(speaker: str, roles: Collection[str], words: Collection[str]) -> bool:
    """Whether the question asks about this speaker."""
    if speaker in ("user", "agent"):
        return speaker in roles
    return any(name in words for name in _WORD.findall(fold(speaker)) if len(name) > 1)
