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
from tacit.cli.absent import Reason, file_exists, reasons_for, resolve_path
from tacit.cli.receipt import (
    ReceiptBlock,
    blocks_of,
    inclusion_hint,
    is_about,
    path_of,
    render_block,
    render_receipt,
    render_receipt_list,
    separate_blocks,
)
from tacit.context import receipts
from tacit.context.model import Dropped, Receipt, Section
from tacit.context.receipt_codec import as_dict
from tacit.errors import UsageError
from tacit.home.layout import Home, find_home
from tacit.home.workspaces import Workspaces
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.terminal.lines import (
    Line,
    StyledText,
    one_line,
    print_lines,
    terminal_width,
    wrap_beside,
    wrap_styled,
)

_COMPILE_HINT = '`tacit compile "…"` makes one.'


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=utf8_argument, nargs="?", help="which receipt (default: the last one)")
    about = parser.add_mutually_exclusive_group()
    about.add_argument(
        "--block", type=utf8_argument, metavar="PART", help="all about blocks whose name holds this"
    )
    about.add_argument(
        "--not", type=utf8_argument, dest="absent", metavar="FILE", help="why this file is not there"
    )
    about.add_argument("-n", type=_count, dest="count", metavar="N", help="list the last N receipts")
    parser.add_argument("--session-key", type=utf8_argument, metavar="KEY", help="of this session")
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = find_home(options.home, os.environ).require()
    if options.id is not None and (options.count or options.session_key is not None):
        raise UsageError("An id names one receipt. Leave out -n and --session-key, or the id.")
    if options.count:
        return _list(receipts.recent(home, options.count, options.session_key), options)
    receipt = _find_receipt(home, options)
    if receipt is None:
        return _refuse(_missing_receipt(options))
    if options.block is not None:
        return _print_blocks(receipt, options.block, options.json)
    if options.absent is not None:
        return _print_absence(home, receipt, options.absent, options.json)
    if options.json:
        output.dump(as_dict(receipt))
    else:
        print_receipt(receipt)
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000")
    return int(text)


def _find_receipt(home: Home, options: argparse.Namespace) -> Receipt | None:
    if options.id is not None:
        return receipts.find_by_id(home, options.id)
    return receipts.last(home, session_key=options.session_key)


def _missing_receipt(options: argparse.Namespace) -> str:
    if options.id is not None:
        return f"No receipt has the id {options.id!r}. `tacit why -n 20` lists the last ones."
    if options.session_key is not None:
        return f"The session {options.session_key!r} has no receipt. `tacit why -n 20` lists the last of all."
    return f"There is no receipt yet. {_COMPILE_HINT}"


def _refuse(sentence: str) -> int:
    output.warn(f"tacit: {sentence}")
    return 1


# One receipt


def print_receipt(receipt: Receipt) -> None:
    """Print it to standard output, in colour on a terminal."""
    print_lines(render_receipt(receipt, terminal_width()))


# The list


def _list(entries: list[Receipt], options: argparse.Namespace) -> int:
    if not entries:
        return _refuse(_missing_receipt(options))
    if options.json:
        output.dump([as_dict(receipt) for receipt in entries])
    else:
        print_lines(render_receipt_list(entries, terminal_width()))
    return 0


# One block


def _print_blocks(receipt: Receipt, part: str, as_json: bool) -> int:
    blocks = [block for block in blocks_of(receipt) if is_about(block, part)]
    if not blocks:
        remark = " It was cut and does not list everything." if receipt.unlisted else ""
        return _refuse(
            f"No block of receipt {receipt.id} has {part!r} in its name.{remark} "
            "`tacit why` lists the blocks; `tacit why --not FILE` tells why a file is not among them."
        )
    if as_json:
        output.dump({"receipt": receipt.id, "blocks": [_block_json(receipt, block) for block in blocks]})
    else:
        print_lines(separate_blocks(render_block(receipt, block, terminal_width()) for block in blocks))
    return 0


def _block_json(receipt: Receipt, block: ReceiptBlock) -> dict[str, object]:
    return {
        **as_dict(block),
        "kept": isinstance(block, Section),
        **({"needed": inclusion_hint(receipt, block)} if isinstance(block, Dropped) else {}),
    }


# Absent files


def _print_absence(home: Home, receipt: Receipt, argument: str, as_json: bool) -> int:
    workspaces = Workspaces(home, load_config(home).config.workspaces)
    path = resolve_path(home, workspaces, receipt, argument)
    blocks = [block for block in blocks_of(receipt) if path_of(block) == path]
    if not blocks and not file_exists(workspaces, path):
        return _refuse(f"There is no file {path!r} in the home, and receipt {receipt.id} has no such block.")
    reasons = [] if blocks else list(reasons_for(home, workspaces, receipt, path))
    if as_json:
        output.dump(
            {
                "receipt": receipt.id,
                "file": path,
                "in_prompt": any(isinstance(block, Section) for block in blocks),
                "blocks": [_block_json(receipt, block) for block in blocks],
                "reasons": [reason._asdict() for reason in reasons],
            }
        )
    elif blocks:
        print_lines(_file_lines(receipt, path, blocks, terminal_width()))
    else:
        print_lines(_absence_lines(path, reasons, terminal_width()))
    return 0


def _file_lines(receipt: Receipt, path: str, blocks: Sequence[ReceiptBlock], width: int) -> Iterator[Line]:
    included = sum(isinstance(block, Section) for block in blocks)
    if included == len(blocks):
        verdict = "is in the prompt"
    elif included:
        verdict = f"is in the prompt in part: {included} of its {len(blocks)} blocks"
    else:
        verdict = "was considered and is not in the prompt"
    yield from wrap_styled(f"{one_line(path)} {verdict}.", width, "bold")
    yield []
    yield from separate_blocks(render_block(receipt, block, width) for block in blocks)


def _absence_lines(path: str, reasons: Sequence[Reason], width: int) -> Iterator[Line]:
    yield from wrap_styled(f"{one_line(path)} was not considered in this turn.", width, "bold")
    for reason in reasons:
        yield from wrap_beside(StyledText("  - "), reason.text, width)
        if reason.command:
            yield [StyledText(f"    {reason.command}")]  # on one line, so that it can be copied
