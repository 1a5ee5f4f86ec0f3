"""Words: prepared for the index so that each is found however it was written, too common, and compared.

The index folds case, removes the accents of Latin letters, stems English and drops punctuation. This module
does the rest:

- one spelling for what looks the same: composed or not, full-width or not, with or without soft hyphens,
  the vowel points of Hebrew and Arabic, the accents of Greek, `ё`, `ß`;
- scripts written without spaces become overlapping pairs: `全文検索` is `全文 文検 検索`;
- names whose meaning is in a symbol add a word at the end, since `C++` and `#34` would become `c` and `34`;
- so do the parts of `camelCase`; those of `snake_case` are separate words already.

Documents go through `prepare_document`. Search terms go through `prepare_query`, which adds nothing at the
end, so that adjacent words stay adjacent. Both must change together, and then the index must be rebuilt.

This runs over every chunk of a home, so ordinary prose is only scanned for text that needs work.
Time grows with the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from operator import add
from typing import NamedTuple

# Letters and marks of Han, Hiragana, Katakana, Hangul, Thai, Lao, Khmer and Myanmar, without digits and
# punctuation. Compatibility forms are gone after normalising.
UNSPACED_CHARS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
    "\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096\u309d-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u1100-\u11ff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
)
# The database accepts no lone surrogates and nothing after a NUL. And SQLite knows the letters of Unicode
# 6.1: newer characters count as letters, so that "done🥳" and "₽500" would be words.
_NOT_LETTERS = (
    "\0\ud800-\udfff\u061c\u2066-\u2069\u20a0-\u20cf\u218a\u218b\u2190-\u2bff\u2e00-\u2e7f"
    "\U0001f000-\U0001faff\U000e0000-\U000e0fff"
)
# Soft hyphen, joiners, byte order mark, variation selectors; points of Hebrew and Arabic and the Arabic
# stroke that only makes a word wider. The index would cut words at them.
_UNSEEN = (
    "\u00ad\u200c\u200d\u2060\ufeff\ufe00-\ufe0f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
)
_ACCENTS = dict(zip("άέήίόύώϊϋΐΰё", "αεηιουωιυιυе", strict=True))
# Normalising is slow where anything needs it, and these are in every Chinese or typeset text.
_COMMON_WIDE = "，！？：；（）\u3000\u00a0…"

UNSPACED_RUN = re.compile(f"[{UNSPACED_CHARS}]+")
_NOT_LETTER = re.compile(f"[{_NOT_LETTERS}]")
_UNSEEN_RUN = re.compile(f"[{_UNSEEN}]+")
_ACCENTED = re.compile(f"[{''.join(_ACCENTS)}]")
_SPECIAL = re.compile(f"[{UNSPACED_CHARS}{_NOT_LETTERS}{_UNSEEN}{''.join(_ACCENTS)}]")
_ACCENT = re.compile("[\u0300-\u036f]+")
# Sorting combining marks takes quadratic time in the length of a run: 1.2 s for 40,000, 3 ms for 2,000.
_MAX_MARKS_CHARS = 2000
_MANY_MARKS = re.compile(r"[^\w\s\0-\x7f]{30}")

# Markdown has a space after `#` and nothing after `---`; its `](#anchor)` is left out. Each branch begins
# with its symbol, which makes the search skip from one to the next.
_SYMBOL = re.compile(
    r"""
      \+\+ (?: (?<=\b[CcGg]\+\+) | (?<=\b[Cc]lang\+\+) | (?<=\b[Nn]otepad\+\+) ) (?P<plus>) (?!\+)
    | \#   (?<=\b[CcFfJjQq]\#) (?P<sharp>) (?![^\W\d])
    | \#   (?<![\w\#&/]\#) (?<!\]\(\#) (?P<hash>\w{1,64})
    | @    (?<![\w@.]@) (?P<at>[^\W\d_]\w{1,63})
    | \$   \{? (?P<dollar>[^\W\d]\w{1,63})
    | --   (?<![\w!-]--) (?P<flag>[^\W\d_][\w-]{1,63})
    | \.   (?<![\w.*)\]]\.) (?P<dot>[^\W\d_]\w{1,63})
    """,
    re.VERBOSE,
)
_PLUS_NAMES = re.compile(r"\w+\Z")

_DOT_NAME = re.compile(r"\.(?<![\w.*)\]]\.)[^\W\d_]")

# Letters and digits as `a`, `A` and `1`, all else as space: searching `aA` there is ten times faster than a
# regular expression that stops at every capital.
_CASE_TABLE = (b"1" * 10 + b" " * 7 + b"A" * 26 + b" " * 6 + b"a" * 26).rjust(ord("z") + 1).ljust(256)
_HUMPS = (b"aA", b"AAAaa")  # fooBar, HTTPServer; not PRs and IDs
_MAX_CAMEL_CHARS = 64  # longer ones are keys and hashes
_PART = re.compile(r"[A-Z]++(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]++|[0-9]++")


class Alias(NamedTuple):
    """A word for a name with a symbol at its edge."""

    start: int
    word: str


def prepare_document(text: str) -> str:
    """`text` as a document for the index."""
    cleaned = clean(text)
    added = [alias.word for alias in find_aliases(cleaned)]
    added += split_camel_case(cleaned)
    folded = _fold_case(cleaned)
    if not folded.isascii() and _SPECIAL.search(folded):
        added += _find_last_letters(folded)
        folded = _split_unspaced(folded)
    return " ".join((folded, *dict.fromkeys(added))) if added else folded


def prepare_query(text: str) -> str:
    """`text` as a search term: as in a document, without the words added at the end."""
    folded = _fold_case(clean(text))
    return folded if folded.isascii() else _split_unspaced(folded)


def clean(text: str) -> str:
    """One spelling for what looks the same, without characters that the database refuses. Capitals stay."""
    if text.isascii():
        return text.replace("\0", " ") if "\0" in text else text
    for mark in _COMMON_WIDE:
        text = text.replace(mark, " ")
    text = _normalize(text)
    if _SPECIAL.search(text):
        bare = _UNSEEN_RUN.sub("", _NOT_LETTER.sub(" ", text))
        # A removed character may have been between a letter and its combining mark.
        text = _normalize(bare) if bare != text else text
    return text


def fold(text: str) -> str:
    """For comparing names: clean, without case and without accents."""
    text = clean(text).casefold()
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))


def is_unspaced(text: str) -> bool:
    """Whether some of it is in a script that writes no spaces."""
    return not text.isascii() and UNSPACED_RUN.search(text) is not None


def find_aliases(text: str) -> Iterator[Alias]:
    """The additional words for names such as `C++`, `F#`, `.NET`, `#34`, `@ana`, `$HOME`, `--force`.

    A zero keeps them apart from ordinary words: `#tag` must not be found as "hashtag". Languages and files
    with a dot get no zero, since people do write "csharp" and "dotenv".
    """
    for match in _SYMBOL.finditer(text) if _may_have_alias(text) else ():
        kind, name = match.lastgroup, match[match.lastgroup or 0]
        if kind == "plus":
            preceding = _name_before(text, match.start())
            yield Alias(match.start() - len(preceding), f"{preceding}plusplus".lower())
        elif kind == "sharp":
            yield Alias(match.start() - 1, f"{text[match.start() - 1]}sharp".lower())
        else:
            mark = "dot" if kind == "dot" else f"{kind}0"
            bare = name.replace("_", "").replace("-", "")
            if bare:
                yield Alias(match.start(), f"{mark}{bare}".casefold())


def split_camel_case(text: str) -> Iterator[str]:
    """The parts of all words in camelCase: get, User and Name of `getUserName`."""
    cases = text.encode("ascii", "replace").translate(_CASE_TABLE)
    for hump in _HUMPS:
        position = cases.find(hump)
        while position >= 0:
            start = cases.rfind(b" ", 0, position) + 1
            end = cases.find(b" ", position)
            end = end if end >= 0 else len(cases)
            if end - start <= _MAX_CAMEL_CHARS:
                yield from (part for part in _PART.findall(text[start:end]) if len(part) > 1)
            position = cases.find(hump, end)


def _may_have_alias(text: str) -> bool:
    return (
        "#" in text
        or "@" in text
        or "$" in text
        or "+" in text
        or "--" in text
        or _DOT_NAME.search(text) is not None
    )


def _name_before(text: str, end: int) -> str:
    match = _PLUS_NAMES.search(text[max(0, end - 7) : end])
    return match[0] if match else ""


def space_marks(text: str) -> str:
    """Put spaces into long runs of combining marks, so that normalising does not take quadratic time."""
    return text if text.isascii() or len(text) <= _MAX_MARKS_CHARS else _MANY_MARKS.sub(r"\g<0> ", text)


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFKC", space_marks(text))


def _fold_case(text: str) -> str:
    """Fold case except in ASCII. The index itself folds only letters that stay one letter: not `ß`."""
    return text if text.isascii() else text.casefold()


def _split_unspaced(folded: str) -> str:
    bare = _ACCENTED.sub(lambda match: _ACCENTS[match[0]], folded)
    return UNSPACED_RUN.sub(lambda match: _pairs(_keep_letters(match[0])), bare)


def _find_last_letters(text: str) -> Iterator[str]:
    """The last letter of each run. It begins no pair, and a search for one letter looks for pairs with it."""
    for run in UNSPACED_RUN.findall(text):
        letters = _keep_letters(run)
        if len(letters) > 1:
            yield letters[-1]


def _keep_letters(run: str) -> str:
    """Remove vowel signs and tone marks, at which the index would split a pair."""
    return run if run.isalnum() else "".join(filter(str.isalnum, run))


def _pairs(letters: str) -> str:
    if len(letters) < 2:
        return f" {letters} "
    return f" {' '.join(map(add, letters, letters[1:]))} "


# ---------------------------------------------------------------- words too common to search for
#
# In seven languages: articles, pronouns, prepositions, auxiliaries and question words. A common word that
# stays in a query costs little, since the index ranks it low. A word that is removed from a query is never
# found. So words with a meaning in English or in a terminal are not listed, however common they are
# elsewhere: German *die, war, hat, bin, man, den, mit, du*, French *son, ton, pour, plus, comment, par, car,
# ai*, Spanish *sin, era, hay, con, dos*, Italian *come, dove, chi, io, ci*, Portuguese *os, eu*, Dutch
# *door, want, met, op, dan*. For the same reason English *up, down, over, before, after* stay: "is the server
# down?".
#
# *will, may, might* and *can* are listed: as verbs they are in every third question. A query keeps Will and
# May with a capital inside a sentence, and IT, US or WHO in capitals.


_ENGLISH = """
a about all also am an and any are arent as at be been being both but by can cannot could couldnt did didnt
do does doesnt doing dont e.g each either else etc few for from had hadnt has hasnt have havent having he
her here hers herself him himself his how however i i.e if in into is isnt it its itself just let many may
me might more most much must my myself neither no nor not of ok okay on one or other others our ours
ourselves out please shall she should shouldnt so some such than that thats the their theirs them themselves
then there these they theyre this those though through thus to too upon us very vs was wasnt we were werent
what whatever whats when where whether which while who whom whose why will with within without would wouldnt
yes yet you your youre yours yourself yourselves
ain't aren't can't couldn't didn't doesn't don't hadn't hasn't haven't he'd he'll he's here's how's i'd i'll
i'm i've isn't it'd it'll it's let's mustn't she'd she'll she's shouldn't that'll that's there's they'd
they'll they're they've wasn't we'd we'll we're we've weren't what're what's when's where's who'd who'll
who's why's won't would've wouldn't y'all you'd you'll you're you've
"""

_GERMAN = """
aber als am an auch auf aus bei beim bis bist da damit dann das dass dein deine deinem deinen deiner dem
denn der deren des dessen dich diese diesem diesen dieser dieses doch dort durch ein eine einem einen einer
eines er es euch euer eure für gegen habe haben hast hatte hatten hattest hier ich ihm ihn ihnen ihr ihre
ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine keinen können
könnte mein meine meinem meinen meiner mich mir muss musste müssen nach nein nicht noch nur ob oder ohne
sehr sein seine seinem seinen seiner seit sich sie sind so soll sollen sollte um und uns unser unsere
unserem unseren unter vom von vor wann waren warst warum was weil welche welchem welchen welcher welches wem
wen wenn wer werde werden wessen wie wieder wieso wir wird wo woher wohin wurde wurden würde z.b zu zum zur
zwischen über
geht's gibt's hab's ist's war's wie's
"""

_FRENCH = """
au aux avait avec avez avoir avons ce cela celle celles celui ces cet cette ceux chez combien dans de depuis
des dont elle elles en entre es est est-ce et eux il ils je la laquelle le lequel les lesquels leur leurs
lorsque lui ma mais me mes moi mon même ne ni nos notre nous on ont ou où pas pendant peut pourquoi quand
que quel quelle quelles quels qui quoi sa se ses si sommes sont suis sur ta te tes toi très tu un une
vos votre vous y à ça étaient était été être
c'est d'un d'une j'ai l'on n'est qu'elle qu'est-ce qu'il qu'on s'est
"""

_SPANISH = """
a aunque como cual cuales cuando cuanto cuantos cuál cuáles cuándo cuánto cuántos cómo de del desde donde
durante dónde e el ella ellas ello ellos en entre es esa esas ese eso esos esta estaba estar estas este esto
estos estoy está están fue fueron fui ha haber había han has hasta he hemos la las le les lo los me mi mis
muy más mí ni no nos nosotros nuestra nuestro o otra otro para pero por porque pues que quien quién quiénes
qué se según ser si sido sino sobre soy su sus sí también tampoco te tengo tiene tienen tu tus tú un una
unas uno unos usted ustedes y ya yo él
"""

_ITALIAN = """
a abbiamo agli alla alle allo anche avere aveva che cioè ciò cosa cui da dagli dal dalla dalle degli dei del
dell della delle dello di e erano essere fra gli ha hai hanno ho i il in la le lei lo loro lui ma me mi mia
mie miei mio ne negli nei nel nella nelle no noi non nostra nostro o per perche perché però più può qual
qualche quale quali quando quanto quella quelle quelli quello questa queste questi questo se si siamo sono
sta stato su sua sue sugli sui sul sulla suo suoi ti tra tu tua tuo un una uno voi è
c'è cos'è dov'è
"""

_PORTUGUESE = """
a ao aos aquela aquele aquilo as até com como da das de dela dele deles depois do e ela elas ele eles em
entre essa esse esta estava este está estão foi foram há isso isto já lhe lhes mais mas me mesmo meu meus
minha minhas muito na nas nem no nos nossa nosso num numa não nós o onde ou para pela pelo pelos por porque
porquê quais qual quando que quem quê se sem ser será seu seus sua suas são só também te tem teu tinha tu
tua têm um uma umas uns você vocês às é
"""

_DUTCH = """
aan als bij daar dat de deze dit dus een en er geen had hadden heb hebben heeft het hier hij hun ik in is ja
je jij jou jouw jullie kan kunnen kunt maar mij mijn moet moeten na naar nee niet nog nu of om omdat ons
onze ook te uit uw van voor waar waarom wanneer waren was wat we wel welk welke werd wie wij worden wordt
zal ze zeer zich zij zijn zo zonder zou
"""

STOPWORDS = frozenset(
    word
    for language in (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH)
    for word in language.split()
)


# ---------------------------------------------------------------- forms for comparing
#
# Without case, accents and endings, and without everyday words. Both sides are treated alike, so a stem need
# not be correct, only equal for the forms of one word. Scripts without spaces become pairs of letters, as in
# the word index.


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
    all_tokens = _WORD.findall(clean(text).casefold().replace("’", "'"))
    return [token for token in all_tokens if token not in STOPWORDS and not token.isdecimal()]


@lru_cache(maxsize=16_384)
def stem_token(token: str) -> tuple[str, ...]:
    """A token in the form for comparing: pairs in scripts without spaces, else the bare stem."""
    if is_unspaced(token):
        pairs = prepare_query(token).split()
        return tuple(pair for pair in pairs if len(pair) > 1 and not _FORM_WORDS.fullmatch(pair))
    bare = token.removesuffix("'s")
    return (_stem(fold(bare)),) if len(bare) > 1 and bare not in STOPWORDS else ()


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
    folded = fold(text)
    content = {
        _ENDING.sub("", word).removesuffix("e")
        for word in _CONTENT_WORD.findall(folded)
        if is_distinctive(word)
    }
    pairs = {run[start : start + 2] for run in UNSPACED_RUN.findall(folded) for start in range(len(run) - 1)}
    return frozenset(content | pairs)


def is_distinctive(word: str) -> bool:
    return word not in STOPWORDS and word not in _LESSON_WORDS
