"""Remember one line on request, by adding it to one note.

Lines are only added: nothing is rewritten, and a note that changes at the same time is read again. In a
session that is not the owner's the line waits as a proposal. The same goes for a line that an agent asks for
after it read what others wrote, because its words may be theirs. If memory is read-only, neither happens.

A line that an agent asked for gets a provenance comment with the last message of its conversation; the
owner's own lines get none.

A path is resolved before it is checked: no spelling of it reaches an identity file. The owner's words go into
a note that others can read only if the owner says so (`shared`), and otherwise into the owner's note beside
it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from tacit.clock import Clock
from tacit.config import Config
from tacit.errors import ChangedOnDisk, Locked, ReadOnly, StoreError, UnsafePath, UsageError
from tacit.home import files
from tacit.home.layout import MEMORY, Home
from tacit.home.listing import is_listed
from tacit.home.paths import is_identity, path_problem
from tacit.learn import window_proposals
from tacit.learn.attribution import SpeakerAttribution
from tacit.learn.model import Change, ChangeSet, Source
from tacit.learn.note_changes import is_shared, private_note
from tacit.learn.taint import assess_trust
from tacit.markdown import comment, notes
from tacit.markdown.comment import Trust, is_trusted
from tacit.markdown.notes import Remembered
from tacit.privacy.redaction import LEFT_OPEN, PRIVATE, clean
from tacit.privacy.strip_injected import remove_injected
from tacit.sessions.policy import SessionProfile
from tacit.transcripts import writer
from tacit.transcripts.attribution import SpeakerRole
from tacit.workspaces.note_store import NoteStore, read_note

SECTION = "Remembered"
EXTRACTOR = "remember/1"
MAX_LINE_CHARS = 1_000  # characters of a line
_NOT_OWNERS_SESSION = "asked for in a session that is not the owner's"
_AFTER_READING_OTHERS = "asked for after what others wrote was read"
_PLACES_HINT = "Use journal, memory, or a note below knowledge/, such as knowledge/people/vera.md."
_OWNER_ONLY = (
    "Only the owner can say that others may read a line, at the command line (tacit remember --shared) or in "
    "Python (shared=True with session_key=None). Leave `shared` out."
)
_MAX_ATTEMPTS = 5  # another process may write to the same note


class RememberService:
    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        note_store: NoteStore,
        attribution: SpeakerAttribution,
    ) -> None:
        self._home, self._config, self._clock = home, config, clock
        self._notes, self._attribution = note_store, attribution

    def _read_note(self, path: str) -> bytes | None:
        return read_note(self._home, path)

    def remember(
        self,
        text: str,
        to: str,
        profile: SessionProfile,
        *,
        holds_slot: bool = False,
        by_owner: bool = False,
        shared: bool = False,
    ) -> Remembered:
        """`to`: journal, memory, or the path of a note. `holds_slot`: the request comes from a host whose
        memory slot is ours. `by_owner`: a person asks, not an agent in a session. `shared`: the owner allows
        others to read it."""
        if shared and not by_owner:
            raise UsageError(_OWNER_ONLY)
        _refuse_if_read_only(self._config.memory.read_only, holds_slot=holds_slot)
        sentence = _clean_sentence(text)
        now = self._clock.now()
        path = self._resolve_path(to, now)
        if profile.rule.audience != "owner":
            message = "It waits for the owner's review: this session is not the owner's."
            return self._propose(
                _make_change(sentence, path, profile, now, "other"), profile, _NOT_OWNERS_SESSION, message
            )
        request = None if by_owner else self._find_request(sentence, profile)
        if request is not None and not is_trusted(request.trust):
            message = "It waits for the owner's review: the agent had just read what others wrote."
            target = private_note(path, self._read_note)
            change = _make_change(sentence, target, profile, now, request.trust, request.source)
            return self._propose(change, profile, _AFTER_READING_OTHERS, message)
        for _ in range(_MAX_ATTEMPTS):
            target = path if shared else private_note(path, self._read_note)
            line = _format_line(target, sentence, now)
            marked_line = (
                comment.attach(line, EXTRACTOR, [request.source], request.trust) if request else line
            )
            try:
                result = self._add_line(target, line, marked_line, sentence, shared=shared)
            except ChangedOnDisk:
                continue
            return result if target == path else _explain_owner_note(result, path, by_owner=by_owner)
        raise ChangedOnDisk(path)

    def _resolve_path(self, to: str, now: datetime) -> str:
        if to in ("", "journal"):
            return f"knowledge/journal/{now.date().isoformat()}.md"
        if to == "memory":
            return MEMORY
        tree = files.Tree(self._home.root)
        try:
            path = tree.resolve(to)
            exists = path.isprintable() and tree.exists(path)
        except Locked:  # a fit place, once it is unlocked
            raise
        except UnsafePath as error:
            raise _bad_place_error(to, error.why) from None
        if not path.startswith("knowledge/") or not path.endswith(".md"):
            raise _bad_place_error(to)
        if is_identity(path):
            raise _bad_place_error(
                to, "it defines who an agent is and what it does, and only people may write that"
            )
        if not is_listed(path):
            raise _bad_place_error(to, "copies of prompts have that name, and search leaves them out")
        if not exists and (problem := path_problem(path)):
            raise _bad_place_error(to, problem)
        return path

    def _add_line(self, path: str, line: str, marked_line: str, sentence: str, *, shared: bool) -> Remembered:
        """`marked_line`: the line with its provenance comment."""
        try:
            note = self._notes.read(path)
        except FileNotFoundError:
            head = "" if shared else _new_note_head(path)
            self._notes.write(
                path, f"{head}# {_title(path)}\n\n## {SECTION}\n\n{marked_line}\n", replacing=None
            )
            return Remembered(path, line, is_new=True, said=f"Remembered in {path}.")
        if not shared and is_shared(note, path):
            raise ChangedOnDisk(path)  # it was private a moment ago
        statements = (comment.read(statement)[0].strip() for statement in note.text.split("\n"))
        if any(statement.startswith("- ") and statement.endswith(sentence) for statement in statements):
            return Remembered(path, line, is_new=False, said=f"{path} has it already.")
        self._notes.write(path, _insert_line(note.text, marked_line), replacing=note)
        return Remembered(path, line, is_new=True, said=f"Remembered in {path}.")

    def _find_request(self, sentence: str, profile: SessionProfile) -> _Request | None:
        """None if the conversation is not stored, so that its trust is unknown."""
        sessions = [
            session
            for session in writer.list_states(self._home)
            if session.opening.session_key == profile.kind.key and session.path
        ]
        newest = max(sessions, key=lambda session: session.opening.started, default=None)
        try:
            turns = writer.read_turns(self._home, newest) if newest else ()
        except (StoreError, OSError, ValueError):
            return None
        if newest is None or newest.path is None or not turns:
            return None
        is_owner = self._attribution.trust_of_turns(profile, turns).is_owner
        trusted_tools = self._config.lifecycle.trusted_tools
        trust = assess_trust(turns, sentence, is_owner=is_owner, trusted_tools=trusted_tools)
        return _Request(comment.source_name(newest.path, turns[-1].number), trust)

    def _propose(self, change: Change, profile: SessionProfile, reason: str, message: str) -> Remembered:
        key, moment = profile.kind.key, change.source.at
        if problem := path_problem(change.path):  # a draft names its note in a heading
            raise _bad_place_error(change.path, problem)
        problem_text = window_proposals.offer(
            self._home, ChangeSet(key, "", moment, EXTRACTOR, reason, (change,))
        )
        if problem_text:
            raise UsageError(problem_text)
        return Remembered("", change.line, is_new=True, said=message)


def _explain_owner_note(result: Remembered, wanted_path: str, *, by_owner: bool) -> Remembered:
    """Say why the line is not in the requested note."""
    hint = " If it is meant for them, add --shared." if by_owner else ""
    return result._replace(
        said=f"{result.said} Others can read {wanted_path}, so it was not added there.{hint}"
    )


def _refuse_if_read_only(is_set: bool | None, *, holds_slot: bool) -> None:
    if is_set:
        todo = "The owner can edit the notes by hand, or set it to false."
        raise ReadOnly("memory.read_only in memory-config.yaml is true", todo)
    if is_set is None and holds_slot:
        todo = "Its owner can allow it in memory-config.yaml: memory: {read_only: false}"
        raise ReadOnly("tacit is the memory slot of this host", todo)


def _clean_sentence(text: str) -> str:
    cleaned = " ".join(clean(remove_injected(text)).text.split())
    if not cleaned.replace(PRIVATE, "").replace(LEFT_OPEN, "").strip():
        raise UsageError("There is nothing to remember: the text is empty or all private.")
    if len(cleaned) > MAX_LINE_CHARS:
        raise UsageError(
            f"The line has {len(cleaned)} characters; the limit is {MAX_LINE_CHARS}. Shorten it."
        )
    return cleaned


def _bad_place_error(to: str, why: str = "") -> UsageError:
    return UsageError(
        f"A line cannot be remembered in {to[:80]!r}{f': {why}' if why else ''}. {_PLACES_HINT}"
    )


def _format_line(path: str, sentence: str, now: datetime) -> str:
    day = now.date().isoformat()
    return f"- {now:%H:%M} {sentence}" if path.endswith(f"/{day}.md") else f"- {day}: {sentence}"


def _new_note_head(path: str) -> str:
    """Make the new note private even if notes at this path are for groups by default."""
    return "---\naudience: owner\n---\n\n" if is_shared(notes.parse("", path), path) else ""


def _title(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _insert_line(text: str, line: str) -> str:
    """Insert the line at the end of its section; a missing section is added at the end of the note."""
    lines = text.rstrip("\n").split("\n")
    heading = f"## {SECTION}"
    if heading not in lines:
        return "\n".join([*lines, "", heading, "", line, ""])
    start = lines.index(heading) + 1
    end = next(
        (index for index in range(start, len(lines)) if lines[index].startswith(("# ", "## "))), len(lines)
    )
    section_lines = lines[start:end]
    while section_lines and not section_lines[-1].strip():
        section_lines.pop()
    rest = ["", *lines[end:]] if end < len(lines) else []
    return "\n".join([*lines[:start], *(section_lines or [""]), line, *rest, ""])


# The requesting conversation


class _Request(NamedTuple):
    """The conversation in which an agent asks, and the trust of its words right now."""

    source: str
    trust: Trust


def _make_change(
    sentence: str, path: str, profile: SessionProfile, now: datetime, trust: Trust, source: str = ""
) -> Change:
    number, transcript = (
        (comment.message_number(source) or 0, comment.transcript_path(source)) if source else (0, "")
    )
    role: SpeakerRole = "agent" if source else "user"
    source_info = Source(profile.kind.key, number, role, at=now.isoformat(), transcript=transcript)
    return Change(path, SECTION, sentence, now.date().isoformat(), "fact", source_info, trust)
