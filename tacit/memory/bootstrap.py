"""Which files a host loads by itself: those of the session's rule, and no others.

A host lists its files and loads what is in the list when we are done. Each name of the rule is looked for

    in the host's own list     if the file is there with its content
    in the workspace           beside the files that the host lists
    in the home                knowledge/identity

and the first one counts, if this session may have it. The answer is a fresh list in the order of the rule,
the same bytes from turn to turn, so that a provider's cache keeps its prefix.

What must stay true:
- the host's list and its entries are never changed, and no file is in the answer twice;
- every entry has a name, a path, content and `missing`: a host broke on one that had no path;
- whatever goes wrong, the host's own list is the answer, and a notice says why; so it is in a session of the
  owner's for which there is no file at all.

Where `inject.shed_after_turns` is set, what the conversation has absorbed is left out until it is spoken of
again. A file that is left out is not loaded, so search finds what stands in it.
"""

from __future__ import annotations

import codecs
import copy
import os
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tacit.config import Config
from tacit.context.absorbed import Conversation, Use, absorbed
from tacit.context.plain import is_text, plain
from tacit.context.rank import digest
from tacit.context.sources import IDENTITY, Listener, label
from tacit.errors import TacitError, UnsafePath
from tacit.memory.lanes import lanes_of
from tacit.model.context import Dropped, Notice, Receipt, Section
from tacit.model.search import Audience
from tacit.sessions.agents import excluded_agent
from tacit.sessions.rules import Profile
from tacit.store import receipts
from tacit.store.files import Tree
from tacit.store.home import Home
from tacit.text import notes, tokens
from tacit.text.passages import audience_of
from tacit.text.redact import clean
from tacit.text.restrictions import said_agents, says_audience

LARGEST = 2 * 1024 * 1024  # bytes that are read of one file
_REMEMBERED = 100_000  # characters of a file that is counted and read once only
_MOST_TOLD = 3  # entries that are no good, of which we say what is wrong
# What these notices say is no secret, whoever listens.
_OPEN = frozenset({"no-files", "no-soul", "bad-entry", "workspace", "too-large"})
_MEMORY = "memory.md"
_FORBIDDEN = {"audience": "it is not for this session", "agent": "it belongs to another agent"}

# Who the agent is and what it is told to do holds in every turn, and a list to look things up in is needed
# when it is needed, however long nobody spoke of it.
_STAYS = frozenset(("soul.md", "identity.md", "heartbeat.md", "bootstrap.md", "tools.md", "tools_compact.md"))
Entry = dict[str, Any]
Said = Callable[[], Conversation]


class Bootstrapped(NamedTuple):
    files: list[Any] | None  # None: the host gave no list, so there is nothing to replace
    changed: bool
    receipt: Receipt  # as the session may see it; the log has all of it


def bootstrap(
    home: Home,
    config: Config,
    profile: Profile,
    files: object,
    workspace: str | None,
    now: datetime,
    *,
    said: Said | None = None,
    trial: bool = False,
) -> Bootstrapped:
    """`said`: the conversation so far, asked for where it matters. `trial`: no host asks, and nothing is
    logged."""
    began = time.perf_counter()
    listed, bad = _listed(files) if isinstance(files, list) else ([], [])
    try:
        made = _made(home, config, profile, files, listed, workspace, said)
    except Exception as error:  # noqa: BLE001 - a host without its files is worse than one with too many
        made = _untouched(files, listed, Notice("bug", f"bootstrap: {type(error).__name__}: {error}"))
    notices = (*profile.notices, *made.notices, *_told(bad))
    receipt = _receipt(config, profile, replace(made, notices=notices), listed, now, began)
    if not trial:
        receipts.append(home, receipt)
    changed = made.files is not None and made.files != files
    return Bootstrapped(made.files, changed, _shown(receipt, listed))


@dataclass(frozen=True, slots=True)
class _Made:
    files: list[Any] | None
    sections: Sequence[Section] = ()
    dropped: Sequence[Dropped] = ()
    notices: Sequence[Notice] = ()
    skipped: str = ""


