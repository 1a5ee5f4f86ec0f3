"""Finds secrets in a text by their form: keys of services, private keys, and values after a word like
password.

There are two ways, and both prefer a miss to a false alarm:
- by prefix: many services put one on their keys for this very purpose (`ghp_`, `sk-ant-`, `AIza`);
- by the word before it (`password: …`, `api_key=…`, `Authorization: Bearer …`), if the value looks generated.
  A hash, an id, a path or a word in that place is not a secret.

What must stay true: time is linear in the length of the text; and a pattern is compiled only
when its first letters are in the text, so that a short message costs a few searches for fixed letters and
starting costs nothing. Only `re` is imported.

Not found: a secret without a form of its own and without a word before it, a password that is a plain word,
and personal data such as card numbers.
"""

from __future__ import annotations

import re

from tacit.privacy.secret_forms import (
    ALNUM,
    AMBIGUOUS_PREFIXES,
    HEX,
    PATTERNS,
    SERVICES,
    WORD,
)

TYPE_CHECKING = False  # as in typing, which costs more to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Span = tuple[int, int, str]  # from, to, kind
    Look = Callable[[str, re.Match[str], re.Match[str]], tuple[str, str]]  # kind and secret, empty: none

BLANK = "\0"  # replaces text that was removed already: no secret reaches across it

# Between two letters of a key: the end of a line, as terminals and mail programs break it, and a quote mark.
_LINE_BREAK = r"(?:[ \t]*+\r?\n[ \t>|]*+)?+"
_NEXT_LINE = r"[ \t]*+\r?\n[ \t>|]*+([A-Za-z0-9_+/=.-]{12,}+)(?=[\s\"'`,;)\]]|\Z)"

_DISCORD = rf"(?<![{WORD}])[{WORD}]{{24,28}}\.[{WORD}]{{6}}\.([{WORD}]{{27,40}}+)"
_LOGIN = r"://[^\s:/@?#\0\"'<>\[\]]{0,128}:([^\s/\0\"'<>]{1,256})@"
_TOKEN_LOGIN = rf"://([{WORD}]{{20,200}})@"
_PHRASE = (
    r"(?:seed|recovery|backup|mnemonic|wiederherstellungs)[ _-]?(?:phrase|words|wörter)?[\"'`*]{0,3}\s{0,3}"
    r"(?:[:=]|\bis\b|\bist\b)\s{0,3}[\"'`]?"
    r"((?:\d{1,2}[.)]\s?)?[a-z]{3,8}(?:[\s,]{1,3}(?:\d{1,2}[.)]\s?)?[a-z]{3,8}){11,23})(?![a-z])"
)

# Words that come before a secret, folded as the text is.
_PASSWORDS = (
    "password", "passwort", "passwd", "passphrase", "passcode", "kennwort", "pwd", "_pass", "-pass",
    "contraseña", "mot de passe", "senha", "wachtwoord", "hasło", "пapoль", "パスワード", "密码", "密碼",
    "비밀번호",
)  # fmt: skip
_TOKENS = ("token", "secret", "credential")
_QUALIFIED = (
    "api", "access", "secret", "private", "auth", "encryption", "signing", "master", "account", "service",
    "license", "deploy", "client", "admin", "app", "storage", "bot", "webhook", "function",
)  # fmt: skip
_ASSIGNMENT = (
    r"s?(?:[_-](?:prod|production|dev|test|staging|live|\d{1,3}))?[\"'`*_\])\\]{0,4}[ \t]*+"
    r"(?:,?\s*+[\"'\\]{0,2}value[\"'\\]{0,2}[ \t]*+(?=[:=]))?"  # {"name": "password", "value": "…"}
    r"(\b(?:is|ist|lautet|est|es|jest)\b|は|:=|=>|->|==?|[:=|>→])?(?:[ \t]*+[:=])?[ \t]*+(?:\r?\n[ \t]*+)?"
)
_VALUE = (
    r"[*_]{0,2}(?:\\{0,4}\"([^\"\n\0]{1,200})|\\{0,4}'([^'\n\0]{1,200})|`([^`\n\0]{1,200})"
    r"|([!-~\u00a1-\u024f]{1,200}))"
)
_BEARER = rf"\bbearer[ \t:=]{{1,3}}[\"']?([{ALNUM}_+/=.~-]{{16,}}+)"
_HEADER = (
    r"authorization[\"'\\]{0,3}[ \t]*+[:=][ \t]*+[\"'\\]{0,3}"
    rf"(?:basic|token|apikey|digest|bot|ssws)[ \t]++([{ALNUM}_+/=.~-]{{8,}}+)"
)
_COOKIE = r"cookie[\"']?[ \t]*+:[ \t]*+([^\s=;]{1,80}=[^\n\0\"']{16,4000})"
_KEY = rf"[{ALNUM}_+/=.~:%-]+"
_KEY_REST = rf"[{ALNUM}_+/=.~%-]*+"
_UUID = rf"[{HEX}]{{8}}-(?:[{HEX}]{{4}}-){{3}}[{HEX}]{{12}}"
_HEX = rf"(?=[{HEX}]*\d)(?=\d*[a-fA-F])[{HEX}]{{20,}}"
_MIN_WORD_SHARE = (
    0.45  # of the letters stand in rows like words: a name in code has more of them, a key has fewer
)
_MIN_VOWEL_SHARE = 0.27  # of the letters of words, at least; one in five letters drawn by lot is a vowel
_MIN_LONG_NAME_CHARS = 30  # letters: in so long a name a capital that begins no word would be strange
_LETTER_DIGIT_CHANGE = r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]"

