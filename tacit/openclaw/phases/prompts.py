"""Questions by which people find out whether an agent still knows what is not loaded any more.

Asked in a session of the right kind, by hand or by `phase check --ask`; what happened is read from
transcripts and receipts: whether the passage was given, or the file was read by a tool, and whether the
answer has anything of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tacit.memory import Memory
from tacit.model.turns import Message, ToolCall, Turn
from tacit.openclaw.find import Host
from tacit.openclaw.phases.stages import is_since
from tacit.sessions.classify import classify
from tacit.store import receipts, transcripts
from tacit.store.home import CONVERSATIONS
from tacit.text.words import fold
from tacit.workspace.place import AGENTS, COMPACT, LESSONS, MEMORY, TOOLS, Place

ANY = (AGENTS, TOOLS, COMPACT, MEMORY, LESSONS)
OWNERS_OWN = ("main_session", "private_dm", "orchestration")
# Of the documents that the criteria are from, and which files answer them. An owner names others.
OF_MEMORY: Mapping[str, tuple[str, ...]] = {
    "What did we decide about local model strategy?": (MEMORY,),
    "When did we run the APA shakedown and what were the results?": (MEMORY,),
    "What's Forge's role and when was it set up?": (MEMORY,),
}
OF_A_TOPIC: Mapping[str, tuple[str, ...]] = {
    "Spawn Melody to fix a bug in the auth module": (AGENTS,),
    "What port does Mission Control run on?": (TOOLS, COMPACT),
    "What lessons did we learn about timeout settings?": (MEMORY, LESSONS),
}
_WORD = re.compile(r"[^\W_]+(?:[-.:][^\W_]+)*")
_NEAR = timedelta(minutes=10)  # before a message is kept, in which its turn was made
_RARE = 2  # lines of a file that a word may stand in and still tell something


class Asked(NamedTuple):
    """One question, and what came of it."""

    prompt: str
    where: str  # transcript and line; empty: it was not asked
    file: str = ""  # that had the answer and reached the agent; empty: none did
    how: str = ""
    shared: tuple[str, ...] = ()  # words of that file that are in the answer and not in the question
    reply: str = ""

    @property
    def verdict(self) -> str:
        if not self.where:
            return "BLOCKED"
        return "PASS" if self.file and is_told(self.shared) else "FAIL"

    @property
    def told(self) -> str:
        if not self.where:
            return f"“{self.prompt}” was not asked yet"
        if not self.file:
            return f"“{self.prompt}” ({self.where}): no file with an answer reached the agent"
        if not is_told(self.shared):
            said = " ".join(self.reply.split())[:80]
            return f"“{self.prompt}” ({self.where}): {self.how}, but the answer has nothing of it: “{said}”"
        return f"“{self.prompt}” ({self.where}): {self.how}; the answer has {', '.join(self.shared[:4])}"


def is_told(shared: Sequence[str]) -> bool:
    """Two words that are rare in the file, or one with a number: less may be chance."""
    return len(shared) > 1 or any(map(str.isdigit, "".join(shared)))


# ---------------------------------------------------------------- asking


def keys(owners: Sequence[str]) -> tuple[str, str]:
    """A direct session of the owner's and a topic, neither of which is anybody's conversation."""
    channel, _, person = (owners[0] if owners else "").rpartition(":")
    place = f"agent:main:{channel or 'telegram'}"
    direct = f"{place}:tacit-check:direct:{person}" if person else "agent:main:main"
    return direct, f"{place}:group:tacit-check:topic:1"


def ask(host: Host, key: str, prompt: str) -> None:
    """By the host's own command, which asks its model."""
    host.openclaw().json("agent", "--message", prompt, "--session-key", key, "--json")


# ---------------------------------------------------------------- what came of it


