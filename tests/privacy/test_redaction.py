"""What must not be kept is taken out, whatever it is dressed up as, and nothing else is."""

from __future__ import annotations

import random
import re
import string
import subprocess
import sys
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import settings as sized
from hypothesis import strategies as st

from tacit import sample
from tacit.privacy import secrets
from tacit.privacy.redaction import LEFT_OPEN, PRIVATE, Cleaned, clean, is_left_open
from tacit.privacy.secret_forms import PATTERNS, SERVICES
from tests.hostile import SHAPES

WORD = "HUSHWORD"


def kept(text: str) -> str:
    return clean(text).text


# ---------------------------------------------------------------- private


@pytest.mark.parametrize(
    "text",
    [
        "a <private>HUSHWORD</private> b",
        "a <PRIVATE>HUSHWORD</Private> b",
        'a <private reason="x > y" data-z>HUSHWORD</private> b',
        "a < private >HUSHWORD< / private > b",
        "a <private>HUSHWORD</private > b",
        "a <private>HUSHWORD</private\n> b",
        "a <private>HUSHWORD</private class='x'> b",
        "a <private\n  why='it is'\n>HUSHWORD\n\nHUSHWORD\n</private> b",
        "a <pri\nvate>HUSHWORD</pri\nvate> b",
        "a <\nprivate>HUSHWORD<\n/private> b",
        "a <private>HUSHWORD <private>HUSHWORD</private> HUSHWORD</private> b",
        "a <pri\u200bvate>HUSHWORD</\u200bprivate\ufeff> b",
        "a <\u2060private>HUSHWORD</priv\u00adate> b",
        "a <private\u200d>HUSHWORD</private\u200c> b",
        "a ＜private＞HUSHWORD＜/private＞ b",
        "a ＜ｐｒｉｖａｔｅ＞HUSHWORD＜／ＰＲＩＶＡＴＥ＞ b",
        "a ‹private›HUSHWORD‹/private› b",
        "a 〈private〉HUSHWORD〈∕private〉 b",
        "a <рrіvаtе>HUSHWORD</ρrivαte> b",
        "a <𝐩𝐫𝐢𝐯𝐚𝐭𝐞>HUSHWORD</𝗣𝗿𝗶𝘃𝗮𝘁𝗲> b",
        "a &lt;private&gt;HUSHWORD&lt;/private&gt; b",
        "a &LT;private&GT;HUSHWORD&#60;/private&#x3E; b",
        "a &amp;lt;private&amp;gt;HUSHWORD&amp;lt;/private&amp;gt; b",
        "a &#0060;private&#62;HUSHWORD&#x003c;&#47;private&#62; b",
        "a \\u003cprivate\\u003eHUSHWORD\\u003c/private\\u003e b",
        "a <private>HUSHWORD<\\/private> b",
        "a %3Cprivate%3EHUSHWORD%3C%2Fprivate%3E b",
        "a <pri\\u200bvate>HUSHWORD</\\u2060private\\uFEFF> b",
        "a <pri\\u001b[1mvate>HUSHWORD<\\/pri\\udb40\\udc41vate> b",
        "a \\uff1cprivate\\uff1eHUSHWORD\\uff1c/private\\uff1e b",
        "a \\<private\\>HUSHWORD\\</private\\> b",
        "a <private HUSHWORD</private> b",
    ],
)
def test_what_stands_between_the_tags_is_gone_however_they_are_written(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.text.startswith("a ")
    assert cleaned.text.endswith("] b")
    assert WORD not in cleaned.text
    assert cleaned.private == 1
    assert cleaned.text.count(PRIVATE) == 1
    assert not is_left_open(text)
    assert not is_left_open(cleaned.text)


@pytest.mark.parametrize(
    "text",
    [
        "a <private>HUSHWORD",
        "a <private>HUSHWORD <private>HUSHWORD</private> HUSHWORD",
        "a <private/>HUSHWORD",
        "a <private HUSHWORD",
        "a <PRIVATE\nHUSHWORD",
        "a &lt;private HUSHWORD",
        "a <privat\u200be>HUSHWORD</privatE-x>",
        "a <private>HUSHWORD \n",
    ],
)
def test_a_tag_that_nobody_closes_is_private_to_the_end(text: str) -> None:
    assert clean(text) == Cleaned("a [private …]", 1)
    assert is_left_open(text)
    assert is_left_open(clean(text).text)


def test_a_tag_is_left_open_also_where_the_text_ends_with_what_nobody_sees() -> None:
    cleaned = clean("a <private>HUSHWORD\u200b\ufeff")
    assert WORD not in cleaned.text
    assert is_left_open(cleaned.text)


def test_a_tag_in_code_ticks_counts_as_well_and_only_the_tick_before_it_stays() -> None:
    """Who explains the tag and who means it cannot be told apart, so both are private."""
    assert clean("a `<private>` HUSHWORD") == Cleaned("a `[private …]", 1)
    assert clean("a `<private>HUSHWORD</private>` b") == Cleaned("a `[private]` b", 1)


@pytest.mark.parametrize(
    "text",
    [
        "HUSHWORD</private> b",
        "HUSHWORD\n\nHUSHWORD </Private > b",
        "HUSHWORD &lt;/private&gt; b",
        "HUSHWORD <private>HUSHWORD</private> HUSHWORD </private> b",
        "HUSHWORD</private HUSHWORD> b",
    ],
)
def test_a_closing_tag_alone_makes_all_before_it_private(text: str) -> None:
    assert clean(text) == Cleaned("[private] b", 1)
    assert not is_left_open(text)


def test_several_private_parts_are_counted_and_the_rest_stays() -> None:
    text = "one <private>HUSHWORD</private> two\n<private>HUSHWORD</private> three"
    assert clean(text) == Cleaned("one [private] two\n[private] three", 2)


@pytest.mark.parametrize(
    "text",
    [
        "That is private, isn't it?",
        "<privateKey>not a tag of ours</privateKey>",
        "<private-note>x</private-note> <private_x> </privates>",
        "private: <b>bold</b> </b>",
        "if a < private_limit: pass",
        "class A { private: int x; }",
        "Das ist privat. <privat>x</privat>",
        "これは秘密です。＜これ＞",
        "< p r i v a c y >",
        "[private]",
    ],
)
def test_what_is_no_tag_is_left_alone(text: str) -> None:
    assert clean(text) == Cleaned(text)


# ---------------------------------------------------------------- secrets


def drawn(seed: int, count: int, letters: str = string.ascii_letters + string.digits) -> str:
    lot = random.Random(f"{seed} {count} {letters}")
    return "".join(lot.choice(letters) for _ in range(count))


HEX, DIGITS = "0123456789abcdef", string.digits
UPPER = string.ascii_uppercase + string.digits


def published(seed: int) -> Mapping[str, str]:
    """Twenty-four formats that a comparison of detectors used."""

    def r(count: int, letters: str = string.ascii_letters + string.digits) -> str:
        return drawn(seed, count, letters)

    return {
        "aws access key": "AKIA" + r(16, string.ascii_uppercase + "234567"),
        "aws secret key": f'aws_secret_access_key = "{r(40)}"',
        "github classic": "ghp_" + r(36),
        "github fine": f"github_pat_{r(22)}_{r(59)}",
        "slack": f"xoxb-{r(12, DIGITS)}-{r(12, DIGITS)}-{r(24)}",
        "openai project": "sk-proj-" + r(48),
        "openai old": f"sk-{r(20)}T3BlbkFJ{r(20)}",
        "anthropic": f"sk-ant-api03-{r(93)}AA",
        "google": "AIza" + r(35),
        "stripe": "sk_live_" + r(24),
        "jwt": f"eyJ{r(20)}.eyJ{r(40)}.{r(43)}",
        "pem": "-----BEGIN RSA PRIVATE KEY-----",
        "telegram": f"{r(10, DIGITS)}:AA{r(33)}",
        "npm": "npm_" + r(36),
        "pypi": "pypi-AgEIcHlwaS5vcmc" + r(60),
        "hugging face": "hf_" + r(34),
        "address": f"postgres://admin:{r(16)}@db.internal:5432/x",
        "password": "password: " + r(14),
        "discord": f"{r(24)}.{r(6)}.{r(38)}",
        "gitlab": "glpat-" + r(20),
        "sendgrid": f"SG.{r(22)}.{r(43)}",
        "azure": f"AccountKey={r(86)}==",
        "openrouter": "sk-or-v1-" + r(64, HEX),
        "bearer": "Authorization: Bearer " + r(40),
    }


def others(seed: int) -> Mapping[str, str]:
    """Formats that are not among those."""

    def r(count: int, letters: str = string.ascii_letters + string.digits) -> str:
        return drawn(seed, count, letters)

    return {
        "groq": "gsk_" + r(52),
        "xai": "xai-" + r(80),
        "perplexity": "pplx-" + r(48),
        "replicate": "r8_" + r(37),
        "deepseek": "sk-" + r(32, HEX),
        "shopify": "shpat_" + r(32, HEX),
        "digitalocean": "dop_v1_" + r(64, HEX),
        "databricks": "dapi" + r(32, HEX),
        "linear": "lin_api_" + r(40),
        "notion": "ntn_" + r(46),
        "figma": "figd_" + r(40),
        "vault": "hvs." + r(90),
        "grafana": f"glsa_{r(32)}_{r(8, HEX)}",
        "docker": "dckr_pat_" + r(27),
        "tailscale": f"tskey-auth-{r(12)}CNTRL-{r(32)}",
        "twilio": "SK" + r(32, HEX),
        "mailgun": "key-" + r(32, HEX),
        "azure client": f"{r(3)}8Q~{r(34)}",
        "slack hook": f"https://hooks.slack.com/services/T{r(8, UPPER)}/B{r(8, UPPER)}/{r(24)}",
        "discord hook": f"https://discord.com/api/webhooks/{r(18, DIGITS)}/{r(68)}",
        "age": "AGE-SECRET-KEY-1" + r(58, UPPER),
        "google oauth": "ya29." + r(120),
        "aws temporary": "ASIA" + r(16, UPPER),
        "aws pair": f"AKIA{r(16, UPPER)},{r(40)}",
        "supabase": "sbp_" + r(40, HEX),
        "npm setting": f"//registry.example.org/:_authToken={r(36)}",
        "otp": f"otpauth://totp/x:ines?secret={r(32, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567')}&issuer=x",
        "curl": f"curl -s -u ines:{r(12)} https://example.org",
        "json": f'{{"user": "ines", "password": "{r(12)}"}}',
        "json in json": f'{{\\"password\\": \\"{r(12)}\\"}}',
        "environment": f'{{"name": "DB_PASSWORD", "value": "{r(12)}"}}',
        "xml": f"<db><password>{r(12)}</password></db>",
        "setting": f"export STRIPE_WEBHOOK_SECRET={r(32)}",
        "option": f"tool --api-token {r(40)} --password {r(12)}",
        "connection": f"Server=db;User Id=sa;Password={r(14)};Encrypt=true",
        "query": f"https://example.org/x?api_key={r(32, HEX)}&page=2",
        "basic": f"Authorization: Basic {r(32)}==",
        "header": f"X-Api-Key: {r(32, HEX)}",
        "cookie": f"Cookie: theme=dark; session={r(40)}",
        "uuid": f"api_key: {r(8, HEX)}-{r(4, HEX)}-{r(4, HEX)}-{r(4, HEX)}-{r(12, HEX)}",
        "wireguard": f"PrivateKey = {r(43)}=",
        "table": f"| API_KEY | {r(40)} |",
        "german": f"Das Passwort lautet {r(6)}7x!, bitte nicht weitersagen",
        "japanese": f"パスワードは{r(9)}7xです。",
        "chat": f"the password is: {r(9)}7x.",
        "line below": f"Password:\n{r(9)}7x",
        "seed": "seed phrase: " + " ".join(["apple", "river", "stone", "cloud", "paper", "green"] * 2),
        "hash": f"$2b$12${r(53)}",
    }


def values(text: str) -> list[str]:
    """The drawn pieces in it. A long number alone is no secret: it is the id of a bot or of a hook."""
    pieces = re.findall(r"[A-Za-z0-9]{9,}", text)
    return [piece for piece in pieces if re.search(r"\d", piece) and not piece.isdigit()]


AROUND = ["{}", "so {} works", "設定は {} です", "(`{}`)", "Hier: {}, bitte.", "a\n{}\nb"]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("formats", "enough"), [(published, 0.99), (others, 0.98)])
def test_secrets_of_known_forms_are_taken_out(formats: object, around: str, enough: float) -> None:
    assert callable(formats)
    found, missed = 0, []
    for seed in range(20):
        for name, secret in formats(seed).items():
            cleaned = clean(around.format(secret))
            hidden = [value for value in values(secret) if value in cleaned.text and name != "aws pair"]
            found += bool(cleaned.secrets and not hidden)
            missed += [] if cleaned.secrets and not hidden else [(name, secret)]
    assert found / (20 * len(formats(0))) >= enough, missed


