"""Secrets in a text, known by their form: keys of services, private keys, and what stands after a word like
password.

Two ways to know one, and both err on the quiet side:
- by its beginning: many services put one on their keys for this very purpose (`ghp_`, `sk-ant-`, `AIza`);
- by the word before it (`password: …`, `api_key=…`, `Authorization: Bearer …`), if what follows looks like
  something nobody would read aloud. A hash, an id, a path or a word is no secret for standing there.

What must stay true: time grows with the length of the text, whatever is in it; and a pattern is compiled only
when its first letters are in the text, so that a short message costs a few searches for fixed letters and
starting costs nothing. Only `re` is imported.

What it cannot know: a secret without a form of its own and without a word before it, a password that is a
plain word, and personal data such as card numbers.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # as in typing, which costs more to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Span = tuple[int, int, str]  # from, to, kind
    Look = Callable[[str, re.Match[str], re.Match[str]], tuple[str, str]]  # kind and secret, empty: none

BLANK = "\0"  # stands where something was removed already: no secret reaches over it

_A, _U, _D, _H, _B = "A-Za-z0-9", "A-Za-z0-9_-", "A-Za-z0-9_.-", "0-9a-fA-F", "0-9A-Z"

# What a key begins with, which characters follow, and how many at least.
_SERVICES: tuple[tuple[str, str, str, int], ...] = (
    ("anthropic key", "sk-ant-", _U, 20),
    ("openrouter key", "sk-or-", _U, 20),
    ("langfuse key", "sk-lf-", _U, 20),
    ("openai key", "sk-proj- sk-svcacct- sk-admin- sk-None-", _U, 20),
    ("google key", "AIza", _U, 35),
    ("google token", "ya29. GOCSPX- 1//0", _U, 20),
    ("firebase key", ":APA91b", _U, 100),
    ("aws key", "ABSK", _A + "+/=", 100),
    ("github token", "ghp_ gho_ ghu_ ghs_ ghr_", _A, 36),
    ("github token", "github_pat_", _U, 40),
    ("gitlab token", "glpat- glptt- gldt- glrt- glcbt- glsoat- glagent- glft- glffct- glimt- gloas-", _D, 20),
    ("gitlab token", "GR1348941", _U, 20),
    ("gitlab token", "_gitlab_session=", _A, 32),
    ("bitbucket token", "ATBB", _A, 24),
    ("atlassian token", "ATATT3x ATCTT3x", _A + "_=-", 50),
    ("slack token", "xoxb- xoxp- xoxa- xoxr- xoxo- xoxs- xoxc- xoxd- xoxe- xoxe. xapp-", "%" + _D, 12),
    ("stripe key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", _A, 10),
    ("stripe key", "whsec_", _A + "+/=", 24),
    ("npm token", "npm_", _A, 36),
    ("pypi token", "pypi-", _U, 50),
    ("rubygems key", "rubygems_", _H, 40),
    ("crates token", "cio", _A, 32),
    ("docker token", "dckr_pat_ dckr_oat_", _U, 20),
    ("hugging face token", "hf_ api_org_", _A, 30),
    ("sendgrid key", "SG.", _D, 40),
    ("mailgun key", "key-", _H, 32),
    ("mailgun key", "pubkey-", _H, 32),
    ("brevo key", "xkeysib- xsmtpsib-", _U, 40),
    ("groq key", "gsk_", _A, 40),
    ("xai key", "xai-", _A, 40),
    ("perplexity key", "pplx-", _A, 32),
    ("replicate token", "r8_", _A, 32),
    ("nvidia key", "nvapi-", _U, 40),
    ("cerebras key", "csk-", _A, 32),
    ("fireworks key", "fw_", _A, 20),
    ("pinecone key", "pcsk_", _U, 30),
    ("voyage key", "pa-", _U, 32),
    ("tavily key", "tvly-", _U, 24),
    ("jina key", "jina_", _U, 32),
    ("firecrawl key", "fc-", _H, 32),
    ("langsmith key", "lsv2_pt_ lsv2_sk_", _U, 32),
    ("resend key", "re_", _A + "_", 24),
    ("shopify token", "shpat_ shpss_ shpca_ shppa_", _H, 32),
    ("square token", "sq0atp- sq0csp- EAAA", _U, 22),
    ("razorpay key", "rzp_live_ rzp_test_", _A, 14),
    ("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", _H, 64),
    ("databricks token", "dapi", _H, 32),
    ("doppler token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim.", _D, 20),
    ("vault token", "hvs. hvb. hvr.", _U, 24),
    ("fly token", "fm1_ fm1a_ fm1r_ fm2_ fo1_", _A + "_+/=-", 40),
    ("grafana token", "glsa_ glc_", _A + "_+/=", 32),
    ("new relic key", "NRAK- NRJS- NRII-", _A, 19),
    ("sentry token", "sntrys_ sntryu_", _A + "_+/=", 40),
    ("linear key", "lin_api_ lin_oauth_", _A, 32),
    ("notion token", "ntn_ secret_", _A, 40),
    ("figma token", "figd_ figo_", _U, 30),
    ("postman key", "PMAK-", _H + "-", 50),
    ("pulumi token", "pul-", _H, 40),
    ("planetscale token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "=" + _D, 32),
    ("supabase key", "sbp_ sb_secret_", _U, 30),
    ("netlify token", "nfp_", _A, 36),
    ("render key", "rnd_", _A, 24),
    ("heroku key", "HRKU-", _U, 32),
    ("circleci token", "CCIPAT_", _U, 40),
    ("buildkite token", "bkua_", _H, 40),
    ("sonar token", "sqp_ squ_ sqa_", _H, 40),
    ("contentful token", "CFPAT-", _U, 40),
    ("typeform token", "tfp_", _U, 40),
    ("tailscale key", "tskey-", _U, 20),
    ("1password token", "ops_eyJ", _A + "_+/=-", 100),
    ("mapbox token", "sk.eyJ", _D, 60),
    ("dropbox token", "sl.", _U, 100),
    ("facebook token", "EAA", _A, 80),
    ("matrix token", "syt_", _A + "_", 30),
    ("clojars token", "CLOJARS_", _A, 40),
    ("dynatrace token", "dt0c01.", _D, 60),
    ("duffel token", "duffel_live_ duffel_test_", "=" + _U, 30),
    ("easypost key", "EZAK EZTK", _A, 50),
    ("flutterwave key", "FLWSECK-", _A, 20),
    ("flutterwave key", "FLWSECK_TEST-", _A, 12),
    ("infracost key", "ico-", _A, 32),
    ("prefect key", "pnu_", _A, 36),
    ("readme key", "rdme_", _A, 60),
    ("scalingo token", "tk-us-", _U, 40),
    ("shippo token", "shippo_live_ shippo_test_", _H, 40),
    ("sourcegraph token", "sgp_", _H + "_", 40),
    ("settlemint token", "sm_aat_ sm_pat_ sm_sat_", _A, 16),
    ("cloudflare key", "v1.0-", _H + "-", 100),
    ("alibaba key", "LTAI", _A, 20),
    ("artifactory key", "AKCp", _A, 60),
    ("artifactory key", "cmVmd", _A, 59),
    ("openshift token", "sha256~", _U, 43),
    ("adobe secret", "p8e-", _A, 32),
    ("grafana token", "eyJrIjoi", _A + "+/=", 50),
    ("age key", "AGE-SECRET-KEY-1", _B, 50),
    ("elevenlabs key", "sk_", _H, 40),
    ("openai key", "sk-", _U, 20),
)
# So short a beginning stands in ordinary words too: what follows must look made by a machine.
_LOOSE = (
    "sk-", "cio", "fw_", "pa-", "re_", "key-", "sl.", "secret_", "EAA", "EAAA", "ico-", "tk-us-",
    "v1.0-", "dapi", "fc-", "1//0", "ATBB", "ABSK",
)  # fmt: skip

# Between two letters of a key: the end of a line, as terminals and mail programs break it, and a quote mark.
_BROKEN = r"(?:[ \t]*+\r?\n[ \t>|]*+)?+"
_MORE = r"[ \t]*+\r?\n[ \t>|]*+([A-Za-z0-9_+/=.-]{12,}+)(?=[\s\"'`,;)\]]|\Z)"

_WEB_TOKEN = rf"(?<![{_U}])eyJ[{_U}]{{8,}}+\.[{_U}]{{8,}}+\.[{_U}]*+(?:\.[{_U}]++){{0,2}}"
_HASH = rf"\$(?:2[abxy]\$\d\d\$[{_A}./]{{53}}|[156y]\$[^\s$\0]{{1,40}}\$[{_A}./$]{{20,}}+)"
_CURL = r"curl [^\n\0]{0,300}?-(?:u|-user)[ =]{0,3}[\"']?[^\s:\"'\0]{1,80}:([^\s\"'\0]{3,80})"

# Forms without a fixed beginning: the letters that must be there, the pattern, which group is the secret.
_SHAPES: tuple[tuple[str, str, str, int], ...] = (
    ("aws access key", "AKIA", rf"(?<![{_A}])AKIA[{_B}]{{16}}(?![{_A}])", 0),
    ("aws access key", "IA", rf"(?<![{_A}])A[SB]IA[{_B}]{{16}}(?![{_A}])", 0),
    ("aws access key", "ACCA", rf"(?<![{_A}])ACCA[{_B}]{{16}}(?![{_A}])", 0),
    ("aws secret key", "AKIA", rf"AKIA[{_B}]{{16}}[\s,;:|\"'/]{{1,8}}([{_A}/+]{{40}})(?![{_A}/+=])", 1),
    ("openai key", "T3BlbkFJ", rf"(?<![{_A}])sk-[{_U}]{{16,160}}?T3BlbkFJ[{_U}]{{16,}}+", 0),
    ("json web token", "eyJ", _WEB_TOKEN, 0),
    ("telegram token", ":AA", rf"(?<!\d)\d{{8,10}}:AA[{_U}]{{30,}}+", 0),
    ("twilio key", "SK", rf"(?<![{_A}])SK[{_H}]{{32}}(?![{_A}])", 0),
    ("airtable token", "pat", rf"(?<![{_A}])pat[{_A}]{{14}}\.[0-9a-f]{{64}}", 0),
    ("mailchimp key", "-us", rf"(?<![{_A}])[0-9a-f]{{32}}-us\d{{1,2}}(?![{_A}])", 0),
    ("terraform token", ".atlasv1.", rf"(?<![{_A}])[{_A}]{{14}}\.atlasv1\.[{_U}]{{60,}}+", 0),
    ("azure secret", "Q~", rf"(?<![{_A}~_.-])[{_A}~_.-]{{3}}\dQ~[{_A}~_.-]{{31,34}}(?![{_A}~_.-])", 0),
    ("azure signature", "sig=", rf"[?&]sig=([{_A}%+/=]{{30,}}+)", 1),
    ("slack webhook", "hooks.slack.com/", rf"hooks\.slack\.com/(?:services|workflows)/([{_A}/]{{20,}}+)", 1),
    ("discord webhook", "/webhooks/", rf"/api/webhooks/\d{{15,21}}/([{_U}]{{30,}}+)", 1),
    ("teams webhook", ".webhook.office.com", r"\.webhook\.office\.com/(webhookb2/[^\s\"'<>\0]{30,}+)", 1),
    ("vault token", "s.", rf"(?<![{_A}.])s\.(?=[a-z]*\d)[a-z0-9]{{24}}(?![{_A}])", 0),
    ("octopus key", "API-", rf"(?<![{_A}])API-[{_B}]{{26}}(?![{_A}])", 0),
    ("maxmind key", "_mmk", rf"(?<![{_U}])[{_A}]{{6}}_[{_A}]{{29}}_mmk", 0),
    ("cloudflare token", "cf", rf"(?<![{_A}])cf(?:ut|at|k)_[{_A}]{{40}}[{_H}]{{8}}", 0),
    ("plaid token", "access-", rf"access-(?:production|development|sandbox)-[{_H}-]{{36}}", 0),
    ("password hash", "$", _HASH, 0),
    ("otp secret", "otpauth://", r"otpauth://[^\s\0]{1,300}?[?&]secret=([A-Za-z2-7=]{8,}+)", 1),
    ("password", "curl", _CURL, 1),
)
_DISCORD = rf"(?<![{_U}])[{_U}]{{24,28}}\.[{_U}]{{6}}\.([{_U}]{{27,40}}+)"
_LOGIN = r"://[^\s:/@?#\0\"'<>\[\]]{0,128}:([^\s/\0\"'<>]{1,256})@"
_TOKEN_LOGIN = rf"://([{_U}]{{20,200}})@"
_PHRASE = (
    r"(?:seed|recovery|backup|mnemonic|wiederherstellungs)[ _-]?(?:phrase|words|wörter)?[\"'`*]{0,3}\s{0,3}"
    r"(?:[:=]|\bis\b|\bist\b)\s{0,3}[\"'`]?"
    r"((?:\d{1,2}[.)]\s?)?[a-z]{3,8}(?:[\s,]{1,3}(?:\d{1,2}[.)]\s?)?[a-z]{3,8}){11,23})(?![a-z])"
)

# Words after which a secret stands, folded as the text is.
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
_AFTER = (
    r"s?(?:[_-](?:prod|production|dev|test|staging|live|\d{1,3}))?[\"'`*_\])\\]{0,4}[ \t]*+"
    r"(?:,?\s*+[\"'\\]{0,2}value[\"'\\]{0,2}[ \t]*+(?=[:=]))?"  # {"name": "password", "value": "…"}
    r"(\b(?:is|ist|lautet|est|es|jest)\b|は|:=|=>|->|==?|[:=|>→])?(?:[ \t]*+[:=])?[ \t]*+(?:\r?\n[ \t]*+)?"
)
_VALUE = (
    r"[*_]{0,2}(?:\\{0,4}\"([^\"\n\0]{1,200})|\\{0,4}'([^'\n\0]{1,200})|`([^`\n\0]{1,200})"
    r"|([!-~\u00a1-\u024f]{1,200}))"
)
_BEARER = rf"\bbearer[ \t:=]{{1,3}}[\"']?([{_A}_+/=.~-]{{16,}}+)"
_HEADER = (
    r"authorization[\"'\\]{0,3}[ \t]*+[:=][ \t]*+[\"'\\]{0,3}"
    rf"(?:basic|token|apikey|digest|bot|ssws)[ \t]++([{_A}_+/=.~-]{{8,}}+)"
)
_COOKIE = r"cookie[\"']?[ \t]*+:[ \t]*+([^\s=;]{1,80}=[^\n\0\"']{16,4000})"
_KEY = rf"[{_A}_+/=.~:%-]+"
_KEY_REST = rf"[{_A}_+/=.~%-]*+"
_UUID = rf"[{_H}]{{8}}-(?:[{_H}]{{4}}-){{3}}[{_H}]{{12}}"
_HEX = rf"(?=[{_H}]*\d)(?=\d*[a-fA-F])[{_H}]{{20,}}"
_WORDY = 0.45  # of the letters stand in rows like words: a name in code has more of them, a key has fewer
_VOWELS = 0.27  # of the letters of words, at least; one in five letters drawn by lot is a vowel
_LONG_NAME = 30  # letters: in so long a name a capital that begins no word would be strange
_CHANGE = r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]"

_ROUNDS = 8  # a secret that is gone may leave another one to be seen: a value ends where its mark begins
_LOOKED_AT = 200  # letters of a value; a longer one ends where its letters do
_BARE = 4  # the group of a value without quotes
_LONG = 128  # letters of a password, at most

# What people and programs write where a password would stand.
_PLACEHOLDER = (
    r"(?i:[<\[{(]|\$[{(A-Za-z_]|%[({A-Z]|\*{3}|x{4}|\.{3}|…|your|my_?pass|example|changeme|placeholder|redacted|dummy"
    r"|(?:process|os|self|this|config|settings|options|args|env|secrets|params|request|req|ctx|data)[.\[]"
    r"|(?:getenv|input|null|none|true|false|string|password|passwort|passwd|pass|pwd|secret|token)\b"
    r"|[a-z_][\w.]*\(|[~.]{0,2}[/\\]|[a-z]:[\\/]|[a-z]{2,8}://|(?:rs)?utf-?\d|base\d\d\b|sha-?\d|md5|oauth\d"
    r"|argon2|pbkdf2|bcrypt|aes-?\d|\d+-?(?:char|digit|zeichen|bit|stellig))"
)


KINDS = frozenset(
    (
        *(row[0] for row in (*_SERVICES, *_SHAPES)),
        *("discord token", "password", "token", "private key", "api key", "key", "secret", "credential"),
        *("bearer token", "cookie", "seed phrase"),
    )
)


def _compiled(pattern: str) -> re.Pattern[str]:
    """`re` keeps what it compiled; this says so, and that none of it happens at import."""
    return re.compile(pattern)


def spans(text: str, folded: str) -> list[Span]:
    """Where secrets are, in order and apart from each other. `folded`: the same text, letter by letter, in
    lower case. What was removed already is BLANK in both."""
    found: list[Span] = []
    for _ in range(_ROUNDS):
        more = list(_apart(_once(text, folded)))
        found += more
        if not more:
            break
        gone = [(begin, end) for begin, end, _ in more]
        text, folded = blanked(text, gone), blanked(folded, gone)
    return list(_apart(found))


def blanked(text: str, gone: Iterable[tuple[int, int]]) -> str:
    """With nothing to be found in these places, which are in order and apart from each other."""
    pieces, at = [], 0
    for begin, end in gone:
        pieces += [text[at:begin], BLANK * (end - begin)]
        at = end
    return "".join([*pieces, text[at:]])


def _once(text: str, folded: str) -> list[Span]:
    return [*_prefixed(text), *_shaped(text), *_key_blocks(text), *_logins(text), *_assigned(text, folded)]


def _apart(found: list[Span]) -> Iterator[Span]:
    """Those that overlap become one; of their kinds the first that was found, which is the most exact."""
    held: Span | None = None
    rank = 0
    for begin, end, at in sorted((span[0], span[1], at) for at, span in enumerate(found)):
        kind = found[at][2]
        if held is not None and begin < held[1]:
            held = (held[0], max(end, held[1]), kind if at < rank else held[2])
            rank = min(at, rank)
        else:
            if held is not None:
                yield held
            held, rank = (begin, end, kind), at
    if held is not None:
        yield held


# By its beginning


def _prefixed(text: str) -> Iterator[Span]:
    for kind, prefixes, characters, least in _SERVICES:
        for prefix in prefixes.split(" "):
            if prefix in text:
                yield from _with_prefix(text, kind, prefix, characters, least)


def _with_prefix(text: str, kind: str, prefix: str, characters: str, least: int) -> Iterator[Span]:
    body = _compiled(rf"(?:[{characters}]{_BROKEN}){{{least - 1}}}[{characters}]++")
    at = text.find(prefix)
    while at >= 0:
        after = at + len(prefix)
        found = body.match(text, after) if _begins(text, at) else None
        if found is not None:
            after = found.end()  # also of what is no key: to look at it again from within takes forever
            if _is_made(found[0], prefix in _LOOSE):
                after = _with_more_lines(text, after)
                yield at, after, kind
        at = text.find(prefix, after)


def _begins(text: str, at: int) -> bool:
    """Whether a word may begin here: also after the two letters that stand for a line's end in JSON."""
    before = text[at - 1 : at] if at else ""
    return not (before.isascii() and before.isalnum()) or text[max(0, at - 2) : at] in ("\\n", "\\r", "\\t")


