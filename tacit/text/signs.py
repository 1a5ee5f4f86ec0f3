"""What a message shows on its face: code, addresses, urgency. Time grows with its length."""

from __future__ import annotations

import re

from tacit.text.lines import scan

_MOST_URLS = 50
_LONGEST_URL = 1000


# Code


def code_blocks(text: str) -> list[str]:
    """The language of each block of code, empty where it names none: fenced, or three indented lines."""
    found = _fenced(text) if "```" in text or "~~~" in text else []
    return found or ([""] if _indented(text) else [])


def code_language(name: str) -> str:
    """One name for what has many: `py`, `python3` and `Python` are python."""
    folded = name.strip().lower().lstrip(".")
    return _SAME.get(folded, folded)


def _fenced(text: str) -> list[str]:
    found = []
    is_open = False
    for line in scan(text):
        if line.kind == "fence":
            is_open = not is_open
            if is_open:
                info = _INFO.match(line.text)
                found.append(code_language(info[1]) if info else "")
    return found


_INFO = re.compile(r"[^`~]*+[`~]++[ \t]*+\{?\.?([\w+#.-]+)")
_SAME = {
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


def _indented(text: str) -> bool:
    if "\n    " not in text and "\t" not in text and not text.startswith("    "):
        return False
    row = 0
    for line in text.split("\n"):
        row = row + 1 if _CODE_LINE.match(line.rstrip()) else 0
        if row == 3:
            return True
    return False


# Addresses

_URL = re.compile(
    r"(?i:(?P<sure>https?://|www\.))(?P<address>[^\s<>\"`]+)"
    r"|(?<![\w.@/-])(?P<bare>[^\W_][\w-]{0,62}+(?:\.[\w-]{1,63}+)++(?::\d+)?(?:/[^\s<>\"`]*)?)"
)
_BEHIND = ".,;:!?'\"*_~)]}>。、，；：！？）」』】》…"


def urls(text: str) -> list[str]:
    """Addresses as `//host/path`, without scheme and www; what only looks like one as `host/path`."""
    if "." not in text and "://" not in text:
        return []
    found: dict[str, None] = {}
    for match in _URL.finditer(text):
        address = _address(match["address"] or match["bare"])
        if address:
            found["//" + address if match["sure"] else address] = None
        if len(found) == _MOST_URLS:
            break
    return list(found)


def _address(given: str) -> str:
    bare = _without_end(given[:_LONGEST_URL])
    cut = next((at for at, letter in enumerate(bare) if letter in "/?#"), len(bare))
    host = bare[:cut].rpartition("@")[2].lower().removeprefix("www.")
    return host + bare[cut:] if host else ""


def _without_end(address: str) -> str:
    """Without the punctuation of the sentence around it; a bracket that it opened itself stays."""
    while address and address[-1] in _BEHIND:
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
_RUNS = "緊急 至急 今すぐ 紧急 马上 馬上 立即 立刻 赶紧 十万火急 긴급 급합니다 급해요 당장 ด่วน"
_SAID_ALONE = (*_WORDS.split(), *_PHRASES)
_SIGNS = (*_SAID_ALONE, *_RUNS.split())
_MARKS = re.compile(r"[!！]{3,}+|[?？][!！][!?！？]+|[!！][?？][!?！？]+")
_SAID = re.compile(
    r"(?<!\bnot )(?<!n't )(?<!\bnicht )(?<!\bpas )(?<!\bnon )(?<!\bno es )(?<!\bnão é )(?<!\bniet )"
    rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(_SAID_ALONE, key=len, reverse=True)))})(?!\w)"
    rf"|(?<![不没])(?:{_RUNS.replace(' ', '|')})"
)
_LONG = re.compile(r"[^\W\d_]{2,}")


def urgency(text: str) -> str:
    """What makes a message urgent: `!!!`, a word such as "ASAP" or "至急", or shouting. Empty: nothing."""
    if ("!" in text or "！" in text) and (marks := _MARKS.search(text)):
        return marks[0][:5]
    lower = text.lower()
    # The expression tries every word at every letter, so it is only asked when it will find something.
    if any(sign in lower for sign in _SIGNS) and (said := _SAID.search(lower)):
        return said[0]
    return _shouted(text)


def _shouted(text: str) -> str:
    words = _LONG.findall(text)
    loud = [word for word in words if word.isupper()]
    letters = sum(map(len, words))
    if len(loud) < 3 or 2 * sum(map(len, loud)) <= letters:
        return ""
    return " ".join(loud[:5])
