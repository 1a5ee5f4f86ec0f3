"""Facts to look up: what something costs, measures or is called, where and when it is.

By rules: a sentence, a table row or a list item that gives a thing a value: a price, a port, an address, a
size, a date, a version, a time. The thing must be named in it ("it has 32 GB" says nothing tomorrow). Facts
go to the notes of the project that is named, else to one page for each kind of value: reference/prices.md and
so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tacit.learn.entities import NameIndex
from tacit.learn.extractors.extractor import (
    Extractor,
    MessageList,
    MessageTable,
    find_lists,
    find_tables,
    item_schema,
    make_change,
    mask_sentence_quotes,
    note_name,
    parse_answer,
    spoken_turns,
    text_field,
    turn_sentences,
    turn_statements,
    turn_words,
)
from tacit.learn.model import Change, Known
from tacit.learn.patterns import is_hypothetical, is_planned_or_negated, is_question
from tacit.text.sentences import is_informative
from tacit.transcripts.attribution import AttributedTranscript, Utterance

_MAX_SUBJECT_WORDS = 10  # words
_MAX_CELL_CHARS = 60  # characters

_NUMBER = r"[0-9](?:[0-9.,’' ]{0,14}[0-9])?"
_MONTH = (
    r"(?:jan(?:uary|uar)?|jänner|feb(?:ruary|ruar|er)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni"
    r"|july?|juli|aug(?:ust)?"
    r"|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)"
)
# Kinds of values in the order they are tried; each is also the name of a page.
_VALUES = {
    "addresses": r"\bhttps?://[^\s)>\]]{3,}|\b[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{2,64}"
    r"|\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b"
    r"|\bports? [0-9]{2,5}\b|\b(?:on|auf) [0-9]{4,5}\b(?! ?(?:€|euros?|\$|%|m|k))"
    r"|\b[\w-]{2,60}\.(?:example\.)?(?:com|org|net|de|at|ch|io|dev)\b"
    r"|\b(?:phone|telefon|tel|fax|mobile|handy)\b[^0-9]{0,20}\+?[0-9][0-9 /-]{5,}",
    "prices": rf"(?:€|\$|£|EUR|USD|CHF|GBP) ?{_NUMBER}|{_NUMBER} ?(?:€|\$|£|EUR\b|USD\b|CHF\b|euros?\b"
    rf"|dollars?\b|pounds?\b|cents?\b|franken\b)",
    "codes": r"\b(?:codes?|pin|passwor[dt]|passphrase|id|number|nummer|kennzeichen)\b[^.;]{0,40}?\b(?:is"
    r"|ist|:|lautet|begins? with|beginnt mit|beginnen mit)\W{0,3}"
    r"(?:[A-Z0-9]+-[A-Z0-9-]*|[0-9][0-9A-Z]{3,}|`[^`]+`|·+)",
    "versions": r"\b[vV]?[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}\b|\b(?:version|release)\s[vV]?[0-9][\w.]*"
    r"|\b(?-i:[A-Z][A-Za-z+]{2,30}) [0-9]{1,3}\.[0-9]{1,3}\b(?! ?(?:€|%|k|m|g|h|°))",
    "measures": rf"{_NUMBER} ?(?:%|percent\b|prozent\b|°C?|degrees?\b|grad\b|[kKMGT]i?B\b|GHz\b|MHz\b"
    rf"|[kKM]?Wh?\b|V\b|mm\b|cm\b|km\b|m²|m\b|kg\b|kilos?\b|g\b|grams?\b|gramm\b"
    r"|ml\b|l\b|lit(?:re|er)s?\b|hours?\b|stunden?\b|minutes?\b|minuten?\b|min\b|seconds?\b|sekunden?\b"
    r"|days?\b|tagen?\b|weeks?\b|wochen?\b|months?\b|monate?n?\b"
    r"|people\b|persons?\b|personen\b|addresses\b|pieces?\b|stück\b|mesh\b|parts?\b|samples?\b|users?\b"
    r"|bags?\b)|\btype [A-Z0-9]\b|\b[0-9]+ (?:of|von) (?:the )?[0-9]+\b"
    rf"|\b{_NUMBER} ?[×x] ?{_NUMBER}\b",
    "times": r"\b[0-9]{1,2}:[0-9]{2}\b|\b[0-9]{1,2} (?:uhr|o['’]clock|am|pm)\b|\b(?:mon|tues|wednes"
    r"|thurs|fri|satur|sun)days\b"
    r"|\b(?:mon|diens|donners|frei|sams|sonn)tags\b|\bmittwochs\b",
    "dates": rf"\b[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\b|\b[0-9]{{1,2}}\.? {_MONTH}\b"
    rf"|\b{_MONTH} [0-9]{{1,2}}\b|\b(?:0?[1-9]|[12][0-9]|3[01])\.(?:0?[1-9]|1[0-2])\.(?:[0-9]{{4}}"
    rf"|[0-9]{{2}})?(?![0-9])",
}  # fmt: skip
_VALUE_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _VALUES.items()}
_DIGIT = re.compile(r"[0-9]")

# Between the thing and its value.
_LINK = re.compile(
    r"\b(?:is|are|costs?|takes?|has|have|runs? (?:on|at)|listens? on|lives? (?:at|on|in)|weighs?|holds?"
    r"|measures?|stands? at|stays? (?:at|on)|starts (?:at|on)|ends (?:at|on)"
    r"|opens? (?:at|from|on)|closes? (?:at|on)|comes? (?:at|on|with)|goes? (?:to|at|live)|begins? (?:at"
    r"|on|with)|needs?|wants?|uses?|charges?|expires?|lasts|ends|starts|contains?|includes?|sends?|keeps?"
    r"|ist|sind|kostet|kosten|dauert|hat|haben|läuft (?:auf|unter|bis)|liegt (?:auf|bei|in)|steht (?:auf"
    r"|bei|laut)|wiegt|misst|beträgt|öffnet|schließt|beginnt|endet|kommt (?:um|am)"
    r"|braucht|verwendet|heißt|lautet|gilt|reicht|bleibt (?:bei|auf|bis))\b|(?<=\w)['’]s (?=[0-9])",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(
    r"\A\W*(?:(?:and|but|so|then|also|now|ok(?:ay)?|yes|no|well|because|und|aber|also|dann|jetzt|ja|nein"
    r"|weil|denn|hm+|which|who|as|with|by|at|for|on|in|from|only|zum|im|am|ab|mit|bei),? )*"
    r"(?:i|we|you|he|she|it|they|this|that|these|those|there|here|what|how|let|my [a-z]+ (?:is"
    r"|has) (?:a )?(?:mess|full)|ich|wir|du|ihr|er|sie|es|man|das|dies\w*|da|hier|was|wie|its|his|her|their"
    r"|seine?|ihre|one|both|all"
    r"|nothing|everything|nobody|someone)(?:['’]\w+)?\b",
    re.IGNORECASE,
)
_COLON = re.compile(r"\A(?P<what>[^:.!?]{2,60}): (?P<value>[^:]\S*.{0,200})\Z")
_NO_LABEL = re.compile(
    r"\A(?:and|or|but|look|see|check|keep|und|oder|schau)\b|\b(?:says?|said|draft|ok(?:ay)?|options?|so"
    r"|also|note|ps|todo|next|first|second|third|question|answer|decision|rule|lesson|wrote|writes|words"
    r"|sagt|schreibt|frage|antwort|entscheidung|regel)\Z",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:was|were|had|went|came|did|took|stood|used to|war|waren|hatten?|wurden?|ging|kam|kostete)\b",
    re.IGNORECASE,
)
# Readings that an agent reports while it works. From a person they count as facts.
_READING = re.compile(
    r"\b(?:tests?|test suite|coverage|diff|build|pipeline|ci|commit|branch|pull request|pr|job|lines?|memory"
    r"|ram|cpu|disk|load|latency|runtime|output|log|forecast|weather|temperature|humidity|abdeckung|testlauf"
    r"|auslastung|speicher|wetter|vorhersage|temperatur|luftfeuchtigkeit)(?: (?:for|on|in|am|für|im) \w+)?\Z",
    re.IGNORECASE,
)
_NAMED_VALUE = re.compile(r"(?P<what>[^\W\d_][\w /-]{1,50}?) (?P<value>[0-9][\w.,]{0,11}(?: ?\S{1,8})?)\Z")


_CLAUSE = re.compile(r"(?:,|;) (?:and|but|und|aber) (?=\w+ \w)|; ")
_MAX_CLAUSES = 4
_MAX_LABEL_WORDS = 5  # words
_MAX_ADDRESS_WORDS = 12
# Starts of inferences, alternatives and moments: "Then the top comes at …", "From Monday: …"
_INTERJECTION = re.compile(r"(?:also|so|ok(?:ay)?|well|btw|ps|fyi|note|übrigens)\s*[:,] +", re.IGNORECASE)
_NO_START = re.compile(
    r"\W*(?:but|aber|then|so|thus|or|otherwise|except|from|since|until|by|at|on|past|after|before|next"
    r"|last|this|tomorrow|today|tonight|yesterday"
    r"|dann|also|oder|sonst|seit|bis|ab|um|nach|vor|morgen|heute|gestern|nächste\w*|letzte\w*|reasons?"
    r"|gründe?|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|[0-9][\w.,:]*)\b",
    re.IGNORECASE,
)
_TERSE = re.compile(
    rf"(?P<what>[A-ZÄÖÜ][\w-]{{2,30}}(?: [a-zäöü][\w-]{{1,20}}){{0,3}}?) (?P<value>(?:(?:am "
    rf"|on )?\w{{4,12}}tag,? |\w{{3,8}}day,? )?{_NUMBER}[^,;:]{{0,20}}?)(?=[,;]|\.?\s*\Z)"
)
_OPEN_ENDING = re.compile(
    r"\b(?:above|below|under|over|from|to|at|in|on|within|than|about|by|and|or|with|über|unter|ab|bis"
    r"|von|zu|mit|und|oder)\Z",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"[0-9]+[.,][0-9]+")
_ADDRESS = re.compile(
    r"\bhttps?://\S{4,}|\b[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{2,64}|\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b"
)


_EMPTY_MATCH: re.Match[str] = re.compile("").match("")  # type: ignore[assignment]


class _Fact(NamedTuple):
    text: str
    about: str  # the text in which a project name is searched


def by_rules(conversation: AttributedTranscript, known: Known) -> Iterator[Change]:
    names = NameIndex(known.projects)
    for turn in spoken_turns(conversation):
        for fact in (*_sentence_facts(turn), *_table_facts(turn), *_list_facts(turn)):
            target = _target_note(
                names.one_in(fact.about) or names.one_in(turn_words(turn)), _value_kind(fact.text) or "values"
            )
            yield from make_change(conversation, turn, fact.text, target, "fact")


def _target_note(project: str | None, page: str) -> tuple[str, None]:
    return (f"knowledge/projects/{project}/notes.md" if project else f"knowledge/reference/{page}.md"), None


def _value_kind(text: str) -> str | None:
    return next((name for name, pattern in _VALUE_PATTERNS.items() if pattern.search(text)), None)


# Sentences


def _sentence_facts(turn: Utterance) -> Iterator[_Fact]:
    covered = {
        sentence for _, sentence in turn_statements(turn)
    }  # decisions, lessons and events have their own extractors
    for original in turn_sentences(turn):
        sentence = _INTERJECTION.sub("", original, count=1) if _INTERJECTION.match(original) else original
        if original not in covered and not is_question(mask_sentence_quotes(sentence)):
            fact = next(
                (part for part in _split_clauses(sentence) if _is_fact(mask_sentence_quotes(part))), None
            )
            if fact and not (turn.role == "agent" and _is_reading(mask_sentence_quotes(fact))):
                yield _Fact(fact, sentence)


def _split_clauses(sentence: str) -> Iterator[str]:
    """The whole sentence, then the clauses that can stand alone."""
    yield sentence
    parts = _CLAUSE.split(sentence)
    if 1 < len(parts) <= _MAX_CLAUSES:
        yield from (part for part in parts if is_informative(part))


def _is_fact(sentence: str) -> bool:
    if _NO_SUBJECT.match(sentence) or _NO_START.match(sentence):
        return False
    return _is_statement(sentence) or _is_label(sentence) or _is_terse(sentence) or _is_address(sentence)


def _is_statement(sentence: str) -> bool:
    """A thing, a link and a value, in this order, with no negation or condition before the value."""
    link = _LINK.search(sentence)
    if link is None or not _is_thing(sentence[: link.start()]):
        return False
    end = _last_value_end(sentence, link.start())
    return end > 0 and _is_current(sentence[:end])


def _is_reading(sentence: str) -> bool:
    label, link = _COLON.match(sentence), _LINK.search(sentence)
    thing = label["what"] if label else sentence[: link.start()] if link else ""
    return _READING.search(thing.strip()) is not None


def _is_thing(words: str) -> bool:
    return 0 < len(words.split()) <= _MAX_SUBJECT_WORDS and re.search(r"[^\W\d_]{2}", words) is not None


def _is_current(part: str) -> bool:
    return not (is_hypothetical(part) or is_planned_or_negated(part) or _PAST.search(part))


def _is_label(sentence: str) -> bool:
    """`Gate code: 4471`"""
    match = _COLON.match(sentence)
    if match is None or len(match["what"].split()) > _MAX_LABEL_WORDS or not _is_thing(match["what"]):
        return False
    end = _last_value_end(sentence, match.start("value"))
    return not _NO_LABEL.search(match["what"]) and end > 0 and _is_current(sentence[:end])


def _is_terse(sentence: str) -> bool:
    """`Delivery Thursday, 22 October`: a thing directly followed by its value."""
    match = _TERSE.match(sentence)
    if match is None or _OPEN_ENDING.search(match["what"]) or not _is_current(sentence[: match.end()]):
        return False
    return _value_kind(match["value"]) is not None or _DECIMAL.fullmatch(match["value"]) is not None


def _is_address(sentence: str) -> bool:
    """A short sentence that says where: `Upload at https://…`."""
    match = _ADDRESS.search(sentence)
    return (
        match is not None
        and len(sentence.split()) <= _MAX_ADDRESS_WORDS
        and _is_current(sentence[: match.end()])
    )


def _last_value_end(sentence: str, start: int) -> int:
    """Where the last value after `start` ends; 0 if there is none."""
    return max(
        match.end()
        for name, pattern in _VALUE_PATTERNS.items()
        for match in (*pattern.finditer(sentence, 0 if name == "codes" else start), _EMPTY_MATCH)
    )


# Tables and lists


def _table_facts(turn: Utterance) -> Iterator[_Fact]:
    for table in find_tables(turn_words(turn)):
        yield from _row_facts(table)


def _row_facts(table: MessageTable) -> Iterator[_Fact]:
    for row in table.rows:
        cells = [_strip_markup(cell) for cell in row]
        if (
            len(cells) < 2
            or not re.search(r"[^\W\d_]{2}", cells[0])
            or max(map(len, cells)) > _MAX_CELL_CHARS
        ):
            continue
        if len(cells) == 2:
            text = f"{cells[0]}: {cells[1]}"
        else:
            heads = [_strip_markup(head) for head in table.head[1:]]
            pairs = zip(heads, cells[1:], strict=False)
            text = f"{cells[0]}: " + ", ".join(f"{head} {cell}".strip() for head, cell in pairs if cell)
        if _DIGIT.search(text.partition(": ")[2]):
            yield _Fact(text, f"{table.title} {text}")


def _strip_markup(cell: str) -> str:
    return cell.strip("*_` ")


def _list_facts(turn: Utterance) -> Iterator[_Fact]:
    for listing in find_lists(turn_words(turn)):
        yield from _item_facts(listing)


def _item_facts(listing: MessageList) -> Iterator[_Fact]:
    """`feldspar 38` below `The white glaze:`. Only if most items of the list have values."""
    title = re.split(r"[.!?] +", listing.title)[-1]
    values = [_NAMED_VALUE.match(_strip_markup(item)) for item in listing.items]
    if (
        not title
        or len(title.split()) > _MAX_SUBJECT_WORDS
        or title.endswith("?")
        or 2 * sum(map(bool, values)) <= len(values)
    ):
        return
    for item, value in zip(listing.items, values, strict=True):
        if value:
            yield _Fact(f"{_strip_markup(title)}: {_strip_markup(item)}", title)


def by_model(
    item: Mapping[str, Any], conversation: AttributedTranscript, turns: tuple[Utterance, ...], known: Known
) -> Iterator[Change]:
    answer = parse_answer(item, turns)
    if answer:
        turn, text, trust = answer
        project = NameIndex(known.projects).one_in(text_field(item, "project"))
        page = note_name(text_field(item, "subject")) or _value_kind(text) or "values"
        yield from make_change(conversation, turn, text, _target_note(project, page), "fact", trust)


EXTRACTOR = Extractor(
    "facts",
    1,
    by_rules,
    """Find facts worth looking up later: prices, ports, addresses, sizes, versions, opening hours, dates,
recipes, numbers and where things are. Each fact must name the thing and its value, so that it can be
understood without the conversation. Ignore common knowledge, guesses and momentary readings. Write
one short sentence for each, in the language of the turn. `subject` is one or two words for the page
on which such facts are kept, such as ports or prices; `project` is the name of the known project that
it belongs to, if any.""",
    item_schema(
        subject="one or two words for the page, such as prices",
        project="name of a known project; left out if it is none of them",
    ),
    by_model,
)
