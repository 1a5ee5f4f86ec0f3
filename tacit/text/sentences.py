"""Splits a message into sentences, and tells which are questions, and which repeat a question.

Sentences are those of the prose, without code, quoted lines, tables and headings.

A sentence is returned as written, on one line. Before searching it for a wording, mask quotations and code,
which are not the writer's own words. Time grows with the length of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from tacit.text import words
from tacit.text.lines import scan
from tacit.text.words import is_unspaced

MAX_SENTENCE_CHARS = 300  # characters of a sentence that is kept
_MAX_CHARS = 1_000  # characters; what is longer is a list or a dump
_MIN_WORDS = 3
_MIN_LETTERS = 5  # where words are not apart

# Bounded, and `++` does not backtrack: a message may be a megabyte of dots or of opening marks. A run of dots
# is matched only from its beginning: from each of its dots it would take quadratic time.
_QUOTED = re.compile(
    r"`[^`\n]{0,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|„[^“”\n]{0,400}[“”]|«[^»\n]{0,400}»"
    r"|「[^」\n]{0,400}」|『[^』\n]{0,400}』"
)
_ITEM = re.compile(r"\s*(?:[-*+•]\s+(?:\[[ xX]\]\s+)?|[0-9]{1,3}[.)]\s+)?")
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++|[。！？]++[」』”）)]*+|[;；]\s++")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Za-zÄÖÜäöü]|(?<![0-9.,:])[0-9]{1,2}|\b(?:Dr|Mr|Mrs|Ms|Prof|Fr|Hr|St|Nr|No|ca|bzw|evtl|ggf|inkl|usw|vs|approx|etc))\.\s+\Z"
)

# After a number or a letter and a dot only these words begin a sentence: "17. Sie", not "17. Oktober".
_SENTENCE_BEGINNING = re.compile(
    r"(?:I|We|You|He|She|It|They|The|This|That|There|And|But|So|My|Our|Her|His|Its|Ich|Wir|Du|Er|Sie|Es|Das|Die|Der"
    r"|Und|Aber|Dann|Mein|Meine|Unser|Unsere|Ihr|Ihre|Sein|Seine)\b"
)


def split_sentences(text: str) -> Iterator[str]:
    """The sentences of the prose: no code, no quoted lines, no tables, no headings."""
    paragraph: list[str] = []
    for line in scan(text):
        is_prose = line.kind == "text" and not line.text.lstrip().startswith((">", "|"))
        item = _ITEM.match(line.text)
        is_beginning = not is_prose or (item is not None and bool(item[0].strip()))
        if is_beginning and paragraph:
            yield from _split_paragraph(" ".join(paragraph))
            paragraph = []
        if is_prose:
            paragraph.append(line.text[item.end() :].strip() if item else line.text.strip())
    yield from _split_paragraph(" ".join(paragraph))


def _split_paragraph(paragraph: str) -> Iterator[str]:
    start = 0
    writes_small = paragraph[:1].islower()  # then all sentences may begin with a small letter
    for end in _END.finditer(mask_quotes(paragraph)):
        following = paragraph[end.end() : end.end() + 1]
        if following.islower() and "." in end[0] and not writes_small:
            continue
        is_abbreviation = _ABBREVIATION.search(paragraph[max(start, end.end() - 12) : end.end()])
        if is_abbreviation and not _SENTENCE_BEGINNING.match(paragraph, end.end()):
            continue
        yield from _trim(paragraph[start : end.end()])
        start = end.end()
    yield from _trim(paragraph[start:])


def _trim(sentence: str) -> Iterator[str]:
    sentence = sentence.strip().strip("*_ ")
    if sentence:
        yield sentence


def mask_quotes(text: str) -> str:
    return _QUOTED.sub(lambda match: match[0][0] + "·" * (len(match[0]) - 2) + match[0][-1], text)


def is_informative(sentence: str) -> bool:
    if len(sentence) > _MAX_CHARS or sentence.endswith((":", "：")):  # its content comes after it
        return False
    if is_unspaced(sentence):
        return sum(map(str.isalnum, sentence[:MAX_SENTENCE_CHARS])) >= _MIN_LETTERS
    return len(sentence.split(maxsplit=_MIN_WORDS)) >= _MIN_WORDS


def shorten_sentence(sentence: str) -> str:
    if len(sentence) <= MAX_SENTENCE_CHARS:
        return sentence
    start = sentence[: MAX_SENTENCE_CHARS - 2]
    space = start.rfind(" ", MAX_SENTENCE_CHARS // 2)
    return f"{start[:space] if space > 0 else start} …"


# ---------------------------------------------------------------- questions
#
# An earlier copy of a question is more similar to it than any answer, and adds nothing. A text counts as a
# repetition if it is a question too, nearly all words of each are in the other, it has no new number, and
# nothing follows its question mark. Names, greetings and the prefix of a host may differ, and further
# questions may follow: "…? And after the pause?" adds nothing either.


QUESTION_MARKS = ("?", "？", "؟")
MAX_CHARS = 2_000  # characters that are read; longer messages are seldom sent twice

_HEAD = re.compile(r"(?:\s*\[[^\]\n]{0,200}\])+\s*")  # [Telegram Ines 2026-11-18 09:12]
_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?;:…？؟。！；])\s+")
_COURTESY_WORDS = """
hi hello hey dear good morning evening please thanks thank cheers ok okay so and well once more again
hallo moin guten morgen abend tag liebe lieber bitte danke und also nochmal noch einmal
bonjour salut merci svp hola gracias favor ciao grazie ola obrigado obrigada hoi bedankt
"""
_COURTESIES = frozenset(_COURTESY_WORDS.split())
# How questions without a question mark begin.
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


def is_question(text: str) -> bool:
    """Whether it is a question, by its question mark or by how it begins after a greeting."""
    if any(sign in text for sign in QUESTION_MARKS):
        return True
    folded = words.fold(_strip_head(text[:MAX_CHARS]))
    if words.is_unspaced(folded) and _OPENING_UNSPACED.search(folded):
        return True
    tokens = _WORD.findall(folded[:300].replace("'", "").replace("’", ""))
    start = next((index for index, word in enumerate(tokens) if word not in _COURTESIES), 0)
    # A name may follow a greeting: "Hi Jules, what did we decide".
    return any(
        _OPENING.match(" ".join(tokens[index:])) for index in ({0, start, start + 1} if start else {0})
    )


def match_same_question(question: str, min_share: float, max_factor: float) -> Callable[[str], bool] | None:
    """A function that says whether a text repeats `question`; None if `question` is not a question.

    Each must have at least `min_share` of the words of the other. A text that asks other things too is at
    most `max_factor` times as long as `question`.
    """
    question = question[:MAX_CHARS]
    if not is_question(question):
        return None
    all_words, words_after = Counter(_words(question)), Counter(_words_after(question))
    question_words = Counter(_words(_question_part(question))) or all_words
    min_words, max_words = min_share * question_words.total(), all_words.total() / min_share

    def is_repeat(text: str) -> bool:
        text_words = _words(text[:MAX_CHARS])
        if (
            not text_words or not min_words <= len(text_words) <= max_words
        ):  # nearly all texts, and this is quick to tell
            return False
        counts = Counter(text_words)
        new_words = counts - all_words
        return (
            (counts & question_words).total() >= min_words
            and (counts & all_words).total() >= min_share * len(text_words)
            and not any(word[0].isdigit() for word in new_words)
            and not Counter(_words_after(text)) - words_after
            and is_question(text)
        )

    def is_same(text: str) -> bool:
        return is_repeat(text) or (
            len(text) <= max_factor * len(question) and any(map(is_repeat, _split_questions(text)))
        )

    return is_same


def _split_questions(text: str) -> list[str]:
    """Its sentences without courtesies, if each of them is a question; else none."""
    sentences = [sentence for sentence in _SENTENCE_END.split(text[:MAX_CHARS].strip()) if _words(sentence)]
    return sentences if all(sentence.endswith(QUESTION_MARKS) for sentence in sentences) else []


def _question_part(question: str) -> str:
    """The text up to its last question mark; without one, the text without its last line, since the lines
    below a question are further search words."""
    return question[: _find_end(question)] or question.rpartition("\n")[0]


def _find_end(text: str) -> int:
    """The end of the last question mark; 0 if there is none."""
    return 1 + max(map(text.rfind, QUESTION_MARKS))


def _words_after(text: str) -> list[str]:
    """The words after the last question mark."""
    end = _find_end(text)
    return _words(text[end:]) if end else []


def _words(text: str) -> list[str]:
    """All words except courtesies, in the form for comparing."""
    bare = words.prepare_query(words.fold(_strip_head(text)))
    return [word for word in _WORD.findall(bare) if word not in _COURTESIES]


def _strip_head(text: str) -> str:
    head = _HEAD.match(text)
    return text[head.end() :] if head else text
