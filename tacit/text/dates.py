"""Days that a question speaks of: "since March", "last Tuesday", "vor drei Wochen", "2026-05-04".

Understood are English, German, French and Spanish. What has no year is the most recent one that is not in
the future, since a memory is asked about what was. A period is whole: "this month" ends on its last day.
What comes next ("tomorrow", "next week") and what repeats ("every Monday") names no days here. Where a text
speaks of several days, all from the first to the last count: too many days hide nothing.

A month alone is never enough, for it may be a verb, a name or a planet: "may I", "march on", "Julio". It
needs a day or a year, or a word such as "in" or "since" before it.

Nothing here raises. Time grows with the length of the text, of which the first 20,000 characters count.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache, partial
from itertools import chain

from tacit.text.words import clean

LONGEST = 20_000
_EARLIEST = date(1970, 1, 1)  # where "before May" begins: no file is older
_YEARS_BACK = 8  # as far as one has to look for a 29 February

_Span = tuple[date, date]
_Round = Callable[[int], _Span]  # what comes round again: 0 is this year's or this week's, -1 the one before
_Meaning = Callable[[re.Match[str], date], _Span | _Round | None]
_Rule = tuple[str, _Meaning]  # a pattern first


@dataclass(frozen=True, slots=True)
class Days:
    """From `first` to `last`, both counted; `text` is the words that said so."""

    first: date
    last: date
    text: str


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    first: date
    last: date
    again: _Round | None = None  # counted from this one


def days(text: str, today: date) -> Days | None:
    """The days that `text` speaks of, if it does."""
    text = " ".join(clean(text[:LONGEST]).split()).replace("’", "'")
    words = {word.casefold() for word in _WORD.findall(text)}
    if words.isdisjoint(_TELLING) and not any(word[0] in "0123456789" for word in words):
        return None
    today = date(today.year, today.month, today.day)  # a datetime does not compare with a date
    rules = (*_RULES, _HIER) if "hier" in words and _is_french(words) else _RULES
    said = [_opened(text, one, today) for one in _joined(text, _all_found(text, today, rules))]
    if not said:
        return None
    spoken = ", ".join(text[one.start : one.end] for one in said)
    return Days(min(one.first for one in said), max(one.last for one in said), spoken)


def is_vague(text: str) -> bool:
    """Whether the words of `Days` name no day, month or year as a note would: "two weeks ago"."""
    words = {word.casefold() for word in _WORD.findall(text)}
    return words.isdisjoint(_NAMED) and not re.search(r"[0-9]{4}|q[1-4]", text, re.IGNORECASE)


# From rules to days.


def _all_found(text: str, today: date, rules: Iterable[_Rule]) -> list[_Found]:
    found: list[_Found] = []
    for pattern, meaning in rules:
        left, at = [], 0
        for match in _compiled(pattern).finditer(text):
            one = _found(match, meaning, today)
            if one:
                found.append(one)
                left += [text[at : match.start()], "\0" * (match.end() - match.start())]
                at = match.end()
        text = "".join((*left, text[at:]))
    return sorted(found, key=lambda one: one.start)


def _found(match: re.Match[str], meaning: _Meaning, today: date) -> _Found | None:
    lead = match.groupdict().get("lead")
    start = match.start() + len(lead) + 1 if lead else match.start()
    try:
        when = meaning(match, today)
    except (ValueError, OverflowError):  # 30 February, the week before year 1
        return None
    if callable(when):
        return _latest(start, match.end(), when, today)
    return _Found(start, match.end(), *when) if when else None


def _latest(start: int, end: int, when: _Round, today: date) -> _Found | None:
    for back in range(_YEARS_BACK + 1):
        try:
            first, last = when(-back)
        except (ValueError, OverflowError):
            continue
        if first <= today:
            return _Found(start, end, first, last, partial(_counted_from, when, -back))
    return None


def _counted_from(when: _Round, start: int, more: int) -> _Span:
    return when(start + more)


def _joined(text: str, found: Iterable[_Found]) -> list[_Found]:
    """Two with "to" or "and" between them made one."""
    joined: list[_Found] = []
    for one in found:
        if joined and _compiled(_TO).fullmatch(text, joined[-1].end, one.start):
            joined[-1] = _from_to(joined[-1], one)
        else:
            joined.append(one)
    return joined


def _from_to(one: _Found, two: _Found) -> _Found:
    try:
        if one.again and not two.again:  # "3 May to 9 May 2025" are of one year
            first, last = one.again(two.first.year - one.first.year)
            one = replace(one, first=first, last=last)
        elif two.again and two.first < one.first:  # "20 December to 5 January"
            first, last = two.again(1)
            two = replace(two, first=first, last=last)
    except (ValueError, OverflowError):
        pass
    return _Found(one.start, two.end, min(one.first, two.first), max(one.last, two.last))


def _opened(text: str, one: _Found, today: date) -> _Found:
    """With the words that lead to it, and open at one end if they say so."""
    lead = _compiled(_LEAD).search(text, max(0, one.start - _LONGEST_LEAD), one.start)
    if not lead:
        return one
    one = replace(one, start=lead.start())
    if lead["since"]:
        return replace(one, last=max(one.first, today))
    if lead["before"] or lead["until"]:
        last = one.first if lead["before"] else one.last
        return replace(one, first=min(_EARLIEST, last), last=last)
    return one


# What words mean.


def _table(words: str) -> dict[str, int]:
    """Each name with the number of its group, from 1."""
    return {name: number for number, group in enumerate(words.split("|"), 1) for name in group.split()}


_ENGLISH = _table(
    """january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|
    october oct|november nov|december dec"""
)
_GERMAN = _table(
    """januar jänner|februar|märz maerz|april|mai|juni|juli|august|september|oktober okt|november|
    dezember dez"""
)
_ROMANCE = _table(
    """janvier enero|février fevrier febrero|mars marzo|avril abril|mai mayo|juin junio|juillet julio|
    août aout agosto|septembre septiembre setiembre|octobre octubre|novembre noviembre|
    décembre decembre diciembre"""
)
_MONTHS = _ENGLISH | _GERMAN | _ROMANCE
_WEEKDAYS = _table(
    """monday montag lundi lunes|tuesday tues tue dienstag mardi martes|
    wednesday wed mittwoch mercredi miércoles miercoles|thursday thurs thu donnerstag jeudi jueves|
    friday fri freitag vendredi viernes|saturday samstag sonnabend samedi sábado sabado|
    sunday sonntag dimanche domingo"""
)
_COUNTS = _table(
    """a an one ein eine einem einen einer un une una uno|two zwei deux dos|three drei trois tres|
    four vier quatre cuatro|five fünf cinq cinco|six sechs seis|seven sieben sept siete|
    eight acht huit ocho|nine neun neuf nueve|ten zehn dix diez|eleven elf onze once|
    twelve zwölf douze doce"""
)
_UNITS = _table(
    """day days tag tage tagen jour jours día dia días dias|
    week weeks woche wochen semaine semaines semana semanas|
    month months monat monate monaten mois mes meses|
    quarter quarters quartal quartale quartalen trimestre trimestres|
    year years jahr jahre jahren an ans année annee années annees año años"""
)
_DAY, _WEEK, _MONTH, _QUARTER, _YEAR = range(1, 6)
_IN_MONTHS = {_MONTH: 1, _QUARTER: 3, _YEAR: 12}
_DAYS_BACK = {
    **dict.fromkeys(("day before yesterday", "vorgestern", "avant-hier", "antes de ayer", "anteayer"), 2),
    **dict.fromkeys(("yesterday", "last night", "gestern", "ayer", "anoche"), 1),
    **dict.fromkeys(("today", "tonight", "this morning", "this afternoon", "this evening", "heute"), 0),
    **dict.fromkeys(("aujourd'hui", "ce matin", "ce soir", "hoy"), 0),
}
_NIGHTS = ("last night", "anoche")  # which end after midnight

_THIS = ("this", "current", "dies", "ce", "est")
_TO_COME = ("next", "every", "each", "nächst", "kommend", "jeden", "prochain", "chaque", "próxim", "cada")
# Before a month in small letters these make sure that it is no verb.
_SURE_LEADS = frozenset(("in", "since", "during", "until", "till", "before", "after", "mid"))
_SMALL_WORDS = frozenset(("jan", "mar", "march", "may", "tue", "tues", "wed", "thu", "thurs", "fri"))

_WORD = re.compile(r"[^\W_]+")
_NAMED = frozenset((*_MONTHS, *_WEEKDAYS))
_TELLING = _NAMED.union(
    (unit for unit in _UNITS if unit != "an"),
    ("yesterday", "vorgestern", "gestern", "hier", "ayer", "anteayer", "anoche", "night"),
    ("today", "tonight", "morning", "afternoon", "evening", "heute", "aujourd", "matin", "soir", "hoy"),
    ("weekend", "wochenende", "q1", "q2", "q3", "q4"),
)

# French "yesterday" is German "here".
_OF_FRENCH = _table("a avec avons dans des du elle est il je le les nous on que qu qui sur une vous").keys()
_OF_GERMAN = _table("das der die ein eine es haben hat ich im ist mit nicht und von war wer wie wir").keys()


def _is_french(words: set[str]) -> bool:
    return len(words & _OF_FRENCH) > len(words & _OF_GERMAN)


# Rules: from a match and today to days, to what comes round again, or to None.


def _dated(match: re.Match[str], _: date) -> _Span:
    return _of_month(int(match["month"]), int(match["day"]))(int(match["year"]))


def _slashed(match: re.Match[str], _: date) -> _Span | None:
    """Some put the day first and some the month: told apart only where one is over 12."""
    one, two = int(match["one"]), int(match["two"])
    if one <= 12 and two <= 12 and one != two:
        return None
    day, month = (one, two) if one > 12 else (two, one)
    return _of_month(month, day)(int(match["year"]))


def _quarter(match: re.Match[str], today: date) -> _Span | _Round | None:
    year = match["year"] or match["before"]
    last = 3 * int(match["number"])
    return _in_year(_months(last - 2, last), year, today) if year or match["lead"] else None


def _days_of_month(match: re.Match[str], today: date) -> _Span | _Round | None:
    """One day, or several of one month."""
    name, year, day = match["month"], match["year"], int(match["day"])
    groups = match.groupdict()
    if _is_planet(name) or (name in _SMALL_WORDS and not (year or match["mark"] or groups.get("lead"))):
        return None
    last = int(groups.get("to") or day)
    return _in_year(_of_month(_MONTHS[name.casefold()], day, last), year, today)


def _year_or_month(match: re.Match[str], today: date) -> _Span | _Round | None:
    """With a year: a month, several months, or all twelve."""
    names = match.groupdict()
    first, last = names.get("month") or "1", names.get("to") or names.get("month") or "12"
    if _is_planet(first) or _is_planet(last):
        return None
    return _in_year(_months(_month(first), _month(last)), match["year"], today)


def _month_alone(match: re.Match[str], today: date) -> _Span | _Round | None:
    name, lead = match["month"], match["lead"].casefold()
    if _is_planet(name) or (name in _SMALL_WORDS and (lead not in _SURE_LEADS or match["verb"])):
        return None
    month, year = _month(name), None
    if lead in ("this", "diesen"):
        year = today.year
    elif lead in ("last", "letzten") and month == today.month:
        year = today.year - 1
    return _in_year(_months(month, month), year, today)


def _weekday(match: re.Match[str], today: date) -> _Span | _Round | None:
    name, which = match["name"], (match["which"] or match["after"] or "").casefold()
    if which.startswith(_TO_COME) or name in _SMALL_WORDS:
        return None
    number = _WEEKDAYS[name.casefold()] - 1
    if match["week"] or which.startswith(_THIS):
        day = _whole(_WEEK, today, 1 if match["week"] else 0)[0] + timedelta(number)
        return (day, day) if day <= today else None
    latest = today - timedelta((today.weekday() - number) % 7 or 7)
    return lambda weeks: (latest + timedelta(7 * weeks), latest + timedelta(7 * weeks))


def _period(match: re.Match[str], today: date) -> _Span:
    which, unit = match["which"].casefold(), _UNITS[match["unit"].casefold()]
    if which.startswith(_THIS):
        return _whole(unit, today, 0)
    if which == "past" or match.groupdict().get("within"):
        return _until_today(unit, today, 1)
    return _whole(unit, today, 1)


def _weekend(match: re.Match[str], today: date) -> _Span:
    which = match["which"].casefold()
    now = which.startswith(_THIS) or (which in ("the", "am", "le", "el") and today.weekday() >= 5)
    monday, sunday = _whole(_WEEK, today, 0 if now and not match["after"] else 1)
    return monday + timedelta(5), sunday


def _ago(match: re.Match[str], today: date) -> _Span:
    unit = _UNITS[match["unit"].casefold()]
    fewest, most = _count(match["count"])
    return _whole(unit, today, most)[0], _whole(unit, today, fewest)[1]


def _last_few(match: re.Match[str], today: date) -> _Span:
    return _until_today(_UNITS[match["unit"].casefold()], today, _count(match["count"])[1])


def _day_word(match: re.Match[str], today: date) -> _Span:
    said = match[0].casefold()
    day = today - timedelta(_DAYS_BACK.get(said, 1))
    return day, today if said in _NIGHTS else day


def _month(said: str) -> int:
    return int(said) if said.isdecimal() else _MONTHS[said.casefold()]


def _is_planet(name: str) -> bool:
    return name in ("Mars", "MARS")  # the French month has a small letter


def _count(said: str) -> tuple[int, int]:
    """The fewest and the most it may mean."""
    said = said.casefold()
    if "couple" in said:
        return 2, 3
    number = int(said) if said.isdecimal() else _COUNTS.get(said)
    return (2, 6) if number is None else (number, number)


# Calendar. All of these may raise ValueError or OverflowError.


def _in_year(of_year: _Round, year: str | int | None, today: date) -> _Span | _Round:
    if year is None:
        return lambda years: of_year(today.year + years)
    return of_year(int(year))


def _of_month(month: int, first: int, last: int | None = None) -> _Round:
    return lambda year: _ordered(date(year, month, first), date(year, month, last or first))


def _ordered(first: date, last: date) -> _Span:
    if first > last:
        raise ValueError(f"{first} is after {last}")
    return first, last


def _months(first: int, last: int) -> _Round:
    """By the year in which they end: "from November to January"."""
    return lambda year: (date(year - (first > last), first, 1), _month_end(year, last))


def _month_end(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


def _whole(unit: int, today: date, back: int) -> _Span:
    """The day, week, month, quarter or year that lies `back` of them before today's."""
    if unit == _DAY:
        return today - timedelta(back), today - timedelta(back)
    if unit == _WEEK:
        monday = today - timedelta(today.weekday() + 7 * back)
        return monday, monday + timedelta(6)
    size = _IN_MONTHS[unit]
    year, month = divmod((_months_since_zero(today) // size - back) * size, 12)
    return date(year, month + 1, 1), _month_end(year, month + size)


def _until_today(unit: int, today: date, count: int) -> _Span:
    if unit not in _IN_MONTHS:
        return today - timedelta(count * (7 if unit == _WEEK else 1)), today
    year, month = divmod(_months_since_zero(today) - count * _IN_MONTHS[unit], 12)
    return date(year, month + 1, min(today.day, _month_end(year, month + 1).day)), today


def _months_since_zero(day: date) -> int:
    return day.year * 12 + day.month - 1


# Patterns. The text has single spaces, so each of them is short and none can go back far.


def _any_of(*tables: Iterable[str]) -> str:
    return "|".join(sorted({*chain(*tables)}, key=lambda name: (-len(name), name)))


def _alone(leads: str, months: Iterable[str]) -> str:
    """A month after one of `leads`. In "the PR that came in may be old" the next word tells it is none."""
    verb = r"(?P<verb> (?:be|have|not|also|need|i|we|you|he|she|it|they|the)\b)?"
    return rf"\b(?P<lead>{leads})[ -](?P<month>{_any_of(months)})\b{verb}"


_SHORT_NUMBER = r"(?<![\w.:/])(?P<day>[0-9]{1,2})"
_YEAR_NUMBER = r"(?:19|20|21)[0-9]{2}(?!\w|[-.:/,][0-9])"
_OF_YEAR = rf"(?:,? (?:of |del? )?(?P<year>{_YEAR_NUMBER}))?"
_ORDINAL = r"(?:st|nd|rd|th)"
_MARK = rf"(?P<mark>{_ORDINAL}|\.|er)?"
_NO_LONGER = r"(?!\w|[:/-][0-9]|\.[0-9])"
_ANY_MONTH = rf"(?P<month>{_any_of(_MONTHS)})\b\.?"
_ENGLISH_MONTH = rf"(?P<month>{_any_of(_ENGLISH)})\b\.?"
_ARTICLES = r"(?:the |le |el |den |dem |zum )?"
_TO = rf"(?: ?[-–—] ?| (?:to|and|until|till|through|bis|und|au|et|al?|y|hasta|à) {_ARTICLES})"
_HOW_MANY = (
    rf"(?P<count>[0-9]{{1,3}}|(?:a )?couple(?: of)?|(?:a )?few|several|(?:ein )?paar|einigen?|quelques|"
    rf"unos|unas|varios|varias|{_any_of(_COUNTS)})"
)
_UNIT = rf"(?P<unit>{_any_of(_UNITS)})\b"
_LONG_UNIT = rf"(?P<unit>{_any_of(name for name, unit in _UNITS.items() if unit != _DAY)})\b"
_LEAD_OF_DAY = r"(?:\b(?P<lead>on|since|from|between|and|to|until|till|before|after) )?"
_LEADS_OF_YEAR = (
    "in|of|for|from|since|during|until|till|before|after|early|late|mid|year|seit|jahre?|bis|vor|nach|en|"
    "depuis|desde|hasta|avant|après|antes de|después de|année|año"
)


def _rule(meaning: _Meaning, *pattern: str) -> _Rule:
    return "".join(pattern), meaning


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Not before the first question with a day in it: together they take 20 ms."""
    return re.compile(pattern, re.IGNORECASE)


# In this order: what one has taken the next ones do not see.
_RULES = (
    _rule(
        _dated,
        r"(?<!\w)(?P<year>[0-9]{4})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})(?![0-9])",
    ),
    _rule(
        _year_or_month,
        r"(?<![\w.:/-])(?P<year>(?:19|20|21)[0-9]{2})[-/](?P<month>0[1-9]|1[0-2])(?![\w-]|[./:][0-9])",
    ),
    _rule(_dated, r"(?<![\w.])(?P<day>[0-9]{1,2})\.(?P<month>[0-9]{1,2})\.(?P<year>[0-9]{4})(?!\w)"),
    _rule(_slashed, r"(?<![\w./])(?P<one>[0-9]{1,2})/(?P<two>[0-9]{1,2})/(?P<year>[0-9]{4})(?![\w/])"),
    _rule(
        _quarter,
        r"(?:\b(?P<lead>in|since|of|last|this|during|im|seit|before|after) )?",
        r"(?:\b(?P<before>(?:19|20|21)[0-9]{2})[ -]?|\b)q(?P<number>[1-4])\b",
        rf"(?:[ ,/-]{{0,2}}(?:of )?(?P<year>{_YEAR_NUMBER}))?",
    ),
    _rule(
        _days_of_month,
        rf"{_SHORT_NUMBER}(?:{_ORDINAL}|\.|er)?{_TO}(?P<to>[0-9]{{1,2}}){_MARK}",
        rf" (?:of |de )?{_ANY_MONTH}{_OF_YEAR}",
    ),
    _rule(
        _days_of_month,
        rf"{_LEAD_OF_DAY}\b{_ENGLISH_MONTH} (?:the )?(?P<day>[0-9]{{1,2}}){_ORDINAL}?{_TO}",
        rf"(?P<to>[0-9]{{1,2}})(?P<mark>{_ORDINAL})?{_NO_LONGER}{_OF_YEAR}",
    ),
    _rule(
        _year_or_month,
        r"\b(?P<lead>between|from|zwischen|von|entre|de|desde|du) ",
        rf"{_ANY_MONTH}{_TO}(?P<to>{_any_of(_MONTHS)})\b{_OF_YEAR}",
    ),
    _rule(_days_of_month, rf"{_SHORT_NUMBER}{_MARK} (?:of |de )?{_ANY_MONTH}{_OF_YEAR}"),
    _rule(
        _days_of_month,
        rf"{_LEAD_OF_DAY}\b{_ENGLISH_MONTH} (?:the )?(?P<day>[0-9]{{1,2}})(?P<mark>{_ORDINAL})?",
        _NO_LONGER,
        _OF_YEAR,
    ),
    _rule(_year_or_month, rf"\b{_ANY_MONTH},?(?: of| del?)? (?P<year>{_YEAR_NUMBER})"),
    _rule(
        _month_alone,
        _alone("in|on|of|since|during|until|till|before|after|through|early|late|mid|last|this", _ENGLISH),
    ),
    _rule(_month_alone, _alone("im|seit|ab|bis|vor|nach|anfang|mitte|ende|letzten|diesen", _GERMAN)),
    _rule(
        _month_alone,
        _alone("en|depuis|desde|hasta|avant|après|début|fin|mi|antes de|después de|mois de|mes de", _ROMANCE),
    ),
    _rule(
        _weekday,
        r"\b(?:(?P<which>last|this past|this|next|every|each|letzten|diesen|nächsten|kommenden|jeden|ce|",
        rf"chaque|este|cada|próximo) )?(?P<name>{_any_of(_WEEKDAYS)})\b",
        r"(?P<week>(?: of)? last week\b| letzter? woche\b)?",
        r"(?: (?P<after>prochain|próximo|dernier|passé|pasado)\b)?",
    ),
    _rule(_ago, rf"\b{_HOW_MANY} {_UNIT} (?:ago|back|earlier)\b"),
    _rule(_ago, rf"\b(?:vor|il y a|hace) {_HOW_MANY} {_UNIT}"),
    _rule(_last_few, rf"\b(?:last|past|previous|letzten|vergangenen|últim[oa]s) {_HOW_MANY} {_UNIT}"),
    _rule(_last_few, rf"\b{_HOW_MANY} derni[eè]re?s {_UNIT}"),
    _rule(
        _period,
        r"\b(?:(?P<within>in|over|within|during) (?:the )?)?(?P<which>last|past|previous|this|current|",
        rf"(?:letzt|vorig|vergangen|dies)e[nrsm]?|cette|ce|esta|este) {_LONG_UNIT}",
    ),
    _rule(_period, rf"\b{_LONG_UNIT} (?P<which>derni[eè]re?|pass[eé]e?|pasad[oa])\b"),
    _rule(
        _weekend,
        r"\b(?P<which>last|past|this|the|letztes|dieses|am|ce|le|este|el) ",
        r"(?:weekend|week-end|wochenende|fin de semana)\b(?P<after> (?:dernier|passé|pasado)\b)?",
    ),
    _rule(_day_word, rf"\b(?:{_any_of(_DAYS_BACK)})\b"),
    _rule(_year_or_month, rf"\b(?P<lead>{_LEADS_OF_YEAR})[ -](?P<year>{_YEAR_NUMBER})"),
)
_HIER = _rule(_day_word, r"\bhier\b")

_LONGEST_LEAD = 24
_LEAD = r"""(?x)\b(?:
    (?P<since>since|after|seit|ab|nach|depuis|desde|après|después\ de)
    |(?P<before>before|vor|avant|antes\ de)
    |(?P<until>until|till|up\ to|bis|hasta|jusqu'(?:à|en|au))
    |in|on|of|for|from|between|during|through|early|late|mid|last|this|the|im|am|vom|von|zwischen|anfang|
    mitte|ende|letzten|diesen|en|le|la|el|du|del?|entre|début|fin|mi|mois\ de|mes\ de|year|jahre?|année|año
    )(?:\ (?:the|early|late|mid|last|dem|der|den|le|la|el)){0,2}[ -]\Z"""
