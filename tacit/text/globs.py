"""Translates shell patterns for paths and addresses to regular expressions that match the whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?[^\]/\[\\]+\]|\{|\}|,|.", re.DOTALL)
_IN_PATHS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_IN_HOSTS = {"**": "[^/?#]*", "*": "[^/?#]*"}
_IN_ADDRESSES = {"**/": ".*/", "**": ".*", "*": ".*"}
_SCHEME = re.compile(r"(?:(?:https?:)?//)?(?:www\.)?", re.IGNORECASE)


def translate_path_glob(glob: str) -> str:
    """`*.py` is any such file at any depth, `src/**/*.ts` anything below any `src`, `/etc/*` one folder.

    Tools give absolute paths as often as relative ones, so any prefix is allowed.
    """
    glob = glob.replace("\\", "/").removeprefix("./")
    if glob.endswith("/"):
        glob += "**"
    front = "" if glob.startswith("/") else "(?:.*/)?"
    return f"(?s){front}{_translate(glob, _IN_PATHS)}"


def translate_url_glob(glob: str) -> str:
    """`github.com` is all of that host and its subdomains, `github.com/*/pull/*` a part of it.

    For addresses in the form of `signals.urls`: a possible host without a scheme does not begin with `//`,
    and a host of only stars does not match it.
    """
    bare = _SCHEME.sub("", glob.strip(), count=1)
    host, slash, rest = bare.partition("/")
    name = host.lower().removeprefix("*.")
    rest = rest.rstrip("/")
    path = f"/{_translate(rest, _IN_ADDRESSES)}" if slash and rest else ""
    if not name.strip("*"):
        return f"(?s)//.*{path}(?:[/?#].*)?"
    front = "(?://)?(?:[^/?#]*\\.)?"
    port = "" if ":" in name else "(?::[0-9]+)?"
    return f"(?s){front}{_translate(name, _IN_HOSTS)}{port}{path}(?:[/?#].*)?"


def _translate(glob: str, meaning: Mapping[str, str]) -> str:
    return "".join(_translate_parts(glob, meaning))


def _translate_parts(glob: str, meaning: Mapping[str, str]) -> Iterator[str]:
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