def _made(
    home: Home,
    config: Config,
    profile: Profile,
    files: object,
    listed: Sequence[_Listed],
    workspace: str | None,
    said: Said | None,
) -> _Made:
    if not isinstance(files, list):
        given = (
            "no list of files" if files is None else f"a {type(files).__name__} instead of a list of files"
        )
        return _Made(None, notices=(Notice("no-files", f"The host gave {given}, so nothing was changed."),))
    if why := _off(config, profile):
        return _untouched(files, listed, why)
    names = profile.rule.files
    if names is None:
        return replace(_untouched(files, listed, None), skipped="host-list")
    if config.inject.files == "without-memory":
        return _without_memory(files, listed)
    made = _shed(_by_rule(home, profile, names, listed, workspace), config.inject.shed_after_turns, said)
    if _leaves_nothing(profile, made):
        told = f"None of the files of {profile.won} can be loaded, so the host's own files stay as they are."
        untouched = _untouched(files, listed, Notice("no-soul", told))
        return replace(untouched, notices=(*made.notices, *untouched.notices))
    return replace(made, notices=(*made.notices, *_soulless(made.files or ())))


def _leaves_nothing(profile: Profile, made: _Made) -> bool:
    """To the owner, to whom nothing in the list is forbidden."""
    is_forbidden = any(one.code in _FORBIDDEN for one in made.dropped)
    return not made.files and not is_forbidden and profile.rule.audience == "owner"


def _soulless(files: Iterable[Entry]) -> Iterator[Notice]:
    if not any(_key(entry["name"]) == "soul.md" for entry in files):
        yield Notice(
            "no-soul",
            "SOUL.md is not loaded: neither the host nor the workspace nor the home has one that this "
            "session may have.",
        )


def of_home(home: Home, profile: Profile) -> tuple[Sequence[Section], Sequence[Dropped]]:
    """What a session is given where the host lists nothing and has no workspace, and what it is not."""
    made = _by_rule(home, profile, profile.rule.files or (), (), None)
    return made.sections, made.dropped


def _off(config: Config, profile: Profile) -> Notice | None:
    if not config.inject.enabled:
        return Notice("disabled", "inject.enabled is false, so the host's files stay as they are.")
    if agent := excluded_agent(profile.agents, config.inject.exclude_agents):
        return Notice(
            "excluded", f"The agent {agent} is in inject.exclude_agents: its files stay as they are."
        )
    if "bootstrap" not in lanes_of(profile, config):
        return Notice("lane", f"{profile.won} has no bootstrap lane, so the host's files stay as they are.")
    if config.inject.files == "host":
        return Notice("files", "inject.files is host, so the host's files stay as they are.")
    return None


def _without_memory(files: Sequence[Any], listed: Sequence[_Listed]) -> _Made:
    """For a host that shall change slowly: its own list, without the file that grows for ever."""
    kept = [one for one in files if not (isinstance(one, dict) and _key(str(one.get("name"))) == _MEMORY)]
    made = _untouched(kept, [one for one in listed if one.key != _MEMORY], None)
    why = "inject.files is without-memory: what is asked for is found in it instead"
    left = [_left(one, "memory", why) for one in _loaded(listed) if one.key == _MEMORY]
    return replace(made, dropped=left)


def _untouched(files: object, listed: Sequence[_Listed], why: Notice | None) -> _Made:
    fresh = [_copied(one) for one in files] if isinstance(files, list) else None
    sections = [_section(one.name, one.path, one.content, "the host loads it") for one in _loaded(listed)]
    return _Made(fresh, sections, (), (why,) if why else (), why.code if why else "")


def _copied(entry: Any) -> Any:
    """All the way down: who gets our list may change what is in it."""
    try:
        return copy.deepcopy(entry)
    except Exception:  # noqa: BLE001 - an object of the host's own need not allow it
        return dict(entry) if isinstance(entry, dict) else entry


