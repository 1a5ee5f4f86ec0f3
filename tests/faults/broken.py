"""Repositories as crashes, power cuts and people leave them.

For each: `tacit doctor` names what is wrong and changes nothing; after at most one `tacit init` everything
works again, or what a person has to do is said and our own work goes on meanwhile; working files are never
touched.
"""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import tacit
from tacit.cli.main import main as command_line
from tests.faults import homes, inject, invariants
from tests.faults.cases import Case, differences, picture
from tests.faults.homes import must
from tests.faults.invariants import Kept
from tests.faults.machine import acknowledgements, need_root
from tests.faults.said import acknowledged, text_of

_NOBODY = 65534
_OURS = (".git/", ".tacit/", "raw/")


@dataclass(frozen=True, slots=True)
class Damage:
    name: str
    make: Callable[[Path], object]
    named: str  # what the doctor's words must contain
    index_survives: bool = True


def _old(lock: Path) -> None:
    lock.touch()
    hours_ago = time.time() - 7200
    os.utime(lock, (hours_ago, hours_ago))


def _die_with_the_branch_locked(home: Path) -> None:
    """A real death: a turn on a copy tells when git takes the branch; others are killed about then, until
    one has left the lock. (The number of calls differs a little from run to run.)"""
    names = [call.path for call in _turn_on_a_copy(home, inject.Fault()).calls]
    taken = names.index(".git/refs/heads/main.lock") + 1
    for at in range(taken - 2, taken + 9):
        _turn_on_a_copy(home, inject.Fault("kill", at))
        if (_copy_of(home) / ".git/refs/heads/main.lock").exists():
            shutil.rmtree(home)
            _copy_of(home).rename(home)
            return
    raise RuntimeError("no kill left the branch locked")


def _copy_of(home: Path) -> Path:
    return home.with_name("copy")


def _turn_on_a_copy(home: Path, fault: inject.Fault) -> inject.Ran:
    copy = _copy_of(home)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy, symlinks=True)
    with acknowledgements() as acks:
        return inject.run(["turn", str(copy), str(acks)], copy, fault)


def _empty(file: Path) -> None:
    file.chmod(0o644)
    file.write_bytes(b"")


def _loose(home: Path, revision: str) -> Path:
    name = must(home, "rev-parse", revision).decode().strip()
    return home / ".git/objects" / name[:2] / name[2:]


def _blob_of_head(home: Path) -> Path:
    path = next((home / "raw").rglob("*.md")).relative_to(home)
    return _loose(home, f"HEAD:{path}")


def _garbage(file: Path) -> None:
    file.write_bytes(bytes(range(40)))


DAMAGES = (
    Damage("stale HEAD.lock", lambda home: _old(home / ".git/HEAD.lock"), "HEAD.lock"),
    Damage("stale refs/heads/main.lock", lambda home: _old(home / ".git/refs/heads/main.lock"), "main.lock"),
    Damage("refs/heads/main.lock of our own death just now", _die_with_the_branch_locked, "main.lock"),
    Damage("index of 0 bytes", lambda home: _empty(home / ".git/index"), "index", index_survives=False),
    Damage("garbage index", lambda home: _garbage(home / ".git/index"), "index", index_survives=False),
    Damage("empty ref file", lambda home: _empty(home / ".git/refs/heads/main"), "main"),
    Damage("empty blob of HEAD that is on disk", lambda home: _empty(_blob_of_head(home)), "empty"),
    Damage("empty HEAD commit", lambda home: _empty(_loose(home, "HEAD")), "main", index_survives=False),
    Damage("missing HEAD", lambda home: (home / ".git/HEAD").unlink(), "HEAD"),
)


def _furnished(folder: Path) -> Path:
    home = folder / "home"
    homes.furnish(home)
    # The person's last commit is not ours to bring back when it is damaged: the newest one is a turn of ours.
    with tacit.open(home).session(session_id="last", channel="test") as session:
        session.message("user", text_of("last.question"))
    return home


def _mended(damage: Damage, folder: Path) -> Iterator[str]:
    home = _furnished(folder)
    own = homes.own_work(home) if damage.index_survives else None
    damage.make(home)
    kept = Kept(("last.question",), own)
    files = picture(home, *_OURS)
    yield from _diagnosed(home, damage.named)
    _commits(home)  # some are mended by the next commit already, the rest by tacit init
    tacit.init(home)
    if not _commits(home):
        yield "nothing can be committed, not even after tacit init"
    yield from invariants.broken(home, kept)
    yield from (f"a working file changed: {path}" for path in differences(files, picture(home, *_OURS)))


def _diagnosed(home: Path, named: str) -> Iterator[str]:
    before = picture(home)
    told = io.StringIO()
    with redirect_stdout(told), redirect_stderr(told):
        command_line(["doctor", "--home", str(home)])
    if named not in told.getvalue():
        yield f"doctor does not name it: {told.getvalue()!r}"
    yield from (f"doctor changed {path}" for path in differences(before, picture(home)))


def _commits(home: Path) -> bool:
    """Whether a turn can be kept and committed now."""
    try:
        memory = tacit.open(home)
        session = memory.session(channel="test")
        session.message("user", text_of(f"{session.session_id}.question"))
        sealed = session.end()
        return sealed is not None and bool(sealed.commit)
    except tacit.TacitError:
        return False


def _index_lock(folder: Path) -> Iterator[str]:
    """It may be a person's, so it stays; it is explained, and our commits go on without it."""
    home = _furnished(folder)
    own = homes.own_work(home)
    lock = home / ".git/index.lock"
    _old(lock)
    yield from _diagnosed(home, "index.lock")
    if not _commits(home):
        yield "our commits wait for a dead lock that they do not need"
    if not lock.exists():
        yield "a lock that may be a person's was deleted"
    lock.unlink(missing_ok=True)  # as the doctor says
    yield from invariants.broken(home, Kept(("last.question",), own))


def _given_away(folder: Path) -> Iterator[str]:
    """As root the home of another user works; git alone would refuse it."""
    need_root()
    home = _furnished(folder)
    own = homes.own_work(home)
    for file in (home, *home.rglob("*")):
        os.chown(file, _NOBODY, _NOBODY, follow_symlinks=False)
    yield from invariants.broken(home, Kept(("last.question",), own))


def _not_ours(folder: Path) -> Iterator[str]:
    """Another user's home that we may only read: explained, nothing changed."""
    need_root()
    home = _furnished(folder)
    folder.chmod(0o755)
    for file in (home, *home.rglob("*")):
        file.chmod(file.stat().st_mode | (0o055 if file.is_dir() else 0o044))
    before = picture(home)
    with acknowledgements() as acks:
        process = inject.start(["demoted", str(home), str(acks)], folder)
        error = process.communicate()[1].decode("utf-8", "replace")
        if acknowledged(acks):
            yield "something was acknowledged that cannot have been written"
    if process.returncode != 1 or "may not write" not in error:
        yield f"the refusal is not explained: {process.returncode} {invariants.last_line(error)}"
    yield from (f"changed: {path}" for path in differences(before, picture(home)))


def _case(damage: Damage) -> Case:
    return Case(damage.name, lambda folder: _mended(damage, folder))


MENDED = (
    *(_case(damage) for damage in DAMAGES),
    Case("repository owned by another user, we are root", _given_away),
)
EXPLAINED = (
    Case("stale index.lock", _index_lock),
    Case("repository owned by another user, we may only read", _not_ours),
)
