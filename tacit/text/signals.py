"""Signals in a message: code, addresses, urgency. Its time grows with the length of the message.

Shell patterns for paths and addresses are translated to regular expressions that match the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tacit.text.lines import scan

_MAX_URLS = 50
_MAX_URL_CHARS = 1000


# Code


def find_code_blocks(text: str) -> list[str]:
    """The language of each code block, fenced or at least three indented lines; empty if it names none."""
    languages = _find_fences(text) if "```" in text or "~~~" in text else []
    return languages or ([""] if _has_indented_code(text) else [])


def normalize_language(name: str) -> str:
    """The canonical name of a language: `py`, `python3` and `Python` are python."""
    folded = name.strip().lower().lstrip(".")
    return _LANGUAGE_NAMES.get(folded, folded)


def _find_fences(text: str) -> list[str]:
    languages = []
    is_open = False
    for line in scan(text):
        if line.kind == "fence":
            is_open = not is_open
            if is_open:
                info = _INFO.match(line.text)
                languages.append(normalize_language(info[1]) if info else "")
    return languages


_INFO = re.compile(r"[^`~]*+[`~]++[ \t]*+\{?\.?([\w+#.-]+)")
_LANGUAGE_NAMES = {
    alias: name
    for name, aliases in {
        "python": "py python3 py3 ipython pycon",
        "javascript": "js jsx mjs cjs node nodejs",
        "typescript": "ts tsx mts cts",
        "bash": "sh shell zsh console shell-session shellsession",
        "powershell": "ps ps1 pwsh",
        "ruby": "rb",
        "rust": "rs",
        "go": "golang",
        "cpp": "c++ cc cxx hpp",
        "csharp": "c# cs",
        "fsharp": "f# fs",
        "kotlin": "kt kts",
        "yaml": "yml",
        "markdown": "md",
        "html": "htm xhtml",
        "haskell": "hs",
        "perl": "pl",
        "docker": "dockerfile",
        "make": "makefile",
        "sql": "postgres postgresql mysql sqlite plsql tsql",
        "terraform": "tf hcl",
        "elixir": "ex exs",
        "objective-c": "objc objectivec",
    }.items()
    for alias in aliases.split()
}

_CODE_LINE = re.compile(
    r"(?:[ ]{4,}+|[ ]{0,3}\t\s*+)(?![-*+•>|][ \t]|\d+[.)][ ])"
    r"(?:.*[;{}=\]]|.*\w\(|.*[:,(\[]$|(?:return|import|from|def|class|if|for|while|else|end|fi|done)\b)"
)


def _has_indented_code(text: str) -> bool:
    if "\n    " not in text and "\t" not in text and not text.startswith("    "):
        return False
    rows = 0
    for line in text.split("\n"):
        rows = rows + 1 if _CODE_LINE.match(line.rstrip()) else 0
        if rows == 3:
            return True
    return False


# Addresses

_URL = re.compile(
    r"(?i:(?P<sure>https?://|www\.))(?P<address>[^\s<>\"`]+)"
    r"|(?<![\w.@/-])(?P<bare>[^\W_][\w-]{0,62}+(?:\.[\w-]{1,63}+)++(?::\d+)?(?:/[^\s<>\"`]*)?)"
)
_TRAILING_PUNCTUATION = ".,;:!?'\"*_~)]}>。、，；：！？）」』】》…"


def find_urls(text: str) -> list[str]:
    """Addresses as `//host/path`, without scheme and www; possible ones without a scheme as `host/path`."""
    if "." not in text and "://" not in text:
        return []
    addresses: dict[str, None] = {}
    for match in _URL.finditer(text):
        address = _normalize_address(match["address"] or match["bare"])
        if address:
            addresses["//" + address if match["sure"] else address] = None
        if len(addresses) == _MAX_URLS:
            break
    return list(addresses)


def _normalize_address(raw: str) -> str:
    bare = _strip_punctuation(raw[:_MAX_URL_CHARS])
    cut = next((index for index, letter in enumerate(bare) if letter in "/?#"), len(bare))
    host = bare[:cut].rpartition("@")[2].lower().removeprefix("www.")
    return host + bare[cut:] if host else ""


def _strip_punctuation(address: str) -> str:
    """Remove the punctuation of the sentence around it; a bracket that the address opened stays."""
    while address and address[-1] in _TRAILING_PUNCTUATION:
        if address[-1] == ")" and address.count("(") >= address.count(")"):
            break
        address = address[:-1]
    return address


# Urgency

_WORDS = """
    urgent urgently urgente urgentemente urgentissimo urgence asap a.s.a.p emergency sofort dringend
    dringende dringender dringendes dringenden eilt eilig notfall schnellstmöglich emergencia emergenza
    emergência spoed onmiddellijk pilne pilnie natychmiast akut brådskande haster kiireellinen naléhavé
    acil acilen срочно немедленно терміново негайно επείγον επειγόντως عاجل דחוף तुरंत
"""
_PHRASES = ["au plus vite", "cuanto antes", "o quanto antes", "il prima possibile", "zo snel mogelijk"]
_UNSPACED_WORDS = "緊急 至急 今すぐ 紧急 马上 馬上 立即 立刻 赶紧 十万火急 긴급 급합니다 급해요 당장 ด่วน"
_WORDS_AND_PHRASES = (*_WORDS.split(), *_PHRASES)
_URGENT_TEXTS = (*_WORDS_AND_PHRASES, *_UNSPACED_WORDS.split())
_MARKS = re.compile(r"[!！]{3,}+|[?？][!！][!?！？]+|[!！][?？][!?！？]+")
_URGENT = re.compile(
    r"(?<!\bnot )(?<!n't )(?<!\bnicht )(?<!\bpas )(?<!\bnon )(?<!\bno es )(?<!\bnão é )(?<!\bniet )"
    rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(_WORDS_AND_PHRASES, key=len, reverse=True)))})(?!\w)"
    rf"|(?<![不没])(?:{_UNSPACED_WORDS.replace(' ', '|')})"
)
_LETTERS = re.compile(r"[^\W\d_]{2,}")


def find_urgency(text: str) -> str:
    """The sign of urgency in a message: `!!!`, a word such as "ASAP" or "至急", or shouting; else empty."""
    if ("!" in text or "！" in text) and (marks := _MARKS.search(text)):
        return marks[0][:5]
    lower = text.lower()
    # The expression tries every word at every letter, so it runs only when it will probably match.
    if any(sign in lower for sign in _URGENT_TEXTS) and (match := _URGENT.search(lower)):
        return match[0]
    return _find_shouting(text)


def _find_shouting(text: str) -> str:
    words = _LETTERS.findall(text)
    loud = [word for word in words if word.isupper()]
    letters = sum(map(len, words))
    if len(loud) < 3 or 2 * sum(map(len, loud)) <= letters:
        return ""
    return " ".join(loud[:5])


# ---------------------------------------------------------------- patterns for paths and addresses


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

    For addresses in the form of `find_urls`: a possible host without a scheme does not begin with `//`,
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