def seen(
    memory: Memory, place: Place, prompts: Mapping[str, tuple[str, ...]], types: Collection[str], since: str
) -> list[Asked]:
    """Each question the last time it was asked in such a session. `prompts`: which files have the answer."""
    last: dict[str, _Place] = {}
    for key, path, turns in _talks(memory, types, since):
        for at, turn in enumerate(turns):
            prompt = _prompt_of(turn, prompts, since)
            if prompt and (prompt not in last or turn.at >= last[prompt].turns[0].at):
                last[prompt] = _Place(key, path, turns[at:])
    return [
        _outcome(memory, place, prompt, files, last[prompt]) if prompt in last else Asked(prompt, "")
        for prompt, files in prompts.items()
    ]


class _Place(NamedTuple):
    """Where a question was asked, with all that was said from there on."""

    key: str
    path: str
    turns: Sequence[Turn]


def _talks(memory: Memory, types: Collection[str], since: str) -> Iterator[tuple[str, str, Sequence[Turn]]]:
    first = datetime.fromisoformat(since).date().isoformat().replace("-", "/") if since else ""
    folder = memory.home.root / CONVERSATIONS
    for file in sorted(folder.rglob("*.md")):
        path = file.relative_to(memory.home.root).as_posix()
        if path.removeprefix(f"{CONVERSATIONS}/") < first:
            continue
        transcript = transcripts.attempt_load(memory.home, path)
        key = str(transcript.fields.get("session_key") or "")
        if classify(key, memory.config.owners).type in types:
            yield key, path, transcript.turns


def _prompt_of(turn: Turn, prompts: Collection[str], since: str) -> str:
    if not isinstance(turn, Message) or turn.role != "user" or not is_since(turn.at.isoformat(), since):
        return ""
    said = fold(" ".join(turn.text.split()))
    return next((one for one in prompts if fold(one) == said), "")


def _outcome(memory: Memory, place: Place, prompt: str, files: tuple[str, ...], where: _Place) -> Asked:
    asked, answer = where.turns[0], _answer(where.turns[1:])
    reply = "\n".join(one.text for one in answer if isinstance(one, Message) and one.role == "agent")
    reached = {**_given(memory, where.key, prompt, asked.at, files), **_read(answer, files)}
    best = Asked(prompt, f"{where.path}:{asked.line}", reply=reply)
    for file, how in reached.items():
        shared = tuple(_shared(place.read(file) or "", prompt, reply))
        if not best.file or len(shared) > len(best.shared):
            best = best._replace(file=file, how=how, shared=shared)
    return best


def _answer(turns: Sequence[Turn]) -> list[Turn]:
    """All until somebody speaks again."""
    found: list[Turn] = []
    for turn in turns:
        if isinstance(turn, Message) and turn.role == "user":
            break
        found.append(turn)
    return found


def _given(memory: Memory, key: str, prompt: str, at: datetime, files: Collection[str]) -> dict[str, str]:
    """Files of which the agent was given passages, or which were loaded when the session began."""
    found: dict[str, str] = {}
    for receipt in receipts.of_session(memory.home, key, since=at - _NEAR):
        is_it = receipt.message and fold(prompt).startswith(fold(receipt.message.rstrip("…").strip()))
        if not receipt.trial and (receipt.lane == "bootstrap" or (receipt.lane == "runtime" and is_it)):
            for section in receipt.sections:
                name = section.source.partition(":")[0].rpartition("/")[2]
                if name in files:
                    how = "was loaded" if receipt.lane == "bootstrap" else "was given"
                    found.setdefault(name, f"{section.source} {how} (receipt {receipt.id})")
    return found


def _read(answer: Sequence[Turn], files: Collection[str]) -> dict[str, str]:
    """Files that a tool read, or found something in."""
    calls = [one for one in answer if isinstance(one, ToolCall)]
    return {
        name: f"{call.name} reached {name}"
        for call in calls
        for name in files
        if name in f"{call.summary} {call.result}"
    }


def _shared(text: str, prompt: str, reply: str) -> Iterator[str]:
    lines = [set(map(fold, _WORD.findall(line))) for line in text.splitlines()]
    often = Counter(word for words in lines for word in words)
    known = set(map(fold, _WORD.findall(prompt)))
    for word in dict.fromkeys(map(fold, _WORD.findall(reply))):
        is_telling = len(word) > 3 or any(map(str.isdigit, word))
        if is_telling and word not in known and 0 < often[word] <= _RARE:
            yield word