_MAX_ROUNDS = 8  # a secret that is gone may leave another one to be seen: a value ends where its mark begins
_MAX_VALUE_CHARS = 200  # letters of a value; a longer one ends where its letters do
_BARE_GROUP = 4  # the group of a value without quotes
_MAX_PASSWORD_CHARS = 128  # letters of a password, at most

# What people and programs write in place of a password.
_PLACEHOLDER = (
    r"(?i:[<\[{(]|\$[{(A-Za-z_]|%[({A-Z]|\*{3}|x{4}|\.{3}|…|your|my_?pass|example|changeme|placeholder|redacted|dummy"
    r"|(?:process|os|self|this|config|settings|options|args|env|secrets|params|request|req|ctx|data)[.\[]"
    r"|(?:getenv|input|null|none|true|false|string|password|passwort|passwd|pass|pwd|secret|token)\b"
    r"|[a-z_][\w.]*\(|[~.]{0,2}[/\\]|[a-z]:[\\/]|[a-z]{2,8}://|(?:rs)?utf-?\d|base\d\d\b|sha-?\d|md5|oauth\d"
    r"|argon2|pbkdf2|bcrypt|aes-?\d|\d+-?(?:char|digit|zeichen|bit|stellig))"
)


KINDS = frozenset(
    (
        *(row[0] for row in (*SERVICES, *PATTERNS)),
        *("discord token", "password", "token", "private key", "api key", "key", "secret", "credential"),
        *("bearer token", "cookie", "seed phrase"),
    )
)


def _compile(pattern: str) -> re.Pattern[str]:
    """Compiled at first use and not at import; `re` caches the result."""
    return re.compile(pattern)


def find_secrets(text: str, folded: str) -> list[Span]:
    """The places of secrets, in order and without overlaps. `folded`: the same text, letter by letter, in
    lower case. Text that was removed already is BLANK in both."""
    secrets: list[Span] = []
    for _ in range(_MAX_ROUNDS):
        new = list(_merge_overlaps(_find_once(text, folded)))
        secrets += new
        if not new:
            break
        places = [(begin, end) for begin, end, _ in new]
        text, folded = blank_spans(text, places), blank_spans(folded, places)
    return list(_merge_overlaps(secrets))


