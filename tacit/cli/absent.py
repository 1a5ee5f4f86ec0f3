"""Why a file is not in a prompt, as far as its receipt and the file itself can tell."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from tacit.cli.lines import one_line
from tacit.cli.paths import within
from tacit.cli.receipt import blocks_of, other_notices, path_of, why_skipped
from tacit.errors import StoreError, UsageError
from tacit.model.context import Notice, Receipt
from tacit.model.search import AUDIENCES, Document
from tacit.store import listing
from tacit.store.files import Tree
from tacit.store.home import Home
from tacit.store.workspaces import Workspaces
from tacit.text import notes
from tacit.text.passages import document
from tacit.text.workspaces import is_of_one

_OF_OTHERS = re.compile(r".*-shortened|flush.*|topic|cut")  # codes of notices


class Reason(NamedTuple):
    code: str
    text: str
    command: str = ""  # that tells more


def meant(home: Home, workspaces: Workspaces, receipt: Receipt, given: str) -> str:
    """A path in the home or in a workspace; or how the path of one file ends, in the receipt first and then
    on disk."""
    path = workspaces.path_of(os.path.abspath(given)) or within(home.root, given)
    in_receipt = dict.fromkeys(path_of(block) for block in blocks_of(receipt))
    if path in in_receipt or is_there(workspaces, path):
        return path
    on_disk = [*(name for name, _ in listing.indexed(os.fspath(home.root))), *workspaces.stamps({})]
    for names in (in_receipt, on_disk):
        ending = sorted(name for name in names if name.endswith(f"/{path}"))
        if len(ending) > 1:
            raise UsageError(f"{path!r} may be any of: {', '.join(ending[:5])}. Give more of it.")
        if ending:
            return ending[0]
    return path


def is_there(workspaces: Workspaces, path: str) -> bool:
    file = workspaces.file_of(path)
    return file != "" and os.path.lexists(file)


def reasons_for(home: Home, workspaces: Workspaces, receipt: Receipt, path: str) -> Iterator[Reason]:
    """Everything that kept it out, as far as it can be known; never empty."""
    try:
        text = notes.decode(workspaces.read(path))
        changed = datetime.fromtimestamp(os.stat(workspaces.file_of(path)).st_mtime, UTC)
    except (StoreError, OSError) as error:
        yield Reason("unreadable", f"It cannot be read: {error}")
        return
    found = document(path, text, changed.date(), workspaces.agents_of(path))
    hard = [
        *_outside(home, workspaces, path),
        *_out_of_scope(receipt, found),
        *([Reason("skipped", f"Nothing was looked up: {why_skipped(receipt)}.")] if receipt.skipped else []),
        *_empty(found),
        *_asleep(path),
    ]
    yield from hard
    yield from _not_brought(home, receipt, path)
    yield from _newer(receipt, changed)
    yield from (Reason(notice.code, f"{notice.code}: {notice.text}") for notice in _troubles(receipt))
    if not hard:
        yield _no_match(receipt, path)


def _troubles(receipt: Receipt) -> list[Notice]:
    """What the search may have missed it for; what became of other blocks is none of these."""
    return [notice for notice in other_notices(receipt) if not _OF_OTHERS.fullmatch(notice.code)]


def _outside(home: Home, workspaces: Workspaces, path: str) -> Iterator[Reason]:
    if is_of_one(path):
        if path not in workspaces.stamps({}):
            yield Reason("unindexed", "Search leaves it out: it is too large, or linked from elsewhere.")
    elif not any(name == path for name, _ in listing.indexed(os.fspath(home.root))):
        folders = ", ".join(listing.INDEXED)
        yield Reason("unindexed", f"Search does not see it: it looks through text files in {folders}.")


def _out_of_scope(receipt: Receipt, found: Document) -> Iterator[Reason]:
    if found.archived:
        yield Reason("archived", "It is archived: search finds it, but it is not loaded by itself.")
    own = found.conversation and found.conversation == receipt.session_key
    if not own and _is_narrower(found.audience, receipt.audience):
        yield Reason(
            "audience",
            f"It is for {_PEOPLE[found.audience]}, and this session ({receipt.session_type}) "
            f"sees only what is for {_PEOPLE[receipt.audience]}.",
        )
    if found.agents and receipt.agent and receipt.agent not in found.agents:
        others = ", ".join(found.agents)
        yield Reason("agent", f"It belongs to the agent {others}, and this turn was for {receipt.agent}.")


_PEOPLE = {"owner": "the owner alone", "group": "groups", "anyone": "anyone"}


def _is_narrower(of_file: str, of_session: str) -> bool:
    order: Sequence[str] = AUDIENCES
    return of_session in order and order.index(of_file) > order.index(of_session)


def _empty(found: Document) -> Iterator[Reason]:
    if not found.passages:
        yield Reason("empty", "There is no text in it.")


def _asleep(path: str) -> Iterator[Reason]:
    if path.startswith("topics/"):
        yield Reason("asleep", "It is a topic, and nothing in the message came near what wakes it.")


def _not_brought(home: Home, receipt: Receipt, path: str) -> Iterator[Reason]:
    """What a topic subscribes to comes with it; it may be found for itself as well."""
    awake = {path_of(part) for part in receipt.sections if part.slot == "topics"}
    names = [name for name in _subscribers(home, path) if name not in awake]
    if names:
        yield Reason("subscribed", f"It comes with {', '.join(names)}, which was not awake.")


def _subscribers(home: Home, path: str) -> Iterator[str]:
    for topic, _ in sorted(listing.walk(os.fspath(home.root), "topics"), key=lambda found: found[0]):
        try:
            fields = notes.parse(notes.decode(Tree(home.root).read(topic)), topic).fields
        except (StoreError, OSError):
            continue
        subscribed = fields.get("subscriptions")
        if isinstance(subscribed, list) and path in subscribed:
            yield topic


def _newer(receipt: Receipt, changed: datetime) -> Iterator[Reason]:
    try:
        if changed <= datetime.fromisoformat(receipt.at).astimezone():
            return
    except ValueError:
        return
    yield Reason("newer", "It was changed after this turn, which may not have known what it says now.")


def _no_match(receipt: Receipt, path: str) -> Reason:
    considered = sum(block.slot == "knowledge" for block in blocks_of(receipt))
    unlisted = sum(receipt.unlisted.values())
    of_them = f"the {considered + unlisted:,} candidates" if considered + unlisted else "the candidates"
    listed = f" (the receipt lists {considered:,} of them)" if unlisted else ""
    command = f"tacit search {shlex.quote(one_line(receipt.message))} --under {shlex.quote(path)} --explain"
    text = f"Nothing in it matched: it was not among {of_them}{listed}. To see how near it comes:"
    return Reason("unmatched", text, command)
