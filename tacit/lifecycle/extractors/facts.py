"""Facts to look up: what something costs, measures or is called, where and when it is.

By rules: a sentence, a row of a table or an item of a list that gives a thing a value: a price, a port, an
address, a size, a date, a version, a time. The thing must be named in it ("it has 32 GB" says nothing
tomorrow). They go to the notes of the project that is named, else to one page for each kind of value:
reference/prices.md and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tacit.lifecycle.cues import is_hypothetical, is_question, is_to_come
from tacit.lifecycle.extractors.extractor import Extractor
from tacit.lifecycle.extractors.lines import (
    answered,
    change,
    field,
    note_name,
    plain,
    schema,
    sentences_of,
    told_in,
    turns_of,
    words_of,
)
from tacit.lifecycle.extractors.lists import Listed, Table, lists_of, tables_of
from tacit.lifecycle.named import Names
from tacit.model.changes import Change, Heard, Known, Said
from tacit.text.sentences import says_enough

_MOST_SUBJECT = 10  # words
_MOST_CELL = 60  # characters

_NUMBER = r"[0-9](?:[0-9.,’' ]{0,14}[0-9])?"
_MONTH = (
    r"(?:jan(?:uary|uar)?|jänner|feb(?:ruary|ruar|er)?|mar(?:ch)?|märz|apr(?:il)?|may|mai|june?|juni"
    r"|july?|juli|aug(?:ust)?"
    r"|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?)"
)
# Kinds of values in the order in which they are tried; each is also the name of a page.
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
_COMPILED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _VALUES.items()}
_WORTH = re.compile(r"[0-9]")

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
# What an agent reads off while it works. A person who says such a thing means it.
_READING = re.compile(
    r"\b(?:tests?|test suite|coverage|diff|build|pipeline|ci|commit|branch|pull request|pr|job|lines?|memory"
    r"|ram|cpu|disk|load|latency|runtime|output|log|forecast|weather|temperature|humidity|abdeckung|testlauf"
    r"|auslastung|speicher|wetter|vorhersage|temperatur|luftfeuchtigkeit)(?: (?:for|on|in|am|für|im) \w+)?\Z",
    re.IGNORECASE,
)
_NAMED_VALUE = re.compile(r"(?P<what>[^\W\d_][\w /-]{1,50}?) (?P<value>[0-9][\w.,]{0,11}(?: ?\S{1,8})?)\Z")


_CLAUSE = re.compile(r"(?:,|;) (?:and|but|und|aber) (?=\w+ \w)|; ")
_MOST_PARTS = 4
_MOST_LABEL = 5  # words
_MOST_WORDS = 12
# Inferences, alternatives and moments: "Then the top comes at …", "From Monday: …"
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
_NO_LAST = re.compile(
    r"\b(?:above|below|under|over|from|to|at|in|on|within|than|about|by|and|or|with|über|unter|ab|bis"
    r"|von|zu|mit|und|oder)\Z",
    re.IGNORECASE,
)
_DECIMAL = re.compile(r"[0-9]+[.,][0-9]+")
_ADDRESS = re.compile(
    r"\bhttps?://\S{4,}|\b[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{2,64}|\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b"
)


_NOTHING: re.Match[str] = re.compile("").match("")  # type: ignore[assignment]


class _Fact(NamedTuple):
    text: str
    about: str  # what a project is looked for in


def by_rules(heard: Heard, known: Known) -> Iterator[Change]:
    names = Names(known.projects)
    for said in turns_of(heard):
        for fact in (*_in_sentences(said), *_in_tables(said), *_in_lists(said)):
            target = _target(
                names.one_in(fact.about) or names.one_in(words_of(said)), _kind(fact.text) or "values"
            )
            yield from change(heard, said, fact.text, target, "fact", EXTRACTOR.label)


def _target(project: str | None, page: str) -> tuple[str, None]:
    return (f"knowledge/projects/{project}/notes.md" if project else f"knowledge/reference/{page}.md"), None


def _kind(text: str) -> str | None:
    return next((name for name, pattern in _COMPILED.items() if pattern.search(text)), None)


# Sentences


def _in_sentences(said: Said) -> Iterator[_Fact]:
    elsewhere = {sentence for _, sentence in told_in(said)}  # decisions, lessons and events have their own
    for whole in sentences_of(said):
        sentence = _INTERJECTION.sub("", whole, count=1) if _INTERJECTION.match(whole) else whole
        if whole not in elsewhere and not is_question(plain(sentence)):
            found = next((part for part in _parts(sentence) if _is_fact(plain(part))), None)
            if found and not (said.role == "agent" and _is_reading(plain(found))):
                yield _Fact(found, sentence)


def _parts(sentence: str) -> Iterator[str]:
    """All of it, else what stands for itself in it."""
    yield sentence
    parts = _CLAUSE.split(sentence)
    if 1 < len(parts) <= _MOST_PARTS:
        yield from (part for part in parts if says_enough(part))


def _is_fact(sentence: str) -> bool:
    if _NO_SUBJECT.match(sentence) or _NO_START.match(sentence):
        return False
    return _is_statement(sentence) or _is_label(sentence) or _is_terse(sentence) or _is_address(sentence)


def _is_statement(sentence: str) -> bool:
    """A thing, a link, a value, in this order, and nothing before the value that takes it back."""
    link = _LINK.search(sentence)
    if link is None or not _is_thing(sentence[: link.start()]):
        return False
    end = _values_end(sentence, link.start())
    return end > 0 and _holds(sentence[:end])


def _is_reading(sentence: str) -> bool:
    label, link = _COLON.match(sentence), _LINK.search(sentence)
    thing = label["what"] if label else sentence[: link.start()] if link else ""
    return _READING.search(thing.strip()) is not None


def _is_thing(words: str) -> bool:
    return 0 < len(words.split()) <= _MOST_SUBJECT and re.search(r"[^\W\d_]{2}", words) is not None


def _holds(part: str) -> bool:
    return not (is_hypothetical(part) or is_to_come(part) or _PAST.search(part))


def _is_label(sentence: str) -> bool:
    """`Gate code: 4471`"""
    found = _COLON.match(sentence)
    if found is None or len(found["what"].split()) > _MOST_LABEL or not _is_thing(found["what"]):
        return False
    end = _values_end(sentence, found.start("value"))
    return not _NO_LABEL.search(found["what"]) and end > 0 and _holds(sentence[:end])


def _is_terse(sentence: str) -> bool:
    """`Delivery Thursday, 22 October`: a thing and its value, with nothing between them."""
    found = _TERSE.match(sentence)
    if found is None or _NO_LAST.search(found["what"]) or not _holds(sentence[: found.end()]):
        return False
    return _kind(found["value"]) is not None or _DECIMAL.fullmatch(found["value"]) is not None


def _is_address(sentence: str) -> bool:
    """A short sentence that says where: `Upload at https://…`."""
    found = _ADDRESS.search(sentence)
    return found is not None and len(sentence.split()) <= _MOST_WORDS and _holds(sentence[: found.end()])


def _values_end(sentence: str, start: int) -> int:
    """Where the last value after `start` ends; 0 where there is none."""
    return max(
        found.end()
        for name, pattern in _COMPILED.items()
        for found in (*pattern.finditer(sentence, 0 if name == "codes" else start), _NOTHING)
    )


# Tables and lists


def _in_tables(said: Said) -> Iterator[_Fact]:
    for table in tables_of(words_of(said)):
        yield from _rows(table)


def _rows(table: Table) -> Iterator[_Fact]:
    for row in table.rows:
        cells = [_bare(cell) for cell in row]
        if len(cells) < 2 or not re.search(r"[^\W\d_]{2}", cells[0]) or max(map(len, cells)) > _MOST_CELL:
            continue
        if len(cells) == 2:
            text = f"{cells[0]}: {cells[1]}"
        else:
            heads = [_bare(head) for head in table.head[1:]]
            pairs = zip(heads, cells[1:], strict=False)
            text = f"{cells[0]}: " + ", ".join(f"{head} {cell}".strip() for head, cell in pairs if cell)
        if _WORTH.search(text.partition(": ")[2]):
            yield _Fact(text, f"{table.title} {text}")


def _bare(cell: str) -> str:
    return cell.strip("*_` ")


def _in_lists(said: Said) -> Iterator[_Fact]:
    for found in lists_of(words_of(said)):
        yield from _items(found)


def _items(found: Listed) -> Iterator[_Fact]:
    """`feldspar 38` below `The white glaze:`. Only where the list is one of values."""
    title = re.split(r"[.!?] +", found.title)[-1]
    values = [_NAMED_VALUE.match(_bare(item)) for item in found.items]
    if (
        not title
        or len(title.split()) > _MOST_SUBJECT
        or title.endswith("?")
        or 2 * sum(map(bool, values)) <= len(values)
    ):
        return
    for item, value in zip(found.items, values, strict=True):
        if value:
            yield _Fact(f"{_bare(title)}: {_bare(item)}", title)


def by_model(item: Mapping[str, Any], heard: Heard, said: tuple[Said, ...], known: Known) -> Iterator[Change]:
    found = answered(item, said)
    if found:
        turn, text, trust = found
        project = Names(known.projects).one_in(field(item, "project"))
        page = note_name(field(item, "subject")) or _kind(text) or "values"
        yield from change(heard, turn, text, _target(project, page), "fact", EXTRACTOR.label, trust)


EXTRACTOR = Extractor(
    "facts",
    1,
    by_rules,
    """Find facts that somebody will want to look up: prices, ports, addresses, sizes, versions, opening
hours, dates, recipes, numbers and where things are. Each must name its thing and its value, so that it is
understood without the conversation. What everybody knows, what is only guessed, and readings of the moment
are none. One short sentence for each, in the language in which it was said. `subject` is one or two words
for the page on which such facts are kept, such as ports or prices; `project` the name of the known project
that it belongs to, if it is one.""",
    schema(
        subject="one or two words for the page, such as prices",
        project="name of a known project; left out if it is none of them",
    ),
    by_model,
)