@pytest.mark.parametrize(
    ("text", "kept_as"),
    [
        ("use ghp_" + drawn(1, 36), "use [secret: github token]"),
        ("sk-ant-" + drawn(1, 40) + ", ok?", "[secret: anthropic key], ok?"),
        ("postgres://ada:Tr0ub4dor@h/x", "postgres://ada:[secret: password]@h/x"),
        ('password = "Sommer2024!"', 'password = "[secret: password]"'),
        ("a://u:pA55word1@h b://u:pA55word2@h", "a://u:[secret: password]@h b://u:[secret: password]@h"),
    ],
)
def test_a_mark_says_what_was_there_and_the_rest_stays(text: str, kept_as: str) -> None:
    assert kept(text) == kept_as


def test_the_kinds_are_told_in_order() -> None:
    text = f"ghp_{drawn(1, 36)} <private>npm_{drawn(2, 36)}</private> AKIA{drawn(3, 16, UPPER)}"
    assert clean(text).secrets == ("github token", "aws access key")
    assert clean(text).private == 1


PGP_END = "> -----END PGP PRIVATE KEY BLOCK-----"
KEY_LINES = "\n".join(drawn(seed, 64) for seed in range(5))


@pytest.mark.parametrize(
    ("text", "kept_as"),
    [
        (f"a\n-----BEGIN PRIVATE KEY-----\n{KEY_LINES}\nQ==\n-----END PRIVATE KEY-----\nb", "a\n[]\nb"),
        (f"a\n-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY_LINES}\nab12\n\nThanks.", "a\n[]\n\nThanks."),
        (f"a\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{KEY_LINES}", "a\n[]"),
        (f"{KEY_LINES}\nAbc1\n{KEY_LINES}\n-----END RSA PRIVATE KEY-----\nb", f"{KEY_LINES}\nAbc1\n[]\nb"),
        ("k: '-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEEIB1234567890\\nabc=\\n'", "k: '[]\\n'"),
        ("-----BEGIN PRIVATE KEY----- -----BEGIN PRIVATE KEY-----", "[] []"),
        (f"> -----BEGIN PGP PRIVATE KEY BLOCK-----\n> \n> {drawn(1, 64)}\n> =ab12\n{PGP_END}", "> []"),
        (f"Private-Lines: 2\n{drawn(1, 64)}\n{drawn(2, 64)}\nPrivate-MAC: 1", "[]\nPrivate-MAC: 1"),
    ],
)  # fmt: skip
def test_private_keys_go_with_all_their_lines_also_when_an_end_is_missing(text: str, kept_as: str) -> None:
    assert kept(text).replace("[secret: private key]", "[]") == kept_as


