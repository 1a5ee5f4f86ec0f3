"""How ids of people are written in `owners`, and by hosts."""

from __future__ import annotations

import re

# The text before a colon that is part of an id: @ana:example.org, 4917012345:12@s.whatsapp.net
_ID_BEGINNING = re.compile(r"[@!#$+]|\d+\Z|.*\s", re.DOTALL)


def split_channel(text: str) -> tuple[str, str]:
    """The channel in front of the id, whatever the host calls its channels, or none: ids may have colons."""
    channel, _, identity = text.partition(":")
    is_channel = channel and identity and not _ID_BEGINNING.match(channel)
    return (channel, identity) if is_channel else ("", text)