# ---------------------------------------------------------------- the host's list


class _Listed(NamedTuple):
    """An entry of the host's list that is as it should be."""

    name: str
    path: str
    content: str
    is_there: bool
    entry: Mapping[str, Any]

    @property
    def key(self) -> str:
        return _key(self.name)


def _key(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2].casefold()


def _listed(files: Sequence[object]) -> tuple[list[_Listed], list[str]]:
    """And what is wrong with the others."""
    good: list[_Listed] = []
    bad: list[str] = []
    for number, one in enumerate(files, 1):
        problem = _problem(one)
        if problem:
            bad.append(f"entry {number} {problem}")
        elif isinstance(one, dict):
            content, missing = one.get("content"), one.get("missing")
            text = content if isinstance(content, str) else None
            is_there = text is not None and missing in (None, False)
            name, path = clean(one["name"]).text, clean(one["path"]).text  # receipts have them
            good.append(_Listed(name, path, text or "", is_there, one))
    return good, bad


def _problem(one: object) -> str:
    if not isinstance(one, dict):
        return "is no object"
    for field in ("name", "path"):
        value = one.get(field)
        if not isinstance(value, str) or not value.strip():
            return f"has no {field}"
    return ""


def _told(bad: Sequence[str]) -> Iterator[Notice]:
    if bad:
        some = "; ".join(bad[:_MOST_TOLD]) + ("; …" if len(bad) > _MOST_TOLD else "")
        yield Notice("bad-entry", f"Not every entry of the host's list is a file: {some}.")


def _loaded(listed: Iterable[_Listed]) -> Iterator[_Listed]:
    """What the host would load by itself: it takes no path twice."""
    met = set()
    for one in listed:
        if one.is_there and one.path not in met:
            met.add(one.path)
            yield one


# ---------------------------------------------------------------- the rule's files


class _File(NamedTuple):
    """A file that could be in the answer."""

    entry: Entry
    source: str  # for people
    text: str
    place: str  # where it really is: two names may lead to one file
    reason: str
    left_out: str = ""
    is_own: bool = False  # of the home


def _by_rule(
    home: Home, profile: Profile, names: Sequence[str], listed: Sequence[_Listed], workspace: str | None
) -> _Made:
    chosen = _Chosen(Listener(profile.rule.audience, profile.kind.agent))
    places, notices = _places(home, workspace)
    wanted: dict[str, str] = {}
    for name in names:
        wanted.setdefault(_key(name), name)
    for name in wanted.values():
        chosen.choose(name, _candidates(name, listed, places))
    chosen.leave_out(listed, wanted)
    return _Made(chosen.files, chosen.sections, chosen.dropped, (*notices, *chosen.notices))


class _Place(NamedTuple):
    """A folder where files are looked for."""

    root: Path
    folder: str  # below it
    reason: str

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name

    def source(self, name: str) -> str:
        """As receipts tell it: relative for files of the home."""
        return self.path(name) if self.folder else clean(str(self.root / name)).text


def _places(home: Home, workspace: str | None) -> tuple[list[_Place], list[Notice]]:
    own = _Place(home.root, IDENTITY, "the rule names it; the home has it")
    if not workspace:
        return [own], []
    if not isinstance(workspace, str) or not os.path.isabs(workspace) or "\0" in workspace:
        return [own], [Notice("workspace", "The workspace is no absolute path, so no file was read there.")]
    return [_Place(Path(workspace), "", "the rule names it; the workspace has it"), own], []


def _candidates(name: str, listed: Sequence[_Listed], places: Sequence[_Place]) -> Iterator[_File | Dropped]:
    for one in listed:
        if one.key == _key(name) and one.is_there:
            entry = {**_copied(one.entry), "missing": False}
            reason = "the rule names it; the host has it"
            yield _File(entry, one.path, one.content, _real(one.path), reason)
    for place in places:
        found = _from_disk(name, place)
        if found is not None:
            yield found


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # no path that a disk could have
        return path


