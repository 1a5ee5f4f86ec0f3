"""Why the last turn got what it got, and what it did not get.

    tacit why                     the last turn
    tacit why 7k2q                another one: its id, or how the id begins or ends
    tacit why -n 20               the last twenty
    tacit why --block glazes      all about the blocks with this in their name
    tacit why --not USER.md       why a file is not in the prompt

Every compiled prompt leaves a receipt in .tacit/receipts; they can be deleted without loss.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence

from tacit.app import load_config
from tacit.cli import output
from tacit.cli.absent import Reason, is_there, meant, reasons_for
from tacit.cli.dispatch import home_option, json_option, words
from tacit.cli.lines import Line, Piece, hanging, one_line, put, terminal_width, wrapped
from tacit.cli.receipt import (
    Block,
    blocks_of,
    details,
    explained,
    is_about,
    listed,
    needed,
    path_of,
    separated,
)
from tacit.errors import UsageError
from tacit.model.context import Dropped, Receipt, Section
from tacit.store import receipts
from tacit.store.home import Home, locate
from tacit.store.workspaces import Workspaces
from tacit.text.receipts import as_dict

_MAKE_ONE = '`tacit compile "…"` makes one.'


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=words, nargs="?", help="which receipt (default: the last one)")
    about = parser.add_mutually_exclusive_group()
    about.add_argument("--block", type=words, metavar="PART", help="all about blocks whose name holds this")
    about.add_argument("--not", type=words, dest="absent", metavar="FILE", help="why this file is not there")
    about.add_argument("-n", type=_count, dest="count", metavar="N", help="list the last N receipts")
    parser.add_argument("--session-key", type=words, metavar="KEY", help="of this session")
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ).require()
    if options.id is not None and (options.count or options.session_key is not None):
        raise UsageError("An id names one receipt. Leave out -n and --session-key, or the id.")
    if options.count:
        return _list(receipts.recent(home, options.count, options.session_key), options)
    receipt = _asked_for(home, options)
    if receipt is None:
        return _refuse(_no_receipt(options))
    if options.block is not None:
        return _block(receipt, options.block, options.json)
    if options.absent is not None:
        return _not(home, receipt, options.absent, options.json)
    if options.json:
        output.dump(as_dict(receipt))
    else:
        show(receipt)
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000")
    return int(text)


def _asked_for(home: Home, options: argparse.Namespace) -> Receipt | None:
    if options.id is not None:
        return receipts.by_id(home, options.id)
    return receipts.last(home, session_key=options.session_key)


def _no_receipt(options: argparse.Namespace) -> str:
    if options.id is not None:
        return f"No receipt has the id {options.id!r}. `tacit why -n 20` lists the last ones."
    if options.session_key is not None:
        return f"The session {options.session_key!r} has no receipt. `tacit why -n 20` lists the last of all."
    return f"There is no receipt yet. {_MAKE_ONE}"


def _refuse(sentence: str) -> int:
    output.warn(f"tacit: {sentence}")
    return 1


# One receipt


def show(receipt: Receipt) -> None:
    """On standard output, in colour where that is a terminal."""
    put(explained(receipt, terminal_width()))


# The list


def _list(found: list[Receipt], options: argparse.Namespace) -> int:
    if not found:
        return _refuse(_no_receipt(options))
    if options.json:
        output.dump([as_dict(receipt) for receipt in found])
    else:
        put(listed(found, terminal_width()))
    return 0


# One block


def _block(receipt: Receipt, part: str, as_json: bool) -> int:
    found = [block for block in blocks_of(receipt) if is_about(block, part)]
    if not found:
        also = " It was cut and does not list everything." if receipt.unlisted else ""
        return _refuse(
            f"No block of receipt {receipt.id} has {part!r} in its name.{also} "
            "`tacit why` lists the blocks; `tacit why --not FILE` tells why a file is not among them."
        )
    if as_json:
        output.dump({"receipt": receipt.id, "blocks": [_block_json(receipt, block) for block in found]})
    else:
        put(separated(details(receipt, block, terminal_width()) for block in found))
    return 0


def _block_json(receipt: Receipt, block: Block) -> dict[str, object]:
    return {
        **as_dict(block),
        "kept": isinstance(block, Section),
        **({"needed": needed(receipt, block)} if isinstance(block, Dropped) else {}),
    }


# Why a file is not there


def _not(home: Home, receipt: Receipt, given: str, as_json: bool) -> int:
    workspaces = Workspaces(home, load_config(home).config.workspaces)
    path = meant(home, workspaces, receipt, given)
    found = [block for block in blocks_of(receipt) if path_of(block) == path]
    if not found and not is_there(workspaces, path):
        return _refuse(f"There is no file {path!r} in the home, and receipt {receipt.id} has no such block.")
    reasons = [] if found else list(reasons_for(home, workspaces, receipt, path))
    if as_json:
        output.dump(
            {
                "receipt": receipt.id,
                "file": path,
                "in_prompt": any(isinstance(block, Section) for block in found),
                "blocks": [_block_json(receipt, block) for block in found],
                "reasons": [reason._asdict() for reason in reasons],
            }
        )
    elif found:
        put(_of_file(receipt, path, found, terminal_width()))
    else:
        put(_of_absent(path, reasons, terminal_width()))
    return 0


def _of_file(receipt: Receipt, path: str, found: Sequence[Block], width: int) -> Iterator[Line]:
    kept = sum(isinstance(block, Section) for block in found)
    if kept == len(found):
        verdict = "is in the prompt"
    elif kept:
        verdict = f"is in the prompt in part: {kept} of its {len(found)} blocks"
    else:
        verdict = "was considered and is not in the prompt"
    yield from wrapped(f"{one_line(path)} {verdict}.", width, "bold")
    yield []
    yield from separated(details(receipt, block, width) for block in found)


def _of_absent(path: str, reasons: Sequence[Reason], width: int) -> Iterator[Line]:
    yield from wrapped(f"{one_line(path)} was not considered in this turn.", width, "bold")
    for reason in reasons:
        yield from hanging(Piece("  - "), reason.text, width)
        if reason.command:
            yield [Piece(f"    {reason.command}")]  # in one piece, to be copied