def _is_made(body: str, loose: bool) -> bool:
    if re.match("(?i:your|x{4}|example|redacted)|[.*]{3}", body):
        return False
    if "\n" in body:
        return _is_random("".join(body.replace(">", "").replace("|", "").split()))
    return not loose or _is_random(body)


def _with_more_lines(text: str, end: int) -> int:
    """To where a key ends that was broken into lines: the next one goes on with it if it is no word."""
    more = _compiled(_MORE)
    while (found := more.match(text, end)) is not None and _is_random(found[1]):
        end = found.end(1)
    return end


# By its form


def _shaped(text: str) -> Iterator[Span]:
    for kind, letters, pattern, group in _SHAPES:
        if letters in text:
            for found in _compiled(pattern).finditer(text):
                if kind != "password" or not _is_placeholder(found[group]):
                    yield found.start(group), _with_more_lines(text, found.end(group)), kind
    if re.search(rf"\.[{_U}]{{6}}\.[{_U}]{{27}}", text):
        for found in _compiled(_DISCORD).finditer(text):
            if _is_random(found[1]):
                yield found.start(), found.end(), "discord token"


def _logins(text: str) -> Iterator[Span]:
    """In addresses: https://user:password@host."""
    if "://" not in text or "@" not in text:
        return
    for found in _compiled(_LOGIN).finditer(text):
        if not _is_placeholder(found[1]):
            yield found.start(1), found.end(1), "password"
    for found in _compiled(_TOKEN_LOGIN).finditer(text):
        if _is_random(found[1]):
            yield found.start(1), found.end(1), "token"


