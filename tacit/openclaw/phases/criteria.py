"""What a migration must have achieved, one criterion after the other: PASS, FAIL, or BLOCKED where nobody can
tell yet, each with its evidence.

Which files a session has is told by the host's own report alone. What a criterion needs and tacit cannot
bring about, such as a message in a topic, is said in its `todo`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from tacit.config import Override
from tacit.lifecycle import tools
from tacit.lifecycle.wisdom import lint
from tacit.lifecycle.wisdom.section import LEVEL, TITLE
from tacit.model.problems import Problem
from tacit.openclaw import baseline, listing
from tacit.openclaw.baseline import Reported
from tacit.openclaw.phases import backups, prompts, rollback, stages
from tacit.openclaw.phases.migration import Migration
from tacit.openclaw.phases.prompts import Asked
from tacit.sessions.rules import profile_of
from tacit.text.sections import named
from tacit.workspace.place import ARTEFACTS, COMPACT, MEMORY, SOUL, TOOLS

Verdict = Literal["PASS", "FAIL", "BLOCKED"]

ENRICHED = "enriched topic"  # one that a rule of the owner's names
_MOST = {"topic": 500, ENRICHED: 500, "main": 600, "direct": 600}  # tokens
_ASK = "tacit openclaw phase check --ask"
_HOW = {
    "main": "Write to your agent in its main session, or in a direct chat.",
    "topic": "Write a message in a topic of a group.",
    ENRICHED: "Write a message in a topic that sessions.rules names; or go on without it, if you have none.",
    "group": "Write a message in a group.",
    "subagent": "Ask your agent to hand a small task to a subagent.",
    "cron": "Let a job run: openclaw cron run ID",
}


class Criterion(NamedTuple):
    name: str
    about: str
    verdict: Verdict
    evidence: tuple[str, ...]
    todo: str = ""


class Seen(NamedTuple):
    """What the criteria are about, looked at once."""

    migration: Migration
    reports: Mapping[str, Reported]  # by kind, since files go by the kind of session
    is_serving: bool


NAMES: Mapping[str, str] = {
    "AC-1a": "a topic loads SOUL.md and TOOLS_COMPACT.md, at most 500 tokens",
    "AC-1b": "so does a topic that a rule of yours names",
    "AC-2": "your direct session loads SOUL.md, USER.md and TOOLS_COMPACT.md, at most 600 tokens",
    "AC-3": "what MEMORY.md knows is answered without it being loaded",
    "AC-4": "a subagent loads SOUL.md alone",
    "AC-5": "every kind of session loads what its rule names",
    "AC-6": "TOOLS_COMPACT.md has what is looked up, and no prose",
    "AC-7": "the wisdom in SOUL.md is general, short and grounded",
    "AC-8": "everything can be taken back",
    "AC-9": "a topic gets at what is not loaded there",
}


def verdict_of(text: str) -> Verdict:
    return next((one for one in get_args(Verdict) if one == text), "BLOCKED")


def look(migration: Migration) -> Seen:
    """Asks the host for its reports."""
    host = migration.host
    is_serving = host is not None and host.command is not None and host.is_serving()
    return Seen(migration, _reports(migration) if is_serving else {}, is_serving)


def _reports(migration: Migration) -> dict[str, Reported]:
    """The newest of each kind since files go by the kind of session."""
    since, found = stages.entered(migration.lines, "2"), dict[str, Reported]()
    assert migration.host is not None
    for key, weight in baseline.told(migration.host) if since else ():
        place = place_of(migration, key)
        if place and place not in found:
            one = baseline.reported(place, key, weight, since)
            if one is not None and not one.is_before:
                found[place] = one
    return found


def place_of(migration: Migration, key: str) -> str:
    """Which criterion a session tells something about; empty: none."""
    profile = profile_of(key, migration.memory.config)
    kind = listing.kind_of(profile.kind.type)
    if profile.kind.type == "external_dm":
        return ""
    return ENRICHED if kind == "topic" and profile.number else kind


def all_of(seen: Seen) -> Iterator[Criterion]:
    for name, check in _CHECKS.items():
        verdict, evidence, todo = check(seen)
        yield Criterion(name, NAMES[name], verdict, tuple(evidence), todo)


_Found = tuple[Verdict, Sequence[str], str]


# ---------------------------------------------------------------- files by the host's report


def _topic(seen: Seen) -> _Found:
    return _loads(seen, ("topic",), {SOUL, COMPACT})


def _enriched(seen: Seen) -> _Found:
    rules: Sequence[Override] = seen.migration.memory.config.sessions.rules
    if not rules:
        return "BLOCKED", ("no rule of sessions.rules names a topic",), "Go on without it: --waive AC-1b"
    return _loads(seen, (ENRICHED,), {SOUL, COMPACT})


def _direct(seen: Seen) -> _Found:
    return _loads(seen, ("direct", "main"), {SOUL, "USER.md", COMPACT})


def _subagent(seen: Seen) -> _Found:
    return _loads(seen, ("subagent",), {SOUL})


def _loads(seen: Seen, places: Sequence[str], wanted: set[str]) -> _Found:
    report = next((seen.reports[one] for one in places if one in seen.reports), None)
    if report is None:
        return "BLOCKED", (_unseen(seen, places[-1]),), _todo(seen, places[-1])
    have, most = {file.name for file in report.files}, _MOST.get(report.kind)
    evidence = [_told(report)]
    if lacking := sorted(wanted - have):
        evidence.append(f"missing: {', '.join(lacking)}")
    if more := sorted(have - wanted):
        evidence.append(f"not wanted: {', '.join(more)}")
    if most and report.tokens > most:
        evidence.append(f"{report.tokens} tokens are more than {most}")
    todo = "" if len(evidence) == 1 else f"See: tacit explain-session {report.key}"
    return "PASS" if len(evidence) == 1 else "FAIL", evidence, todo


def _told(report: Reported) -> str:
    files = ", ".join(f"{file.name} {file.tokens}" for file in report.files) or "nothing"
    return f"{report.key}, {report.at}: {files}; {report.tokens} tokens by the host's report"


def _unseen(seen: Seen, place: str) -> str:
    if not stages.entered(seen.migration.lines, "2"):
        return "files do not go by the kind of session yet: that is phase 2"
    if not seen.is_serving:
        return "the gateway does not run, so the host tells nothing"
    return f"no {place} session since phase 2 was entered"


def _todo(seen: Seen, place: str) -> str:
    if not stages.entered(seen.migration.lines, "2"):
        return "Go on: tacit openclaw phase next"
    return _HOW[place] if seen.is_serving else "Start it: openclaw gateway run"


def _every_kind(seen: Seen) -> _Found:
    missing = list(_lacking(seen.migration))
    wrong, evidence, unseen = [], [], []
    for kind in ("main", "topic", "group", "subagent", "cron"):
        places = {"main": ("direct", "main"), "topic": ("topic", ENRICHED)}.get(kind, (kind,))
        report = next((seen.reports[one] for one in places if one in seen.reports), None)
        if report is None:
            unseen.append(kind)
            continue
        evidence.append(_told(report))
        expected = _expected(seen.migration, report.key)
        if {file.name for file in report.files} != expected:
            wrong.append(f"{report.key} should load {', '.join(sorted(expected))}")
    if missing or wrong:
        return "FAIL", (*wrong, *missing, *evidence), "See: tacit explain-session KEY"
    if unseen:
        return "BLOCKED", (_unseen(seen, " or ".join(unseen)), *evidence), _todo(seen, unseen[0])
    return "PASS", evidence, ""


def _expected(migration: Migration, key: str) -> set[str]:
    return set(profile_of(key, migration.memory.config).rule.files or ())


def _lacking(migration: Migration) -> Iterator[str]:
    """Files that a rule names and that are nowhere, for every kind of session there is."""
    workspace, memory = migration.place.root, migration.memory
    texts = baseline.texts_of(workspace)
    for kind, key in {**baseline.keys_of(memory.config.owners), **_FURTHER}.items():
        listed = listing.entries(kind if kind in listing.TYPES else "group", texts, str(workspace))
        made = memory.bootstrapped(key, listed, str(workspace), trial=True)
        lacking = [one.source for one in made.receipt.dropped if one.code in ("missing", "empty")]
        if lacking:
            yield f"the rule of a {kind} session names what is not there: {', '.join(lacking)}"


_FURTHER = {
    "stranger's": "agent:main:telegram:direct:tacit-nobody",
    "channel": "agent:main:discord:channel:tacit-check",
    "thread": "agent:main:slack:channel:tacit-check:thread:1",
    "unknown": "tacit-check",
}


# ---------------------------------------------------------------- files of the workspace


def _compact(seen: Seen) -> _Found:
    place = seen.migration.place
    text, full = place.read(COMPACT), place.read(TOOLS)
    if text is None:
        if full is None:
            return "BLOCKED", (f"there is neither {TOOLS} nor {COMPACT}",), "Go on without it: --waive AC-6"
        return "BLOCKED", (f"there is no {COMPACT} yet",), "Make one: tacit openclaw compact-tools"
    return _by_problems(tools.problems(text, COMPACT, full), f"{COMPACT}: nothing is wrong with it")


def _wisdom(seen: Seen) -> _Found:
    place = seen.migration.place
    soul = place.read(SOUL) or ""
    if not named(soul, TITLE, LEVEL):
        return "BLOCKED", (f"{SOUL} has no `## {TITLE}` section",), "Make one: tacit wisdom draft"
    approved = [one for one in place.drafts.events(ARTEFACTS["wisdom"]) if one.what == "approved"]
    covers = approved[-1].notes.get("covers") if approved else None
    found = lint.soul_problems(soul, SOUL, place.config.openclaw.soul_max_tokens, covers)
    found += lint.root_problems(place.names())
    if covers is None and not _errors(found):
        what = "which lessons stand behind its entries is not recorded"
        return "BLOCKED", (what,), "Draft it anew: tacit wisdom draft"
    return _by_problems(found, f"{SOUL}: every entry covers three lessons or more, and none is a detail")


def _by_problems(found: Sequence[Problem], fine: str) -> _Found:
    errors = _errors(found)
    told = [str(one) for one in found if one.level != "error"]
    return ("FAIL", errors + told, "") if errors else ("PASS", [fine, *told], "")


def _errors(found: Sequence[Problem]) -> list[str]:
    return [str(one) for one in found if one.level == "error"]


def _can_go_back(seen: Seen) -> _Found:
    migration = seen.migration
    manifest = backups.load(migration.place)
    if manifest is None:
        return "BLOCKED", ("there are no backups yet",), "Take them: tacit openclaw phase next"
    if migration.standing.phase == stages.NONE and not migration.standing.entering:
        return "BLOCKED", ("no migration is under way",), "Begin: tacit openclaw phase next"
    back = rollback.planned(migration, "0a")
    gone = [
        name for name, had in manifest.hashes.items() if had and backups.read(migration.place, name) is None
    ]
    wrong = [*back.refused, *(f"{name} is gone" for name in gone)]
    if wrong:
        return "FAIL", wrong, "See what a rollback would do: tacit openclaw phase rollback --all --dry-run"
    fine = f"{len(manifest.copies)} copies of {manifest.taken} are what the manifest says"
    return "PASS", (fine, *(back.lines or ("a rollback has nothing to change",))), ""


# ---------------------------------------------------------------- questions


def memory_prompts(migration: Migration) -> Mapping[str, tuple[str, ...]]:
    own = migration.memory.config.openclaw.memory_prompts
    return dict.fromkeys(own, (MEMORY,)) or prompts.OF_MEMORY


def topic_prompts(migration: Migration) -> Mapping[str, tuple[str, ...]]:
    own = migration.memory.config.openclaw.topic_prompts
    return dict.fromkeys(own, prompts.ANY) or prompts.OF_A_TOPIC


def _memory(seen: Seen) -> _Found:
    since = stages.entered(seen.migration.lines, "1")
    if not since:
        return "BLOCKED", (f"{MEMORY} is on demand from phase 1",), "Go on: tacit openclaw phase next"
    if seen.migration.place.read(MEMORY) is None:
        return "BLOCKED", (f"there is no {MEMORY}",), "Go on without it: --waive AC-3"
    asked = memory_prompts(seen.migration)
    return _answered(_asked(seen, asked, prompts.OWNERS_OWN, since))


def _from_topic(seen: Seen) -> _Found:
    since = stages.entered(seen.migration.lines, "2")
    if not since:
        return (
            "BLOCKED",
            ("files go by the kind of session from phase 2",),
            "Go on: tacit openclaw phase next",
        )
    return _answered(_asked(seen, topic_prompts(seen.migration), ("forum_topic",), since))


def _asked(seen: Seen, asked: Mapping[str, tuple[str, ...]], types: Sequence[str], since: str) -> list[Asked]:
    return prompts.seen(seen.migration.memory, seen.migration.place, asked, types, since)


def _answered(found: Sequence[Asked]) -> _Found:
    worst = ("FAIL", "BLOCKED", "PASS")
    evidence = [one.told for one in sorted(found, key=lambda one: worst.index(one.verdict))]
    verdicts = {one.verdict for one in found}
    if "FAIL" in verdicts:
        return (
            "FAIL",
            evidence,
            ("Ask again after a change; or keep a short summary loaded: tacit openclaw memory-summary"),
        )
    if "BLOCKED" in verdicts or not found:
        return "BLOCKED", evidence, f"Ask them there yourself, or: {_ASK}."
    return "PASS", evidence, ""


_CHECKS: Mapping[str, Callable[[Seen], _Found]] = {
    "AC-1a": _topic,
    "AC-1b": _enriched,
    "AC-2": _direct,
    "AC-3": _memory,
    "AC-4": _subagent,
    "AC-5": _every_kind,
    "AC-6": _compact,
    "AC-7": _wisdom,
    "AC-8": _can_go_back,
    "AC-9": _from_topic,
}
