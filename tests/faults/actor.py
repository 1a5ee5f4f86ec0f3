"""The processes that faults happen to: `python -m tests.faults.actor OPERATION HOME ACKS [NAME]`.

Each writes a line to ACKS after each acknowledgement: the name of the message, `note VERSION`, `edit NAME`,
`sealed PATH` or `committed PATH`; and what took how long. An error that the product explains (TacitError)
ends the process with code 1 and its text; anything else ends it with a traceback and code 3.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import perf_counter

import tacit
from tacit.cli.main import main as command_line
from tests.faults.homes import fill
from tests.faults.said import NOTE, SHARED, acknowledge, note_of, text_of, version_of

_NOBODY = 65534


def turn(home: Path, acks: Path, name: str) -> None:
    """One whole conversation, said once: start, message, tool, message, end."""
    memory = tacit.open(home)
    session = memory.session(session_id=name, channel="test", model="none")
    for part in _parts(session, name):
        part()
        acknowledge(acks, f"{name}.{part.__name__}")
    _end(session, acks)


def stubborn(home: Path, acks: Path, name: str) -> None:
    """The same by a host that tries once more whatever fails; it goes on talking when the end failed, and
    dies before it can try to end again."""
    memory = tacit.open(home)
    session = memory.session(session_id=name, channel="test", model="none")
    for part in _parts(session, name):
        _twice(part)
        acknowledge(acks, f"{name}.{part.__name__}")
    try:
        _end(session, acks)
    except tacit.TacitError:
        _twice(lambda: session.message("user", text_of(f"{name}.afterwards")))
        acknowledge(acks, f"{name}.afterwards")
        os._exit(1)


def _parts(session: tacit.Session, name: str) -> Iterator[Callable[[], object]]:
    def question() -> object:
        return session.message("user", text_of(f"{name}.question"))

    def tool() -> object:
        return session.tool(f"{name}.tool", "notes.md", "42 lines")

    def answer() -> object:
        return session.message("agent", text_of(f"{name}.answer"))

    yield from (question, tool, answer)


def _twice(act: Callable[[], object]) -> None:
    try:
        act()
    except tacit.TacitError:
        act()


def _end(session: tacit.Session, acks: Path) -> None:
    sealed = session.end()
    assert sealed is not None
    acknowledge(acks, f"sealed {sealed.path}")
    if sealed.commit:
        acknowledge(acks, f"committed {sealed.path}")


def commands(home: Path, acks: Path, name: str) -> None:
    """One whole conversation by `tacit capture`; an acknowledgement is exit code 0."""
    spoken = {
        "start": ["start", "--session-id", name],
        "question": ["message", name, "user", text_of(f"{name}.question")],
        "tool": ["tool", name, f"{name}.tool", "notes.md", "--result", "42 lines"],
        "answer": ["message", name, "agent", text_of(f"{name}.answer")],
        "end": ["end", name],
    }
    for part, arguments in spoken.items():
        if code := command_line(["capture", *arguments, "--home", str(home)]):
            sys.exit(code)
        acknowledge(acks, f"{name}.{part}" if part not in ("start", "end") else part)


def leave(home: Path, acks: Path, name: str) -> None:
    """One message, then death."""
    session = tacit.open(home).session(session_id=name, channel="test")
    session.message("user", text_of(f"{name}.question"))
    acknowledge(acks, f"{name}.question")
    os._exit(1)


def demoted(home: Path, acks: Path, name: str) -> None:
    """A turn by a user who may only read. A turn elsewhere comes first: this Python may be out of that
    user's reach, so everything has to be loaded by then."""
    elsewhere = home.with_name("elsewhere")
    tacit.init(elsewhere)
    turn(elsewhere, elsewhere.with_name("elsewhere.acks"), name)
    os.setgroups([])
    os.setgid(_NOBODY)
    os.setuid(_NOBODY)
    turn(home, acks, name)


def init(home: Path, acks: Path, name: str) -> None:
    tacit.init(home)
    acknowledge(acks, "init")


