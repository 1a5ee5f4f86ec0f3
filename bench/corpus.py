"""Notes to index, and questions with one right answer each. The same number always gives the same bytes.

A note is about one machine, plant, dish or program, named by three words that each occur in hundreds of other
notes: "Corvin quay lathe". Two people settle one figure for it. Words follow Zipf's law, the second half as
often as the first, the third a third as often, so that most occur in many notes. Half of the notes link to
another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

import tacit
from bench import homes
from bench.processes import TACIT
from tacit.home import files

_Result = TypeVar("_Result")

SEED = 20_260_301
ASKED = 200
_LAYOUT = "2"  # raise it when anything here changes
_FIRST_DAY = date(2021, 1, 4)
_DAYS = 1900


def _split_words(words: str) -> list[str]:
    return words.split()


MAKERS = _split_words(
    "Abelard Bexley Corvin Dunmore Eskelund Farrow Gantry Hallam Iverson Jessop Kallio Lindqvist Marlow "
    "Nordahl Oakes Penrose Quist Radley Sandoval Thorne Ulrich Vance Wexford Yeats Zeller Ashby Brandt "
    "Castell Devlin Ellison Fenwick Grieve Holm Ingram Juniper Keswick Larkin Mercer Novak Orford Pascoe "
    "Rowan Selwyn Tilney Upton Vickers Whitby Yardley Zimmer Arden Bellamy Crane Draycott Emmet Foss "
    "Garrick Hartley Isham Joyce"
)
_PLACES = _split_words(
    "attic quay cellar orchard depot chapel stable tower wharf cabin arcade terrace annex bakery courtyard "
    "dairy ferry granary hangar island jetty kiosk loft mill nursery office pavilion ranch school tavern "
    "upstairs vineyard warehouse yard bridge canal station hilltop corner basement"
)
PEOPLE = _split_words(
    "Marta Oskar Zoë Pablo Ingrid Tobias Leyla Henrik Sofia Jürgen Amara Ciarán Noriko Stefan Valentina "
    "Łukasz Beatriz Dmitri Esther Rahul Yusuf Hannah Matteo Siobhan Viktoria Wanda Elio Freya Gustav "
    "Mireille"
)


class Field(NamedTuple):
    """The vocabulary of one kind of note. The words are ordered by frequency."""

    things: Sequence[str]
    figures: Sequence[str]
    units: Sequence[str]
    nouns: Sequence[str]


def _field(things: str, figures: str, units: str, nouns: str) -> Field:
    return Field(_split_words(things), _split_words(figures), _split_words(units), _split_words(nouns))


FIELDS = {
    "workshop": _field(
        "lathe press bandsaw hoist grinder planer drill anvil winch clamp jig compressor",
        "tension clearance torque feed stroke pressure speed offset",
        "mm bar Nm rpm",
        "belt blade bearing bench guard spindle oil screw motor steel timber shaving glue gauge spring "
        "bolt switch cable lamp filter dust noise drawing template offcut",
    ),
    "garden": _field(
        "greenhouse hedge pond compost trellis beehive lawn rockery polytunnel scarecrow sprinkler arbour",
        "spacing depth watering shade feeding pruning mulch frost",
        "cm litres days weeks",
        "soil seed rain leaf root slug bulb tomato bean rose apple frame hose path weed bark moss straw "
        "worm blossom nettle cutting fence fleece",
    ),
    "kitchen": _field(
        "sourdough chutney ramen risotto brioche goulash dumpling custard pickle marmalade focaccia stew",
        "salt hydration proving simmering resting sugar vinegar portion",
        "g minutes degrees %",
        "flour butter onion oven pan dough stock yeast pepper lemon egg cream rice garlic knife tin guest "
        "plate crust steam spoon freezer fridge recipe",
    ),
    "travel": _field(
        "ferry sleeper campsite hostel passport itinerary rucksack tandem caravan tram glacier lighthouse",
        "booking budget luggage distance transfer deposit altitude departure",
        "km euros kg hours",
        "ticket train map hotel border weather bridge platform bag visa road harbour tent night guide "
        "coast bus museum delay card seat ridge valley market",
    ),
    "software": _field(
        "scheduler gateway parser dashboard crawler importer resolver notifier archiver compiler sandbox "
        "mirror",
        "timeout retry cache batch quota retention backoff threshold",
        "ms requests MB rows",
        "server test release log query error user file key deploy table thread index branch token config "
        "memory alert client version patch queue build schema",
    ),
    "accounts": _field(
        "ledger invoice lease pension mortgage grant payroll refund subscription insurance audit donation",
        "deadline instalment interest deductible reserve allowance premium discount",
        "euros days % months",
        "bank tax receipt bill contract letter form rate transfer balance office signature copy landlord "
        "fee clerk column reminder statement currency folder stamp year envelope",
    ),
    "music": _field(
        "quartet organ choir accordion cello fanfare sonata rehearsal metronome harpsichord encore overture",
        "tempo tuning key volume repeat pause pitch fingering",
        "bpm bars Hz minutes",
        "string bow note hall concert score voice chord stage reed singer pedal rhythm audience tune solo "
        "valve microphone chair page applause programme record drum",
    ),
    "health": _field(
        "vaccination physiotherapy dentist inhaler marathon allergy migraine checkup bandage sauna massage "
        "diet",
        "dose interval temperature pulse rest weight posture intake",
        "mg hours kg weeks",
        "doctor pain sleep appointment knee tablet breath shoulder walk water result skin blood exercise "
        "pillow waiting recipe tooth cough mat muscle nurse back shoe",
    ),
}
_THINGS = tuple((field, thing) for field, words in FIELDS.items() for thing in words.things)
_COMBINATION_COUNT = len(MAKERS) * len(_PLACES) * len(_THINGS)
_SUBJECT_STEP = 104_729  # a prime, so that no combination comes twice

_GENERAL = _split_words(
    "week morning plan list reason question answer idea side end part room corner visit call spare order "
    "price habit detail hour problem season summer winter neighbour cousin choice mistake surprise start "
    "rule test promise walk story window door key table box"
)
_VERBS = _split_words(
    "checked moved tried kept changed ordered asked found cleaned left measured fixed replaced lent "
    "borrowed sold dropped noticed compared postponed photographed labelled rinsed tightened forgot "
    "returned"
)
_KINDS = _split_words(
    "new old second small usual heavy dry cheap loose quiet early late warm narrow spare plain blue broken "
    "rough long short open wet clean borrowed"
)
_SENTENCES = (
    "{p} {v} the {n} after the {n} of the {m} {t} turned out too {a}, and nobody minded.",
    "The {a} {n} lasted a {g} longer than the one from {x}.",
    "We {v} it twice; the {g} was not the {n} but the {a} {n}.",
    "If the {n} gets {a} again, ask {p} for the {g} before you touch the {n}.",
    "There is a {a} {n} at {x}, {d} {u}, which {p} {v} last {g}.",
    "{p} thinks that the {n} and the {n} belong together, whatever the {g} says.",
    "Nothing came of the {g} with {x}: the {n} was {a} and the {n} was not there.",
    "The {q} stays at {d} {u} for the {n}, as on the {l} last {g}.",
    "Remember the {n}, the {n} and a {a} {n}.",
    "It took {d} {g}s to see that the {a} {n} had been {v} by mistake.",
    "In the {l} the {n} is still {a}; {p} and {p} {v} it together.",
    "A {a} {g} for the {n} is worth more than {x}'s {n}.",
)
_ANSWER_TEMPLATES = (
    "{who} and {other} settled on {value} for the {pair} of the {name}, starting {day}.",
    "From {day} the {pair} of the {name} is {value}; {who} and {other} agreed on it.",
    "After some weighing {who} chose {value} as the {pair} for the {name} ({day}); {other} wrote it down.",
)
_QUESTION_TEMPLATES = (
    "What did {who} settle on for the {pair} of the {name}?",
    "Which {pair} was agreed for the {name}?",
    "How much {pair} do we want for the {name} since {month}?",
    "Do you remember what {who} and {other} chose as the {pair} for the {name}?",
)
_FIRST_HEADINGS = (
    ("What happened", "Background", "So far"),
    ("Settled", "Decision", "Outcome"),
    ("Notes", "Seen", "Details"),
)
_LAST_HEADINGS = ("Next", "To do", "Later")
_FOLDERS = (
    ("knowledge/reference/{field}", 24),
    ("knowledge/journal/{year}", 24),
    ("knowledge/notes/{field}", 16),
    ("knowledge/procedures", 12),
    ("knowledge/projects/{maker}-{place}", 10),
    ("archive/knowledge/reference/{field}", 6),
    ("knowledge/memory", 5),
    ("knowledge/people", 3),
)
_HEADS = _split_words(
    "ba da fe ga ha jo ka la mi na or pe ra se ti ul va wi za bre cla dro fli gra kno pla ska sto tre vo"
)
_MIDDLES = _split_words("bel dan fer gor lin man nor pin ran sel tor van wick zan mur dal ren")
_TAILS = _split_words("ado berg by dorf ester ham ia ini ley mont o ova ston um vik wood")
_NAMES = tuple(f"{a}{b}{c}".capitalize() for c in _TAILS for b in _MIDDLES for a in _HEADS)


class Subject(NamedTuple):
    """The subject of a note, and the one fact that only this note states."""

    number: int
    field: str
    maker: str
    place: str
    thing: str
    pair: str
    value: str
    who: str
    other: str
    day: date

    @property
    def name(self) -> str:
        return f"{self.maker} {self.place} {self.thing}"

    @property
    def title(self) -> str:
        return f"{self.name}: {self.pair}"


class Question(NamedTuple):
    text: str
    kind: str  # keyword or question
    target: str  # the path of the note that answers it


# ---------------------------------------------------------------- texts


def note(number: int) -> tuple[str, str]:
    """Path and text of one note."""
    rng = Random(SEED + number)
    subject = _subject(rng, number)
    return _note_path(subject), _note_head(rng, subject) + _note_body(rng, subject)


def questions(count: int, asked: int = ASKED) -> list[Question]:
    """Queries about notes among the first `count`: half of them keywords, half full questions."""
    rng = Random(SEED - count)
    targets = rng.sample(range(count), min(asked, count))
    return [_make_question(rng, subject_of(number), bool(index % 2)) for index, number in enumerate(targets)]


def subject_of(number: int) -> Subject:
    return _subject(Random(SEED + number), number)


def _subject(rng: Random, number: int) -> Subject:
    quotient, index = divmod(number * _SUBJECT_STEP % _COMBINATION_COUNT, len(_THINGS))
    place, maker = divmod(quotient, len(MAKERS))
    field, thing = _THINGS[index]
    about = FIELDS[field]
    who, other = rng.sample(PEOPLE, 2)
    return Subject(
        number, field, MAKERS[maker], _PLACES[place], thing,
        f"{_draw_word(rng, about.nouns)} {rng.choice(about.figures)}",
        f"{rng.randint(2, 990)} {rng.choice(about.units)}",
        who, other, _FIRST_DAY + timedelta(days=rng.randrange(_DAYS)),
    )  # fmt: skip


def _draw_word(rng: Random, words: Sequence[str]) -> str:
    """Draw a word: the first most often, the n-th one n-th as often."""
    return words[int(len(words) ** rng.random()) - 1]


def _note_path(subject: Subject) -> str:
    rng = Random(subject.number)
    (folder,) = rng.choices([name for name, _ in _FOLDERS], [weight for _, weight in _FOLDERS])
    place = folder.format(
        field=subject.field, year=subject.day.year, maker=subject.maker.lower(), place=subject.place
    )
    return f"{place}/{subject.day}-{subject.name.lower().replace(' ', '-')}.md"


def _note_head(rng: Random, subject: Subject) -> str:
    figure = subject.pair.split()[1]
    source = rng.choice(("source: talk\n", "source: letter\n", "", ""))
    tags = f"[{subject.field}, {figure}, {subject.place}]"
    return f'---\ntitle: "{subject.title}"\ndate: {subject.day}\ntags: {tags}\n{source}---\n\n'


def _note_body(rng: Random, subject: Subject) -> str:
    writer = _SentenceWriter(rng, subject)
    first_heading, answer_heading, notes_heading = (rng.choice(names) for names in _FIRST_HEADINGS)
    parts = [
        f"# {subject.title}",
        writer.sentences(2),
        f"## {first_heading}",
        writer.sentences(rng.randint(1, 2)),
    ]
    parts += [
        f"## {answer_heading}",
        rng.choice(_ANSWER_TEMPLATES).format(**_subject_words(subject)),
        f"## {notes_heading}",
    ]
    parts.append("\n".join(f"- {writer.sentences(1)}" for _ in range(rng.randint(3, 5))))
    if rng.random() < 0.25:
        parts.append(_code_block(rng, subject))
    parts += [f"## {rng.choice(_LAST_HEADINGS)}", _to_do_list(rng, subject)]
    return "\n\n".join(parts) + "\n"


def _subject_words(subject: Subject) -> dict[str, str]:
    day = subject.day
    return {
        "who": subject.who, "other": subject.other, "pair": subject.pair, "name": subject.name,
        "value": subject.value, "day": f"{day.day} {day:%B} {day.year}", "month": f"{day:%B}",
    }  # fmt: skip


def _code_block(rng: Random, subject: Subject) -> str:
    key, number = subject.pair.replace(" ", "_"), subject.value.split()[0]
    lines = [f"set {subject.thing}.{key} {number}", f"show {subject.thing} --since {subject.day}"]
    return "```sh\n" + "\n".join(lines[: rng.randint(1, 2)]) + "\n```"


def _to_do_list(rng: Random, subject: Subject) -> str:
    box = rng.choice(" x")
    lines = [f"- [{box}] {rng.choice(PEOPLE)}: look at the {subject.pair} again in {rng.randint(2, 9)} weeks"]
    if subject.number and rng.random() < 0.5:
        other = subject_of(rng.randrange(max(0, subject.number - 500), subject.number))
        lines.append(f"- See [[{other.title}]]")
    return "\n".join(lines)


class _SentenceWriter(dict[str, str]):
    """Sentences around a subject: each gap of a sentence is filled with a random word."""

    def __init__(self, rng: Random, subject: Subject) -> None:
        super().__init__()
        self._rng, self._field = rng, FIELDS[subject.field]
        about = self._field
        self._lists = {
            "n": about.nouns, "q": about.figures, "u": about.units, "t": about.things, "g": _GENERAL,
            "v": _VERBS, "a": _KINDS, "p": PEOPLE, "x": _NAMES, "m": MAKERS, "l": _PLACES,
        }  # fmt: skip

    def __getitem__(self, gap: str) -> str:
        return str(self._rng.randint(2, 60)) if gap == "d" else _draw_word(self._rng, self._lists[gap])

    def sentences(self, count: int) -> str:
        return " ".join(self._rng.choice(_SENTENCES).format_map(self) for _ in range(count))


def _make_question(rng: Random, subject: Subject, as_sentence: bool) -> Question:
    if as_sentence:
        return Question(
            rng.choice(_QUESTION_TEMPLATES).format(**_subject_words(subject)), "question", _note_path(subject)
        )
    words = [*subject.name.lower().split(), *subject.pair.split()]
    return Question(" ".join(words), "keyword", _note_path(subject))


# ---------------------------------------------------------------- homes


class Kind(NamedTuple):
    """The content of a home besides its notes. `name` must change when that does."""

    name: str
    furnish: Callable[[Path], None]


PLAIN = Kind("notes", lambda root: None)


def home(count: int, kind: Kind = PLAIN) -> Path:
    """A cached home with this many notes. Do not change the notes; the index is made as needed."""
    root = homes.CACHE / f"{kind.name}-{count}-v{_LAYOUT}"
    if not root.exists():
        print(f"making a home with {count} notes, once", file=sys.stderr)
        unfinished = root.with_name(root.name + ".making")
        shutil.rmtree(unfinished, ignore_errors=True)
        tacit.init(unfinished)
        for number in range(count):
            write(unfinished, *note(number), subject_of(number).day)
        kind.furnish(unfinished)
        unfinished.rename(root)
    return root


def write(root: Path, path: str, text: str, day: date) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    moment = datetime.combine(day, time(12), UTC).timestamp()
    os.utime(file, (moment, moment))


def indexed(count: int, kind: Kind = PLAIN) -> Path:
    """The same home with an index made by the current code."""
    root = home(count, kind)
    with _lock_indexing():
        marker = _marker_file(root)
        if not marker.exists() or marker.read_text() != _hash_code():
            print(f"indexing {count} notes, once", file=sys.stderr)
            _rebuild_index(root, lambda command: subprocess.run(command, check=True))
    return root


def rebuilt(count: int, run: Callable[[list[str]], _Result]) -> _Result:
    """Rebuild the index of the home with a command that `run` runs."""
    root = home(count)
    with _lock_indexing():
        return _rebuild_index(root, run)


def _rebuild_index(root: Path, run: Callable[[list[str]], _Result]) -> _Result:
    code = _hash_code()
    result = run([TACIT, "--home", str(root), "index", "--rebuild", "--quiet"])
    _marker_file(root).write_text(code)
    return result


def _marker_file(root: Path) -> Path:
    return root / ".tacit" / "bench-indexed-by"


def _lock_indexing() -> AbstractContextManager[None]:
    """Make other measurements wait, so that they do not build the same index at the same time."""
    return files.hold_lock(homes.CACHE / "indexing.lock", wait=600)


_INDEXING_FOLDERS = ("embeddings", "home", "markdown", "search", "text")  # folders of the indexing code


def _hash_code() -> str:
    digest = sha256()
    package = Path(tacit.__file__).parent
    for folder in _INDEXING_FOLDERS:
        for file in sorted((package / folder).glob("**/*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