_BEGIN = r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{0,5}"
_END = r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-{0,5}"
_HEAD_LINE = r"(?:Proc-Type|DEK-Info|Version|Comment):[^\n\0]{0,200}"
_LINES = (  # of a key whose end is missing: lines of nothing but its letters, and a shorter last one
    rf"(?:(?:\s|\\[nr]|[>|+ \t])*+(?:{_HEAD_LINE}|[{_A}+/=]{{16,}}+))*+"
    rf"(?:(?:\s|\\[nr]|[>|+ \t])*+[{_A}+/]{{1,15}}+=*+(?=\s*+\Z|[\"'\\]|[ \t]*+\n))?+"
)
_KEY_LINE = rf"[>|+ \t]*[{_A}+/=]{{16,}}[ \t\r]*"


def _key_blocks(text: str) -> Iterator[Span]:
    if "Private-Lines:" in text:
        for found in _compiled(rf"Private-Lines: ?\d++{_LINES}").finditer(text):
            yield found.start(), found.end(), "private key"
    if "PRIVATE KEY" not in text:
        return
    begun: re.Match[str] | None = None
    last = 0
    for mark in _compiled(f"{_BEGIN}|({_END})").finditer(text):
        if mark[1] is None:
            if begun is not None:
                yield begun.start(), _unclosed(text, begun, mark.start()), "private key"
            begun = mark
            continue
        start = _lines_before(text, mark.start(), last) if begun is None else begun.start()
        yield start, mark.end(), "private key"
        begun, last = None, mark.end()
    if begun is not None:
        yield begun.start(), _unclosed(text, begun, len(text)), "private key"


