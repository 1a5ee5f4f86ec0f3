"""Shell patterns for paths and addresses, as regular expressions that match the whole of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?[^\]/\[\\]+\]|\{|\}|,|.", re.DOTALL)
_IN_PATHS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_IN_HOSTS = {"**": "[^/?#]*", "*": "[^/?#]*"}
_IN_ADDRESSES = {"**/": ".*/", "**": ".*", "*": ".*"}
_SCHEME = re.compile(r"(?:(?:https?:)?//)?(?:www\.)?", re.IGNORECASE)


def path_pattern(glob: str) -> str:
    """`*.py` is any such file at any depth, `src/**/*.ts` anything below any `src`, `/etc/*` one place.

    Tools name files from the root as often as from where they work, so what stands in front is free.
    """
    glob = glob.replace("\\", "/").removeprefix("./")
    if glob.endswith("/"):
        glob += "**"
    front = "" if glob.startswith("/") else "(?:.*/)?"
    return f"(?s){front}{_translated(glob, _IN_PATHS)}"


def url_pattern(glob: str) -> str:
    """`github.com` is all of that host and its subdomains, `github.com/*/pull/*` a part of it.

    For addresses as `signs.urls` gives them: one that only looks like a host does not begin with `//`, and
    a host of stars does not mean those.
    """
    bare = _SCHEME.sub("", glob.strip(), count=1)
    host, slash, rest = bare.partition("/")
    named = host.lower().removeprefix("*.")
    rest = rest.rstrip("/")
    path = f"/{_translated(rest, _IN_ADDRESSES)}" if slash and rest else ""
    if not named.strip("*"):
        return f"(?s)//.*{path}(?:[/?#].*)?"
    front = "(?://)?(?:[^/?#]*\\.)?"
    port = "" if ":" in named else "(?::[0-9]+)?"
    return f"(?s){front}{_translated(named, _IN_HOSTS)}{port}{path}(?:[/?#].*)?"


def _translated(glob: str, meaning: Mapping[str, str]) -> str:
    return "".join(_parts(glob, meaning))


def _parts(glob: str, meaning: Mapping[str, str]) -> Iterator[str]:
    braces = glob.count("{") == glob.count("}")
    depth = 0
    for part in _TOKEN.findall(glob):
        if part in meaning:
            yield meaning[part]
        elif part[0] == "[" and len(part) > 2 and "?" in meaning:
            yield f"[^{part[2:]}" if part[1] in "!^" else part
        elif braces and part in _BRACES and depth + _BRACES[part][1] >= 0 and (depth or part == "{"):
            depth += _BRACES[part][1]
            yield _BRACES[part][0]
        else:
            yield re.escape(part)


_BRACES = {"{": ("(?:", 1), "}": (")", -1), ",": ("|", 0)}
