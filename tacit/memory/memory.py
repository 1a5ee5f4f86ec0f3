"""class Memory: the operations of one home, and the only place that knows their order."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tacit.capture import Session, counted, fixed_offset, possible, to_milliseconds
from tacit.config import Config, without_secret
from tacit.errors import Busy, ConfigError, TacitError, UsageError
from tacit.model.links import Linked
from tacit.model.notes import Note, Remembered
from tacit.model.problems import Problem
from tacit.model.search import EVERYTHING, Category, Found, Hit, Scope
from tacit.model.turns import Closing, KnowledgeChange, Opening, Sealed, Transcript, Turn
from tacit.search.parts import Parts
from tacit.sessions.agents import agents_of, excluded_agent, is_own_work, meant_key
from tacit.sessions.classify import MAIN
from tacit.sessions.rules import Profile, profile_of, sender_of
from tacit.store import files, receipts, transcripts
from tacit.store import verify as proof
from tacit.store.branches import prune_explored
from tacit.store.committer import Committer, NoteChanges, Outcome, loose_transcripts
from tacit.store.git import Git
from tacit.store.history import History
from tacit.store.home import CONFIG, NOTE_FOLDERS, Home
from tacit.store.reviews import Reviews
from tacit.store.runs import Runs
from tacit.store.senders import Senders
from tacit.store.sweep import sweep
from tacit.store.tags import tag_periods
from tacit.store.transcripts import Live, Record
from tacit.store.workspaces import Workspaces
from tacit.text import commit_message, notes
from tacit.text import transcript as form
from tacit.text.redact import clean

if TYPE_CHECKING:
    from tacit.llm.chat import Chat
    from tacit.llm.items import Ask
    from tacit.memory.bootstrap import Bootstrapped
    from tacit.memory.condensing import Summed
    from tacit.memory.learning import Learnt
    from tacit.memory.turns import Turns
    from tacit.model.context import Compiled
    from tacit.model.known import Trace
    from tacit.model.topics import Event
    from tacit.search.searcher import Searcher
    from tacit.watch.gate import GatedActivator

_PATIENCE = 1.0  # seconds that opening a home may wait for somebody else's commit


@dataclass(frozen=True, slots=True)
class Worked:
    """What one pass of work did."""

    sealed: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    waiting: str = ""
    problems: tuple[Problem, ...] = ()
    learnt: Learnt | None = None  # None: it was not asked for
    summed: Summed | None = None

    @property
    def changed(self) -> bool:
        return bool(self.sealed or self.commits or self.tags or self.branches)


class Memory:
    """One home. Give it its parts; `tacit.open` picks them."""

    def __init__(
        self,
        home: Home,
        config: Config,
        *,
        zone: tzinfo | None,
        now: Callable[[], datetime],
        parts: Parts | None = None,
        gate: Callable[[], GatedActivator] | None = None,
        ask: Callable[[str], Ask | None] = lambda task: None,
        chat: Callable[[str], Chat | None] | None = None,
    ) -> None:
        """`ask`: who answers the questions of a task (extract, condense, prune); None: no model does."""
        self.home, self.config, self.ask = home, config, ask
        self._parts = parts or Parts()
        self._gate = gate
        self._chat = chat  # by task; None: no model is ever asked
        self.workspaces = Workspaces(home, config.workspaces)
        self.git = Git(home.root)
        self.history = History(home, self.git, self._moment)
        self._committer = Committer(home, self.git, self._moment, _memory_limits(config))
        self.commit_paths, self.commit_theirs = self._committer.commit_paths, self._committer.commit_theirs
        self.runs, self.reviews = Runs(home, self.git), Reviews(home)
        self.zone, self._now = zone, now  # zone None: the machine's own
        self.seals_idle = True  # False: somebody in this process does, by a clock that nobody can set
        self._senders = Senders(home)

    # ------------------------------------------------------------ conversations

    def session(
        self,
        session_key: str | None = None,
        agent: str | None = None,
        channel: str | None = None,
        model: str | None = None,
        session_id: str | None = None,
        started: datetime | None = None,
        *,
        detached: bool = False,
        commit: bool = True,
    ) -> Session:
        """Begin a conversation, or go on with one. A sealed one is never reopened: it continues in a new
        part. Without a session key the id alone tells which one is meant, and a new one is the owner's; an id
        that is another key's gets an addition. `detached`: no process stays alive between its messages, so
        nobody holds it open. Without `commit` its end seals it, and the next `recover` commits it."""
        name, key = self._meant(session_id, session_key)
        record = self._resumed(name) if session_id else None
        if record is not None:
            key, agent = record.opening.session_key, record.opening.agent
        key, agents = meant_key(key, agent), agents_of(key, agent)
        capture = self.config.capture
        if not capture.enabled or is_own_work(key) or excluded_agent(agents, capture.exclude_agents):
            return self.unkept_session()
        given = started is not None or record is not None
        if record is None:
            at = fixed_offset(self._in_zone(possible(started or self._moment())))
            before = self.last_part(name) if session_id else None
            where, by = (clean(said).text if said else said for said in (channel, model))
            opening = Opening(name, at, key, agents[-1], where, by, continues=before)
            record = Record(opening, detached=detached)
            if detached:
                transcripts.save_record(self.home, record)
        live = Live(self.home, record)
        finish = self._finish if commit else self._finish_for_later
        key, name = record.opening.session_key, record.opening.session_id
        return Session(
            live,
            now=self._moment,
            in_zone=self._in_zone,
            finish=finish,
            started_given=given,
            ended=lambda: self.session_ended(key, name),
        )

    def _meant(self, session_id: str | None, session_key: str | None) -> tuple[str, str]:
        """The id and the key of the session that somebody means."""
        if not session_id:
            return f"ses_{secrets.token_hex(4)}", MAIN if session_key is None else session_key
        if session_key is None:
            known = self.key_of(session_id)
            return session_id, MAIN if known is None else known
        return transcripts.own_name(session_id, session_key, self.key_of), session_key

    def unkept_session(self) -> Session:
        """For an agent whose conversations are not kept: takes everything, writes nothing."""
        return Session(None, now=self._moment, in_zone=self._in_zone, finish=self._finish)

    def knows(self, session_id: str) -> bool:
        """Whether a session with this id is open."""
        return self._resumed(session_id) is not None

    def key_of(self, session_id: str) -> str | None:
        """The session key of the session with this id, open or sealed. None: there is no such session, or
        a person wrote it without a key."""
        record = transcripts.find_record(self.home, session_id)
        if record is not None and record.opening.session_id == session_id:
            return record.opening.session_key
        part = self.last_part(session_id)
        key = transcripts.attempt_load(self.home, part).fields.get("session_key") if part else None
        return None if key is None else str(key)

    def discard(self, session_id: str) -> None:
        """Forget a session in which nothing was said."""
        record = transcripts.find_record(self.home, session_id)
        if record is not None and record.path is None:
            transcripts.drop_record(self.home, record)

    def transcript(self, path: str) -> Transcript:
        return transcripts.load(self.home, path)

    def open_sessions(self) -> list[Record]:
        return transcripts.records(self.home)

    def is_ended(self, session_id: str, session_key: str) -> bool:
        """Whether no session of this id, or without one of this key, is open."""
        openings = [record.opening for record in self.open_sessions()]
        if session_id:
            return all(one.session_id != session_id for one in openings)
        return all(one.session_key != session_key for one in openings)

    def _resumed(self, session_id: str) -> Record | None:
        record = transcripts.find_record(self.home, session_id)
        if record is None or record.opening.session_id != session_id:
            return None
        if record.path is None:
            return record
        file = self.home.root / record.path
        return record if file.exists() and not transcripts.is_sealed(file) else None

    def last_part(self, session_id: str) -> str | None:
        """The newest transcript of this session: the one that no other part continues."""
        pattern = f"raw/conversations/*/*/*/????-{form.safe_name(session_id)}-*.md"
        found = [str(file.relative_to(self.home.root)) for file in self.home.root.glob(pattern)]
        heads = {path: transcripts.attempt_load(self.home, path).fields for path in sorted(found)}
        parts = {path: head for path, head in heads.items() if head.get("session_id") == session_id}
        continued = {head.get("continues") for head in parts.values()}
        return max((path for path in parts if path not in continued), default=None)

    def _finish(self, live: Live, closing: Closing, turns: Sequence[Turn]) -> Sealed:
        sealed = self._sealed(live, closing, turns)
        outcome = self._commit_sessions([(live.record, sealed.sha256)], fresh=True)
        commit = outcome.commits[0] if outcome.commits else None
        return replace(sealed, commit=commit, waiting=outcome.waiting)

    def _finish_for_later(self, live: Live, closing: Closing, turns: Sequence[Turn]) -> Sealed:
        sealed = self._sealed(live, closing, turns)
        self._committer.remember_hashes([(live.record, sealed.sha256)])
        return replace(sealed, waiting="it is committed soon")

    def _sealed(self, live: Live, closing: Closing, turns: Sequence[Turn]) -> Sealed:
        changes = [turn for turn in turns if isinstance(turn, KnowledgeChange)]
        sha = live.seal(closing, changes)
        record = live.record
        assert record.path is not None
        with suppress(TacitError, OSError):  # only a courtesy to a later commit message
            self._committer.touch(record.path, [change.path for change in changes])
        return Sealed(record.opening.session_id, record.path, sha, None)

    def _commit_sessions(
        self, sealed: list[tuple[Record, str]], *, fresh: bool = False, asked: bool = False
    ) -> Outcome:
        try:
            if asked or self.config.git.auto_commit:
                wait = 30.0 if asked or fresh else _PATIENCE
                return self._committer.commit_sessions(sealed, fresh=fresh, wait=wait)
            self._committer.remember_hashes(sealed)
        except (TacitError, OSError) as error:
            return Outcome(waiting=str(error))
        return Outcome(waiting="git.auto_commit is off; commit it with: tacit run commit")

    # ------------------------------------------------------------ work that waits

    def recover(self, *, asked: bool = False) -> Worked:
        """Seal what a crash left open, commit what could not be committed. Live sessions are left alone.
        `asked`: somebody wants the commits, also where git.auto_commit is off."""
        self._committer.settle(wait=30.0 if asked else _PATIENCE)
        sealed, problems = self._seal_left_open()
        pending = self._pending()
        if not pending:
            return Worked(tuple(sealed), problems=tuple(problems))
        outcome = self._commit_sessions(pending, asked=asked)
        return Worked(tuple(sealed), outcome.commits, waiting=outcome.waiting, problems=tuple(problems))

    def work(self, *, if_due: bool = False) -> Worked:
        """Everything that is due now: commit, learn from conversations, condense, prune, archive, commit.
        `if_due`: notes are committed only where the interval has passed."""
        from tacit.memory.lifecycle import run_all  # much of the package; keeping a message needs none of it

        return run_all(self, if_due=if_due)

    def commit(self) -> Worked:
        """Recover, commit changed notes, tag the day, prune explored branches, and push where that is
        wanted."""
        with files.explained("do the work that is due"):
            return self._commit_all()

    def _commit_all(self) -> Worked:
        self._find_strays(again=True)
        recovered = self.recover(asked=True)
        loose = self._commit_loose()
        noted = self._committer.commit_notes(self._wording())
        if noted.waiting:
            return replace(recovered, waiting=noted.waiting)
        tags, gone, kept = self._tidy_refs()
        sweep(self.home, self.git)
        return Worked(
            sealed=recovered.sealed,
            commits=(*recovered.commits, *loose.commits, *noted.commits),
            tags=tuple(tags),
            branches=tuple(gone),
            waiting=recovered.waiting,
            problems=(*recovered.problems, *loose.left, *noted.left, *kept, *self._push()),
        )

    def _wording(self) -> Callable[..., str]:
        """Who words commit messages. A model is asked now, while nobody waits for the home's lock."""
        chat = self._chat
        if self.config.git.commit_message_model is None or chat is None or self._committer.waits_for():
            return commit_message.compose
        from tacit.lifecycle.commits import worded

        edits = self._committer.note_changes().edits
        return worded(lambda: chat("commit"), edits, self.git.branch() or "")

    def _tidy_refs(self) -> tuple[list[str], list[str], list[Problem]]:
        settings, now = self.config.git, self._moment()
        skipped: list[Problem] = []
        with self._committer.at_work():
            tags = tag_periods(
                self.git,
                now,
                daily=settings.auto_tag_daily,
                weekly=settings.auto_tag_weekly,
                skipped=skipped,
            )
            gone, kept = prune_explored(self.git, settings.branch, settings.explore_days, now)
            self.git.pack()
        return tags, gone, [*skipped, *kept]

    def _commit_loose(self) -> Outcome:
        if self._committer.waits_for():
            return Outcome()
        loose = loose_transcripts(self.home, self.git)
        return replace(self._committer.commit_sessions(loose.ready), left=loose.problems)

    def _push(self) -> list[Problem]:
        settings = self.config.git
        if not settings.auto_push or settings.remote is None:
            return []
        said = without_secret(self.git.push(settings.remote))
        where = without_secret(settings.remote)
        return [Problem(where, f"could not be pushed to: {said}", level="warning")] if said else []

    def commit_due(self) -> bool:
        """Whether the interval between two commits of notes has passed."""
        last = self.history.last_commit_of("memory", "identity", "maintenance")
        minutes = self.config.lifecycle.commit_interval_minutes
        return last is None or self._moment() - last >= timedelta(minutes=minutes)

    def _seal_left_open(self) -> tuple[list[str], list[Problem]]:
        sealed: list[str] = []
        problems: list[Problem] = []
        self._find_strays()
        for record in transcripts.records(self.home):
            try:
                if self._is_abandoned(record):
                    transcripts.drop_record(self.home, record)
                elif self._is_left_open(record) and self._seal(record):
                    sealed.append(record.path or "")
            except Busy:
                continue  # somebody is writing it: alive
            except (TacitError, OSError, ValueError) as error:
                problems.append(
                    Problem(record.path or record.opening.session_id, f"could not be sealed: {error}")
                )
        return sealed, problems

    def _find_strays(self, *, again: bool = False) -> None:
        """Give open transcripts that no record names a record again: without one nobody seals them. Looked
        for once in the life of .tacit, and whenever there is time."""
        looked = self.home.private / "strays-found"
        if again or not looked.exists():
            for record in transcripts.strays(self.home):
                transcripts.save_record(self.home, record)
        if not looked.exists():
            files.make_directories(self.home.private)
            files.replace(self.home.private / ".gitignore", b"*\n")
            files.replace(looked, b"")

    def _is_abandoned(self, record: Record) -> bool:
        """Nothing was ever said in it, and nobody will: the start was cut short, or never followed up."""
        if record.path is not None and (self.home.root / record.path).exists():
            return False
        hours = self.config.capture.idle_seal_hours if record.detached else 1
        written = transcripts.record_file(self.home, record.opening.session_id).stat().st_mtime
        return self._moment().timestamp() - written > hours * 3600

    def _is_left_open(self, record: Record) -> bool:
        if record.path is None or not (self.home.root / record.path).exists():
            return False
        file = self.home.root / record.path
        if transcripts.is_sealed(file):
            return False
        idle = self._moment().timestamp() - file.stat().st_mtime
        is_idle = self.seals_idle and idle > self.config.capture.idle_seal_hours * 3600
        return is_idle or not record.detached

    def _seal(self, record: Record) -> bool:
        """Seal with what was acknowledged, ended when its last record was kept."""
        live = Live(self.home, record, wait=0.0)
        try:
            turns = live.turns()
            ended = turns[-1].at if turns else record.opening.started
            changes = [turn for turn in turns if isinstance(turn, KnowledgeChange)]
            sha = live.seal(Closing(ended, (), *counted(turns)), changes)
            transcripts.save_record(self.home, replace(record, sha256=sha))
        finally:
            live.close()
        return True

    def _pending(self) -> list[tuple[Record, str]]:
        pending = []
        for record in transcripts.records(self.home):
            file = self.home.root / (record.path or "")
            if record.path and file.is_file() and transcripts.is_sealed(file):
                pending.append((record, record.sha256 or files.digest(file.read_bytes())))
        return pending

    # ------------------------------------------------------------ notes

    def note_changes(self) -> NoteChanges:
        """What a commit of the notes would take along, and what it would leave."""
        return self._committer.note_changes()

    def transcripts_to_commit(self) -> list[str]:
        """Sealed transcripts that the next `work` commits."""
        loose = loose_transcripts(self.home, self.git).ready
        return [record.path for record, _ in [*self._pending(), *loose] if record.path]

    def read(self, path: str) -> Note:
        return notes.parse(notes.decode(self.workspaces.read(path)), path)

    def write(self, path: str, text: str, *, replacing: Note | None) -> Note:
        """Write a note that is still what the writer read (`replacing`; None: there was none)."""
        if files.parts_of(path)[0] not in NOTE_FOLDERS:
            places = ", ".join(f"{folder}/" for folder in NOTE_FOLDERS)
            raise UsageError(f"{path} is not a note. Notes are in {places}; transcripts are never edited.")
        expected = None if replacing is None else files.digest(notes.encode(replacing.text))
        with files.locked(self.home.lock):
            files.Tree(self.home.root).write(path, notes.encode(text), expected)
        return notes.parse(text, path)

    def remember(
        self, text: str, to: str = "journal", *, session_key: str | None = "agent:main:main"
    ) -> Remembered:
        """Add one line to the journal of the day, to `memory`, or to the note at a path. In a session that is
        not the owner's, and after an agent read what others wrote, it waits for the owner to look at it. No
        session: the owner asks, and no agent."""
        from tacit.memory.remember import remember

        profile = self.profile_of(session_key or MAIN, trial=True)
        return remember(self, text, to, profile, by_owner=session_key is None)

    # ------------------------------------------------------------ search

    @cached_property
    def searcher(self) -> Searcher:
        """The index of this home and questions to it."""
        from tacit.search.searcher import Searcher  # SQLite; keeping a message needs none

        if self.config.search.index != "sqlite":
            what = "search.index names a PostgreSQL server, which this version does not use yet."
            raise ConfigError(CONFIG, None, what, "Set it to sqlite.")
        return Searcher(self.home, self._parts, self.workspaces)

    def links(self, path: str, *, session_key: str | None = None) -> Linked:
        """What a note links to and what links to it, in what this session may see. No session: the owner
        asks."""
        scope = EVERYTHING if session_key is None else self.scope_of(session_key)
        return self.searcher.links(path, scope)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        category: Category | None = None,
        session_key: str | None = None,
    ) -> list[Hit]:
        """The passages that answer best, in what this session may see. No session: the owner asks."""
        scope = EVERYTHING if session_key is None else self.scope_of(session_key)
        if category is not None:
            scope = replace(scope, categories=(category,))
        return list(self.find(query, scope, limit).hits)

    def scope_of(self, session_key: str) -> Scope:
        """What a session may see."""
        return self.profile_of(session_key).scope

    def find(self, query: str, scope: Scope = EVERYTHING, limit: int = 10) -> Found:
        """As `search`, with all filters, and with how the answer was made."""
        return self.searcher.find(query, scope, limit, now=self._moment())

    def why_known(self, text: str) -> list[Trace]:
        """Where a text stands, and how it got there: commit, who said it, the words themselves."""
        from tacit.memory.known import why_known

        return why_known(self, text)

    # ------------------------------------------------------------ turns

    def turn(
        self,
        message: str,
        *,
        session_key: str = "agent:main:main",
        agent: str | None = None,
        history: Sequence[object] = (),
        budget: int | None = None,
        event: Event | None = None,
        paths: Sequence[str] = (),
        wake: Sequence[str] = (),
        sender: str = "",
        trigger: str = "",
        session_id: str = "",
        tool: str = "",
        keeps_text: bool = True,
        seconds: float | None = None,
    ) -> Compiled:
        """The prompt for the next turn of a session: never over the budget, never an exception.

        `history`: the conversation so far, as turns, dictionaries or pairs of role and text. `event`: a
        webhook or a schedule that began the turn. `paths`: files that tools touched. `wake`: topics asked
        for by name. `sender`: who wrote the message, as the host spells it. `trigger`: what began the run
        (user, heartbeat, cron). `tool`: on whose behalf the host asks, where it is a tool. `keeps_text`:
        False where the conversation does not keep what its turns were given; then it may be given again.
        `seconds`: the time there is, instead of inject.deadline_ms.
        """
        return self.turns.take(
            message,
            session_key=session_key,
            agent=agent,
            history=history,
            budget=budget,
            event=event,
            paths=tuple(paths),
            wake=tuple(wake),
            sender=sender,
            trigger=trigger,
            session_id=session_id,
            tool=tool,
            keeps_text=keeps_text,
            seconds=seconds,
        )

    def inject(self, message: str, **asked: Any) -> Compiled:
        """As `turn`, but only what the host lacks: it has the message, the conversation and its own files.
        `.text` is for this turn and empty where there is nothing to give; `.standing` stays the same from
        turn to turn."""
        return self.turns.take(message, **{**asked, "lane": "runtime"})

    def bootstrap(
        self, session_key: str, files: object, workspace: str | None = None, **asked: Any
    ) -> list[dict[str, Any]] | None:
        """The files that a host loads when a session begins: a fresh list by the rule of the session. What is
        no list is answered with None."""
        return self.bootstrapped(session_key, files, workspace, **asked).files

    def bootstrapped(
        self,
        session_key: str,
        files: object,
        workspace: str | None = None,
        *,
        agent: str | None = None,
        sender: str = "",
        trigger: str = "",
        message: str = "",
        trial: bool = False,
    ) -> Bootstrapped:
        """As `bootstrap`, with whether anything changed and the receipt. A trial is not logged, and is asked
        of no conversation. `message`: what the user wrote, where the host loads its files for each turn."""
        from tacit.memory.bootstrap import bootstrap

        profile = self.profile_of(session_key, agent=agent, sender=sender, trigger=trigger, trial=trial)
        now = self._moment()
        if trial:
            return bootstrap(self.home, self.config, profile, files, workspace, now, trial=True)
        key = profile.kind.key
        return bootstrap(
            self.home, self.config, profile, files, workspace, now,
            said=lambda: self.turns.conversation(key, message),
        )  # fmt: skip

    def session_ended(self, session_key: str, session_id: str = "", *, sealed: bool = False) -> None:
        """A session is over, or new, or reset: its next turn begins anew, whichever process takes it. Without
        an id, whatever session it was. `sealed`: so is its transcript."""
        receipts.note_end(self.home, session_key, self._moment(), session_id, sealed=sealed)
        if "turns" in self.__dict__:
            self.turns.ended(session_key)

    def profile_of(
        self,
        session_key: str,
        *,
        agent: str | None = None,
        sender: str = "",
        trigger: str = "",
        trial: bool = False,
    ) -> Profile:
        """What a session may have, and by which rule. Who writes in a session that a host may fold several
        senders into is remembered, unless it is a trial."""
        key, who = meant_key(session_key, agent), sender_of(sender)
        seen: frozenset[str] = frozenset()
        if profile_of(key, self.config).kind.is_main:
            seen = self._senders.seen(key, "" if trial else who)
        return profile_of(key, self.config, agent=agent, sender=who, trigger=trigger, senders=seen)

    def senders_of(self, session_key: str) -> frozenset[str]:
        """Who was seen to write in a session that a host may fold several senders into."""
        return self._senders.seen(session_key, "")

    @cached_property
    def turns(self) -> Turns:
        """Compiling turns, and the topics that they wake."""
        from tacit.memory.turns import Turns  # a good part of the package; keeping a message needs none of it

        return Turns(self, self._parts, self._gate)

    def moment(self) -> datetime:
        """Now, in the home's zone."""
        return self._moment()

    # ------------------------------------------------------------ proof

    def verify(self, tick: Callable[[int, int], None] = lambda done, total: None) -> list[proof.Checked]:
        return proof.verify(self.home, self.git, tick)

    # ------------------------------------------------------------ time

    def _moment(self) -> datetime:
        return to_milliseconds(self._in_zone(self._now()))

    def _in_zone(self, at: datetime) -> datetime:
        return (at if at.tzinfo else at.replace(tzinfo=self.zone)).astimezone(self.zone)


def _memory_limits(config: Config) -> tuple[int, int, int]:
    lines = config.lifecycle
    return lines.memory_warn_lines, lines.memory_line_cap, lines.memory_block_lines