def _unclosed(text: str, begun: re.Match[str], most: int) -> int:
    found = _compiled(_LINES).match(text, begun.end(), most)
    end = found.end() if found is not None else begun.end()
    return begun.end() + len(text[begun.end() : end].rstrip())


def _lines_before(text: str, at: int, least: int) -> int:
    """Where a key began whose first lines are missing."""
    line = _compiled(_KEY_LINE)
    start, end = at, text.rfind("\n", least, at)
    while end > least:
        above = max(text.rfind("\n", least, end) + 1, least)
        if line.fullmatch(text, above, end) is None:
            break
        start, end = above, above - 1
    return start


# By the word before it


def _assigned(text: str, folded: str) -> Iterator[Span]:
    for word in _PASSWORDS:
        yield from _after(word, text, folded, _password)
    for word in (*_TOKENS, "key"):
        yield from _after(word, text, folded, _key)
    yield from _headers(text, folded)
    if "phrase" in folded or "mnemonic" in folded or "recovery words" in folded:
        for found in _compiled(_PHRASE).finditer(folded):
            yield found.start(1), found.end(1), "seed phrase"


def _after(word: str, text: str, folded: str, look: Look) -> Iterator[Span]:
    """What stands after each of these words, if it is a secret."""
    if word not in folded:
        return
    value, end = _compiled(_VALUE), 0
    for found in _compiled(word + _AFTER).finditer(folded):
        held = value.match(text, found.end()) if found.end() > end else None
        if held is not None and _may_follow(text, found, held):
            kind, secret = look(folded, found, held)
            begin = held.start(held.lastindex or 0)
            end = begin + len(secret)
            if secret:
                rest = _compiled(_KEY_REST).match(text, end) if len(held[0]) >= _LOOKED_AT else None
                end = rest.end() if rest is not None else end
                yield begin, end, kind
            elif look is _key:  # a key would have been found in all of it; a password may stand within
                end = held.end()