@pytest.mark.parametrize(
    "broken",
    ["{}\u200b{}", "{}\u00ad{}", "{}\n{}", "{}\r\n  {}", "{}\n> {}", "{}\x1b[0m{}", "{}\ufeff\u2060{}"],
)
@pytest.mark.parametrize("prefix", ["ghp_", "sk-ant-api03-", "AIza", "glpat-", "sk-proj-"])
@pytest.mark.parametrize("at", [3, 15, 30])
def test_a_key_that_is_broken_in_two_is_found(broken: str, prefix: str, at: int) -> None:
    secret = drawn(at, 44 if prefix != "ghp_" else 36)
    cleaned = clean(f"here {prefix}{broken.format(secret[:at], secret[at:])} end")
    assert len(cleaned.secrets) == 1
    assert secret[at : at + 8] not in cleaned.text
    assert secret[:at] not in cleaned.text
    assert cleaned.text.endswith(" end")


def test_a_word_on_the_line_below_a_key_is_not_part_of_it() -> None:
    assert kept(f"ghp_{drawn(1, 36)}\nPlease") == "[secret: github token]\nPlease"
    assert (
        kept(f"sk-proj-{drawn(1, 48)}\nindependently of that")
        == "[secret: openai key]\nindependently of that"
    )


@pytest.mark.parametrize(
    "text",
    [
        "The token budget is 2000 and the secret of good memory is forgetting.",
        "commit 4f2a9c1e7b3d5a6f8091a2b3c4d5e6f708192a3b touched 3 files",
        "uuid 550e8400-e29b-41d4-a716-446655440000 in session agent:main:main",
        f"sha256 {drawn(1, 64, HEX)}",
        "session ses_1f0c9a7b and receipt 01hx7k2m9qz4t, turns_0a1b2c3d",
        "session_key: agent:main:telegram:direct:7\nkey: knowledge/people/deniz-kaya.md",
        '"message_hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
        "<!-- 3 18:45:07.120 9f3a2c11 -->\n<!-- knowledge e722 -->\n[e722 2026-10-05 knowledge/a.md]",
        "password policy: see the wiki",
        "password: required, type: password, the password is case-sensitive",
        "Passwort vergessen? Das Passwort ist zu kurz. Kennwort: siehe Tresor",
        "パスワードは変更しました。パスワード：なし",
        'password = os.environ["DB_PASSWORD1"]; token = get_token(user_id_2)',
        "password: str | None = None; password: String!; password=args.password_2",
        "postgres://user:password@localhost/x https://<user>:<password>@host http://$USER:${PASS1}@h",
        "https://example.com/a?b=c and mailto:ines@example.org at 12:30@home",
        f"data:image/png;base64,iVBORw0KGgo{drawn(2, 300)}",
        "my key idea is to keep files; the key takeaway2026 is here",
        "export PATH=/usr/local/bin:$PATH:/opt/x2/bin",
        "Author: t <t@t> Date: Mon Jan 1",
        "pip install sk-learn-contrib-2-classification-tools and risk-management-2024-overview",
        "uses claude-3-5-sonnet-20241022 with max_tokens=4096, tokens: 128000",
        "api_key: YOUR_API_KEY, token: <your-token-here>, secret: xxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "public_key = ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ",
        "private_key = Ed25519PrivateKey.generate()",
        "primary key: user_id, cache key: v2/users/17/profile.json",
        "the bearer of good news; basic authorization is fine",
        "Server=db;Integrated Security=true",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        'printf("Password is correct.&quot;); password is &quot;wrong&quot;',
        f"integrity: sha512-{drawn(5, 86)}==",
        f"docker pull ghcr.io/x/y@sha256:{drawn(6, 64, HEX)}",
        "/srv/app2/releases/20260310T0930/node_modules/@scope/pkg-4.1.2/dist/index.min.js",
        "C:\\Users\\Ines\\AppData\\Local\\Temp\\tmp8x1f2k\\token-cache-2026.json",
        'ETag: W/"5f-aB3dE5fG7hJ9kL" and request id 7f3b9c2e-1d4a-4c8b-9e6f-0a1b2c3d4e5f',
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert clean(text) == Cleaned(text)


def test_the_sample_home_holds_none() -> None:
    for path, data in sample.notes():
        assert clean(data.decode()) == Cleaned(data.decode()), path


def test_a_mark_that_stands_in_a_private_part_does_not_move_what_comes_behind_it() -> None:
    text = "[private] and [secret: key] HUSHWORD</private>-----BEGIN PRIVATE KEY-----"
    assert clean(text) == Cleaned("[private][secret: private key]", 1, ("private key",))


def test_what_can_only_be_seen_when_another_secret_is_gone_goes_as_well() -> None:
    text = "password: `0&#x0;-----BEGIN PRIVATE KEY-----"
    assert kept(text) == "password: `[secret: password][secret: private key]"


# ---------------------------------------------------------------- any text

PIECES = [
    *SHAPES,
    *("<private>", "</private>", "<private ", "&lt;private&gt;", "</private >", "[private]", "[private …]"),
    *("[secret: key]", "[secret: password]", "[secret: ", "password: ", "token=", "api_key: ", '"', "'"),
    *("`", "key ", "@", "://", "sk-", "sk-ant-", "ghp_", "AKIA", "eyJ", "-----BEGIN PRIVATE KEY-----"),
    *("-----END PRIVATE KEY-----", "Sommer2024!", drawn(1, 36), drawn(2, 40, HEX), drawn(3, 16, UPPER)),
    *(drawn(4, 20), "T3BlbkFJ", "\u200b", "İ", "＜", "ß", "passphrase: ", "Cookie: a=", "curl -u a:", "&"),
    *("secret", ";", "\\n", "Bearer ", "--password ", "<password>", "seed phrase: "),
    "apple river stone cloud ", "hooks.slack.com/services/", "\nPrivate-Lines: 1",
]  # fmt: skip
any_text = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=16).map("".join)


@sized(max_examples=1500)
@given(any_text)
def test_any_text_is_cleaned_once_and_for_all(text: str) -> None:
    cleaned = clean(text)
    marks = cleaned.private * len(LEFT_OPEN) + sum(len(f"[secret: {kind}]") for kind in cleaned.secrets)
    assert len(cleaned.text) <= len(text) + marks
    assert set(cleaned.secrets) <= secrets.KINDS
    assert clean(cleaned.text) == Cleaned(cleaned.text)
    if not cleaned.private and not cleaned.secrets:
        assert cleaned.text is text


@sized(max_examples=300)
@given(any_text, any_text)
def test_nothing_after_an_open_tag_comes_through(before: str, after: str) -> None:
    assert kept(f"{before}<private>{after} {WORD}" if "</" not in after else "").count(WORD) == before.count(
        WORD
    )


BOMBS = [
    "<private ", "<private>", "</private>", "</private ", "</private\\", "&lt;/private ", "&amp;", "< ", "<p",
    "\\", "\\u200b", "\\\\u", "\u200b", "İ", "ü", "password", "password:", "password='", "key:key:",
    "api_key=", "token ", "secret: A1b2", "bearer ", "cookie:a=", "curl -ua:", "seed phrase: abc ", "://a:", "://a:b@",
    "eyJ", "eyJaaaaaaaaa.", "sk-", "sk-\n", "sk-a", "sk-aaaaaaaaaaaaaaaaT3BlbkFJ", "ghp_a\n", "a1B2",
    "AAAAAAAAAAAAAAAAAAAA\n", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----\n", "AccountKey=aB",
    "Private-Lines: 1\n",
    "abcdefghijklmnopqrstuvwx.", "$1$", "\x1b[", "[private]", "[private]</private>", "[secret: ", "--", " ",
    "\n",
]  # fmt: skip


def took(text: str) -> float:
    began = time.process_time()
    clean(text)
    return time.process_time() - began


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_text_takes_longer_than_its_length_allows(bomb: str) -> None:
    """A quadratic step would take minutes here; the slowest of these takes a second."""
    size = 360_000
    text = (bomb * (size // len(bomb) + 1))[:size]
    assert min(took(text) for _ in range(2)) < 8


def test_every_pattern_can_be_compiled() -> None:
    """They are compiled when they are needed, so a mistake would show when a message is kept."""
    for _, prefixes, characters, least in SERVICES:
        assert all(prefixes.split(" ")), prefixes
        for prefix in prefixes.split(" "):
            list(secrets._find_with_prefix(f" {prefix}{'a1' * 99}", "x", prefix, characters, least))
    for _, _, pattern, _ in PATTERNS:
        re.compile(pattern)
    for name, value in vars(secrets).items():
        if name.isupper() and isinstance(value, str) and name.startswith("_"):
            re.compile(value)


def test_a_hook_can_start_with_it() -> None:
    """Nothing but `re` comes along, and `re` brings no typing."""
    code = (
        "import sys; before = set(sys.modules); import re; with_re = set(sys.modules)\n"
        "import tacit.privacy.redaction\n"
        "new = set(sys.modules) - with_re - {'tacit', 'tacit.version'}\n"
        "print(*sorted(name for name in new if not name.startswith('_')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = [
        "tacit.privacy",
        *(f"tacit.privacy.{name}" for name in ("redaction", "secret_forms", "secrets")),
    ]
    assert ran.stdout.split() == modules
