"""Chooses the files that a host loads when a session begins: those of the session's rule, and no others.

A host passes a list of its files and loads the list that it gets back. Each name of the rule is looked up

    in the host's own list     if the entry has content
    in the workspace           next to the files that the host lists
    in the home                knowledge/identity

and the first file found is used, if this session may see it. The result is a new list in the order of the
rule. It has the same bytes from turn to turn, so that the prefix stays in the provider's cache.

What must stay true:
- the host's list and its entries are never changed, and no file is in the result twice;
- every entry has a name, a path, content and `missing`: a host broke on an entry without a path;
- if anything goes wrong, the result is the host's own list, and a notice says why; the same holds if an
  owner's session would get no file at all.

If `inject.shed_after_turns` is set, files that the conversation has used and no longer mentions are unloaded
until it mentions them again. An unloaded file can still be found by search.
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
from tacit.context import receipts
from tacit.context.file_usage import ConversationText, LastUse, find_unused_files
from tacit.context.loaded_files import IDENTITY_FOLDER, Listener, block_label
from tacit.context.model import Dropped, Receipt, Section
from tacit.context.ranking import short_digest
from tacit.diagnostics import Notice
from tacit.errors import TacitError, UnsafePath
from tacit.git.conflicts import NoteTree, find_conflict
from tacit.home.layout import Home
from tacit.markdown import notes
from tacit.markdown.strip import is_text, strip_note
from tacit.privacy.audience import Audience, has_audience, read_agents
from tacit.privacy.redaction import clean
from tacit.search.documents import audience_of
from tacit.sessions.keys import find_excluded_agent
from tacit.sessions.policy import SessionProfile
from tacit.text import tokens

MAX_FILE_BYTES = 2 * 1024 * 1024  # read of one file at most
_MAX_CACHED_CHARS = 100_000  # longer files are counted and parsed anew each time
_MAX_REPORTED_ENTRIES = 3  # problems named in a notice
# These notices may be shown to any listener.
_PUBLIC_NOTICE_CODES = frozenset({"no-files", "no-soul", "bad-entry", "workspace", "too-large"})
_MEMORY_FILE = "memory.md"
_FORBIDDEN_REASONS = {"audience": "it is not for this session", "agent": "it belongs to another agent"}

# Identity and instructions hold in every turn, and reference lists may be needed at any time, even if the
# conversation has not mentioned them for long.
_ALWAYS_LOADED = frozenset(
    ("soul.md", "identity.md", "heartbeat.md", "bootstrap.md", "tools.md", "tools_compact.md")
)
FileEntry = dict[str, Any]
ReadConversation = Callable[[], ConversationText]


class BootstrapResult(NamedTuple):
    files: list[Any] | None  # None: the host passed no list
    changed: bool
    receipt: Receipt  # redacted for the session; the log has all of it


def bootstrap(
    home: Home,
    config: Config,
    profile: SessionProfile,
    files: object,
    workspace: str | None,
    now: datetime,
    *,
    read_conversation: ReadConversation | None = None,
    trial: bool = False,
) -> BootstrapResult:
    """`read_conversation` is called only if it is needed. `trial`: a dry run that logs
    nothing."""
    began = time.perf_counter()
    entries, problems = _read_host_list(files) if isinstance(files, list) else ([], [])
    try:
        outcome = _choose_files(home, config, profile, files, entries, workspace, read_conversation)
    except Exception as error:  # noqa: BLE001 - a host without its files is worse than one with too many
        outcome = _keep_host_list(
            files, entries, Notice("bug", f"bootstrap: {type(error).__name__}: {error}")
        )
    notices = (*profile.notices, *outcome.notices, *_report_problems(problems))
    receipt = _build_receipt(config, profile, replace(outcome, notices=notices), entries, now, began)
    if not trial:
        receipts.append(home, receipt)
    changed = outcome.files is not None and outcome.files != files
    return BootstrapResult(outcome.files, changed, _redact_receipt(receipt, entries))


@dataclass(frozen=True, slots=True)
class _Outcome:
    files: list[Any] | None
    sections: Sequence[Section] = ()
    dropped: Sequence[Dropped] = ()
    notices: Sequence[Notice] = ()
    skipped: str = ""


def _choose_files(
    home: Home,
    config: Config,
    profile: SessionProfile,
    files: object,
    entries: Sequence[_HostEntry],
    workspace: str | None,
    read_conversation: ReadConversation | None,
) -> _Outcome:
    if not isinstance(files, list):
        description = (
            "no list of files" if files is None else f"a {type(files).__name__} instead of a list of files"
        )
        return _Outcome(
            None, notices=(Notice("no-files", f"The host gave {description}, so nothing was changed."),)
        )
    if notice := _find_reason_to_pass(config, profile):
        return _keep_host_list(files, entries, notice)
    names = profile.rule.files
    if names is None:
        return replace(_keep_host_list(files, entries, None), skipped="host-list")
    if config.inject.files == "without-memory":
        return _drop_memory_file(files, entries)
    outcome = _unload_files(
        _choose_by_rule(home, profile, names, entries, workspace),
        config.inject.shed_after_turns,
        read_conversation,
    )
    if _leaves_owner_nothing(profile, outcome):
        text = f"None of the files of {profile.won} can be loaded, so the host's own files stay as they are."
        untouched = _keep_host_list(files, entries, Notice("no-soul", text))
        return replace(untouched, notices=(*outcome.notices, *untouched.notices))
    return replace(outcome, notices=(*outcome.notices, *_check_soul(outcome.files or ())))


def _leaves_owner_nothing(profile: SessionProfile, outcome: _Outcome) -> bool:
    """Whether an owner's session would get no file, although none is forbidden to it."""
    is_forbidden = any(dropped.code in _FORBIDDEN_REASONS for dropped in outcome.dropped)
    return not outcome.files and not is_forbidden and profile.rule.audience == "owner"