def _may_follow(text: str, found: re.Match[str], held: re.Match[str]) -> bool:
    """Without a sign between them there is at least a space or a quote, and no line's end."""
    if found[1] is not None:
        return True
    between = text[found.end() - 1 : held.start(held.lastindex or 0)]
    return "\n" not in found[0] and re.search("[ \t\"'`]", between) is not None


def _password(folded: str, found: re.Match[str], held: re.Match[str]) -> tuple[str, str]:
    group, at, sign = held.lastindex or 0, found.start(), found[1] or ""
    value = held[group].rstrip("\\")
    if re.search(r"\s", value) and found[0][:10] != "passphrase":
        return "", ""
    if group == _BARE:
        value = _bare(value, is_query=folded[max(0, at - 1) : at] in ("?", "&"), sign=sign)
    if sign.isalpha():
        is_secret = _is_spoken_password(value)
    elif sign == ">":
        is_secret = _is_element(folded, at) and value[:1] not in "@:/" and _is_password(value)
    elif sign or _is_option(folded, at):
        is_secret = _is_password(value)
    else:
        is_secret = len(value) >= 8 and _has_all(value) and not _is_placeholder(value)
    return "password", value if is_secret else ""


def _bare(value: str, *, is_query: bool, sign: str) -> str:
    """A value without quotes ends where the sentence, the address, the element or the setting does."""
    ends = ";" + ("&#" if is_query else "") + ("<" if sign == ">" else "")
    value = re.split(rf"[{ends}]|\\[nr]|&(?:quot|amp|[lg]t|#\d)", value, maxsplit=1)[0]
    return value.rstrip(".,:)]}>*_|\"'`")