def _from_disk(name: str, place: _Place) -> _File | Dropped | None:
    """None: it is not there."""
    path, source = place.path(name), place.source(name)
    try:
        data = Tree(place.root).read(path, LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (TacitError, OSError, ValueError) as error:
        return Dropped(label("identity", name), "identity", source, "unsafe", _why(error))
    if not is_text(data):
        return Dropped(label("identity", name), "identity", source, "unsafe", "it is not text")
    text, left_out = _decoded(data)
    where = str(place.root / path)
    entry = {"name": name, "path": where, "content": text, "missing": False}
    return _File(entry, source, text, _real(where), place.reason, left_out, is_own=bool(place.folder))


def _why(error: Exception) -> str:
    if isinstance(error, UnsafePath):
        return error.why
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def _decoded(data: bytes) -> tuple[str, str]:
    """As text, whatever the bytes are, and what is left out of it."""
    is_cut = len(data) > LARGEST
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    text = decoder.decode(data[:LARGEST], final=not is_cut)
    return text, f"all after its first {LARGEST // 2**20} MB" if is_cut else ""


class _Chosen:
    """What the answer holds so far, and what became of the rest."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._met: set[str] = set()
        self.files: list[Entry] = []
        self.sections: list[Section] = []
        self.dropped: list[Dropped] = []
        self.notices: list[Notice] = []

    def choose(self, name: str, candidates: Iterable[_File | Dropped]) -> None:
        """The first that is a file decides: what it refuses, another file of that name does not give."""
        refused: list[Dropped] = []
        for one in candidates:
            if isinstance(one, _File):
                self.dropped += refused
                self._take(name, one)
                return
            refused.append(one)
        missing = Dropped(label("identity", name), "identity", name, "missing", "there is no such file")
        self.dropped += refused or [missing]

    def _take(self, name: str, file: _File) -> None:
        code, reason = self._refusal(file)
        if code:
            self.dropped.append(Dropped(label("identity", name), "identity", file.source, code, reason))
            return
        self._met.add(file.place)
        self.files.append(file.entry)
        self.sections.append(_section(name, file.source, file.text, file.reason, file.left_out))
        if file.left_out:
            self.notices.append(Notice("too-large", f"{name} is too large: {file.left_out} is left out."))

    def _refusal(self, file: _File) -> tuple[str, str]:
        if file.place in self._met:
            return "duplicate", "it is the same file as another one of the rule"
        about = _about(file.text) if len(file.text) <= _REMEMBERED else _read(file.text)
        if file.is_own and not about.says_something:
            return "empty", "nothing is written in it yet"
        forbidden = self._listener.may_hear(about.audience, about.agents)
        return (forbidden, _FORBIDDEN[forbidden]) if forbidden else ("", "")

    def leave_out(self, listed: Sequence[_Listed], wanted: Collection[str]) -> None:
        """What the host lists besides."""
        met = set()
        for one in listed:
            if not one.is_there:
                continue
            if one.key not in wanted:
                self.dropped.append(_left(one, "not-in-rule", "the rule of this session does not name it"))
            elif one.key in met:
                self.dropped.append(_left(one, "duplicate", "the list has another file of this name"))
            met.add(one.key)


def _left(one: _Listed, code: str, reason: str) -> Dropped:
    cost = _count(one.content)
    return Dropped(label("identity", one.name), "identity", one.path, code, reason, cost)


class _About(NamedTuple):
    """What a file says about itself."""

    audience: Audience
    agents: tuple[str, ...]
    says_something: bool


def _read(text: str) -> _About:
    """The rule of the session names the file, so only what it says itself is weighed against that."""
    note = notes.parse(text)
    audience = audience_of(note, "")[0] if says_audience(note) else "anyone"
    return _About(audience, said_agents(note), bool(plain(text)))


_about = lru_cache(maxsize=64)(_read)  # the same few files, turn after turn


# ---------------------------------------------------------------- what the conversation has


def can_shed(name: str) -> bool:
    return _key(name) not in _STAYS


def _shed(made: _Made, after: int | None, said: Said | None) -> _Made:
    """Without the files that the conversation has absorbed. One that cannot be read has absorbed nothing, and
    the last file stays: for a session without any the host would load all of its own."""
    if after is None or said is None or not made.files:
        return made
    texts = {str(file["name"]): str(file["content"]) for file in made.files}
    may_go = [name for name in texts if can_shed(name)]
    try:
        gone = absorbed(texts, may_go, said(), after) if may_go else {}
    except (TacitError, OSError) as error:
        told = Notice("absorbed", f"The conversation could not be read, so no file is left out: {error}")
        return replace(made, notices=(*made.notices, told))
    if not gone or len(gone) == len(texts):
        return made
    pairs = list(zip(made.files, made.sections, strict=True))
    left = [(section, gone[file["name"]]) for file, section in pairs if file["name"] in gone]
    return replace(
        made,
        files=[file for file, _ in pairs if file["name"] not in gone],
        sections=[section for file, section in pairs if file["name"] not in gone],
        dropped=[*made.dropped, *(_absorbed(section, use) for section, use in left)],
    )


def _absorbed(section: Section, use: Use) -> Dropped:
    reason = f"the conversation spoke of its line {use.line} {use.ago} turns ago, and of nothing in it since"
    return Dropped(section.label, section.slot, section.source, "absorbed", reason, section.tokens)


# ---------------------------------------------------------------- the receipt


def _section(name: str, source: str, text: str, reason: str, left_out: str = "") -> Section:
    return Section(
        label("identity", name), "identity", source, _count(text), None, reason,
        shortened=left_out, digest=digest(text),
    )  # fmt: skip


def _count(text: str) -> int:
    try:
        return _remembered(text) if len(text) <= _REMEMBERED else tokens.count(text)
    except Exception:  # noqa: BLE001 - a host gets its files whether or not they can be counted
        return len(text) // 4


_remembered = lru_cache(maxsize=64)(tokens.count)


def _receipt(
    config: Config,
    profile: Profile,
    made: _Made,
    listed: Sequence[_Listed],
    now: datetime,
    began: float,
) -> Receipt:
    kind, rule = profile.kind, profile.rule
    return Receipt(
        id=receipts.new_id(now, secrets.randbits(20)),
        at=now.isoformat(),
        session_key=kind.key,
        session_id="",
        session_type=kind.type,
        agent=kind.agent,
        message_hash="",
        message="",
        budget=config.context_compiler.token_budget if rule.token_budget is None else rule.token_budget,
        tokens=sum(section.tokens for section in made.sections),
        characters=sum(map(_length, made.files or ())),
        sections=tuple(made.sections),
        dropped=tuple(made.dropped),
        skipped=made.skipped,
        notices=tuple(made.notices),
        timings_ms={"bootstrap": round((time.perf_counter() - began) * 1000, 3)},
        audience=rule.audience,
        lane="bootstrap",
        rule=profile.won,
        host_tokens=sum(_count(one.content) for one in _loaded(listed)),
    )


def _length(entry: object) -> int:
    content = entry.get("content") if isinstance(entry, dict) else None
    return len(content) if isinstance(content, str) else 0


def _shown(receipt: Receipt, listed: Sequence[_Listed]) -> Receipt:
    """As others than the owner may see it: of what was left out only what the host listed itself."""
    if receipt.audience == "owner":
        return receipt
    known = {label("identity", name).casefold() for one in listed for name in (one.name, one.key)}
    told = receipts.for_host(receipt)
    dropped = tuple(one for one in told.dropped if one.label.casefold() in known)
    notices = tuple(
        ours if ours.code in _OPEN else shown
        for ours, shown in zip(receipt.notices, told.notices, strict=True)
    )
    hidden = len(receipt.dropped) - len(dropped)
    unlisted = {**receipt.unlisted, "hidden": hidden} if hidden else receipt.unlisted
    return replace(told, dropped=dropped, notices=notices, unlisted=unlisted)
