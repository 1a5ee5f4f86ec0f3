"""Why a file is not in a prompt, and why a turn was skipped: from the receipt and the file itself."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from tacit.context.model import Dropped, Receipt, Section
from tacit.diagnostics import Notice
from tacit.errors import StoreError, UsageError
from tacit.home import listing
from tacit.home.files import Tree
from tacit.home.layout import Home
from tacit.home.workspace_files import is_workspace_path
from tacit.markdown import notes
from tacit.privacy.audience import AUDIENCES
from tacit.search.documents import read_document
from tacit.search.model import Document
from tacit.workspaces.folders import Workspaces

_UNRELATED_NOTICES = re.compile(r".*-shortened|flush.*|topic|cut")  # codes of notices


ReceiptBlock: TypeAlias = Section | Dropped

SKIP_REASONS = {
    "empty": "the message is empty",
    "heartbeat": "it is a heartbeat",
    "command": "it is a command of the host",
    "acknowledgement": "it is only an acknowledgement",
    "disabled": "inject.enabled is false",
    "excluded": "the agent is in inject.exclude_agents",
    "lane": "the session's rule has no lane that gives anything to a turn",
    "files": "inject.files is host",
    "own-tool": "a tool of tacit asked",
    "own-block": "the message is only what tacit gave before",
    "not-first": "inject.mode is first, and this session had its search",
    "debounced": "the message before came less than inject.debounce_ms ago",
    "search": "the search failed",
    "deadline": "the time was over before anything was looked for",
    "busy": "too much was asked at the same time",
}


class Reason(NamedTuple):
    code: str
    text: str
    command: str = ""  # to find out more


def resolve_path(home: Home, workspaces: Workspaces, receipt: Receipt, path: str) -> str:
    """A path in the home or a workspace, or the unambiguous end of one, in the receipt or on disk."""
    in_receipt = dict.fromkeys(path_of(block) for block in blocks_of(receipt))
    if path in in_receipt or file_exists(workspaces, path):
        return path
    on_disk = [*(name for name, _ in listing.walk_indexed(os.fspath(home.root))), *workspaces.stamps({})]
    for names in (in_receipt, on_disk):
        ending = sorted(name for name in names if name.endswith(f"/{path}"))
        if len(ending) > 1:
            raise UsageError(f"{path!r} may be any of: {', '.join(ending[:5])}. Give more of it.")
        if ending:
            return ending[0]
    return path


def file_exists(workspaces: Workspaces, path: str) -> bool:
    file = workspaces.file_of(path)
    return file != "" and os.path.lexists(file)


def reasons_for(home: Home, workspaces: Workspaces, receipt: Receipt, path: str) -> Iterator[Reason]:
    """Every known reason why the file is not in the prompt; never empty."""
    try:
        text = notes.decode(workspaces.read(path))
        changed = datetime.fromtimestamp(os.stat(workspaces.file_of(path)).st_mtime, UTC)
    except (StoreError, OSError) as error:
        yield Reason("unreadable", f"It cannot be read: {error}")
        return
    doc = read_document(path, text, changed.date(), workspaces.agents_of(path))
    certain = [
        *_index_reasons(home, workspaces, path),
        *_scope_reasons(receipt, doc),
        *([Reason("skipped", f"Nothing was looked up: {explain_skip(receipt)}.")] if receipt.skipped else []),
        *_empty_reasons(doc),
        *_asleep_reasons(path),
    ]
    yield from certain
    yield from _subscription_reasons(home, receipt, path)
    yield from _newer_reasons(receipt, changed)
    yield from (Reason(notice.code, f"{notice.code}: {notice.text}") for notice in _search_notices(receipt))
    if not certain:
        yield _no_match_reason(receipt, path)


def _search_notices(receipt: Receipt) -> list[Notice]:
    """Notices about why the search may have missed the file, not about other blocks."""
    return [notice for notice in other_notices(receipt) if not _UNRELATED_NOTICES.fullmatch(notice.code)]


def _index_reasons(home: Home, workspaces: Workspaces, path: str) -> Iterator[Reason]:
    if is_workspace_path(path):
        if path not in workspaces.stamps({}):
            yield Reason("unindexed", "Search leaves it out: it is too large, or linked from elsewhere.")
    elif not any(name == path for name, _ in listing.walk_indexed(os.fspath(home.root))):
        folders = ", ".join(listing.INDEXED)
        yield Reason("unindexed", f"Search does not see it: it looks through text files in {folders}.")


def _scope_reasons(receipt: Receipt, doc: Document) -> Iterator[Reason]:
    if doc.archived:
        yield Reason("archived", "It is archived: search finds it, but it is not loaded by itself.")
    is_own = doc.conversation and doc.conversation == receipt.session_key
    if not is_own and _is_narrower(doc.audience, receipt.audience):
        yield Reason(
            "audience",
            f"It is for {_AUDIENCE_LABELS[doc.audience]}, and this session ({receipt.session_type}) "
            f"sees only what is for {_AUDIENCE_LABELS[receipt.audience]}.",
        )
    if doc.agents and receipt.agent and receipt.agent not in doc.agents:
        others = ", ".join(doc.agents)
        yield Reason("agent", f"It belongs to the agent {others}, and this turn was for {receipt.agent}.")


_AUDIENCE_LABELS = {"owner": "the owner alone", "group": "groups", "anyone": "anyone"}


def _is_narrower(file_audience: str, session_audience: str) -> bool:
    order: Sequence[str] = AUDIENCES
    return session_audience in order and order.index(file_audience) > order.index(session_audience)


def _empty_reasons(doc: Document) -> Iterator[Reason]:
    if not doc.chunks:
        yield Reason("empty", "There is no text in it.")


def _asleep_reasons(path: str) -> Iterator[Reason]:
    if path.startswith("topics/"):
        yield Reason("asleep", "It is a topic, and nothing in the message came near what wakes it.")


def _subscription_reasons(home: Home, receipt: Receipt, path: str) -> Iterator[Reason]:
    """A subscribed file comes with its topic; search may find it on its own as well."""
    awake = {path_of(part) for part in receipt.sections if part.slot == "topics"}
    names = [name for name in _subscribers(home, path) if name not in awake]
    if names:
        yield Reason("subscribed", f"It comes with {', '.join(names)}, which was not awake.")


def _subscribers(home: Home, path: str) -> Iterator[str]:
    for topic, _ in sorted(listing.walk(os.fspath(home.root), "topics"), key=lambda entry: entry[0]):
        try:
            fields = notes.parse(notes.decode(Tree(home.root).read(topic)), topic).fields
        except (StoreError, OSError):
            continue
        subscribed = fields.get("subscriptions")
        if isinstance(subscribed, list) and path in subscribed:
            yield topic


def _newer_reasons(receipt: Receipt, changed: datetime) -> Iterator[Reason]:
    try:
        if changed <= datetime.fromisoformat(receipt.at).astimezone():
            return
    except ValueError:
        return
    yield Reason("newer", "It was changed after this turn, which may not have known what it says now.")


def _no_match_reason(receipt: Receipt, path: str) -> Reason:
    considered = sum(block.slot == "knowledge" for block in blocks_of(receipt))
    unlisted = sum(receipt.unlisted.values())
    candidates = f"the {considered + unlisted:,} candidates" if considered + unlisted else "the candidates"
    listed = f" (the receipt lists {considered:,} of them)" if unlisted else ""
    command = (
        f"tacit search {shlex.quote(' '.join(receipt.message.split()))} --under {shlex.quote(path)} --explain"
    )
    text = f"Nothing in it matched: it was not among {candidates}{listed}. To see how near it comes:"
    return Reason("unmatched", text, command)


# ---------------------------------------------------------------- facts of a receipt


def explain_skip(receipt: Receipt) -> str:
    text = next((notice.text for notice in receipt.notices if notice.code == receipt.skipped), "")
    return (" ".join(text.split()) or SKIP_REASONS.get(receipt.skipped, receipt.skipped)).rstrip(".")


def other_notices(receipt: Receipt) -> list[Notice]:
    return [notice for notice in receipt.notices if notice.code != receipt.skipped]


def blocks_of(receipt: Receipt) -> list[ReceiptBlock]:
    return [*receipt.sections, *receipt.dropped]


def path_of(block: ReceiptBlock) -> str:
    """The path of the source, without its line number."""
    path, colon, line = block.source.rpartition(":")
    return path if colon and line.replace("-", "").isdecimal() else block.source
