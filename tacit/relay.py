"""The hook helper: for hosts that run a command per event. It costs close to nothing to start.

    python -S -E -B …/tacit/relay.py turn [--home DIR] [--deadline-ms N] < event.json

Operations: turn, message, tool, session-end, event. Standard input is the body of the operation, a JSON
object; `text`, `prompt`, `message` or `content` is the text, `sessionKey` may stand for `session_key`,
`sessionId` for `session_id`, `agentId` for `agent`, `senderId` or `from` for `sender`, with `channel` in
front if it names none. It always prints one JSON object and exits with 0 within its deadline (250 ms):

    {"continue": true, "additionalContext": "…"}    what is added to this turn; missing if there is nothing
    {"continue": true, "spooled": true}             there is no daemon; the event waits in .tacit/spool
    {"continue": true, "reason": "tacit: …"}        what went wrong

The JSON that a host's hook receives is read as it is, and answered as that host reads it: with
hookSpecificOutput, with systemMessage if something went wrong, or with nothing. An event that is not
understood is kept in .tacit/spool; `tacit status` reports it.

Python compiles a script anew each time it is run, so all but the beginning is in tacit.client.relay.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

if __name__ == "__main__" and "tacit" not in sys.modules:
    # Run by its path: the package gets its name without being run, and its folder is no place to import from.
    _package = type(sys)("tacit")
    _package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["tacit"] = _package
    del sys.path[0]

from tacit.client.relay import forward_event  # noqa: E402


def _spool(home: str, operation: str, body: "Mapping[str, Any]") -> None:
    from tacit.transcripts import spool  # only who finds no daemon needs it

    spool.add(home, operation, body)


def entry() -> "NoReturn":
    if sys.argv[1:] in (["--help"], ["-h"]):  # a person asks, no host
        print(__doc__)
        sys.exit()
    forward_event(sys.argv[1:], _spool)


if __name__ == "__main__":
    entry()