def _is_password(value: str) -> bool:
    if len(value) < 6 or _is_placeholder(value):
        return False
    if len(value) > _LONG:
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


def _is_option(folded: str, at: int) -> bool:
    """Whether the word is one of a command line: --password."""
    return re.search(r"(?<!\S)--[a-z-]*\Z", folded[max(0, at - 20) : at]) is not None


def _is_element(folded: str, at: int) -> bool:
    """Whether the word is the name of an XML element."""
    return re.search(r"<[a-z_:.-]*\Z", folded[max(0, at - 30) : at]) is not None


def _has_all(value: str) -> bool:
    """Small letters, capitals and digits."""
    return all(re.search(letters, value) for letters in ("[a-z]", "[A-Z]", "[0-9]"))


def _is_placeholder(value: str) -> bool:
    return _compiled(_PLACEHOLDER).match(value) is not None


def _key(folded: str, found: re.Match[str], held: re.Match[str]) -> tuple[str, str]:
    kind, is_sure = _kind_of(folded, found)
    whole = held[held.lastindex or 0]
    run = _compiled(_KEY).match(whole)
    value = run[0].rstrip(".:-%") if run is not None else ""
    is_call = whole[len(value) : len(value) + 1] == "("
    if not kind or len(value) < 16 or is_call or _is_placeholder(value) or _is_path(value):
        return "", ""
    if is_sure:
        is_secret = _is_random(value) or re.fullmatch(f"(?:{_UUID}|{_HEX})", value) is not None
    else:
        is_secret = len(value) >= 20 and _has_all(value) and _is_random(value)
    return kind, value if is_secret else ""


