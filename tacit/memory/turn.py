"""One turn, step by step. Whatever goes wrong, the turn goes on with less, and the receipt says why.

    classify     session key → who listens, and the rule for such sessions
    fixed        identity, and what the session always has
    guard        is there anything to look for?
    watch        topics that the message wakes, and corrections of what the agent said last
    search       passages, in what this session may see
    rank         which of them pass, in which order
    assemble     blocks and budget → text
    flush        what leaves the window is offered to the lifecycle first
    receipt      kept, dropped, why, how long

Nothing here writes durable memory: receipts, the gate log and proposals are all in .tacit.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from typing import TypeVar

from tacit.config import Config, SessionRule
from tacit.context.account import sections, slots
from tacit.context.blocks import Block, room
from tacit.context.fence import visible
from tacit.context.fit import FULL, Appetite, Fitted, Wanted
from tacit.context.fit import NEAR as NEAR_BEST
from tacit.context.history import Window, mark, newly, normal
from tacit.context.rank import NEAR, Ranked, Rules, rank
from tacit.context.render import SYSTEM, assemble
from tacit.context.shorten import Shortened, middle_out
from tacit.context.sources import PROJECTS, Listener, Loaded, Sources, identity_files, label
from tacit.errors import TacitError
from tacit.index.protocol import Place, Stored
from tacit.lifecycle.extract import extract
from tacit.memory.views import View
from tacit.model.changes import Said
from tacit.model.context import Compiled, Dropped, Notice, Receipt
from tacit.model.search import CATEGORIES, Found, Hit, Scope
from tacit.model.topics import Activation, Decision, Event, Stimulus, Topic
from tacit.sessions.classify import classify, scope_of
from tacit.sessions.guard import Guarded, look
from tacit.store import proposals, receipts
from tacit.store.gatelog import GateLog
from tacit.store.home import Home
from tacit.text import tokens
from tacit.watch.gate import GatedActivator
from tacit.watch.pipeline import Moment, Watched, WatcherPipeline
from tacit.watch.shelf import Shelf

_T = TypeVar("_T")

_BESIDE = 1 / 3  # of the gate: what a passage beside a better one needs
_GATE_SHARE = 0.5  # of the time: a slow gate must not cost the turn what the notes say
_RETRIEVED = tuple(category for category in CATEGORIES if category != "topic")  # these wake by their triggers
_CANDIDATES = 60  # passages that are asked for
_MOST_CANDIDATES = 400
_SHORT = 20  # tokens of a short turn
_TOPIC_WORDS = 12  # keywords of awake topics that are looked for besides
_SHOWN = 120  # characters of the message in a receipt
_SESSIONS = 1000  # whose last flushed turn is remembered
_CACHED = 20_000  # characters of a text whose tokens are remembered
_PATH = re.compile(r"[\w.@~+-]*(?:/[\w.@~+-]+)+|[\w@~+-]+\.[A-Za-z]\w{0,7}\b")
_MOST_PATHS = 100
_ASLEEP: list[Activation] = []
_EMPTY = Fitted(Shortened("", ""), "", (), Window((), (), 0), (), ())


@dataclass(frozen=True, slots=True)
class Request:
    """What a host asks for. `seconds`: the time there is, None for as long as it takes. `trial`: asked by
    hand, so it is no turn of the session and leaves no trace in it."""

    message: str
    session_key: str = "agent:main:main"
    agent: str | None = None
    session_id: str = ""  # empty: as the receipts tell
    transcript: str = ""  # of this very session, which is not searched: the host has it
    history: Sequence[object] = ()
    budget: int | None = None
    event: Event | None = None
    paths: tuple[str, ...] = ()  # in tool calls since the last turn, besides those in the history
    wake: tuple[str, ...] = ()  # topics asked for by name
    seconds: float | None = None
    trial: bool = False


def sane(request: Request) -> Request:
    """With text where there has to be text, whatever a host gave."""
    key = request.session_key if isinstance(request.session_key, str) else ""
    return replace(
        request,
        message=request.message if isinstance(request.message, str) else "",
        session_key=key,
        agent=request.agent if isinstance(request.agent, str) else None,
        paths=tuple(path for path in request.paths if isinstance(path, str)),
        wake=tuple(name for name in request.wake if isinstance(name, str)),
    )


class ContextCompiler:
    """Compiles the turns of one home. Safe to use from several threads."""

    def __init__(self, home: Home, config: Config, gate: Callable[[], GatedActivator]) -> None:
        self.home, self.config = home, config
        self._gate = gate
        self.given = receipts.Given(home)
        self.log = GateLog(home)
        self._made: tuple[Shelf, int, WatcherPipeline] | None = None
        self._flushed: dict[str, str] = {}
        self._last: dict[str, Receipt] = {}

    def compile(self, request: Request, view: View, now: datetime) -> Compiled:
        return _Turn(self, sane(request), view, now).compiled()

    def pipeline(self, view: View) -> WatcherPipeline:
        """The watchers over the topics as they are now. Made again when one of them changed."""
        shelf = view.shelf()
        if self._made is None or self._made[0] is not shelf or self._made[1] != shelf.generation:
            threshold = self.config.watchers.similarity_threshold
            self._made = (shelf, shelf.generation, WatcherPipeline(shelf.topics, self._gate(), threshold))
        return self._made[2]

    def last(self, session_key: str, since: datetime) -> Receipt | None:
        """The receipt of the turn before. That of another process is found in the log."""
        if session_key not in self._last:
            return receipts.last(self.home, session_key=session_key, trial=False, since=since)
        return self._last[session_key]

    def keep(self, receipt: Receipt, decisions: Sequence[Decision]) -> None:
        """Nobody can be told if a log cannot be written: doctor looks at the disk."""
        receipts.append(self.home, receipt)
        self.log.append(decisions, receipt.message)
        if not receipt.trial:
            if len(self._last) > _SESSIONS:
                self._last.pop(next(iter(self._last)))
            self._last[receipt.session_key] = receipt

    def newly_left(self, session_id: str, left: Sequence[Said]) -> Sequence[Said]:
        """Of the turns that no longer fit those that still did the last time."""
        fresh = newly(left, self._flushed.get(session_id))
        if left:
            if len(self._flushed) > _SESSIONS:
                self._flushed.pop(next(iter(self._flushed)))
            self._flushed[session_id] = mark(left[-1])
        return fresh


class Steps:
    """Runs the steps of a turn: what fails or comes too late is noted, and the turn goes on without it."""

    def __init__(self, seconds: float | None) -> None:
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.notices: list[Notice] = []
        self.timings: dict[str, float] = {}

    def share(self, part: float) -> float | None:
        """The monotonic time at which so much of the time that is left will be over."""
        if self.deadline is None:
            return None
        now = time.monotonic()
        return now + part * max(0.0, self.deadline - now)

    def run(self, name: str, step: Callable[[], _T], otherwise: _T, *, always: bool = False) -> _T:
        began = time.perf_counter()
        if not always and self.deadline is not None and time.monotonic() > self.deadline:
            self.notices.append(Notice("deadline", f"There was no time left for: {name}."))
            return otherwise
        try:
            return step()
        except (TacitError, OSError) as error:
            self.notices.append(Notice(name, str(error)))
        except Exception as error:  # noqa: BLE001 - a turn never breaks, whatever is wrong with us
            self.notices.append(Notice("bug", f"{name}: {type(error).__name__}: {error}"))
        finally:
            self.timings[name] = round((time.perf_counter() - began) * 1000, 3)
            self._tell_late(name)
        return otherwise

    def _tell_late(self, name: str) -> None:
        late = self.deadline is not None and time.monotonic() > self.deadline
        if late and not any(notice.code == "deadline" for notice in self.notices):
            self.notices.append(Notice("deadline", f"The time was over when this was done: {name}."))


class _Turn:
    """One turn while it is compiled."""

    def __init__(self, compiler: ContextCompiler, request: Request, view: View, now: datetime) -> None:
        self.compiler, self.request, self.view, self.now = compiler, request, view, now
        self.config = compiler.config
        self.message = request.message
        self.steps = Steps(request.seconds)
        sessions = self.config.sessions
        kind = classify(request.session_key, self.config.owners, sessions.orchestration_agents)
        self.kind = replace(kind, agent=request.agent) if request.agent else kind
        self.history: list[Said] = []
        self.is_new = False  # the session has just begun
        self.rule: SessionRule = getattr(sessions, self.kind.type)
        self.listener = Listener(self.rule.audience, self.kind.agent)
        self.sources = Sources(view.read, self.listener)
        self.dropped: list[Dropped] = []
        self.decisions: list[Decision] = []

    def compiled(self) -> Compiled:
        steps, off = self.steps, self._off()
        history = self.history = steps.run("history", lambda: normal(self.request.history), [])
        fixed = () if off else self._blocks("fixed", self._fixed)
        guarded = steps.run("guard", self._guarded, Guarded())
        skipped = off or guarded.skip
        awake = [] if off else steps.run("watch", lambda: self._awake(bool(skipped), history), _ASLEEP)
        topics = self._blocks("topics", lambda: self.sources.topics(awake))
        ranked = None if skipped else self._ranked(awake, guarded)
        knowledge = ranked.blocks if ranked else ()
        wanted = Wanted(self.message, SYSTEM, fixed, topics, knowledge, tuple(history))
        text, used, fitted = steps.run(
            "assemble", lambda: self._assembled(wanted), ("", 0, _EMPTY), always=True
        )
        if not text:  # nothing could be assembled: the message at least
            text = middle_out(visible(self.message), self.budget, count).text
            used = count(text)
        session = steps.run("session", lambda: self._session_id, self.request.session_id, always=True)
        if fitted.history.left and not self._is_trial:
            steps.run("flush", lambda: self._flush(session, fitted.history.left), None, always=True)
        receipt = self._receipt(session, text, used, fitted, skipped, bool(history))
        if not self.view.past:
            self.compiler.keep(receipt, self.decisions)
        return Compiled(text, used, receipt.sections, receipt.dropped, receipt)

    # ------------------------------------------------------------ what the session is

    @property
    def _is_trial(self) -> bool:
        return self.request.trial or bool(self.view.past)

    def _off(self) -> str:
        inject = self.config.inject
        if not inject.enabled:
            self._notice("disabled", "inject.enabled is false, so turns get no context.")
            return "disabled"
        if self.kind.agent in inject.exclude_agents:
            self._notice("excluded", f"The agent {self.kind.agent} is in inject.exclude_agents.")
            return "excluded"
        return ""

    def _scope(self) -> Scope:
        scope = scope_of(self.kind, self.rule.audience)
        without = (self.request.transcript,) if self.request.transcript else ()
        return replace(scope, archived=False, without=without, categories=_RETRIEVED)

    def _fixed(self) -> Iterator[Loaded]:
        compiler = self.config.context_compiler
        names = identity_files(self.rule.files, compiler.profile, self.rule.audience)
        yield from self.sources.identity(names)
        yield from self.sources.session(compiler, self.now.date())

    def _guarded(self) -> Guarded:
        return look(self.message, self.view.names(self._scope()))

    @cached_property
    def _session_id(self) -> str:
        """Given, or that of the turn before as long as it goes on: a turn without history after one that had
        some begins a new session, and so does one after a long pause."""
        if self.request.session_id or self._is_trial:
            return self.request.session_id
        last = self.compiler.last(self.request.session_key, self._since)
        if last is not None and self._goes_on(last):
            return last.session_id
        self.is_new = True
        return f"turns_{secrets.token_hex(4)}"

    def _goes_on(self, last: Receipt) -> bool:
        pause = self.now - datetime.fromisoformat(last.at)
        idle = timedelta(hours=self.config.capture.idle_seal_hours)
        return pause < idle and (bool(self.history) or not last.had_history)

    @property
    def _since(self) -> datetime:
        """Receipts from before are of no session that could still go on."""
        return self.now - timedelta(hours=max(48, self.config.capture.idle_seal_hours))

    # ------------------------------------------------------------ topics

    def _awake(self, skipped: bool, history: Sequence[Said]) -> list[Activation]:
        pipeline = self.compiler.pipeline(self.view)
        if self.rule.audience == "owner":  # what is wrong with a topic may tell what is in it
            for problem in pipeline.problems:
                self._notice("topic", str(problem))
        for name in self.request.wake:
            if not pipeline.knows(name, self._allows):
                self.dropped.append(
                    Dropped(label("topic", name), "topics", "", "missing", "there is no such topic")
                )
        moment = Moment(self.now.isoformat(), self.steps.share(_GATE_SHARE))
        corrected = pipeline.corrections(
            _last_said(history), moment, spoken=self._spoken, allowed=self._allows
        )
        watched = Watched()
        if not skipped or self.request.event or self.request.wake:
            paths = (*self.request.paths, *_paths(history))
            stimulus = Stimulus(self.message, "input", paths, self.request.event)
            watched = pipeline.process(stimulus, moment, allowed=self._allows, woken=self.request.wake)
        self.decisions += [*corrected.decisions, *watched.decisions]
        for one in self.decisions:
            if one.by == "error":
                self._notice("gate-error", f"{one.topic_name} stayed asleep: {one.reason}")
        self.dropped += [
            _asleep(pipeline.topic(one.topic_name), one)
            for one in self.decisions
            if one.outcome != "activated"
        ]
        return [*corrected.activations, *watched.activations]

    def _spoken(self) -> dict[str, int]:
        """How many turns ago each topic corrected the agent in this session."""
        labels = self.compiler.given.labels(self.request.session_key, self._session_id, self._since)
        return {
            name: ago
            for label, ago in labels.items()
            for kind, _, name in [label.partition(":")]
            if kind == "correction"
        }

    def _allows(self, topic: Topic) -> bool:
        return not self.listener.may_hear(topic.audience, topic.agents)

    # ------------------------------------------------------------ knowledge

    def _ranked(self, awake: Sequence[Activation], guarded: Guarded) -> Ranked | None:
        found = self.steps.run("search", lambda: self._found(awake), None)
        if found is None:
            return None
        for note in found.degraded:
            self._notice(note.partition(":")[0] if ":" in note[:12] else "index", note)
        ranked = self.steps.run("rank", lambda: self._passing(found, guarded), None, always=True)
        self.dropped += ranked.dropped if ranked else ()
        return ranked

    def _found(self, awake: Sequence[Activation]) -> Found:
        words = dict.fromkeys(word for one in awake for word in one.topic.keywords)
        query = " ".join([self.message, *list(words)[:_TOPIC_WORDS]])
        return self.view.find(query, self._scope(), self._candidates, self.now, self.steps.deadline)

    @property
    def _candidates(self) -> int:
        """How many passages to ask for: enough to fill a budget that is there to be filled."""
        if self.request.budget is None:
            return _CANDIDATES
        return min(_MOST_CANDIDATES, max(2 * _CANDIDATES, self.budget // _SHORT))

    def _passing(self, found: Found, guarded: Guarded) -> Ranked:
        inject = self.config.inject
        rules = Rules(
            self.message,
            inject.confidence_gate,
            inject.strong,
            self.config.context_compiler.half_life_days,
            self.now.date(),
            guarded.technical,
        )
        paths = dict.fromkeys(hit.path for hit in found.hits)
        return rank(
            found.hits,
            rules,
            near=self._near(found.hits),
            references=self.view.references(paths),
            given=self._already_given(),
            excluded=self._excluded,
        )

    def _near(self, hits: Sequence[Hit]) -> Mapping[Place, Sequence[Stored]]:
        """The best turns as a whole, each with the next one."""
        turns = [(hit.path, hit.lines[0]) for hit in hits[:NEAR] if hit.turn]
        return self.view.around(turns, 0, 1) if turns else {}

    def _already_given(self) -> Collection[str]:
        if self._is_trial:
            return ()
        session = self._session_id
        if self.is_new:
            return ()
        before = self.compiler.given.seen(self.request.session_key, session, self._since)
        after = self.config.inject.repeat_after_turns
        return [digest for digest, ago in before.items() if after is None or ago <= after]

    def _excluded(self, hit: Hit) -> str:
        compiler = self.config.context_compiler
        if hit.turn and hit.speaker == "system":
            return "it is what a system said to an agent"
        settings = {"memory": compiler.memory_md, "journal": compiler.journal}
        if settings.get(hit.category) == "never" or (hit.path == PROJECTS and compiler.projects == "never"):
            return "the config says never"
        return ""

    # ------------------------------------------------------------ the prompt

    @property
    def budget(self) -> int:
        compiler = self.config.context_compiler
        given = (self.request.budget, self.rule.token_budget, compiler.token_budget)
        return max(0, next(tokens for tokens in given if tokens is not None))

    def _assembled(self, wanted: Wanted) -> tuple[str, int, Fitted]:
        compiler = self.config.context_compiler
        return assemble(wanted, partial(room, compiler), self.budget, count, self._appetite)

    @property
    def _appetite(self) -> Appetite:
        """A budget that somebody named is there to be used: for the conversation, and where there is none for
        knowledge. Without one every passage must be worth its tokens."""
        compiler = self.config.context_compiler
        least = self.config.inject.confidence_gate * _BESIDE
        if self.request.budget is None:
            return Appetite(least, NEAR_BEST, compiler.max_injected_chars, compiler.max_snippet_chars)
        return Appetite(least, NEAR_BEST) if self.history else FULL

    def _blocks(self, step: str, load: Callable[[], Iterator[Loaded]]) -> tuple[Block, ...]:
        loaded: list[Loaded] = self.steps.run(step, lambda: list(load()), [], always=True)
        self.dropped += [one for one in loaded if isinstance(one, Dropped)]
        return tuple(one for one in loaded if isinstance(one, Block))

    # ------------------------------------------------------------ what is kept of it

    def _flush(self, session: str, left: Sequence[Said]) -> None:
        """Offer what leaves the window to the lifecycle; nothing is written to a note."""
        fresh = self.compiler.newly_left(session, left)
        found = extract(
            fresh,
            session_key=self.request.session_key,
            session_id=session,
            made_at=self.now,
            projects=self.view.projects(),
            users="owner" if self.rule.audience == "owner" else "other",
        )
        code, told = ("flush-ok", f"{_turns(len(fresh))} left the window; nothing in them to keep.")
        if found is not None:
            trouble = proposals.offer(self.compiler.home, found)
            code = "flush-failed" if trouble else "flushed"
            told = (
                trouble or f"{_turns(len(fresh))} left the window; {len(found.changes)} lines were proposed."
            )
        if fresh:
            self._notice(code, told)

    def _notice(self, code: str, text: str) -> None:
        self.steps.notices.append(Notice(code, text))

    def _receipt(
        self, session: str, text: str, used: int, fitted: Fitted, skipped: str, had_history: bool
    ) -> Receipt:
        found = tuple(sections(fitted, count))
        return Receipt(
            id=receipts.new_id(self.now, secrets.randbits(20)),
            at=self.now.isoformat(),
            session_key=self.request.session_key,
            session_id=session,
            session_type=self.kind.type,
            agent=self.kind.agent,
            audience=self.rule.audience,
            message_hash=sha256(self.message.encode("utf-8", "surrogatepass")).hexdigest(),
            message=" ".join(self.message[: 2 * _SHOWN].split())[:_SHOWN],
            budget=self.budget,
            tokens=used,
            characters=len(text),
            sections=found,
            dropped=(*self.dropped, *fitted.dropped),
            skipped=skipped,
            notices=(*self.steps.notices, *fitted.notices),
            timings_ms=self.steps.timings,
            slots=slots(found, room(self.config.context_compiler, self.budget)),
            had_history=had_history,
            trial=self.request.trial,
            past=self.view.past,
        )


@lru_cache(maxsize=4096)
def _remembered(text: str) -> int:
    return tokens.count(text)


def count(text: str) -> int:
    """Tokens. Identity, topics and passages come again and again."""
    return _remembered(text) if len(text) <= _CACHED else tokens.count(text)


def _asleep(topic: Topic, decision: Decision) -> Dropped:
    return Dropped(
        label("topic", topic.name),
        "topics",
        topic.path,
        "gate" if decision.outcome == "rejected" else "asleep",
        decision.reason,
        score=decision.tier2_score,
        channels=decision.channels,
    )


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"


def _last_said(history: Sequence[Said]) -> str:
    """What the agent said last."""
    return next((turn.text for turn in reversed(history) if turn.role == "agent"), "")


def _paths(history: Sequence[Said]) -> Iterator[str]:
    """Of files that tools were called with since the user spoke last."""
    found: dict[str, None] = {}
    for turn in reversed(history):
        if turn.role == "user" or len(found) >= _MOST_PATHS:
            break
        if turn.role == "tool":
            found |= dict.fromkeys(_PATH.findall(turn.text[:2000]))
    yield from list(found)[:_MOST_PATHS]
