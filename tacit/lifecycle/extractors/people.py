"""People: who somebody is, how to reach them, what they want, into the note of that person.

By rules: a sentence that is about one person and tells a role, a contact, a habit, a preference or a
condition. A name alone is nothing, and the owner gets no note. Whoever the home does not know yet must be
told with a role ("my brother Klaus", "Ana is our accountant"): a capital letter makes no person. What
people say about themselves stands with their name in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tacit.lifecycle.cues import is_hypothetical, is_question
from tacit.lifecycle.extractors.extractor import Extractor
from tacit.lifecycle.extractors.lines import (
    answered,
    change,
    field,
    note_name,
    plain,
    schema,
    sentences_of,
    turns_of,
)
from tacit.lifecycle.named import Names
from tacit.model.changes import Change, Heard, Known, Said
from tacit.text.words import fold

_SECTION = "Context"
_MOST_NAME = 3  # words

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
_ROLLE = (
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
_CALLED = (
    r"(?P<name>(?:(?:Dr|Prof|Mr|Mrs|Ms|Frau|Herr)\.? )?[A-ZÄÖÜ][\w'’-]{1,30}(?: [A-ZÄÖÜ][\w'’-]{1,30}){0,2})"
)

# Somebody is introduced: the name and the role stand together.
_INTRODUCED = tuple(
    re.compile(line)
    for line in (
        rf"\b(?i:my|our|his|her|their) (?:\w+ )?(?i:{_ROLE}),? {_CALLED}\b",
        rf"\b(?i:mein|meine[rmn]?|unser|unsere[rmn]?|sein[e]?|ihr[e]?) (?:\w+ )?(?i:{_ROLLE}),? {_CALLED}\b",
        (
            rf"\b{_CALLED},? (?:is |who is |who's )?(?i:my|our|the) (?:new |old |oldest "
            rf"|youngest )?(?i:{_ROLE})\b"
        ),
        rf"\b(?i:his|her) (?:full )?name (?:is|was) {_CALLED}\b",
        rf"\b(?i:er|sie) heißt {_CALLED}\b",
        (
            rf"\b{_CALLED} (?i:has an? (?:\w+ ){{0,3}}(?:allergy|intolerance)|is (?:allergic|vegetarian"
            rf"|vegan|diabetic)|turns \w+ on)\b"
        ),
        (
            rf"\b{_CALLED} (?i:hat eine (?:\w+ ){{0,2}}\w*(?:allergie|intoleranz)|ist (?:allergisch"
            rf"|vegetarier(?:in)?|veganer(?:in)?)|wird \w+ am)\b"
        ),
        rf"\b{_CALLED} is (?i:an?) (?:new |freelance )?(?i:{_ROLE})\b",
        rf"\b{_CALLED},? (?:ist )?(?i:meine?|unsere?) (?:neue[rs]? |alte[rs]? )?(?i:{_ROLLE})\b",
    )
)
_NO_FIRST_WORD = frozenset({
    "the", "a", "an", "and", "but", "so", "if", "when", "this", "that", "these", "those", "it", "he",
    "she", "they", "we", "you", "i", "what", "who", "not", "no", "yes", "ok", "also", "then", "der",
    "die", "das", "und", "aber", "wenn", "dann", "er", "sie", "es", "wir", "du", "ich", "was", "wer",
    "nicht", "kein", "ja", "nein", "dieser", "diese",
})  # fmt: skip

# What is told of somebody who is known. `{who}` is the name, or a pronoun right after it.
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
_GEWOHNT = (
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
_OTHERS = re.compile(r"\b(?:him|her|hers|ihn|ihm|ihr)\b", re.IGNORECASE)
_OWN = re.compile(
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
    """Who is known, and who was introduced in this conversation."""

    def __init__(self, known: Known) -> None:
        self._owners = frozenset(fold(one) for name in known.owners for one in (name, *name.split()[:1]))
        people = {name: path for name, path in known.people.items() if fold(name) not in self._owners}
        self._names = people
        self._found = Names(people)

    def is_owner(self, name: str) -> bool:
        return fold(name) in self._owners

    def add(self, name: str) -> _Person | None:
        """Somebody who was introduced; None where that is no name for a note."""
        first = name.split(maxsplit=1)[0]
        if (
            fold(first) in _NO_FIRST_WORD
            or self.is_owner(name)
            or self.is_owner(first)
            or not note_name(name)
        ):
            return None
        found = self._found.one_in(name)
        if found:
            return _Person(found, name)
        person = _Person(f"knowledge/people/{note_name(name)}.md", name)
        self._names = {**self._names, name: person.path}
        self._found = Names(self._names)
        return person

    def named_in(self, sentence: str) -> list[_Person]:
        """In the order in which they are named."""
        return [_Person(path, name) for name, path in self._found.all_in(sentence)]


def by_rules(heard: Heard, known: Known) -> Iterator[Change]:
    people = _People(known)
    for said in turns_of(heard):
        before: _Person | None = None
        for sentence in sentences_of(said):
            bare = plain(sentence)
            if is_question(bare) or _ORDER.match(bare):
                before = None
                continue
            person = _told_of(bare, people, before)
            if person:
                yield from _change(heard, said, person, sentence)
            elif said.role == "user" and (speaker := _speaker(said, people)) and _OWN.search(bare):
                yield from _change(heard, said, speaker, f"{speaker.name}: {sentence}")
            named = people.named_in(bare)
            before = person or (named[0] if len(named) == 1 else before if _is_pronoun(bare) else None)
            if named and _OTHERS.search(bare):  # then nobody can tell who comes next
                before = None


def _told_of(sentence: str, people: _People, before: _Person | None) -> _Person | None:
    """The person of whom the sentence tells something lasting."""
    introduced = _introduced(sentence, people)
    if introduced:
        return introduced
    for person in people.named_in(sentence):
        if _tells(re.escape(person.name), sentence):
            return person
    return before if before and _is_pronoun(sentence) and _tells(_PRONOUN, sentence) else None


def _introduced(sentence: str, people: _People) -> _Person | None:
    for pattern in _INTRODUCED:
        for found in pattern.finditer(sentence):
            person = None if is_hypothetical(sentence[: found.end()]) else people.add(found["name"])
            if person:
                return person
    return None


def _tells(who: str, sentence: str) -> bool:
    found = _telling(who).search(sentence)
    return found is not None and not is_hypothetical(sentence[: found.end()])


@lru_cache(maxsize=512)
def _telling(who: str) -> re.Pattern[str]:
    lines = (
        rf"(?<!\w){who},? (?:{_HABITS}|{_GEWOHNT})",
        rf"(?<!\w){who}{_CONTACT}",
        rf"\b(?:about|regarding|re|zu[mr]?|über) (?:\w+ )?{who}\s*:",
        rf"\A{who}\s*: ",
    )
    return re.compile("|".join(lines), re.IGNORECASE)


def _is_pronoun(sentence: str) -> bool:
    return (
        re.match(rf"(?:(?:and|but|also|und|aber|außerdem) )?{_PRONOUN}\b", sentence, re.IGNORECASE)
        is not None
    )


def _speaker(said: Said, people: _People) -> _Person | None:
    """Who speaks, where it is somebody other than the owner."""
    if said.trust == "owner" or not said.speaker or people.is_owner(said.speaker):
        return None
    return people.add(said.speaker)


def _change(heard: Heard, said: Said, person: _Person, text: str) -> Iterator[Change]:
    return change(heard, said, text, (person.path, _SECTION), "person", EXTRACTOR.label)


def by_model(item: Mapping[str, Any], heard: Heard, said: tuple[Said, ...], known: Known) -> Iterator[Change]:
    found = answered(item, said)
    name = field(item, "name")
    if found is None or not 0 < len(name.split()) <= _MOST_NAME + 1:
        return
    turn, text, trust = found
    person = _People(known).add(name)
    if person:
        yield from change(heard, turn, text, (person.path, _SECTION), "person", EXTRACTOR.label, trust)


EXTRACTOR = Extractor(
    "people",
    1,
    by_rules,
    """Find what is worth knowing of people: how they are related to the owner, what they do, how to reach
them, what they like, want or cannot have, their dates. Not of the owner, not of the agent, not of
companies, and nothing that only happened today. One sentence for each thing, with the name in it, in the
language in which it was said. `name` is the full name if it was said, else as much of it as is known.""",
    {**schema(name="of the person"), "required": ["text", "turn", "name"]},
    by_model,
)
