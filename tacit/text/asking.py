"""Whether a text asks something, and whether another one asks just that.

A question that was asked before is nearer to itself than anything that answers it, and says nothing that
whoever asks again does not know. So it has to be told from what only speaks of the same: it asks too, nearly
all of its words are in the question and the other way round, no number is new, and nothing is said after
its question mark. Names, greetings and what a host puts in front of a message may differ. So may further
questions: "…? And after the pause?" says nothing either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from tacit.text import words

SIGNS = ("?", "？", "؟")
LONGEST = 2_000  # what is looked at; longer messages are seldom sent twice
_SAME = 0.8  # share of the words of each that the other one has
_MORE = 4  # times as long a text may be that asks the same and other things

_HEAD = re.compile(r"(?:\s*\[[^\]\n]{0,200}\])+\s*")  # [Telegram Ines 2026-11-18 09:12]
_WORD = re.compile(r"[^\W_]+")
_END = re.compile(r"(?<=[.!?;:…？؟。！；])\s+")
_COURTEOUS = """
hi hello hey dear good morning evening please thanks thank cheers ok okay so and well once more again
hallo moin guten morgen abend tag liebe lieber bitte danke und also nochmal noch einmal
bonjour salut merci svp hola gracias favor ciao grazie ola obrigado obrigada hoi bedankt
"""
_COURTESIES = frozenset(_COURTEOUS.split())
# How questions begin where nobody wrote the sign.
_OPENING = re.compile(
    r"""
      (?: what | whats | which | who | whos | whom | whose | why | how | did | does | is | are | was | were
        | wann | wo | wer | wen | wem | wessen | warum | wieso | weshalb | woher | wohin | welche[mnrs]?
        | wie (?!\ (?:besprochen|gesagt|vereinbart|abgemacht|ausgemacht|immer)\b)
        | quand | qui | quoi | pourquoi | comment | combien | quel(?:le)?s? | quest\ ce | est\ ce
        | quien(?:es)? | cual(?:es)? | donde | cuant[ao]s? | cosa | perche | quale | quali | dove | chi
        | quem | onde | qual | quais | quantos? | wat | wanneer | waar | waarom | hoe | welke
        | что | когда | где | кто | почему | зачем | как | как(?:ой|ая|ое|ие) | сколько
      )\b
    | (?: when | where )
      \ (?: is | are | was | were | did | do | does | have | has | had | can | will | should )\b
    | (?: do | have | has | had | can | could | will | would | should )
      \ (?: i | we | you | they | he | she | it | there | the | my | our | any\w* )\b
    | (?: hast | hat | habe | haben | hatten | hattest | ist | sind | war | waren | kann | kannst | weisst )
      \ (?: ich | du | wir | ihr | er | sie | es | das | der | die )\b
    | (?: tell | remind )\ me\ (?!to\b)
    """,
    re.VERBOSE,
)
_OPENING_UNSPACED = re.compile(
    "吗|嗎|什么|什麼|怎么|怎麼|谁|誰|哪|多少|几点|幾點|何时|何時|ですか|ますか|したか|だっけ|何|いつ|どこ|なぜ|どう|どれ|どの"
    "|무엇|뭐|언제|어디|누구|왜|어떻게"
)


def asks(text: str) -> bool:
    """Whether it asks something: by its sign, or by how it begins after a greeting."""
    if any(sign in text for sign in SIGNS):
        return True
    said = words.fold(_beheaded(text[:LONGEST]))
    if words.unspaced(said) and _OPENING_UNSPACED.search(said):
        return True
    spoken = _WORD.findall(said[:300].replace("'", "").replace("’", ""))
    begins = next((at for at, word in enumerate(spoken) if word not in _COURTESIES), 0)
    # A name may follow a greeting: "Hi Jules, what did we decide".
    return any(_OPENING.match(" ".join(spoken[at:])) for at in ({0, begins, begins + 1} if begins else {0}))


def asking_same(question: str) -> Callable[[str], bool] | None:
    """What tells whether a text asks the same as `question`; None where that asks nothing."""
    question = question[:LONGEST]
    if not asks(question):
        return None
    every, after = Counter(_words(question)), Counter(_words_after(question))
    asked = Counter(_words(_asked(question))) or every
    fewest, most = _SAME * asked.total(), every.total() / _SAME

    def is_one(text: str) -> bool:
        spoken = _words(text[:LONGEST])
        if not spoken or not fewest <= len(spoken) <= most:  # nearly all texts, and this is quick to tell
            return False
        said = Counter(spoken)
        new = said - every
        return (
            (said & asked).total() >= fewest
            and (said & every).total() >= _SAME * len(spoken)
            and not any(word[0].isdigit() for word in new)
            and not Counter(_words_after(text)) - after
            and asks(text)
        )

    def is_same(text: str) -> bool:
        return is_one(text) or (len(text) <= _MORE * len(question) and any(map(is_one, _questions(text))))

    return is_same


def _questions(text: str) -> list[str]:
    """Its sentences, courtesies aside, if each of them asks; else none."""
    sentences = [one for one in _END.split(text[:LONGEST].strip()) if _words(one)]
    return sentences if all(one.endswith(SIGNS) for one in sentences) else []


def _asked(question: str) -> str:
    """Up to its last sign; where it has none, without the last line: what stands below a question are further
    words to look for."""
    return question[: _end(question)] or question.rpartition("\n")[0]


def _end(text: str) -> int:
    """Where the last sign is over; 0 where there is none."""
    return 1 + max(map(text.rfind, SIGNS))


def _words_after(text: str) -> list[str]:
    """The words after the last sign."""
    end = _end(text)
    return _words(text[end:]) if end else []


def _words(text: str) -> list[str]:
    """All but courtesies, as they are compared."""
    bare = words.term(words.fold(_beheaded(text)))
    return [word for word in _WORD.findall(bare) if word not in _COURTESIES]


def _beheaded(text: str) -> str:
    head = _HEAD.match(text)
    return text[head.end() :] if head else text
