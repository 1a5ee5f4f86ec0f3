"""Reduces words for comparing texts: without case, accents and endings, and without everyday words.

Both sides are treated alike, so a stem need not be correct, only equal for the forms of one word. Scripts
without spaces become pairs of letters, as in the word index.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tacit.text import words
from tacit.text.stopwords import STOPWORDS

# Words of messages about any topic, in lower case and not stemmed.
_EVERYDAY = """
able actually add again ago already always another anyone anything around ask away back bad best better
big bit call came can't change check come day days different done easy end even ever every everyone
everything fact feel fine find first five four friday gave get gets getting give go goes going gone good
got great guess happen hard hello help hey hi hope hour idea important instead keep kind know last late
later least left less like list little long look lot made main make maybe mean minute mind monday month
morning move name need never new next nice night nine now number off often old once open part people
place plan point possible problem put question quick quickly quite read ready really right run said
saturday saw say second see seem send sent set show side small someone something soon sorry sort start
still stop stuff sunday sure take talk tell thank thanks thing things think thought three thursday time
today together tomorrow tonight took tried try tuesday turn two use used using wait want wanted way
wednesday week weekend well went whole without wonder word work works world write wrong year yesterday
instructions context notes note
abend alle allem alles also andere anderen bald bitte brauche brauchen bringen danke dabei dafür dazu
eigentlich einfach einmal erst etwas euro fertig frau herr finden frage fragen ganz gar geben geht gehen
genau gern gerne gestern gibt gut gute guten hallo heute hilfe kommen kommt lassen leider machen macht
mal mehr mit montag morgen muss nächste nächsten neu neue neuen nichts nie oft sagen sagt schon
schreiben schreib sehen seite stunde tag tage vielleicht viel viele vielen welt weiß wirklich wissen
woche wochen zeit zwei
"""
# Equally common pairs of letters in scripts without spaces.
_EVERYDAY_PAIRS = """
今天 明天 昨天 现在 时候 时间 一下 一个 一些 可以 需要 知道 怎么 什么 这个 那个 帮我 帮忙 谢谢 大家 没有
不是 因为 所以 如果 还是 就是 已经 以后 之前 觉得 问题 事情 东西 今日 明日 昨日 時間 教え お願 願い 思い
思う 何か 自分 場合 質問 大丈 丈夫 必要 一緒 週末 先週 来週 今週 午前 午後 最近 本当 少し 出来 下周 上周
晚上 早上 下午
"""
_FORM_WORDS = re.compile(r"[ぁ-ゟー]+|.*[的了吗呢吧我你您他她们这那么些很也都就].*")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def split_words(text: str) -> list[str]:
    """The words as written, in lower case, without those too common to search for."""
    all_tokens = _WORD.findall(words.clean(text).casefold().replace("’", "'"))
    return [token for token in all_tokens if token not in STOPWORDS and not token.isdecimal()]


@lru_cache(maxsize=16_384)
def stem_token(token: str) -> tuple[str, ...]:
    """A token in the form for comparing: pairs in scripts without spaces, else the bare stem."""
    if words.is_unspaced(token):
        pairs = words.prepare_query(token).split()
        return tuple(pair for pair in pairs if len(pair) > 1 and not _FORM_WORDS.fullmatch(pair))
    bare = token.removesuffix("'s")
    return (_stem(words.fold(bare)),) if len(bare) > 1 and bare not in STOPWORDS else ()


_VOWEL = re.compile("[aeiouy]")
# Endings of English and German words, and how many letters must stay.
_SUFFIXES = (
    ("ments", 4), ("ment", 4), ("ings", 3), ("ing", 3), ("ies", 3), ("ied", 3), ("ung", 5), ("es", 3),
    ("ed", 3), ("en", 4), ("em", 4), ("e", 3), ("s", 2), ("n", 5),
)  # fmt: skip


def _stem(word: str) -> str:
    previous = ""
    while word != previous:
        previous, word = word, _strip_suffix(word)
    if word.endswith("y"):
        word = f"{word[:-1]}i"
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def _strip_suffix(word: str) -> str:
    for suffix, min_letters in _SUFFIXES:
        length = len(word) - len(suffix)
        if (
            length >= min_letters
            and word.endswith(suffix)
            and (suffix == "s" or _VOWEL.search(word, 0, length))
        ):
            if word.endswith("ss"):
                return word
            return f"{word[:length]}i" if suffix in ("ies", "ied") else word[:length]
    return word


EVERYDAY_FORMS = frozenset(form for word in _EVERYDAY.split() for form in stem_token(word))
EVERYDAY_FORMS |= frozenset(_EVERYDAY_PAIRS.split())

# For comparing short statements as sets of words. Cruder than `stem_token`; the thresholds for lessons and
# for daily notes were measured with it.
_CONTENT_WORD = re.compile(r"[^\W\d_]{3,}")
_ENDING = re.compile(r"(?<=...)(?:ings?|ers?|ed|s|ly)\Z")
# In every second lesson, so they do not tell lessons apart.
_LESSON_WORDS = frozenset(
    {
        "always", "never", "before", "after", "make", "made", "use", "using", "used", "need", "needs",
        "first", "again", "every", "still", "even", "only", "instead", "because", "until", "unless",
        "immer", "nie", "nur", "vor", "nach", "erst",
    }
)  # fmt: skip


@lru_cache(4096)
def stems(text: str) -> frozenset[str]:
    """The distinctive words without their endings; pairs of characters in scripts without word spaces."""
    folded = words.fold(text)
    content = {
        _ENDING.sub("", word).removesuffix("e")
        for word in _CONTENT_WORD.findall(folded)
        if is_distinctive(word)
    }
    pairs = {
        run[start : start + 2] for run in words.UNSPACED_RUN.findall(folded) for start in range(len(run) - 1)
    }
    return frozenset(content | pairs)


def is_distinctive(word: str) -> bool:
    return word not in STOPWORDS and word not in _LESSON_WORDS