def _check_soul(files: Iterable[FileEntry]) -> Iterator[Notice]:
    if not any(_match_key(entry["name"]) == "soul.md" for entry in files):
        yield Notice(
            "no-soul",
            "SOUL.md is not loaded: neither the host nor the workspace nor the home has one that this "
            "session may have.",
        )


def choose_home_files(home: Home, profile: SessionProfile) -> tuple[Sequence[Section], Sequence[Dropped]]:
    """The files of the home that a session gets if the host lists nothing and has no workspace."""
    outcome = _choose_by_rule(home, profile, profile.rule.files or (), (), None)
    return outcome.sections, outcome.dropped


def _find_reason_to_pass(config: Config, profile: SessionProfile) -> Notice | None:
    if not config.inject.enabled:
        return Notice("disabled", "inject.enabled is false, so the host's files stay as they are.")
    if agent := find_excluded_agent(profile.agents, config.inject.exclude_agents):
        return Notice(
            "excluded", f"The agent {agent} is in inject.exclude_agents: its files stay as they are."
        )
    if "bootstrap" not in (profile.rule.lanes or ()):
        return Notice("lane", f"{profile.won} has no bootstrap lane, so the host's files stay as they are.")
    if config.inject.files == "host":
        return Notice("files", "inject.files is host, so the host's files stay as they are.")
    return None


def _drop_memory_file(files: Sequence[Any], entries: Sequence[_HostEntry]) -> _Outcome:
    """The host's own list without MEMORY.md, which keeps growing: for hosts that migrate slowly."""
    remaining = [
        entry
        for entry in files
        if not (isinstance(entry, dict) and _match_key(str(entry.get("name"))) == _MEMORY_FILE)
    ]
    outcome = _keep_host_list(remaining, [entry for entry in entries if entry.key != _MEMORY_FILE], None)
    reason = "inject.files is without-memory: what is asked for is found in it instead"
    dropped = [
        _drop_entry(entry, "memory", reason)
        for entry in _entries_host_loads(entries)
        if entry.key == _MEMORY_FILE
    ]
    return replace(outcome, dropped=dropped)


def _keep_host_list(files: object, entries: Sequence[_HostEntry], notice: Notice | None) -> _Outcome:
    copies = [_copy_entry(entry) for entry in files] if isinstance(files, list) else None
    sections = [
        _build_section(entry.name, entry.path, entry.content, "the host loads it")
        for entry in _entries_host_loads(entries)
    ]
    return _Outcome(copies, sections, (), (notice,) if notice else (), notice.code if notice else "")


def _copy_entry(entry: Any) -> Any:
    """A deep copy: the receiver may change our list."""
    try:
        return copy.deepcopy(entry)
    except Exception:  # noqa: BLE001 - an object of the host may not allow it
        return dict(entry) if isinstance(entry, dict) else entry


# ---------------------------------------------------------------- the host's list


