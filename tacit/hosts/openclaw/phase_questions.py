"""Questions that show whether an agent still knows what is no longer loaded.

They are asked in a session of the right kind, by hand or by `phase check --ask`. The result is read from
transcripts and receipts: whether a chunk was injected or a tool read the file, and whether the answer uses
it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tacit.config import Config
from tacit.context import receipts
from tacit.errors import HostError
from tacit.home.layout import CONVERSATIONS
from tacit.hosts.openclaw.config import settings_of
from tacit.hosts.openclaw.machine import OpenClawHost
from tacit.hosts.openclaw.phases import Migration, entered_at, is_since
from tacit.hosts.openclaw.workspace import AGENTS, COMPACT, LESSONS, MEMORY, TOOLS, AgentWorkspace
from tacit.memory import Memory
from tacit.sessions.keys import classify
from tacit.sessions.keys import parse_sender as person_of
from tacit.text.words import fold
from tacit.transcripts import writer
from tacit.transcripts.model import Message, ToolCall, Turn

ANY_FILE = (AGENTS, TOOLS, COMPACT, MEMORY, LESSONS)
OWNER_SESSION_TYPES = ("main_session", "private_dm", "orchestration")
# From the documents that define the criteria, with the files that answer them. An owner may name others.
MEMORY_QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "What did we decide about local model strategy?": (MEMORY,),
    "When did we run the APA shakedown and what were the results?": (MEMORY,),
    "What's Forge's role and when was it set up?": (MEMORY,),
}
TOPIC_QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "Spawn Melody to fix a bug in the auth module": (AGENTS,),
    "What port does Mission Control run on?": (TOOLS, COMPACT),
    "What lessons did we learn about timeout settings?": (MEMORY, LESSONS),
}
_WORD = re.compile(r"[^\W_]+(?:[-.:][^\W_]+)*")
_ANSWER_TIMEOUT_S = 15.0  # until an answer is in the transcript
_MAX_RECEIPT_AGE = timedelta(minutes=10)  # between a receipt and its message in the transcript
_MAX_WORD_LINES = 2  # lines of a file with the word; a more frequent word proves nothing


class QuestionResult(NamedTuple):
    """One question and its result."""

    prompt: str
    where: str  # transcript and line; empty: it was not asked
    file: str = ""  # the file that had the answer and reached the agent; empty: none did
    how: str = ""
    shared: tuple[str, ...] = ()  # words of that file in the answer but not in the question
    reply: str = ""

    @property
    def verdict(self) -> str:
        if not self.where:
            return "BLOCKED"
        return "PASS" if self.file and shows_knowledge(self.shared) else "FAIL"

    @property
    def summary(self) -> str:
        if not self.where:
            return f"“{self.prompt}” was not asked yet"
        if not self.file:
            return f"“{self.prompt}” ({self.where}): no file with an answer reached the agent"
        if not shows_knowledge(self.shared):
            excerpt = " ".join(self.reply.split())[:80]
            return (
                f"“{self.prompt}” ({self.where}): {self.how}, but the answer has nothing of it: “{excerpt}”"
            )
        return f"“{self.prompt}” ({self.where}): {self.how}; the answer has {', '.join(self.shared[:4])}"


def shows_knowledge(shared: Sequence[str]) -> bool:
    """Two words that are rare in the file, or one with a number: less may be chance."""
    return len(shared) > 1 or any(map(str.isdigit, "".join(shared)))


# ---------------------------------------------------------------- asking


def check_session_keys(owners: Sequence[str]) -> tuple[str, str]:
    """A direct session of the owner's and a topic, neither used for real conversations."""
    channel, person = person_of(owners[0]) if owners else ("", "")
    place = f"agent:main:{channel or 'telegram'}"
    direct = f"{place}:tacit-check:direct:{person}" if person else "agent:main:main"
    return direct, f"{place}:group:tacit-check:topic:1"


def ask_host(host: OpenClawHost, key: str, prompt: str) -> None:
    """Asks through the host's own command, which calls its model."""
    host.openclaw().json("agent", "--message", prompt, "--session-key", key, "--json")


# ---------------------------------------------------------------- what came of it


def find_results(
    memory: Memory,
    place: AgentWorkspace,
    prompts: Mapping[str, tuple[str, ...]],
    types: Collection[str],
    since: str,
) -> list[QuestionResult]:
    """The latest result of each question in sessions of these types. `prompts`: the files that have the
    answer."""
    last: dict[str, _Occurrence] = {}
    for key, path, turns in _find_transcripts(memory, types, since):
        for index, turn in enumerate(turns):
            prompt = _match_prompt(turn, prompts, since)
            if prompt and (prompt not in last or turn.at >= last[prompt].turns[0].at):
                last[prompt] = _Occurrence(key, path, turns[index:])
    return [
        _evaluate_answer(memory, place, prompt, files, last[prompt])
        if prompt in last
        else QuestionResult(prompt, "")
        for prompt, files in prompts.items()
    ]


class _Occurrence(NamedTuple):
    """Where a question was asked, with the turns from there on."""

    key: str
    path: str
    turns: Sequence[Turn]


def _find_transcripts(
    memory: Memory, types: Collection[str], since: str
) -> Iterator[tuple[str, str, Sequence[Turn]]]:
    first = datetime.fromisoformat(since).date().isoformat().replace("-", "/") if since else ""
    folder = memory.home.root / CONVERSATIONS
    for file in sorted(folder.rglob("*.md")):
        path = file.relative_to(memory.home.root).as_posix()
        if path.removeprefix(f"{CONVERSATIONS}/") < first:
            continue
        transcript = writer.attempt_load(memory.home, path)
        key = str(transcript.fields.get("session_key") or "")
        if classify(key, memory.config.owners).type in types:
            yield key, path, transcript.turns


