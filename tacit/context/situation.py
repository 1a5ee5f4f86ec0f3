"""The situation of a turn: who listens, what the session may get, and whether to search at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tacit.config import Config
from tacit.context.history_window import normalize_history
from tacit.context.home_view import HomeView
from tacit.context.injection_log import NEUTRAL_SKIPS, LastTurn
from tacit.context.loaded_files import Listener
from tacit.context.request import Request, sanitize
from tacit.context.stage import StageRunner, StepResult
from tacit.context.state import CompilerState
from tacit.diagnostics import Notice
from tacit.home.categories import CATEGORIES
from tacit.privacy.redaction import is_left_open
from tacit.search.model import Scope
from tacit.search.query_filter import FilterResult, filter_query, is_own_tool
from tacit.sessions.keys import find_excluded_agent
from tacit.sessions.policy import SessionProfile
from tacit.transcripts.attribution import Utterance

# Topics are not retrieved: their triggers activate them.
_RETRIEVED_CATEGORIES = tuple(category for category in CATEGORIES if category != "topic")
_PER_TURN_MODES = frozenset({"runtime", "file", "daily"})  # delivery modes that bring something each turn
_MIN_SESSION_HOURS = 48  # of receipts are read, even if sessions end earlier


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything about a turn that is known before context is collected for it."""

    request: Request
    now: datetime
    past: str  # the commit, if the turn is compiled from one
    profile: SessionProfile
    listener: Listener
    history: tuple[Utterance, ...]
    query: str  # the sanitized message: it is searched for and may be stored
    scope: Scope  # of the search
    budget: int  # tokens
    since: datetime  # sessions with no receipt since then are over
    blocked: str = ""  # why the session gets nothing at all: disabled, excluded or lane
    skip: str = ""  # why nothing is searched for
    is_technical: bool = False  # the question
    session_id: str = ""
    is_new: bool = False  # the session begins with this turn

    @property
    def key(self) -> str:
        return self.request.session_key

    @property
    def is_dry_run(self) -> bool:
        return self.request.trial or bool(self.past)

    @property
    def is_runtime(self) -> bool:
        """Whether the host gets only what it lacks, instead of the whole prompt."""
        return self.request.lane == "runtime"

    @property
    def delivery_modes(self) -> Sequence[str]:
        return self.profile.rule.lanes or ()


def assess(
    request: Request, state: CompilerState, view: HomeView, now: datetime, stages: StageRunner
) -> Situation:
    """The situation, before its session has an id."""
    config = state.config
    profile = state.profile_of(
        request.session_key,
        agent=request.agent,
        sender=request.sender,
        trigger=request.trigger,
        trial=request.trial or bool(view.past),
    )
    blocked = _check_access(request, profile, config)
    stages.note((*profile.notices, *blocked.notices))
    history = stages.run("history", lambda: StepResult(normalize_history(request.history)), list[Utterance]())
    query = _sanitize_message(request.message, history)
    without = (request.transcript,) if request.transcript else ()
    scope = replace(profile.scope, archived=False, without=without, categories=_RETRIEVED_CATEGORIES)
    filtered = stages.run(
        "guard", lambda: StepResult(_filter(request, profile, query, scope, view, stages)), FilterResult()
    )
    budgets = (request.budget, profile.rule.token_budget, config.context_compiler.token_budget)
    return Situation(
        request=request,
        now=now,
        past=view.past,
        profile=profile,
        listener=Listener(profile.rule.audience, profile.kind.agent),
        history=tuple(history),
        query=query,
        scope=scope,
        budget=max(0, next(tokens for tokens in budgets if tokens is not None)),
        since=now - timedelta(hours=max(_MIN_SESSION_HOURS, config.capture.idle_seal_hours)),
        blocked=blocked.value,
        skip=blocked.value or _check_own_call(request, query) or filtered.skip,
        is_technical=filtered.technical,
        session_id=request.session_id,
    )


def _check_access(request: Request, profile: SessionProfile, config: Config) -> StepResult[str]:
    """The code of the reason why the session gets nothing, or empty."""
    if not config.inject.enabled:
        notice = Notice("disabled", "inject.enabled is false, so turns get no context.")
        return StepResult("disabled", (notice,))
    if agent := find_excluded_agent(profile.agents, config.inject.exclude_agents):
        notice = Notice("excluded", f"The agent {agent} is in inject.exclude_agents.")
        return StepResult("excluded", (notice,))
    if request.lane == "runtime" and not _PER_TURN_MODES.intersection(profile.rule.lanes or ()):
        return StepResult("lane")
    return StepResult("")


def _sanitize_message(message: str, history: Sequence[Utterance]) -> str:
    """Hosts split long messages: if the previous message of the same person left a private tag open, this one
    is private too."""
    last = history[-1] if history else None
    is_private = last is not None and last.role == "user" and last.text != message and is_left_open(last.text)
    return sanitize(f"<private>{message}" if is_private else message)


def _filter(
    request: Request,
    profile: SessionProfile,
    query: str,
    scope: Scope,
    view: HomeView,
    stages: StageRunner,
) -> FilterResult:
    names = view.names(scope, stages.deadline)  # indexes changed files
    if request.trigger == "heartbeat" or profile.kind.form == "heartbeat":
        return FilterResult("heartbeat", "the host says that it is a heartbeat")
    return filter_query(query, names)


def _check_own_call(request: Request, query: str) -> str:
    """The skip code if tacit itself asks: by its own tool, or with a message of only injected text."""
    if is_own_tool(request.tool):
        return "own-tool"
    return "own-block" if request.message.strip() and not query.strip() else ""


# ---------------------------------------------------------------- the session


def identify_session(situation: Situation, state: CompilerState, is_late: bool) -> Situation:
    """Add the id of the session: the one from the host, or that of the previous turn as long as its session
    continues. A turn without history after one with history begins a new session, and so does a turn after a
    long pause. `is_late`: there is no time left to search."""
    host_id = situation.request.session_id
    if situation.is_dry_run or (host_id and not situation.request.joins):
        return situation
    key, has_history = situation.key, bool(situation.history)
    idle = timedelta(hours=state.config.capture.idle_seal_hours)
    # A turn that the host began by itself, such as a heartbeat without history, begins no other session.
    is_neutral = is_late or situation.skip in NEUTRAL_SKIPS

    def continues(last: LastTurn) -> bool:
        pause = situation.now - datetime.fromisoformat(last.at)
        return pause < idle and (has_history or not last.had_history or is_neutral)

    if host_id:
        state.join(key, host_id, situation.since, situation.now, continues)
        return situation
    session_id, is_new = state.session_of(
        key, situation.since, situation.now, continues, had_history=has_history
    )
    return replace(situation, session_id=session_id, is_new=is_new)