def blank_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with these places blanked. They must be in order and must not overlap."""
    pieces, position = [], 0
    for begin, end in spans:
        pieces += [text[position:begin], BLANK * (end - begin)]
        position = end
    return "".join([*pieces, text[position:]])


def _find_once(text: str, folded: str) -> list[Span]:
    return [
        *_find_by_prefix(text),
        *_find_by_pattern(text),
        *_find_key_blocks(text),
        *_find_logins(text),
        *_find_by_name(text, folded),
    ]


def _merge_overlaps(overlapping: list[Span]) -> Iterator[Span]:
    """Merge overlapping spans. Of their kinds the one found first counts, which is the most exact."""
    pending: Span | None = None
    rank = 0
    for begin, end, index in sorted((span[0], span[1], index) for index, span in enumerate(overlapping)):
        kind = overlapping[index][2]
        if pending is not None and begin < pending[1]:
            pending = (pending[0], max(end, pending[1]), kind if index < rank else pending[2])
            rank = min(index, rank)
        else:
            if pending is not None:
                yield pending
            pending, rank = (begin, end, kind), index
    if pending is not None:
        yield pending


# By its beginning


def _find_by_prefix(text: str) -> Iterator[Span]:
    for kind, prefixes, characters, min_length in SERVICES:
        for prefix in prefixes.split(" "):
            if prefix in text:
                yield from _find_with_prefix(text, kind, prefix, characters, min_length)


def _find_with_prefix(text: str, kind: str, prefix: str, characters: str, min_length: int) -> Iterator[Span]:
    body = _compile(rf"(?:[{characters}]{_LINE_BREAK}){{{min_length - 1}}}[{characters}]++")
    start = text.find(prefix)
    while start >= 0:
        position = start + len(prefix)
        match = body.match(text, position) if _is_word_start(text, start) else None
        if match is not None:
            position = match.end()  # also of what is no key: to look at it again from within takes forever
            if _is_generated(match[0], prefix in AMBIGUOUS_PREFIXES):
                position = _extend_over_lines(text, position)
                yield start, position, kind
        start = text.find(prefix, position)


def _is_word_start(text: str, start: int) -> bool:
    """Whether a word may begin here: also after an escaped line end of JSON."""
    before = text[start - 1 : start] if start else ""
    return not (before.isascii() and before.isalnum()) or text[max(0, start - 2) : start] in (
        "\\n",
        "\\r",
        "\\t",
    )


def _is_generated(body: str, is_ambiguous: bool) -> bool:
    if re.match("(?i:your|x{4}|example|redacted)|[.*]{3}", body):
        return False
    if "\n" in body:
        return _is_random("".join(body.replace(">", "").replace("|", "").split()))
    return not is_ambiguous or _is_random(body)


def _extend_over_lines(text: str, end: int) -> int:
    """The end of a key that is broken into lines: the next line continues it if it looks random."""
    pattern = _compile(_NEXT_LINE)
    while (match := pattern.match(text, end)) is not None and _is_random(match[1]):
        end = match.end(1)
    return end


# By its form


def _find_by_pattern(text: str) -> Iterator[Span]:
    for kind, letters, pattern, group in PATTERNS:
        if letters in text:
            for match in _compile(pattern).finditer(text):
                if kind != "password" or not _is_placeholder(match[group]):
                    yield match.start(group), _extend_over_lines(text, match.end(group)), kind
    if re.search(rf"\.[{WORD}]{{6}}\.[{WORD}]{{27}}", text):
        for match in _compile(_DISCORD).finditer(text):
            if _is_random(match[1]):
                yield match.start(), match.end(), "discord token"


def _find_logins(text: str) -> Iterator[Span]:
    """In addresses: https://user:password@host."""
    if "://" not in text or "@" not in text:
        return
    for match in _compile(_LOGIN).finditer(text):
        if not _is_placeholder(match[1]):
            yield match.start(1), match.end(1), "password"
    for match in _compile(_TOKEN_LOGIN).finditer(text):
        if _is_random(match[1]):
            yield match.start(1), match.end(1), "token"


_BEGIN = r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{0,5}"
_END = r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{0,5}"
_HEAD_LINE = r"(?:Proc-Type|DEK-Info|Version|Comment):[^\n\0]{0,200}"
_UNCLOSED_LINES = (  # of a key whose end is missing: lines of nothing but its letters, and a shorter last one
    rf"(?:(?:\s|\\[nr]|[>|+ \t])*+(?:{_HEAD_LINE}|[{ALNUM}+/=]{{16,}}+))*+"
    rf"(?:(?:\s|\\[nr]|[>|+ \t])*+[{ALNUM}+/]{{1,15}}+=*+(?=\s*+\Z|[\"'\\]|[ \t]*+\n))?+"
)
_KEY_LINE = rf"[>|+ \t]*[{ALNUM}+/=]{{16,}}[ \t\r]*"


def _find_key_blocks(text: str) -> Iterator[Span]:
    if "Private-Lines:" in text:
        for match in _compile(rf"Private-Lines: ?\d++{_UNCLOSED_LINES}").finditer(text):
            yield match.start(), match.end(), "private key"
    if "PRIVATE KEY" not in text:
        return
    opening: re.Match[str] | None = None
    last = 0
    for boundary in _compile(f"{_BEGIN}|({_END})").finditer(text):
        if boundary[1] is None:
            if opening is not None:
                yield opening.start(), _find_block_end(text, opening, boundary.start()), "private key"
            opening = boundary
            continue
        start = _find_block_start(text, boundary.start(), last) if opening is None else opening.start()
        yield start, boundary.end(), "private key"
        opening, last = None, boundary.end()
    if opening is not None:
        yield opening.start(), _find_block_end(text, opening, len(text)), "private key"


def _find_block_end(text: str, opening: re.Match[str], limit: int) -> int:
    match = _compile(_UNCLOSED_LINES).match(text, opening.end(), limit)
    end = match.end() if match is not None else opening.end()
    return opening.end() + len(text[opening.end() : end].rstrip())