def _kind_of(folded: str, found: re.Match[str]) -> tuple[str, bool]:
    """Of a key: what to call it, and whether words and signs before it leave no doubt that it is one."""
    word = found[0][:3]
    has_sign = found[1] is not None
    if word != "key":
        return next(name for name in _TOKENS if name.startswith(word)), has_sign
    before = folded[max(0, found.start() - 20) : found.start()].rstrip(" _-")
    if before.endswith(("secret access", "secret_access", "secretaccess", "secret-access")):
        return "aws secret key", has_sign
    if before.endswith(_QUALIFIED):
        return "private key" if before.endswith("private") else "api key", has_sign
    is_part = folded[max(0, found.start() - 1) : found.start()].isalpha()
    return "" if is_part or before.endswith("public") else "key", False


def _is_path(value: str) -> bool:
    return "://" in value or re.search(r"/[^/]*\.\w{1,5}\Z", value) is not None


def _headers(text: str, folded: str) -> Iterator[Span]:
    if "bearer" in folded:
        for found in _compiled(_BEARER).finditer(folded):
            value = text[found.start(1) : found.end(1)]
            if _is_random(value) or _has_all(value):
                yield found.start(1), found.end(1), "bearer token"
    if "authorization" in folded:
        for found in _compiled(_HEADER).finditer(folded):
            yield found.start(1), found.end(1), "credential"
    if "cookie" in folded:
        for found in _compiled(_COOKIE).finditer(folded):
            if any(_is_random(part) for part in re.split("[=;, ]", text[found.start(1) : found.end(1)])):
                yield found.start(1), found.end(1), "cookie"


