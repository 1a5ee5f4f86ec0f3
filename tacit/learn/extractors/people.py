"""People: who they are, how to reach them and what they want, into the note of that person.

By rules: a sentence about one person that states a role, a contact, a habit, a preference or a condition. A
name alone is not enough, and the owner gets no note. Unknown people must be introduced with a role ("my
brother Klaus", "Ana is our accountant"): a capital letter alone does not make a person. What people say about
themselves is stored with their name in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tacit.learn.entities import NameIndex
from tacit.learn.extractors.extractor import (
    Extractor,
    item_schema,
    make_change,
    mask_sentence_quotes,
    note_name,
    parse_answer,
    spoken_turns,
    text_field,
    turn_sentences,
)
from tacit.learn.model import Change, Known
from tacit.learn.patterns import is_hypothetical, is_question
from tacit.text.words import fold
from tacit.transcripts.attribution import AttributedTranscript, Utterance

_SECTION = "Context"
_MAX_NAME_WORDS = 3  # words

_ROLE = (
    r"(?:step)?(?:brother|sister|mother|father|mum|mom|dad|son|daughter|aunt|uncle|cousin|niece|nephew"
    r"|grand(?:mother|father|ma|pa|son|daughter))(?:-in-law)?|wife|husband|partner|girlfriend|boyfriend"
    r"|fianc[eé]e?"
    r"|friend|neighbou?r|flatmate|roommate|colleague|co-?worker|boss|manager|assistant|intern|apprentice"
    r"|trainee"
    r"|accountant|bookkeeper|lawyer|solicitor|notary|doctor|dentist|vet|therapist|teacher|tutor|coach|trainer"
    r"|supplier|contractor|developer|designer|programmer|engineer|electrician|plumber|carpenter|mechanic"
    r"|landlord"
    r"|landlady|tenant|customer|client|investor|co-?founder|founder|maintainer|editor|agent|nanny"
    r"|babysitter|cleaner"
    r"|driver|gardener|photographer|ceo|cto|cfo|contact(?: person)?"
)
_ROLE_DE = (
    r"(?:stief|schwieger|groß|halb)?(?:bruder|schwester|mutter|vater|mama|papa|sohn|tochter|tante|onkel"
    r"|cousine?"
    r"|nichte|neffe|oma|opa)|frau|mann|partner(?:in)?|freund(?:in)?|nachbar(?:in)?|kolleg(?:e|in)|chef(?:in)?"
    r"|assistent(?:in)?|lehrling|praktikant(?:in)?|buchhalter(?:in)?|steuerberater(?:in)?"
    r"|anw[aä]lt(?:in)?|notar(?:in)?"
    r"|[aä]rzt(?:in)?|zahn[aä]rzt(?:in)?|hausarzt|tier[aä]rzt(?:in)?|lehrer(?:in)?|trainer(?:in)?"
    r"|lieferant(?:in)?"
    r"|entwickler(?:in)?|designer(?:in)?|elektriker(?:in)?|installateur(?:in)?|tischler(?:in)?"
    r"|vermieter(?:in)?"
    r"|mieter(?:in)?|kund(?:e|in)|ansprechpartner(?:in)?|gründer(?:in)?|geschäftsführer(?:in)?|fahrer(?:in)?"
)
_NAME = (
    r"(?P<name>(?:(?:Dr|Prof|Mr|Mrs|Ms|Frau|Herr)\.? )?[A-ZÄÖÜ][\w'’-]{1,30}(?: [A-ZÄÖÜ][\w'’-]{1,30}){0,2})"
)

# Introductions: the name and the role stand together.
_INTRODUCED = tuple(
    re.compile(line)
    for line in (
        rf"\b(?i:my|our|his|her|their) (?:\w+ )?(?i:{_ROLE}),? {_NAME}\b",
        rf"\b(?i:mein|meine[rmn]?|unser|unsere[rmn]?|sein[e]?|ihr[e]?) (?:\w+ )?(?i:{_ROLE_DE}),? {_NAME}\b",
        (
            rf"\b{_NAME},? (?:is |who is |who's )?(?i:my|our|the) (?:new |old |oldest "
            rf"|youngest )?(?i:{_ROLE})\b"
        ),
        rf"\b(?i:his|her) (?:full )?name (?:is|was) {_NAME}\b",
        rf"\b(?i:er|sie) heißt {_NAME}\b",
        (
            rf"\b{_NAME} (?i:has an? (?:\w+ ){{0,3}}(?:allergy|intolerance)|is (?:allergic|vegetarian"
            rf"|vegan|diabetic)|turns \w+ on)\b"
        ),
        (
            rf"\b{_NAME} (?i:hat eine (?:\w+ ){{0,2}}\w*(?:allergie|intoleranz)|ist (?:allergisch"
            rf"|vegetarier(?:in)?|veganer(?:in)?)|wird \w+ am)\b"
        ),
        rf"\b{_NAME} is (?i:an?) (?:new |freelance )?(?i:{_ROLE})\b",
        rf"\b{_NAME},? (?:ist )?(?i:meine?|unsere?) (?:neue[rs]? |alte[rs]? )?(?i:{_ROLE_DE})\b",
    )
)
_NO_FIRST_WORD = frozenset({
    "the", "a", "an", "and", "but", "so", "if", "when", "this", "that", "these", "those", "it", "he",
    "she", "they", "we", "you", "i", "what", "who", "not", "no", "yes", "ok", "also", "then", "der",
    "die", "das", "und", "aber", "wenn", "dann", "er", "sie", "es", "wir", "du", "ich", "was", "wer",
    "nicht", "kein", "ja", "nein", "dieser", "diese",
})  # fmt: skip

# Statements about a known person, after the name or a pronoun.
_HABITS = (
    r"(?:(?:also|only|always|never|usually|still|really) )?"
    r"(?:prefers?|likes?|loves?|hates?|dislikes?|avoids?|needs? (?:each|every|all|only|written|at least)"
    r"|speaks?|lives? in|works?|answers?|replies|reads?"
    r"|packs?|teaches|sends?|owns?|runs?|maintains?|wrote|built|founded|handles?|checks?|collects?|collected"
    r"|(?:is|was) (?:allergic|vegetarian|vegan|diabetic|pregnant|retired|retiring|responsible|based|away"
    r"|an?|the|our|my"
    r"|born|available|free|off|ill|on leave|in charge|from)|has (?:an?|the|two|three|[0-9]+)"
    r"|turns? [a-z0-9]+ on"
    r"|(?:does not|doesn['’]t|do not|don['’]t|can['’]t|cannot|must not|mustn['’]t|won['’]t) (?!know"
    r"|think|say|see|remember|sound|look)\w+"
    r"|wants? (?:to (?:hear|be|have|know|get|see)|it|each|all|every|the|an?|no|only|written))\b"
)
_HABITS_DE = (
    r"(?:(?:immer|nie|nur|meistens|lieber|gern) )?"
    r"(?:mag|bevorzugt|braucht|hasst|spricht|wohnt|lebt in|arbeitet|antwortet|liest|isst|trinkt|besitzt"
    r"|betreut|leitet"
    r"|fährt|kommt aus|unterrichtet|ist (?:allergisch|vegetarier(?:in)?|vegan|zuständig|verantwortlich"
    r"|erreichbar|im urlaub"
    r"|krank|in (?:karenz|pension|rente)|eine?|der|die|unsere?|meine?)|hat (?:eine?n?|geburtstag|[0-9]+)"
    r"|will (?:keine?|nur|immer|das|alles|vorher)|möchte (?:keine?|nur|immer|das|alles)|geboren"
    r"|wird [0-9]+)\b"
)
_CONTACT = (
    r"(?:['’]s)? (?:(?:phone|mobile|cell|tel|e-?mail|mail|address|birthday|number|rate|hours?|telefon"
    r"|handy|adresse|geburtstag"
    r"|nummer|stundensatz)\b|(?:\w+ )?(?:is|ist|hat) (?:reachable|erreichbar)\b)[^.;]{0,40}?(?:\bis\b"
    r"|\bist\b|:|=)"
)
_PRONOUN = r"(?:he|she|er|sie)"
_OBJECT_PRONOUN = re.compile(r"\b(?:him|her|hers|ihn|ihm|ihr)\b", re.IGNORECASE)
_ABOUT_SELF = re.compile(
    r"\b(?:i (?:prefer|don['’]t (?:work|eat|drink|like|use|do)|do not (?:work|eat|drink|like)"
    r"|need (?:each|every|all|the|an?)"
    r"|live in|work (?:on|from|only|until)|am (?:allergic|vegetarian|vegan|away|on leave|off)"
    r"|['’]?m (?:allergic|vegetarian|vegan|away|on leave|off)"
    r"|can only|only (?:work|read|answer)|['’]ll be (?:at|on|in|away|off))"
    r"|i['’]ll be (?:at|on|in|away|off)"
    r"|i['’]m (?:allergic|vegetarian|vegan|away|on leave|off)"
    r"|my (?:rate|hours?|birthday|number|phone|e-?mail|mail|address|exam|day off"
    r"|holiday) [^.;]{0,60}?\b(?:is|are|goes|starts?|ends?)"
    r"|ich (?:bevorzuge|arbeite (?:nur|nicht|immer|ab|bis)|esse keine?|trinke keine?|wohne in"
    r"|brauche (?:immer|jede|alle|eine)"
    r"|bin (?:allergisch|vegetarier(?:in)?|vegan|im urlaub|krank|ab|von|nur)|möchte (?:gern "
    r"|lieber )?(?:nur|immer|keine))"
    r"|mein(?:e)? (?:stundensatz|geburtstag|nummer|adresse|telefonnummer) (?:ist|steigt|lautet))\b",
    re.IGNORECASE,
)


_ORDER = re.compile(
    r"\W*(?:and |but |so )?(?:don['’]t|do not|please|let['’]?s|tell|ask|remind|call|write|bitte|frag|sag)\b",
    re.IGNORECASE,
)


class _Person(NamedTuple):
    path: str
    name: str


class _People:
    """The people who are known or were introduced in this conversation."""

    def __init__(self, known: Known) -> None:
        self._owners = frozenset(fold(part) for name in known.owners for part in (name, *name.split()[:1]))
        people = {name: path for name, path in known.people.items() if fold(name) not in self._owners}
        self._names = people
        self._mentions = NameIndex(people)

    def is_owner(self, name: str) -> bool:
        return fold(name) in self._owners

    def add(self, name: str) -> _Person | None:
        """Add a person who was introduced; None if the name cannot be the name of a note."""
        first = name.split(maxsplit=1)[0]
        if (
            fold(first) in _NO_FIRST_WORD
            or self.is_owner(name)
            or self.is_owner(first)
            or not note_name(name)
        ):
            return None
        path = self._mentions.one_in(name)
        if path:
            return _Person(path, name)
        person = _Person(f"knowledge/people/{note_name(name)}.md", name)
        self._names = {**self._names, name: person.path}
        self._mentions = NameIndex(self._names)
        return person

    def named_in(self, sentence: str) -> list[_Person]:
        """In order of appearance."""
        return [_Person(path, name) for name, path in self._mentions.all_in(sentence)]


def by_rules(conversation: AttributedTranscript, known: Known) -> Iterator[Change]:
    people = _People(known)
    for turn in spoken_turns(conversation):
        previous: _Person | None = None
        for sentence in turn_sentences(turn):
            plain_text = mask_sentence_quotes(sentence)
            if is_question(plain_text) or _ORDER.match(plain_text):
                previous = None
                continue
            person = _find_subject(plain_text, people, previous)
            if person:
                yield from _make_change(conversation, turn, person, sentence)
            elif (
                turn.role == "user"
                and (speaker := _find_speaker(turn, people))
                and _ABOUT_SELF.search(plain_text)
            ):
                yield from _make_change(conversation, turn, speaker, f"{speaker.name}: {sentence}")
            mentioned = people.named_in(plain_text)
            previous = person or (
                mentioned[0]
                if len(mentioned) == 1
                else previous
                if _starts_with_pronoun(plain_text)
                else None
            )
            if mentioned and _OBJECT_PRONOUN.search(plain_text):  # then the next pronoun is ambiguous
                previous = None


def _find_subject(sentence: str, people: _People, previous: _Person | None) -> _Person | None:
    """The person about whom the sentence states something lasting."""
    introduced = _find_introduction(sentence, people)
    if introduced:
        return introduced
    for person in people.named_in(sentence):
        if _says_about(re.escape(person.name), sentence):
            return person
    return (
        previous if previous and _starts_with_pronoun(sentence) and _says_about(_PRONOUN, sentence) else None
    )


def _find_introduction(sentence: str, people: _People) -> _Person | None:
    for pattern in _INTRODUCED:
        for match in pattern.finditer(sentence):
            person = None if is_hypothetical(sentence[: match.end()]) else people.add(match["name"])
            if person:
                return person
    return None


def _says_about(subject: str, sentence: str) -> bool:
    match = _compile_about(subject).search(sentence)
    return match is not None and not is_hypothetical(sentence[: match.end()])


@lru_cache(maxsize=512)
def _compile_about(subject: str) -> re.Pattern[str]:
    lines = (
        rf"(?<!\w){subject},? (?:{_HABITS}|{_HABITS_DE})",
        rf"(?<!\w){subject}{_CONTACT}",
        rf"\b(?:about|regarding|re|zu[mr]?|über) (?:\w+ )?{subject}\s*:",
        rf"\A{subject}\s*: ",
    )
    return re.compile("|".join(lines), re.IGNORECASE)


def _starts_with_pronoun(sentence: str) -> bool:
    return (
        re.match(rf"(?:(?:and|but|also|und|aber|außerdem) )?{_PRONOUN}\b", sentence, re.IGNORECASE)
        is not None
    )


def _find_speaker(turn: Utterance, people: _People) -> _Person | None:
    """The speaker, unless it is the owner."""
    if turn.trust == "owner" or not turn.speaker or people.is_owner(turn.speaker):
        return None
    return people.add(turn.speaker)


def _make_change(
    conversation: AttributedTranscript, turn: Utterance, person: _Person, text: str
) -> Iterator[Change]:
    return make_change(conversation, turn, text, (person.path, _SECTION), "person")


def by_model(
    item: Mapping[str, Any], conversation: AttributedTranscript, turns: tuple[Utterance, ...], known: Known
) -> Iterator[Change]:
    answer = parse_answer(item, turns)
    name = text_field(item, "name")
    if answer is None or not 0 < len(name.split()) <= _MAX_NAME_WORDS + 1:
        return
    turn, text, trust = answer
    person = _People(known).add(name)
    if person:
        yield from make_change(conversation, turn, text, (person.path, _SECTION), "person", trust)


EXTRACTOR = Extractor(
    "people",
    1,
    by_rules,
    """Find what is worth knowing about people: their relation to the owner, what they do, how to reach them,
what they like, want or cannot have, their dates. Ignore the owner, the agent, companies, and events
of one day. Write one sentence for each thing, with the name in it, in the language of the turn.
`name` is the full name if it is given, otherwise as much of it as is known.""",
    {**item_schema(name="of the person"), "required": ["text", "turn", "name"]},
    by_model,
)
