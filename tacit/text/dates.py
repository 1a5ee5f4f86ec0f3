"""Finds the days that a question mentions: "since March", "last Tuesday", "vor drei Wochen", "2026-05-04".

It understands English, German, French and Spanish. A date without a year is the most recent one that is not
in the future, since questions to a memory are about the past. A period is whole: "this month" ends on its
last day. The future ("tomorrow", "next week") and repetition ("every Monday") are ignored. If a text mentions
several days, the range from the first to the last counts: too wide a range hides nothing.

A month alone is not enough, since it may be a verb, a name or a planet: "may I", "march on", "Julio". It
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

MAX_CHARS = 20_000
_EARLIEST = date(1970, 1, 1)  # where "before May" begins: no file is older
_MAX_YEARS_BACK = 8  # the longest time between two 29 Februaries

_Span = tuple[date, date]
_Recurring = Callable[
    [int], _Span
]  # what comes round again: 0 is this year's or this week's, -1 the one before
_Reading = Callable[[re.Match[str], date], _Span | _Recurring | None]
_Rule = tuple[str, _Reading]  # a pattern first


@dataclass(frozen=True, slots=True)
class DayRange:
    """From `first` to `last`, both included; `text` is the wording in the question."""

    first: date
    last: date
    text: str


@dataclass(frozen=True, slots=True)
class _DayMatch:
    start: int
    end: int
    first: date
    last: date
    again: _Recurring | None = None  # counted from this one


def find_days(text: str, today: date) -> DayRange | None:
    """The days that `text` mentions, or None."""
    text = " ".join(clean(text[:MAX_CHARS]).split()).replace("’", "'")
    words = {word.casefold() for word in _WORD.findall(text)}
    if words.isdisjoint(_DATE_WORDS) and not any(word[0] in "0123456789" for word in words):
        return None
    today = date(today.year, today.month, today.day)  # a datetime does not compare with a date
    rules = (*_RULES, _HIER) if "hier" in words and _is_french(words) else _RULES
    matches = [
        _apply_lead(text, match, today) for match in _join_ranges(text, _find_matches(text, today, rules))
    ]
    if not matches:
        return None
    wording = ", ".join(text[match.start : match.end] for match in matches)
    return DayRange(min(match.first for match in matches), max(match.last for match in matches), wording)


def is_vague(text: str) -> bool:
    """Whether the wording names no day, month or year that a note could contain, as in "two weeks ago"."""
    words = {word.casefold() for word in _WORD.findall(text)}
    return words.isdisjoint(_DAY_AND_MONTH_NAMES) and not re.search(r"[0-9]{4}|q[1-4]", text, re.IGNORECASE)


# From rules to days.


def _find_matches(text: str, today: date, rules: Iterable[_Rule]) -> list[_DayMatch]:
    day_matches: list[_DayMatch] = []
    for pattern, reading in rules:
        pieces, position = [], 0
        for match in _compile(pattern).finditer(text):
            day_match = _read_match(match, reading, today)
            if day_match:
                day_matches.append(day_match)
                pieces += [text[position : match.start()], "\0" * (match.end() - match.start())]
                position = match.end()
        text = "".join((*pieces, text[position:]))
    return sorted(day_matches, key=lambda day_match: day_match.start)


def _read_match(match: re.Match[str], reading: _Reading, today: date) -> _DayMatch | None:
    lead = match.groupdict().get("lead")
    start = match.start() + len(lead) + 1 if lead else match.start()
    try:
        days = reading(match, today)
    except (ValueError, OverflowError):  # 30 February, the week before year 1
        return None
    if callable(days):
        return _latest_occurrence(start, match.end(), days, today)
    return _DayMatch(start, match.end(), *days) if days else None


def _latest_occurrence(start: int, end: int, recurring: _Recurring, today: date) -> _DayMatch | None:
    for years_back in range(_MAX_YEARS_BACK + 1):
        try:
            first, last = recurring(-years_back)
        except (ValueError, OverflowError):
            continue
        if first <= today:
            return _DayMatch(start, end, first, last, partial(_shift_occurrence, recurring, -years_back))
    return None


def _shift_occurrence(recurring: _Recurring, start: int, steps: int) -> _Span:
    return recurring(start + steps)


def _join_ranges(text: str, matches: Iterable[_DayMatch]) -> list[_DayMatch]:
    """Merge two matches with "to" or "and" between them."""
    ranges: list[_DayMatch] = []
    for match in matches:
        if ranges and _compile(_TO).fullmatch(text, ranges[-1].end, match.start):
            ranges[-1] = _merge_range(ranges[-1], match)
        else:
            ranges.append(match)
    return ranges


def _merge_range(first_match: _DayMatch, second_match: _DayMatch) -> _DayMatch:
    try:
        if first_match.again and not second_match.again:  # "3 May to 9 May 2025" are of one year
            first, last = first_match.again(second_match.first.year - first_match.first.year)
            first_match = replace(first_match, first=first, last=last)
        elif second_match.again and second_match.first < first_match.first:  # "20 December to 5 January"
            first, last = second_match.again(1)
            second_match = replace(second_match, first=first, last=last)
    except (ValueError, OverflowError):
        pass
    return _DayMatch(
        first_match.start,
        second_match.end,
        min(first_match.first, second_match.first),
        max(first_match.last, second_match.last),
    )


def _apply_lead(text: str, day_match: _DayMatch, today: date) -> _DayMatch:
    """Include the words before the match, and open the range at one end if they say "since" or "before"."""
    lead = _compile(_LEAD).search(text, max(0, day_match.start - _MAX_LEAD_CHARS), day_match.start)
    if not lead:
        return day_match
    day_match = replace(day_match, start=lead.start())
    if lead["since"]:
        return replace(day_match, last=max(day_match.first, today))
    if lead["before"] or lead["until"]:
        last = day_match.first if lead["before"] else day_match.last
        return replace(day_match, first=min(_EARLIEST, last), last=last)
    return day_match


# What words mean.


def _number_words(words: str) -> dict[str, int]:
    """Each name with the number of its group, from 1."""
    return {name: number for number, group in enumerate(words.split("|"), 1) for name in group.split()}


_ENGLISH = _number_words(
    """january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|
    october oct|november nov|december dec"""
)
_GERMAN = _number_words(
    """januar jänner|februar|märz maerz|april|mai|juni|juli|august|september|oktober okt|november|
    dezember dez"""
)
_ROMANCE = _number_words(
    """janvier enero|février fevrier febrero|mars marzo|avril abril|mai mayo|juin junio|juillet julio|
    août aout agosto|septembre septiembre setiembre|octobre octubre|novembre noviembre|
    décembre decembre diciembre"""
)
_MONTHS = _ENGLISH | _GERMAN | _ROMANCE
_WEEKDAYS = _number_words(
    """monday montag lundi lunes|tuesday tues tue dienstag mardi martes|
    wednesday wed mittwoch mercredi miércoles miercoles|thursday thurs thu donnerstag jeudi jueves|
    friday fri freitag vendredi viernes|saturday samstag sonnabend samedi sábado sabado|
    sunday sonntag dimanche domingo"""
)
_COUNTS = _number_words(
    """a an one ein eine einem einen einer un une una uno|two zwei deux dos|three drei trois tres|
    four vier quatre cuatro|five fünf cinq cinco|six sechs seis|seven sieben sept siete|
    eight acht huit ocho|nine neun neuf nueve|ten zehn dix diez|eleven elf onze once|
    twelve zwölf douze doce"""
)
_UNITS = _number_words(
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

_CURRENT_WORDS = ("this", "current", "dies", "ce", "est")
_FUTURE_WORDS = (
    "next",
    "every",
    "each",
    "nächst",
    "kommend",
    "jeden",
    "prochain",
    "chaque",
    "próxim",
    "cada",
)
# Before a month in small letters, these words rule out a verb.
_SURE_LEADS = frozenset(("in", "since", "during", "until", "till", "before", "after", "mid"))
_AMBIGUOUS_NAMES = frozenset(("jan", "mar", "march", "may", "tue", "tues", "wed", "thu", "thurs", "fri"))

_WORD = re.compile(r"[^\W_]+")
_DAY_AND_MONTH_NAMES = frozenset((*_MONTHS, *_WEEKDAYS))
_DATE_WORDS = _DAY_AND_MONTH_NAMES.union(
    (unit for unit in _UNITS if unit != "an"),
    ("yesterday", "vorgestern", "gestern", "hier", "ayer", "anteayer", "anoche", "night"),
    ("today", "tonight", "morning", "afternoon", "evening", "heute", "aujourd", "matin", "soir", "hoy"),
    ("weekend", "wochenende", "q1", "q2", "q3", "q4"),
)

# French "yesterday" is German "here".
_FRENCH_WORDS = _number_words(
    "a avec avons dans des du elle est il je le les nous on que qu qui sur une vous"
).keys()
_GERMAN_WORDS = _number_words(
    "das der die ein eine es haben hat ich im ist mit nicht und von war wer wie wir"
).keys()


def _is_french(words: set[str]) -> bool:
    return len(words & _FRENCH_WORDS) > len(words & _GERMAN_WORDS)


# Rules: from a match and today to days, to a recurring range, or to None.


def _read_date(match: re.Match[str], _: date) -> _Span:
    return _days_in_month(int(match["month"]), int(match["day"]))(int(match["year"]))


def _read_slashed_date(match: re.Match[str], _: date) -> _Span | None:
    """The order of day and month differs between countries: clear only if one of them is over 12."""
    first, second = int(match["one"]), int(match["two"])
    if first <= 12 and second <= 12 and first != second:
        return None
    day, month = (first, second) if first > 12 else (second, first)
    return _days_in_month(month, day)(int(match["year"]))


def _read_quarter(match: re.Match[str], today: date) -> _Span | _Recurring | None:
    year = match["year"] or match["before"]
    last = 3 * int(match["number"])
    return _fix_year(_month_range(last - 2, last), year, today) if year or match["lead"] else None


def _read_days_of_month(match: re.Match[str], today: date) -> _Span | _Recurring | None:
    """One day, or several of one month."""
    name, year, day = match["month"], match["year"], int(match["day"])
    groups = match.groupdict()
    if _is_planet(name) or (name in _AMBIGUOUS_NAMES and not (year or match["mark"] or groups.get("lead"))):
        return None
    last = int(groups.get("to") or day)
    return _fix_year(_days_in_month(_MONTHS[name.casefold()], day, last), year, today)


def _read_months(match: re.Match[str], today: date) -> _Span | _Recurring | None:
    """With a year: a month, several months, or all twelve."""
    names = match.groupdict()
    first, last = names.get("month") or "1", names.get("to") or names.get("month") or "12"
    if _is_planet(first) or _is_planet(last):
        return None
    return _fix_year(_month_range(_month_number(first), _month_number(last)), match["year"], today)


def _read_month(match: re.Match[str], today: date) -> _Span | _Recurring | None:
    name, lead = match["month"], match["lead"].casefold()
    if _is_planet(name) or (name in _AMBIGUOUS_NAMES and (lead not in _SURE_LEADS or match["verb"])):
        return None
    month, year = _month_number(name), None
    if lead in ("this", "diesen"):
        year = today.year
    elif lead in ("last", "letzten") and month == today.month:
        year = today.year - 1
    return _fix_year(_month_range(month, month), year, today)


def _read_weekday(match: re.Match[str], today: date) -> _Span | _Recurring | None:
    name, qualifier = match["name"], (match["which"] or match["after"] or "").casefold()
    if qualifier.startswith(_FUTURE_WORDS) or name in _AMBIGUOUS_NAMES:
        return None
    number = _WEEKDAYS[name.casefold()] - 1
    if match["week"] or qualifier.startswith(_CURRENT_WORDS):
        day = _whole_unit(_WEEK, today, 1 if match["week"] else 0)[0] + timedelta(number)
        return (day, day) if day <= today else None
    latest = today - timedelta((today.weekday() - number) % 7 or 7)
    return lambda weeks: (latest + timedelta(7 * weeks), latest + timedelta(7 * weeks))


def _read_period(match: re.Match[str], today: date) -> _Span:
    qualifier, unit = match["which"].casefold(), _UNITS[match["unit"].casefold()]
    if qualifier.startswith(_CURRENT_WORDS):
        return _whole_unit(unit, today, 0)
    if qualifier == "past" or match.groupdict().get("within"):
        return _until_today(unit, today, 1)
    return _whole_unit(unit, today, 1)


def _read_weekend(match: re.Match[str], today: date) -> _Span:
    qualifier = match["which"].casefold()
    is_current = qualifier.startswith(_CURRENT_WORDS) or (
        qualifier in ("the", "am", "le", "el") and today.weekday() >= 5
    )
    monday, sunday = _whole_unit(_WEEK, today, 0 if is_current and not match["after"] else 1)
    return monday + timedelta(5), sunday


def _read_ago(match: re.Match[str], today: date) -> _Span:
    unit = _UNITS[match["unit"].casefold()]
    low, high = _read_count(match["count"])
    return _whole_unit(unit, today, high)[0], _whole_unit(unit, today, low)[1]


def _read_last_few(match: re.Match[str], today: date) -> _Span:
    return _until_today(_UNITS[match["unit"].casefold()], today, _read_count(match["count"])[1])


def _read_day_word(match: re.Match[str], today: date) -> _Span:
    word = match[0].casefold()
    day = today - timedelta(_DAYS_BACK.get(word, 1))
    return day, today if word in _NIGHTS else day


def _month_number(name: str) -> int:
    return int(name) if name.isdecimal() else _MONTHS[name.casefold()]


def _is_planet(name: str) -> bool:
    return name in ("Mars", "MARS")  # the French month has a small letter


def _read_count(words: str) -> tuple[int, int]:
    """The smallest and the largest number that it may mean."""
    words = words.casefold()
    if "couple" in words:
        return 2, 3
    number = int(words) if words.isdecimal() else _COUNTS.get(words)
    return (2, 6) if number is None else (number, number)


# Calendar. All of these may raise ValueError or OverflowError.


def _fix_year(of_year: _Recurring, year: str | int | None, today: date) -> _Span | _Recurring:
    if year is None:
        return lambda years: of_year(today.year + years)
    return of_year(int(year))


def _days_in_month(month: int, first: int, last: int | None = None) -> _Recurring:
    return lambda year: _require_order(date(year, month, first), date(year, month, last or first))


def _require_order(first: date, last: date) -> _Span:
    if first > last:
        raise ValueError(f"{first} is after {last}")
    return first, last


def _month_range(first: int, last: int) -> _Recurring:
    """By the year in which they end: "from November to January"."""
    return lambda year: (date(year - (first > last), first, 1), _month_end(year, last))


def _month_end(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


def _whole_unit(unit: int, today: date, units_back: int) -> _Span:
    """The day, week, month, quarter or year that is `units_back` of them before today's."""
    if unit == _DAY:
        return today - timedelta(units_back), today - timedelta(units_back)
    if unit == _WEEK:
        monday = today - timedelta(today.weekday() + 7 * units_back)
        return monday, monday + timedelta(6)
    size = _IN_MONTHS[unit]
    year, month = divmod((_months_since_zero(today) // size - units_back) * size, 12)
    return date(year, month + 1, 1), _month_end(year, month + size)


def _until_today(unit: int, today: date, count: int) -> _Span:
    if unit not in _IN_MONTHS:
        return today - timedelta(count * (7 if unit == _WEEK else 1)), today
    year, month = divmod(_months_since_zero(today) - count * _IN_MONTHS[unit], 12)
    return date(year, month + 1, min(today.day, _month_end(year, month + 1).day)), today


def _months_since_zero(day: date) -> int:
    return day.year * 12 + day.month - 1


# Patterns. The text has single spaces, so each of them is short and none can backtrack far.


def _any_of(*tables: Iterable[str]) -> str:
    return "|".join(sorted({*chain(*tables)}, key=lambda name: (-len(name), name)))


def _month_after(leads: str, months: Iterable[str]) -> str:
    """A month after one of `leads`. In "the PR that came in may be old" the next word rules it out."""
    verb = r"(?P<verb> (?:be|have|not|also|need|i|we|you|he|she|it|they|the)\b)?"
    return rf"\b(?P<lead>{leads})[ -](?P<month>{_any_of(months)})\b{verb}"


_SHORT_NUMBER = r"(?<![\w.:/])(?P<day>[0-9]{1,2})"
_YEAR_NUMBER = r"(?:19|20|21)[0-9]{2}(?!\w|[-.:/,][0-9])"
_OPTIONAL_YEAR = rf"(?:,? (?:of |del? )?(?P<year>{_YEAR_NUMBER}))?"
_ORDINAL = r"(?:st|nd|rd|th)"
_ORDINAL_MARK = rf"(?P<mark>{_ORDINAL}|\.|er)?"
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


def _rule(reading: _Reading, *pattern: str) -> _Rule:
    return "".join(pattern), reading


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compiled at the first question with a date: together they take 20 ms."""
    return re.compile(pattern, re.IGNORECASE)


# In this order: text matched by one rule is hidden from the next ones.
_RULES = (
    _rule(
        _read_date,
        r"(?<!\w)(?P<year>[0-9]{4})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})(?![0-9])",
    ),
    _rule(
        _read_months,
        r"(?<![\w.:/-])(?P<year>(?:19|20|21)[0-9]{2})[-/](?P<month>0[1-9]|1[0-2])(?![\w-]|[./:][0-9])",
    ),
    _rule(_read_date, r"(?<![\w.])(?P<day>[0-9]{1,2})\.(?P<month>[0-9]{1,2})\.(?P<year>[0-9]{4})(?!\w)"),
    _rule(
        _read_slashed_date, r"(?<![\w./])(?P<one>[0-9]{1,2})/(?P<two>[0-9]{1,2})/(?P<year>[0-9]{4})(?![\w/])"
    ),
    _rule(
        _read_quarter,
        r"(?:\b(?P<lead>in|since|of|last|this|during|im|seit|before|after) )?",
        r"(?:\b(?P<before>(?:19|20|21)[0-9]{2})[ -]?|\b)q(?P<number>[1-4])\b",
        rf"(?:[ ,/-]{{0,2}}(?:of )?(?P<year>{_YEAR_NUMBER}))?",
    ),
    _rule(
        _read_days_of_month,
        rf"{_SHORT_NUMBER}(?:{_ORDINAL}|\.|er)?{_TO}(?P<to>[0-9]{{1,2}}){_ORDINAL_MARK}",
        rf" (?:of |de )?{_ANY_MONTH}{_OPTIONAL_YEAR}",
    ),
    _rule(
        _read_days_of_month,
        rf"{_LEAD_OF_DAY}\b{_ENGLISH_MONTH} (?:the )?(?P<day>[0-9]{{1,2}}){_ORDINAL}?{_TO}",
        rf"(?P<to>[0-9]{{1,2}})(?P<mark>{_ORDINAL})?{_NO_LONGER}{_OPTIONAL_YEAR}",
    ),
    _rule(
        _read_months,
        r"\b(?P<lead>between|from|zwischen|von|entre|de|desde|du) ",
        rf"{_ANY_MONTH}{_TO}(?P<to>{_any_of(_MONTHS)})\b{_OPTIONAL_YEAR}",
    ),
    _rule(_read_days_of_month, rf"{_SHORT_NUMBER}{_ORDINAL_MARK} (?:of |de )?{_ANY_MONTH}{_OPTIONAL_YEAR}"),
    _rule(
        _read_days_of_month,
        rf"{_LEAD_OF_DAY}\b{_ENGLISH_MONTH} (?:the )?(?P<day>[0-9]{{1,2}})(?P<mark>{_ORDINAL})?",
        _NO_LONGER,
        _OPTIONAL_YEAR,
    ),
    _rule(_read_months, rf"\b{_ANY_MONTH},?(?: of| del?)? (?P<year>{_YEAR_NUMBER})"),
    _rule(
        _read_month,
        _month_after(
            "in|on|of|since|during|until|till|before|after|through|early|late|mid|last|this", _ENGLISH
        ),
    ),
    _rule(_read_month, _month_after("im|seit|ab|bis|vor|nach|anfang|mitte|ende|letzten|diesen", _GERMAN)),
    _rule(
        _read_month,
        _month_after(
            "en|depuis|desde|hasta|avant|après|début|fin|mi|antes de|después de|mois de|mes de", _ROMANCE
        ),
    ),
    _rule(
        _read_weekday,
        r"\b(?:(?P<which>last|this past|this|next|every|each|letzten|diesen|nächsten|kommenden|jeden|ce|",
        rf"chaque|este|cada|próximo) )?(?P<name>{_any_of(_WEEKDAYS)})\b",
        r"(?P<week>(?: of)? last week\b| letzter? woche\b)?",
        r"(?: (?P<after>prochain|próximo|dernier|passé|pasado)\b)?",
    ),
    _rule(_read_ago, rf"\b{_HOW_MANY} {_UNIT} (?:ago|back|earlier)\b"),
    _rule(_read_ago, rf"\b(?:vor|il y a|hace) {_HOW_MANY} {_UNIT}"),
    _rule(_read_last_few, rf"\b(?:last|past|previous|letzten|vergangenen|últim[oa]s) {_HOW_MANY} {_UNIT}"),
    _rule(_read_last_few, rf"\b{_HOW_MANY} derni[eè]re?s {_UNIT}"),
    _rule(
        _read_period,
        r"\b(?:(?P<within>in|over|within|during) (?:the )?)?(?P<which>last|past|previous|this|current|",
        rf"(?:letzt|vorig|vergangen|dies)e[nrsm]?|cette|ce|esta|este) {_LONG_UNIT}",
    ),
    _rule(_read_period, rf"\b{_LONG_UNIT} (?P<which>derni[eè]re?|pass[eé]e?|pasad[oa])\b"),
    _rule(
        _read_weekend,
        r"\b(?P<which>last|past|this|the|letztes|dieses|am|ce|le|este|el) ",
        r"(?:weekend|week-end|wochenende|fin de semana)\b(?P<after> (?:dernier|passé|pasado)\b)?",
    ),
    _rule(_read_day_word, rf"\b(?:{_any_of(_DAYS_BACK)})\b"),
    _rule(_read_months, rf"\b(?P<lead>{_LEADS_OF_YEAR})[ -](?P<year>{_YEAR_NUMBER})"),
)
_HIER = _rule(_read_day_word, r"\bhier\b")

_MAX_LEAD_CHARS = 24
_LEAD = r"""(?x)\b(?:
    (?P<since>since|after|seit|ab|nach|depuis|desde|après|después\ de)
    |(?P<before>before|vor|avant|antes\ de)
    |(?P<until>until|till|up\ to|bis|hasta|jusqu'(?:à|en|au))
    |in|on|of|for|from|between|during|through|early|late|mid|last|this|the|im|am|vom|von|zwischen|anfang|
    mitte|ende|letzten|diesen|en|le|la|el|du|del?|entre|début|fin|mi|mois\ de|mes\ de|year|jahre?|année|año
    )(?:\ (?:the|early|late|mid|last|dem|der|den|le|la|el)){0,2}[ -]\Z"""