# Made by a machine?


def _is_random(value: str) -> bool:
    """Whether some piece of it looks drawn by lot. Words, names and versions have letters and digits apart
    (`claude-3-5-sonnet`, `release2026`); in what is drawn they stand next to each other all the time."""
    return any(len(piece) >= 12 and _is_drawn(piece) for piece in re.split("[-_.:~%]", value))


def _is_drawn(piece: str) -> bool:
    changes = len(_compiled(_CHANGE).findall(piece))
    if changes >= max(2, len(piece) / 5):
        return True
    words = sum(map(len, _compiled("[A-Z]?[a-z]{3,}+").findall(piece)))
    vowels = len(_compiled("[AEIOUaeiou]").findall(piece))
    if words > _WORDY * len(piece) and vowels > _VOWELS * words:
        return len(piece) >= _LONG_NAME and _is_scrambled(re.sub(r"[\d+/=]", "", piece))
    return changes >= len(piece) // 16 if changes else len(piece) >= 16 and _is_scrambled(piece)


def _is_scrambled(value: str) -> bool:
    """Capitals among small letters as in no word and no name in code."""
    if not value.isascii() or not value.isalpha() or value.islower() or value.isupper():
        return False
    return re.fullmatch(r"(?:[A-Z]?[a-z]{2,}+|[A-Z]+(?=[A-Z][a-z]{2}|\Z))+", value[:200]) is None