class _HostEntry(NamedTuple):
    """A valid entry of the host's list."""

    name: str
    path: str
    content: str
    is_there: bool
    entry: Mapping[str, Any]

    @property
    def key(self) -> str:
        return _match_key(self.name)


def _match_key(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2].casefold()


def _read_host_list(files: Sequence[object]) -> tuple[list[_HostEntry], list[str]]:
    """The valid entries, and the problems of the others."""
    valid: list[_HostEntry] = []
    problems: list[str] = []
    for number, entry in enumerate(files, 1):
        problem = _find_problem(entry)
        if problem:
            problems.append(f"entry {number} {problem}")
        elif isinstance(entry, dict):
            content, missing = entry.get("content"), entry.get("missing")
            text = content if isinstance(content, str) else None
            is_there = text is not None and missing in (None, False)
            name, path = clean(entry["name"]).text, clean(entry["path"]).text  # they go into receipts
            valid.append(_HostEntry(name, path, text or "", is_there, entry))
    return valid, problems


def _find_problem(entry: object) -> str:
    if not isinstance(entry, dict):
        return "is no object"
    for field in ("name", "path"):
        value = entry.get(field)
        if not isinstance(value, str) or not value.strip():
            return f"has no {field}"
    return ""


def _report_problems(problems: Sequence[str]) -> Iterator[Notice]:
    if problems:
        listing = "; ".join(problems[:_MAX_REPORTED_ENTRIES]) + (
            "; …" if len(problems) > _MAX_REPORTED_ENTRIES else ""
        )
        yield Notice("bad-entry", f"Not every entry of the host's list is a file: {listing}.")


def _entries_host_loads(entries: Iterable[_HostEntry]) -> Iterator[_HostEntry]:
    """The files that the host would load itself: it loads no path twice."""
    seen = set()
    for entry in entries:
        if entry.is_there and entry.path not in seen:
            seen.add(entry.path)
            yield entry


# ---------------------------------------------------------------- the rule's files


class _CandidateFile(NamedTuple):
    """A file that may be chosen."""

    entry: FileEntry
    source: str  # for people
    text: str
    real_path: str  # two names may lead to one file
    reason: str
    left_out: str = ""
    is_own: bool = False  # it belongs to the home


def _choose_by_rule(
    home: Home,
    profile: SessionProfile,
    names: Sequence[str],
    entries: Sequence[_HostEntry],
    workspace: str | None,
) -> _Outcome:
    selection = _FileSelection(Listener(profile.rule.audience, profile.kind.agent))
    folders, notices = _search_folders(home, workspace)
    names_by_key: dict[str, str] = {}
    for name in names:
        names_by_key.setdefault(_match_key(name), name)
    for name in names_by_key.values():
        selection.choose(name, _find_candidates(name, entries, folders))
    selection.drop_others(entries, names_by_key)
    return _Outcome(selection.files, selection.sections, selection.dropped, (*notices, *selection.notices))


class _SearchFolder(NamedTuple):
    """A folder to search for files."""

    root: Path
    folder: str  # below it
    reason: str

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name

    def source(self, name: str) -> str:
        """The path in receipts: relative for files of the home."""
        return self.path(name) if self.folder else clean(str(self.root / name)).text


def _search_folders(home: Home, workspace: str | None) -> tuple[list[_SearchFolder], list[Notice]]:
    own = _SearchFolder(home.root, IDENTITY_FOLDER, "the rule names it; the home has it")
    if not workspace:
        return [own], []
    if not isinstance(workspace, str) or not os.path.isabs(workspace) or "\0" in workspace:
        return [own], [Notice("workspace", "The workspace is no absolute path, so no file was read there.")]
    return [_SearchFolder(Path(workspace), "", "the rule names it; the workspace has it"), own], []


def _find_candidates(
    name: str, entries: Sequence[_HostEntry], folders: Sequence[_SearchFolder]
) -> Iterator[_CandidateFile | Dropped]:
    for host_entry in entries:
        if host_entry.key == _match_key(name) and host_entry.is_there:
            entry = {**_copy_entry(host_entry.entry), "missing": False}
            reason = "the rule names it; the host has it"
            yield _CandidateFile(
                entry, host_entry.path, host_entry.content, _real_path(host_entry.path), reason
            )
    for folder in folders:
        file = _read_from_disk(name, folder)
        if file is not None:
            yield file