def _match_prompt(turn: Turn, prompts: Collection[str], since: str) -> str:
    if not isinstance(turn, Message) or turn.role != "user" or not is_since(turn.at.isoformat(), since):
        return ""
    text = fold(" ".join(turn.text.split()))
    return next((prompt for prompt in prompts if fold(prompt) == text), "")


def _evaluate_answer(
    memory: Memory, place: AgentWorkspace, prompt: str, files: tuple[str, ...], occurrence: _Occurrence
) -> QuestionResult:
    question, answer_turns = occurrence.turns[0], _answer_turns(occurrence.turns[1:])
    reply = "\n".join(
        turn.text for turn in answer_turns if isinstance(turn, Message) and turn.role == "agent"
    )
    reached = {
        **_find_injected_files(memory, occurrence.key, prompt, question.at, files),
        **_find_files_read(answer_turns, files),
    }
    best = QuestionResult(prompt, f"{occurrence.path}:{question.line}", reply=reply)
    for file, access in reached.items():
        shared = tuple(_shared_words(place.read(file) or "", prompt, reply))
        if not best.file or len(shared) > len(best.shared):
            best = best._replace(file=file, how=access, shared=shared)
    return best


def _answer_turns(turns: Sequence[Turn]) -> list[Turn]:
    """All turns until the user speaks again."""
    answer: list[Turn] = []
    for turn in turns:
        if isinstance(turn, Message) and turn.role == "user":
            break
        answer.append(turn)
    return answer


def _find_injected_files(
    memory: Memory, key: str, prompt: str, moment: datetime, files: Collection[str]
) -> dict[str, str]:
    """Files of which chunks were injected, or which were loaded when the session began."""
    injected: dict[str, str] = {}
    for receipt in receipts.read_receipts(memory.home, key, since=moment - _MAX_RECEIPT_AGE):
        is_same_message = receipt.message and fold(prompt).startswith(
            fold(receipt.message.rstrip("…").strip())
        )
        if not receipt.trial and (
            receipt.lane == "bootstrap" or (receipt.lane == "runtime" and is_same_message)
        ):
            for section in receipt.sections:
                name = section.source.partition(":")[0].rpartition("/")[2]
                if name in files:
                    access = "was loaded" if receipt.lane == "bootstrap" else "was given"
                    injected.setdefault(name, f"{section.source} {access} (receipt {receipt.id})")
    return injected


def _find_files_read(answer: Sequence[Turn], files: Collection[str]) -> dict[str, str]:
    """Files that a tool read or searched."""
    calls = [turn for turn in answer if isinstance(turn, ToolCall)]
    return {
        name: f"{call.name} reached {name}"
        for call in calls
        for name in files
        if name in f"{call.summary} {call.result}"
    }


def _shared_words(text: str, prompt: str, reply: str) -> Iterator[str]:
    lines = [set(map(fold, _WORD.findall(line))) for line in text.splitlines()]
    line_counts = Counter(word for words in lines for word in words)
    prompt_words = set(map(fold, _WORD.findall(prompt)))
    for word in dict.fromkeys(map(fold, _WORD.findall(reply))):
        is_telling = len(word) > 3 or any(map(str.isdigit, word))
        if is_telling and word not in prompt_words and 0 < line_counts[word] <= _MAX_WORD_LINES:
            yield word


# ---------------------------------------------------------------- asking


def memory_prompts(config: Config) -> Mapping[str, tuple[str, ...]]:
    configured = settings_of(config).memory_prompts
    return dict.fromkeys(configured, (MEMORY,)) or MEMORY_QUESTIONS


def topic_prompts(config: Config) -> Mapping[str, tuple[str, ...]]:
    configured = settings_of(config).topic_prompts
    return dict.fromkeys(configured, ANY_FILE) or TOPIC_QUESTIONS


def ask_open_questions(migration: Migration, say: Callable[[str], None]) -> None:
    """Asks the questions without a good answer, one after another, through the host's own command."""
    host = migration.host
    if host is None or host.command is None or not host.is_serving():
        raise HostError("No agent can be asked: the gateway is not running. Start it: openclaw gateway run")
    direct, topic = check_session_keys(migration.memory.config.owners)
    for phase, key, questions, types in (
        ("1", direct, memory_prompts(migration.memory.config), OWNER_SESSION_TYPES),
        ("2", topic, topic_prompts(migration.memory.config), ("forum_topic",)),
    ):
        since = entered_at(migration.lines, phase)
        question_round = _QuestionRound(migration, key, questions, types, since)
        for result in question_round.seen() if since else ():
            if result.verdict != "PASS":
                say(f"asking  “{result.prompt}” in {key}")
                ask_host(host, key, result.prompt)
                question_round.wait(result)


class _QuestionRound(NamedTuple):
    """Questions in one kind of session."""

    migration: Migration
    key: str
    questions: Mapping[str, tuple[str, ...]]
    types: Sequence[str]
    since: str

    def seen(self) -> list[QuestionResult]:
        memory, place = self.migration.memory, self.migration.place
        return find_results(memory, place, self.questions, self.types, self.since)

    def wait(self, previous: QuestionResult) -> None:
        """The transcript has the answer only a moment after it was given."""
        single = self._replace(questions={previous.prompt: self.questions[previous.prompt]})
        end = time.monotonic() + _ANSWER_TIMEOUT_S
        while time.monotonic() < end:
            (result,) = single.seen()
            if result.reply and result.where != previous.where:
                return
            time.sleep(0.2)