def _find_block_start(text: str, block_end: int, limit: int) -> int:
    """The start of a key whose first lines are missing."""
    line = _compile(_KEY_LINE)
    start, end = block_end, text.rfind("\n", limit, block_end)
    while end > limit:
        above = max(text.rfind("\n", limit, end) + 1, limit)
        if line.fullmatch(text, above, end) is None:
            break
        start, end = above, above - 1
    return start


# By the word before it


def _find_by_name(text: str, folded: str) -> Iterator[Span]:
    for word in _PASSWORDS:
        yield from _find_after_word(word, text, folded, _check_password)
    for word in (*_TOKENS, "key"):
        yield from _find_after_word(word, text, folded, _check_key)
    yield from _find_headers(text, folded)
    if "phrase" in folded or "mnemonic" in folded or "recovery words" in folded:
        for match in _compile(_PHRASE).finditer(folded):
            yield match.start(1), match.end(1), "seed phrase"


def _find_after_word(word: str, text: str, folded: str, check: Look) -> Iterator[Span]:
    """The value after each occurrence of the word, if it is a secret."""
    if word not in folded:
        return
    value, end = _compile(_VALUE), 0
    for name_match in _compile(word + _ASSIGNMENT).finditer(folded):
        value_match = value.match(text, name_match.end()) if name_match.end() > end else None
        if value_match is not None and _is_assignment(text, name_match, value_match):
            kind, secret = check(folded, name_match, value_match)
            begin = value_match.start(value_match.lastindex or 0)
            end = begin + len(secret)
            if secret:
                rest = (
                    _compile(_KEY_REST).match(text, end) if len(value_match[0]) >= _MAX_VALUE_CHARS else None
                )
                end = rest.end() if rest is not None else end
                yield begin, end, kind
            elif check is _check_key:  # a key would have been found in all of it; a password may stand within
                end = value_match.end()


def _is_assignment(text: str, name_match: re.Match[str], value_match: re.Match[str]) -> bool:
    """Without a sign between word and value there must be a space or a quote, and no line end."""
    if name_match[1] is not None:
        return True
    between = text[name_match.end() - 1 : value_match.start(value_match.lastindex or 0)]
    return "\n" not in name_match[0] and re.search("[ \t\"'`]", between) is not None


def _check_password(folded: str, name_match: re.Match[str], value_match: re.Match[str]) -> tuple[str, str]:
    group, start, sign = value_match.lastindex or 0, name_match.start(), name_match[1] or ""
    value = value_match[group].rstrip("\\")
    if re.search(r"\s", value) and name_match[0][:10] != "passphrase":
        return "", ""
    if group == _BARE_GROUP:
        value = _trim_bare_value(value, is_query=folded[max(0, start - 1) : start] in ("?", "&"), sign=sign)
    if sign.isalpha():
        is_secret = _is_spoken_password(value)
    elif sign == ">":
        is_secret = _is_xml_element(folded, start) and value[:1] not in "@:/" and _is_password(value)
    elif sign or _is_command_option(folded, start):
        is_secret = _is_password(value)
    else:
        is_secret = len(value) >= 8 and _has_mixed_characters(value) and not _is_placeholder(value)
    return "password", value if is_secret else ""


def _trim_bare_value(value: str, *, is_query: bool, sign: str) -> str:
    """A value without quotes ends where the sentence, the address, the element or the setting does."""
    ends = ";" + ("&#" if is_query else "") + ("<" if sign == ">" else "")
    value = re.split(rf"[{ends}]|\\[nr]|&(?:quot|amp|[lg]t|#\d)", value, maxsplit=1)[0]
    return value.rstrip(".,:)]}>*_|\"'`")


def _is_password(value: str) -> bool:
    if len(value) < 6 or _is_placeholder(value):
        return False
    if len(value) > _MAX_PASSWORD_CHARS:
        return _is_random(value)
    if value.isdigit():
        return True
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", value):  # a name in code
        return _is_random(value)
    has_letter = re.search(r"[^\W\d_]", value) is not None
    inner = value[:-1] if value[-1] in "!?" else value  # a mark at the end is the sentence's, or a type's
    has_more = re.search(r"\d|[!@#$%^&*+?~]", inner) is not None
    return has_letter and (has_more or (len(value) >= 10 and _is_scrambled(value)))


def _is_spoken_password(value: str) -> bool:
    return _is_password(value) and not value.isdigit() and not re.search(r"\w-[A-Za-z]{4,}\Z", value)