def adopt(home: Path, acks: Path, name: str) -> None:
    tacit.init(home, adopt=True)
    acknowledge(acks, "init")


def commit(home: Path, acks: Path, name: str) -> None:
    """What `tacit run commit` does."""
    memory = tacit.open(home)
    if not memory.commit().waiting:
        acknowledge(acks, "work")


def write(home: Path, acks: Path, name: str) -> None:
    """The next version of the note, compared and swapped."""
    memory = tacit.open(home)
    acknowledge(acks, f"note {_next_version(memory)}")


def _next_version(memory: tacit.Memory) -> int:
    note = memory.read(NOTE)
    version = (version_of(note.text) or 0) + 1
    memory.write(NOTE, note_of(version), replacing=note)
    return version


def turns(home: Path, acks: Path, name: str) -> None:
    """Whole turns without end."""
    memory = tacit.open(home)
    for number in count():
        _whole_turn(memory, acks, name, number)


def _whole_turn(memory: tacit.Memory, acks: Path, name: str, number: int) -> None:
    """A conversation, a note, now and then the work that is due."""
    session = memory.session(session_id=f"{name}-{number}", channel="test", model="none")
    for part in _parts(session, f"{name}-{number}"):
        part()
        acknowledge(acks, f"{name}-{number}.{part.__name__}")
    acknowledge(acks, f"note {_next_version(memory)}")
    _end(session, acks)
    if number % 4 == 3:
        memory.commit()
        acknowledge(acks, "work")


def life(home: Path, acks: Path, name: str) -> None:
    """From nothing: a new home, then turns without end, with packing at each pass of work. Beside them one
    conversation that never ends: what is said in it is kept by the sync of its record alone."""
    init(home, acks, name)
    fill(home)
    memory = tacit.open(home)
    memory.write(NOTE, note_of(1), replacing=None)
    acknowledge(acks, "note 1")
    endless = memory.session(session_id=f"{name}-endless", channel="test")
    for number in count():
        endless.message("user", text_of(f"{name}-endless.{number}"))
        acknowledge(acks, f"{name}-endless.{number}")
        _whole_turn(memory, acks, name, number)


def crowd(home: Path, acks: Path, name: str) -> None:
    """One of many writers, until the file STOP appears beside ACKS: turns, and edits of a note all share."""
    memory = tacit.open(home)
    stop = acks.with_name("STOP")
    for number in count():
        if stop.exists():
            return
        _timed_turn(memory, acks, f"{name}-{number}")
        _edit_shared(memory, acks, f"{name}-{number}")
        if number % 10 == 9:
            memory.commit()


def _timed_turn(memory: tacit.Memory, acks: Path, name: str) -> None:
    began = perf_counter()
    session = memory.session(session_id=name, channel="test", model="none")
    for part in _parts(session, name):
        asked = perf_counter()
        part()
        acknowledge(acks, f"{name}.{part.__name__}", f"message-ms {1000 * (perf_counter() - asked):.2f}")
    _end(session, acks)
    acknowledge(acks, f"turn-ms {1000 * (perf_counter() - began):.2f}")


def _edit_shared(memory: tacit.Memory, acks: Path, name: str) -> None:
    note = memory.read(SHARED)
    try:
        memory.write(SHARED, f"{note.text}- {name}\n", replacing=note)
    except tacit.ChangedOnDisk:
        acknowledge(acks, f"conflict {name}")
    else:
        acknowledge(acks, f"edit {name}")


OPERATIONS: dict[str, Callable[[Path, Path, str], None]] = {
    operation.__name__: operation
    for operation in (
        turn,
        stubborn,
        commands,
        leave,
        demoted,
        init,
        adopt,
        commit,
        write,
        turns,
        life,
        crowd,
    )
}


def main(arguments: list[str]) -> int:
    operation, home, acks, *name = arguments
    try:
        OPERATIONS[operation](Path(home), Path(acks), name[0] if name else operation)
    except tacit.TacitError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    except Exception:  # noqa: BLE001 - told apart from an explained error by its exit code
        traceback.print_exc()
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
