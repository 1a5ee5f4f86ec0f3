"""Compiles one turn. `ContextCompiler.compile` shows the steps in their order:

    situation    session key and sender → who listens, and the rule for such sessions; whether to search
    repeat       is this the same turn again, with nothing changed since? Then return the same answer
    session      does this turn continue the last session of its key?
    candidates   identity and other fixed files; topics that the message activates, and corrections of the
                 agent's last message; chunks within what this session may see, those that pass, best first
    prompt       blocks and budget → text
    flush        turns that leave the window are first offered for extraction
    receipt      kept, dropped, why, how long

Each step takes values and returns a value, with notices and dropped blocks for the receipt. If a step fails
or misses the deadline, the turn goes on without it, and the receipt says why.

In the `prompt` mode the host gets the whole prompt. In the `runtime` mode it gets only what it lacks:
a static prefix, and a text for this turn. Both may be empty. If a turn finishes after its host was answered
without it, the receipt says so, and the turn does not count.

Nothing here writes durable memory: receipts, the gate log and proposals are all in .tacit. Private text and
secrets reach none of them, nor the model that is asked about topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from tacit.context import receipts
from tacit.context.budget import PromptCandidates
from tacit.context.candidates import (
    NO_BLOCKS,
    NO_TOPICS,
    Retrieval,
    TopicSelection,
    activate_topics,
    load_fixed_files,
    load_topics,
    may_activate_topics,
    retrieve,
)
from tacit.context.delivery.files import clear_context_file
from tacit.context.home_view import HomeView
from tacit.context.loaded_files import FileLoader
from tacit.context.model import Compiled, Quote
from tacit.context.receipt_builder import build_receipt, discard_late, quote_chunks
from tacit.context.rendering import EMPTY_PROMPT, SYSTEM_TEXT, Prompt, assemble_prompt, fall_back_to_message
from tacit.context.repeat import NO_REPEAT, Repeat, cache_answer, find_repeat, write_copies
from tacit.context.request import Request, normalize_request, sanitize
from tacit.context.situation import Situation, assess, identify_session
from tacit.context.stage import StageRunner, StepResult
from tacit.context.state import CompilerState
from tacit.diagnostics import Notice
from tacit.learn import window_proposals
from tacit.learn.window_proposals import extract
from tacit.transcripts.attribution import Utterance

_MODEL_GATE_TIME_SHARE = 0.5  # of the time left: a slow gate must leave time for the search


class ContextCompiler:
    """Compiles the turns of one home."""

    def __init__(self, state: CompilerState) -> None:
        self.state = state

    def compile(self, request: Request, view: HomeView, now: datetime) -> Compiled:
        state, config, stages = self.state, self.state.config, StageRunner(request.seconds)
        situation = assess(normalize_request(request), state, view, now, stages)
        repeat = NO_REPEAT
        if not situation.blocked:
            began = stages.began_ns
            repeat = stages.run(
                "again", lambda: StepResult(find_repeat(situation, state, view, began)), NO_REPEAT
            )
        if repeat.answer is not None:
            return repeat.answer
        situation = stages.run(
            "session",
            lambda: StepResult(identify_session(situation, state, stages.is_late())),
            situation,
            always=True,
        )
        loader = FileLoader(view.read, situation.listener, view.agents_of)
        fixed, settings = NO_BLOCKS, config.context_compiler
        if not situation.blocked:
            fixed = stages.run(
                "fixed", lambda: load_fixed_files(situation, settings, loader), NO_BLOCKS, always=True
            )
        topics = NO_TOPICS
        if may_activate_topics(situation):
            topics = stages.run("watch", lambda: self._activate_topics(situation, view, stages), NO_TOPICS)
        topic_blocks = stages.run("topics", lambda: load_topics(loader, topics), NO_BLOCKS, always=True)
        retrieval = retrieve(situation, topics.activations, repeat, state, view, stages)
        candidates = PromptCandidates(
            situation.request.message, SYSTEM_TEXT, fixed, topic_blocks, retrieval.blocks, situation.history
        )
        prompt = stages.run(
            "assemble",
            lambda: StepResult(assemble_prompt(candidates, situation, config)),
            EMPTY_PROMPT,
            always=True,
        )
        if prompt.overflow and not situation.is_dry_run:
            stages.run(
                "flush", lambda: flush_turns(situation, prompt.overflow, state, view), None, always=True
            )
        stages.note(prompt.notices, prompt.dropped)
        prompt = fall_back_to_message(prompt, situation)
        return self._finish(situation, prompt, topics, retrieval, repeat, stages)

    def _activate_topics(
        self, situation: Situation, view: HomeView, stages: StageRunner
    ) -> StepResult[TopicSelection]:
        pipeline, deadline = self.state.pipeline(view), stages.share(_MODEL_GATE_TIME_SHARE)
        return activate_topics(situation, pipeline, self.state.injections, deadline)

    def _finish(
        self,
        situation: Situation,
        prompt: Prompt,
        topics: TopicSelection,
        retrieval: Retrieval,
        repeat: Repeat,
        stages: StageRunner,
    ) -> Compiled:
        """Deliver the prompt, log its receipt, and remember the answer."""
        state, quotes = self.state, quote_chunks(prompt)
        if situation.is_runtime and not situation.is_dry_run and not stages.is_answered():
            prompt = self._write_files(situation, prompt, quotes, stages)
        receipt = build_receipt(situation, prompt, retrieval.skip, stages, state.config.context_compiler)
        compiled = Compiled(
            prompt.text,
            prompt.tokens,
            receipt.sections,
            receipt.dropped,
            receipt,
            prompt.static_prefix,
            () if prompt.is_withheld else quotes,
        )
        is_late = not situation.is_dry_run and stages.is_answered()  # checked again: writing takes time
        if is_late:
            compiled = discard_late(compiled)
            if situation.is_runtime:
                directory = state.config.sessions.directory
                clear_context_file(state.home, directory, situation.key, stages.began_ns)
        if not situation.past and not situation.request.quiet:
            state.log_turn(compiled.receipt, topics.decisions)
        if retrieval.has_claim and (is_late or retrieval.skip):
            state.recent.searches.drop(lambda key: key == situation.key)
        if situation.is_dry_run:
            return compiled
        receipt = receipts.redact_for_host(compiled.receipt)
        compiled = replace(compiled, receipt=receipt, dropped=receipt.dropped)
        if not is_late:
            cache_answer(compiled, quotes, situation, repeat.generation, state)
        return compiled

    def _write_files(
        self, situation: Situation, prompt: Prompt, quotes: tuple[Quote, ...], stages: StageRunner
    ) -> Prompt:
        """Write the copies that the session's delivery modes ask for. The prompt for the host is withheld if
        `runtime` is not one of them."""
        write = partial(write_copies, situation, situation.session_id, quotes, self.state, stages.began_ns)
        stages.run("lanes", lambda: StepResult(None, write()), None, always=True)
        if "runtime" in situation.delivery_modes:
            return prompt
        stages.note([Notice("lane", f"{situation.profile.won} has no runtime lane.")])
        return replace(prompt, text="", static_prefix="", tokens=0, is_withheld=True)


def flush_turns(
    situation: Situation, left: Sequence[Utterance], state: CompilerState, view: HomeView
) -> StepResult[None]:
    """Extract proposals from turns that leave the window. This writes no note."""
    fresh = state.turns_to_flush(situation.session_id, left)
    extraction = extract(
        [replace(turn, text=sanitize(turn.text)) for turn in fresh],
        session_key=situation.key,
        session_id=situation.session_id,
        made_at=situation.now,
        projects=view.projects(),
        users="owner" if situation.listener.audience == "owner" else "other",
    )
    if not fresh:
        return StepResult(None)
    number = "1 turn" if len(fresh) == 1 else f"{len(fresh)} turns"
    if extraction is None:
        return StepResult(None, (Notice("flush-ok", f"{number} left the window; nothing in them to keep."),))
    if problem := window_proposals.offer(state.home, extraction):
        return StepResult(None, (Notice("flush-failed", problem),))
    text = f"{number} left the window; {len(extraction.changes)} lines were proposed."
    return StepResult(None, (Notice("flushed", text),))