def _is_command_option(folded: str, start: int) -> bool:
    """Whether the word is one of a command line: --password."""
    return re.search(r"(?<!\S)--[a-z-]*\Z", folded[max(0, start - 20) : start]) is not None


def _is_xml_element(folded: str, start: int) -> bool:
    """Whether the word is the name of an XML element."""
    return re.search(r"<[a-z_:.-]*\Z", folded[max(0, start - 30) : start]) is not None


def _has_mixed_characters(value: str) -> bool:
    """Small letters, capitals and digits."""
    return all(re.search(letters, value) for letters in ("[a-z]", "[A-Z]", "[0-9]"))


def _is_placeholder(value: str) -> bool:
    return _compile(_PLACEHOLDER).match(value) is not None


def _check_key(folded: str, name_match: re.Match[str], value_match: re.Match[str]) -> tuple[str, str]:
    kind, is_sure = _classify_key(folded, name_match)
    whole = value_match[value_match.lastindex or 0]
    run = _compile(_KEY).match(whole)
    value = run[0].rstrip(".:-%") if run is not None else ""
    is_call = whole[len(value) : len(value) + 1] == "("
    if not kind or len(value) < 16 or is_call or _is_placeholder(value) or _is_path(value):
        return "", ""
    if is_sure:
        is_secret = _is_random(value) or re.fullmatch(f"(?:{_UUID}|{_HEX})", value) is not None
    else:
        is_secret = len(value) >= 20 and _has_mixed_characters(value) and _is_random(value)
    return kind, value if is_secret else ""


def _classify_key(folded: str, match: re.Match[str]) -> tuple[str, bool]:
    """The kind of a key, and whether the words and signs before it are conclusive."""
    word = match[0][:3]
    has_sign = match[1] is not None
    if word != "key":
        return next(name for name in _TOKENS if name.startswith(word)), has_sign
    preceding = folded[max(0, match.start() - 20) : match.start()].rstrip(" _-")
    if preceding.endswith(("secret access", "secret_access", "secretaccess", "secret-access")):
        return "aws secret key", has_sign
    if preceding.endswith(_QUALIFIED):
        return "private key" if preceding.endswith("private") else "api key", has_sign
    is_part = folded[max(0, match.start() - 1) : match.start()].isalpha()
    return "" if is_part or preceding.endswith("public") else "key", False


def _is_path(value: str) -> bool:
    return "://" in value or re.search(r"/[^/]*\.\w{1,5}\Z", value) is not None


def _find_headers(text: str, folded: str) -> Iterator[Span]:
    if "bearer" in folded:
        for match in _compile(_BEARER).finditer(folded):
            value = text[match.start(1) : match.end(1)]
            if _is_random(value) or _has_mixed_characters(value):
                yield match.start(1), match.end(1), "bearer token"
    if "authorization" in folded:
        for match in _compile(_HEADER).finditer(folded):
            yield match.start(1), match.end(1), "credential"
    if "cookie" in folded:
        for match in _compile(_COOKIE).finditer(folded):
            if any(_is_random(part) for part in re.split("[=;, ]", text[match.start(1) : match.end(1)])):
                yield match.start(1), match.end(1), "cookie"


# Does it look generated?


def _is_random(value: str) -> bool:
    """Whether some piece of it looks random. Words, names and versions keep letters and digits apart
    (`claude-3-5-sonnet`, `release2026`); random text mixes them all the time."""
    return any(len(piece) >= 12 and _is_random_piece(piece) for piece in re.split("[-_.:~%]", value))


def _is_random_piece(piece: str) -> bool:
    changes = len(_compile(_LETTER_DIGIT_CHANGE).findall(piece))
    if changes >= max(2, len(piece) / 5):
        return True
    words = sum(map(len, _compile("[A-Z]?[a-z]{3,}+").findall(piece)))
    vowels = len(_compile("[AEIOUaeiou]").findall(piece))
    if words > _MIN_WORD_SHARE * len(piece) and vowels > _MIN_VOWEL_SHARE * words:
        return len(piece) >= _MIN_LONG_NAME_CHARS and _is_scrambled(re.sub(r"[\d+/=]", "", piece))
    return changes >= len(piece) // 16 if changes else len(piece) >= 16 and _is_scrambled(piece)


def _is_scrambled(value: str) -> bool:
    """Whether capitals and small letters are mixed as in no word and no name in code."""
    if not value.isascii() or not value.isalpha() or value.islower() or value.isupper():
        return False
    return re.fullmatch(r"(?:[A-Z]?[a-z]{2,}+|[A-Z]+(?=[A-Z][a-z]{2}|\Z))+", value[:200]) is None