def _real_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # not a valid path
        return path


def _read_from_disk(name: str, folder: _SearchFolder) -> _CandidateFile | Dropped | None:
    """None: there is no such file."""
    path, source = folder.path(name), folder.source(name)
    try:
        data = NoteTree(folder.root).read(path, MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (TacitError, OSError, ValueError) as error:
        return Dropped(block_label("identity", name), "identity", source, "unsafe", _explain_error(error))
    if not is_text(data):
        return Dropped(block_label("identity", name), "identity", source, "unsafe", "it is not text")
    text, left_out = _decode(data)
    full_path = str(folder.root / path)
    entry = {"name": name, "path": full_path, "content": text, "missing": False}
    return _CandidateFile(
        entry, source, text, _real_path(full_path), folder.reason, left_out, is_own=bool(folder.folder)
    )


def _explain_error(error: Exception) -> str:
    if isinstance(error, UnsafePath):
        return error.why
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def _decode(data: bytes) -> tuple[str, str]:
    """The text, with invalid bytes replaced, and a description of what was cut."""
    is_cut = len(data) > MAX_FILE_BYTES
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    text = decoder.decode(data[:MAX_FILE_BYTES], final=not is_cut)
    return text, f"all after its first {MAX_FILE_BYTES // 2**20} MB" if is_cut else ""


class _FileSelection:
    """The chosen files so far, and what became of the others."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._seen_places: set[str] = set()
        self.files: list[FileEntry] = []
        self.sections: list[Section] = []
        self.dropped: list[Dropped] = []
        self.notices: list[Notice] = []

    def choose(self, name: str, candidates: Iterable[_CandidateFile | Dropped]) -> None:
        """Take the first candidate that is a file. If it is refused, no other file of that name is tried."""
        refused: list[Dropped] = []
        for candidate in candidates:
            if isinstance(candidate, _CandidateFile):
                self.dropped += refused
                self._accept(name, candidate)
                return
            refused.append(candidate)
        missing = Dropped(block_label("identity", name), "identity", name, "missing", "there is no such file")
        self.dropped += refused or [missing]

    def _accept(self, name: str, file: _CandidateFile) -> None:
        code, reason = self._refusal_reason(file)
        if code:
            self.dropped.append(Dropped(block_label("identity", name), "identity", file.source, code, reason))
            return
        self._seen_places.add(file.real_path)
        self.files.append(file.entry)
        self.sections.append(_build_section(name, file.source, file.text, file.reason, file.left_out))
        if file.left_out:
            self.notices.append(Notice("too-large", f"{name} is too large: {file.left_out} is left out."))

    def _refusal_reason(self, file: _CandidateFile) -> tuple[str, str]:
        if file.real_path in self._seen_places:
            return "duplicate", "it is the same file as another one of the rule"
        if error := find_conflict(file.real_path, notes.encode(file.text)):
            return "unsafe", f"it {error.why}"
        facts = (
            _read_facts_cached(file.text) if len(file.text) <= _MAX_CACHED_CHARS else _read_facts(file.text)
        )
        if file.is_own and not facts.says_something:
            return "empty", "nothing is written in it yet"
        forbidden = self._listener.may_hear(facts.audience, facts.agents)
        return (forbidden, _FORBIDDEN_REASONS[forbidden]) if forbidden else ("", "")

    def drop_others(self, entries: Sequence[_HostEntry], wanted: Collection[str]) -> None:
        """Record the entries that the rule does not name."""
        seen = set()
        for entry in entries:
            if not entry.is_there:
                continue
            if entry.key not in wanted:
                self.dropped.append(
                    _drop_entry(entry, "not-in-rule", "the rule of this session does not name it")
                )
            elif entry.key in seen:
                self.dropped.append(_drop_entry(entry, "duplicate", "the list has another file of this name"))
            seen.add(entry.key)


def _drop_entry(entry: _HostEntry, code: str, reason: str) -> Dropped:
    cost = _count_tokens(entry.content)
    return Dropped(block_label("identity", entry.name), "identity", entry.path, code, reason, cost)


class _FileFacts(NamedTuple):
    """What a file declares about itself."""

    audience: Audience
    agents: tuple[str, ...]
    says_something: bool


def _read_facts(text: str) -> _FileFacts:
    """The session's rule names the file, so only the file's own declarations can forbid it."""
    note = notes.parse(text)
    audience = audience_of(note, "")[0] if has_audience(note) else "anyone"
    return _FileFacts(audience, read_agents(note), bool(strip_note(text)))


_read_facts_cached = lru_cache(maxsize=64)(_read_facts)  # the same few files, turn after turn


# ---------------------------------------------------------------- unloading files in use no more


def can_unload(name: str) -> bool:
    return _match_key(name) not in _ALWAYS_LOADED


def _unload_files(
    outcome: _Outcome, after_turns: int | None, read_conversation: ReadConversation | None
) -> _Outcome:
    """Drop the files that the conversation no longer uses. If it cannot be read, all files stay. The last
    file stays too: without any, the host would load all of its own."""
    if after_turns is None or read_conversation is None or not outcome.files:
        return outcome
    texts = {str(file["name"]): str(file["content"]) for file in outcome.files}
    removable = [name for name in texts if can_unload(name)]
    try:
        unused = find_unused_files(texts, removable, read_conversation(), after_turns) if removable else {}
    except (TacitError, OSError) as error:
        notice = Notice("absorbed", f"The conversation could not be read, so no file is left out: {error}")
        return replace(outcome, notices=(*outcome.notices, notice))
    if not unused or len(unused) == len(texts):
        return outcome
    pairs = list(zip(outcome.files, outcome.sections, strict=True))
    removed = [(section, unused[file["name"]]) for file, section in pairs if file["name"] in unused]
    return replace(
        outcome,
        files=[file for file, _ in pairs if file["name"] not in unused],
        sections=[section for file, section in pairs if file["name"] not in unused],
        dropped=[*outcome.dropped, *(_drop_unloaded_file(section, use) for section, use in removed)],
    )


def _drop_unloaded_file(section: Section, use: LastUse) -> Dropped:
    reason = f"the conversation spoke of its line {use.line} {use.ago} turns ago, and of nothing in it since"
    return Dropped(section.label, section.slot, section.source, "absorbed", reason, section.tokens)


# ---------------------------------------------------------------- the receipt


def _build_section(name: str, source: str, text: str, reason: str, left_out: str = "") -> Section:
    return Section(
        block_label("identity", name), "identity", source, _count_tokens(text), None, reason,
        shortened=left_out, digest=short_digest(text),
    )  # fmt: skip


def _count_tokens(text: str) -> int:
    try:
        return _count_cached(text) if len(text) <= _MAX_CACHED_CHARS else tokens.count(text)
    except Exception:  # noqa: BLE001 - an object of the host may not allow it
        return len(text) // 4


_count_cached = lru_cache(maxsize=64)(tokens.count)


def _build_receipt(
    config: Config,
    profile: SessionProfile,
    outcome: _Outcome,
    entries: Sequence[_HostEntry],
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
        tokens=sum(section.tokens for section in outcome.sections),
        characters=sum(map(_content_length, outcome.files or ())),
        sections=tuple(outcome.sections),
        dropped=tuple(outcome.dropped),
        skipped=outcome.skipped,
        notices=tuple(outcome.notices),
        timings_ms={"bootstrap": round((time.perf_counter() - began) * 1000, 3)},
        audience=rule.audience,
        lane="bootstrap",
        rule=profile.won,
        host_tokens=sum(_count_tokens(entry.content) for entry in _entries_host_loads(entries)),
    )


def _content_length(entry: object) -> int:
    content = entry.get("content") if isinstance(entry, dict) else None
    return len(content) if isinstance(content, str) else 0


def _redact_receipt(receipt: Receipt, entries: Sequence[_HostEntry]) -> Receipt:
    """For listeners other than the owner: of the dropped files only those that the host listed itself."""
    if receipt.audience == "owner":
        return receipt
    listed_labels = {
        block_label("identity", name).casefold() for entry in entries for name in (entry.name, entry.key)
    }
    redacted = receipts.redact_for_host(receipt)
    dropped = tuple(block for block in redacted.dropped if block.label.casefold() in listed_labels)
    notices = tuple(
        original if original.code in _PUBLIC_NOTICE_CODES else redacted_notice
        for original, redacted_notice in zip(receipt.notices, redacted.notices, strict=True)
    )
    hidden = len(receipt.dropped) - len(dropped)
    unlisted = {**receipt.unlisted, "hidden": hidden} if hidden else receipt.unlisted
    return replace(redacted, dropped=dropped, notices=notices, unlisted=unlisted)
