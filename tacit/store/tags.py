"""Names for moments: memory/daily, memory/weekly, memory/milestone, memory/before, memory/extract."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tacit.errors import GitError, UsageError
from tacit.model.problems import Problem
from tacit.store import files
from tacit.store.git import Git
from tacit.store.gitwork import GitWork
from tacit.store.home import Home

KINDS = ("milestone", "before", "extract")
_ASIDE = ("explore/", "extract/")


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    commit: str
    when: datetime
    subject: str
    annotated: bool = False


def tags(git: Git) -> list[Tag]:
    form = "%(refname)%00%(objectname)%00%(*objectname)%00%(creatordate:iso-strict)%00%(contents:subject)"
    out = git.run("for-each-ref", "--sort=creatordate", f"--format={form}", "refs/tags/memory/")
    found = []
    for line in out.decode("utf-8", "replace").split("\n")[:-1]:
        name, own, peeled, when, subject = line.split("\0")
        if when:  # else it names no commit
            short = name.removeprefix("refs/tags/")
            found.append(Tag(short, peeled or own, datetime.fromisoformat(when), subject, bool(peeled)))
    return found


def tag_periods(
    git: Git, now: datetime, *, daily: bool, weekly: bool, skipped: list[Problem] | None = None
) -> list[str]:
    """Tag each day and ISO week that has commits, at its last one. Today's tag moves until the day is over;
    the week is tagged on its Sunday. Days and a week that were missed are caught up. Tags that git cannot
    make are left out, and gathered in `skipped` with the reason."""
    made: list[str] = []
    if (git.branch() or "").startswith(_ASIDE):
        return made  # what is tried out there is not what the day was
    known = {tag.name: tag for tag in tags(git)}
    periods = [*(_days(now) if daily else ()), *(_weeks(now) if weekly else ())]
    commits = _commits_since(git, min((begin for _, begin, _ in periods), default=now))
    for name, begin, end in periods:
        commit = next((commit for commit, when in commits if begin <= when < end), None)
        old = known.get(name)
        if commit and _may_move(git, old, commit):
            try:
                git.set_ref(f"refs/tags/{name}", commit, old=old.commit if old else None)
                made.append(name)
            except GitError as error:
                _skip(name, error, skipped)
    return made


def _skip(name: str, error: GitError, skipped: list[Problem] | None) -> None:
    """A tag of the user's named `memory` or `memory/daily` stands where git needs a folder. That must stop
    neither the other tags nor the work after them."""
    if skipped is not None:
        todo = "A tag of yours may be in its way; rename that with: git tag"
        skipped.append(Problem(name, f"could not be tagged: {error.detail.strip()}", todo, level="warning"))


def _may_move(git: Git, old: Tag | None, commit: str) -> bool:
    """Only forward, and never a tag made by hand."""
    if old is None or old.annotated:
        return old is None
    return old.commit != commit and git.is_ancestor(old.commit, commit)


def _days(now: datetime) -> list[tuple[str, datetime, datetime]]:
    days = [_midnight(now) - timedelta(days=back) for back in range(7, -1, -1)]
    return [(f"memory/daily/{day:%Y-%m-%d}", day, day + timedelta(days=1)) for day in days]


def _weeks(now: datetime) -> list[tuple[str, datetime, datetime]]:
    monday = _midnight(now) - timedelta(days=now.weekday())
    mondays = [monday - timedelta(days=7), *([monday] if now.weekday() == 6 else [])]
    return [(f"memory/weekly/{day:%G-W%V}", day, day + timedelta(days=7)) for day in mondays]


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _commits_since(git: Git, begin: datetime) -> list[tuple[str, datetime]]:
    """Newest first, without what merges brought along."""
    since = f"--since=@{max(0, int(begin.timestamp()))} +0000"
    out = git.run("rev-list", "--first-parent", "--timestamp", since, "HEAD")
    rows = [line.split() for line in out.decode().splitlines()]
    return [(name, datetime.fromtimestamp(int(when), begin.tzinfo)) for when, name in rows]


def snapshot(git: Git, name: str, kind: str = "milestone") -> str:
    """Name the present state. Refuses a name that is taken, and any that git could not carry. Takes the
    home's lock."""
    if kind not in KINDS:
        raise UsageError(f"{kind!r} is not a kind of snapshot. Use one of: {', '.join(KINDS)}.")
    tag = f"memory/{kind}/{name}"
    ref = f"refs/tags/{tag}"
    if git.attempt("check-ref-format", ref).returncode:
        raise UsageError(f"{name!r} cannot be part of a tag. Use letters, digits, dots and hyphens.")
    home = Home(git.root)
    with files.locked(home.lock):
        head = git.head()
        if head is None:
            raise UsageError("There is no commit yet to take a snapshot of. Run: tacit run commit")
        if git.resolve(ref):
            raise UsageError(f"{tag} exists already. Choose another name; snapshots do not move.")
        with GitWork(home, git).writing({}):
            git.set_ref(ref, head)
    return tag
