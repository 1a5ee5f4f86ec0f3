from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.topics import regex
from tacit.topics.model import Event, Match, Side, Stimulus, Topic, Trigger
from tacit.topics.patterns import PatternMatcher
from tacit.topics.triggers.base import MAX_END_CHARS, MAX_START_CHARS, text_to_match
from tacit.topics.triggers.expressions import list_words
from tacit.topics.word_boundary import add_boundaries


def topic(name: str, *triggers: Trigger) -> Topic:
    return Topic(name, f"topics/{name}.md", name, name, "Do it.", triggers)


def pattern(match: str) -> PatternMatcher:
    return PatternMatcher([topic("t", Trigger("pattern", match))])


def wakes(trigger: Trigger, text: str, *paths: str, side: Side = "input") -> bool:
    return bool(PatternMatcher([topic("t", trigger)]).find(Stimulus(text, side, paths)))


def test_the_names_of_all_topics_that_a_message_wakes() -> None:
    matcher = PatternMatcher(
        [
            topic("mail", Trigger("pattern", r"\b(email|inbox|mail)\b")),
            topic("deploy", Trigger("keywords", words=("deploy", "production", "rollback"))),
            topic("people", Trigger("mention", words=("David", "@silas"))),
            topic("pulls", Trigger("url", "github.com/*/pull/*")),
            topic("never"),
        ]
    )
    assert matcher.match("Did the EMAIL about production reach @Silas?") == {"mail", "deploy", "people"}
    assert matcher.match("https://github.com/a/b/pull/7") == {"pulls"}
    assert matcher.match("blackmail, deployment, Davidson") == set()
    assert matcher.match("") == set()
    assert matcher.problems == ()


def test_matches_come_by_topic_and_trigger_and_say_on_what() -> None:
    topics = [
        topic("b", Trigger("pattern", r"PR #\d+"), Trigger("keywords", words=("merge", "review", "diff"))),
        topic("a", Trigger("urgency"), Trigger("pattern", "review", "both", correction_hint="Slowly.")),
    ]
    said = Stimulus("Please review PR #12 and merge ASAP")
    expected = [
        Match("a", "urgency", 'urgency "asap"'),
        Match("a", "pattern", 'pattern "review"', "Slowly."),
        Match("b", "pattern", 'pattern "PR #12"'),
        Match("b", "keywords", 'keyword "merge", "review"'),
    ]
    assert PatternMatcher(topics).find(said) == expected
    assert PatternMatcher(topics[::-1]).find(said) == expected


def test_what_matched_is_shown_in_one_short_line() -> None:
    found = pattern(r"a(?s:.)+z").find(Stimulus("a\n\x1b[2J" + "b " * 200 + "z"))
    assert len(found[0].text) <= len('pattern ""') + 60
    assert found[0].text.isprintable()


@pytest.mark.parametrize("kind", ["pattern", "keywords", "mention", "code", "language", "url", "urgency"])
def test_every_trigger_watches_the_side_that_it_names(kind: str) -> None:
    text = "URGENT: Das ist die PR von David für heute\n```\nx\n```\nhttps://a.example/b"
    base = {
        "pattern": Trigger("pattern", "PR+"), "keywords": Trigger("keywords", words=("PR",)),
        "mention": Trigger("mention", words=("David",)), "code": Trigger("code"),
        "language": Trigger("language", words=("de",)), "url": Trigger("url", words=("a.example",)),
        "urgency": Trigger("urgency"),
    }[kind]  # fmt: skip
    for scope, sides in (("input", ["input"]), ("output", ["output"]), ("both", ["input", "output"])):
        trigger = Trigger(base.type, base.match, scope, base.words)  # type: ignore[arg-type]
        matcher = PatternMatcher([topic("t", trigger)])
        assert [side for side in ("input", "output") if matcher.find(Stimulus(text, side))] == sides


@pytest.mark.parametrize(
    ("word", "yes", "no"),
    [
        (
            "deploy",
            ["Deploy!", "(deploy)", "deploy_now".replace("_", "-")],
            ["deployed", "redeploy", "deploy_now"],
        ),
        ("free shipping", ["Free   shipping?", "free\nshipping"], ["freeshipping", "free shippings"]),
        ("C++", ["I like c++.", "C++11"], ["VC++"]),
        (".NET", ["on .net", "the .NET runtime"], [".network"]),
        ("Straße", ["STRASSE", "die Straße"], ["Straßen"]),
        ("緊急", ["これは緊急です"], ["緊"]),
        ("PRレビュー", ["このPRレビューを", "prレビュー"], ["xPRレビュー"]),
        ("café", ["Cafe\u0301!", "CAFÉ"], ["cafe", "cafés"]),
        ("почта", ["Почта"], ["почтальон"]),
        ("हिन्दी", ["हिन्दी में"], ["हिन्दीभाषा"]),
        ("!!!", ["now!!!"], ["now!!"]),
    ],
)
def test_keywords_are_whole_words_in_any_case_and_script(word: str, yes: list[str], no: list[str]) -> None:
    trigger = Trigger("keywords", words=(word,))
    assert [text for text in yes if not wakes(trigger, text)] == []
    assert [text for text in no if wakes(trigger, text)] == []


def test_a_pattern_that_lists_words_is_looked_for_as_words() -> None:
    assert list_words("email|inbox") == ["email", "inbox"]
    assert list_words(r"\b(?:pick-up|receipts?)\b") == ["pick-up", "receipt", "receipts"]
    assert list_words(r"\bmail\b") == ["mail"]
    for other in (r"\bmail", r"mail\b|post", "a.c", "(a|b", "^mail", "/mail/", "a||b", "mail+", ""):
        assert list_words(other) == []


@pytest.mark.parametrize("form", ["{}", "({})", r"\b({})\b", "(?:{})", "(?:{})+"])
@pytest.mark.parametrize(
    "text", ["mail", "a Mail.", "mails", "blackmail", "émail", "メールmailを", "inbox_", "x"]
)
def test_words_and_expressions_agree(form: str, text: str) -> None:
    """The last form is an expression for the engine, the others are lists."""
    assert pattern(form.format("mail|inbox")).match(text) == pattern("(?:mail|inbox)+").match(text)


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("*.py", ["a.py", "src/deep/a.PY", "/home/u/a.py", "src\\a.py"], ["a.pyc", "py", "a.py/b"]),
        ("src/**/*.ts", ["src/a.ts", "src/a/b/c.ts", "/w/src/a.ts"], ["src/a.tsx", "lib/a.ts", "mysrc/a.ts"]),
        ("src/*.ts", ["src/a.ts"], ["src/a/b.ts"]),
        ("*.{js,ts}", ["a.js", "b/c.ts"], ["a.jsx", "a.{js,ts}"]),
        ("docs/", ["docs/a/b.md"], ["docs"]),
        ("/etc/*", ["/etc/hosts"], ["/home/etc/hosts"]),
        ("file?.[ch]", ["file1.c", "a/fileX.h"], ["file.c", "file12.c"]),
        ("[!a]*.md", ["b.md"], ["a.md"]),
        ("Makefile", ["Makefile", "sub/makefile"], ["Makefile.am"]),
        ("a+(b).txt", ["a+(b).txt"], ["aab.txt"]),
        ("{a", ["{a"], ["a"]),
    ],
)
def test_globs_are_over_the_paths_of_tools(glob: str, yes: list[str], no: list[str]) -> None:
    trigger = Trigger("glob", glob)
    assert [path for path in yes if not wakes(trigger, "", path)] == []
    assert [path for path in no if wakes(trigger, "", path)] == []
    assert not wakes(trigger, " ".join(yes))


@pytest.mark.parametrize(
    ("trigger", "yes", "no"),
    [
        (Trigger("url", "github.com/*/pull/*"),
         ["https://github.com/a/b/pull/3", "see github.com/a/b/pull/3#x.", "http://www.github.com/o/r/pull/1/files"],
         ["https://github.com/a/b/issues/3", "https://notgithub.com/a/b/pull/3", "https://evil.com/github.com/a/pull/3"]),
        (Trigger("url", words=("github.com",)),
         ["https://gist.github.com/x", "GitHub.com", "https://github.com:443/"],
         ["https://github.com.evil.net", "https://github.community", "me@github.com"]),
        (Trigger("url", "https://docs.example.org/guide"),
         ["https://docs.example.org/guide/1", "https://docs.example.org/guide"],
         ["https://docs.example.org/guides", "https://docs.example.org/"]),
        (Trigger("url"), ["https://a.example", "www.a.example"], ["notes.md", "a.b"]),
        (Trigger("url", "*/pull/*"), ["https://x.example/a/pull/3"], ["a.b/pull/3"]),
    ],
)  # fmt: skip
def test_urls(trigger: Trigger, yes: list[str], no: list[str]) -> None:
    assert [text for text in yes if not wakes(trigger, text)] == []
    assert [text for text in no if wakes(trigger, text)] == []


def test_code_may_ask_for_a_language() -> None:
    text = "```py\nx = 1\n```"
    assert wakes(Trigger("code"), text)
    assert wakes(Trigger("code", words=("Python", "rust")), text)
    assert not wakes(Trigger("code", words=("js",)), text)
    assert not wakes(Trigger("code"), "no code")


def test_language() -> None:
    german = Trigger("language", words=("de", "fr"))
    assert wakes(german, "Kannst du mir bitte sagen, wann der Zug kommt?")
    assert not wakes(german, "Can you please tell me when the train comes?")


def test_a_name_is_found_with_and_without_its_sign() -> None:
    for trigger in (Trigger("mention", words=("Silas",)), Trigger("mention", words=("@silas",))):
        assert all(wakes(trigger, text) for text in ("@silas?", "ask Silas", "SILAS'S"))
        assert not wakes(trigger, "Silason")
    assert wakes(Trigger("mention", words=("田中",)), "田中さんに聞いて")


def test_events_wake_those_who_wait_for_them() -> None:
    matcher = PatternMatcher(
        [
            topic("orders", Trigger("webhook", source="shop", event="order_created")),
            topic("shop", Trigger("webhook", source="Shop")),
            topic("all", Trigger("webhook", source="*", event="*")),
            topic("brief", Trigger("cron", schedule="0 8 * * *"), Trigger("cron", schedule="0 9 * * *")),
            topic("other", Trigger("cron", schedule="0 8 * * *")),
        ]
    )
    shop = Event("webhook", "shop", "order_created")
    assert [found.topic for found in matcher.find(Stimulus("", event=shop))] == ["all", "orders", "shop"]
    paid = Event("webhook", "shop", "paid")
    assert [found.topic for found in matcher.find(Stimulus("", event=paid))] == ["all", "shop"]
    due = Event("cron", topic="brief")
    assert matcher.find(Stimulus("", event=due)) == [Match("brief", "cron", "schedule 0 8 * * *")]
    assert matcher.find(Stimulus("0 8 * * * shop order_created")) == []


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("foo(?=bar)", "no lookahead"),
        ("(?<!a)b", "no lookbehind"),
        (r"(a)\1", "no backreferences"),
        ("(?>a)", "no atomic groups"),
        ("(a", "not closed"),
        ("a)", "not opened"),
        ("[a", "not closed"),
        ("*a", "nothing to repeat"),
        ("x{1000}{1000}", "repeat"),
        ("(?:a{0,1000}){1000}", "repetition"),
        (r"(?:\pL\pN){500}", "too large"),
        ("(?:.{0,200}a){5}", "too large"),
        ("a" * 2500 + "b?", "2000 characters"),
        ("(" * 1500 + "a" + ")" * 1500, "characters"),
    ],
)
def test_a_pattern_that_the_engine_cannot_take_is_told_and_the_others_work(bad: str, reason: str) -> None:
    one = topic(
        "one", Trigger("pattern", "fine+"), Trigger("pattern", bad), Trigger("keywords", words=("word",))
    )
    matcher = PatternMatcher([one, topic("two", Trigger("pattern", "good+"))])
    assert [found.topic for found in matcher.find(Stimulus("fine word, good"))] == ["one", "one", "two"]
    assert len(matcher.problems) == 1
    assert matcher.problems[0].where == "topics/one.md"
    assert "Trigger 2" in matcher.problems[0].what
    assert reason in matcher.problems[0].what


HOSTILE = [
    "(a+)+$", "(a|aa)+$", "(a|a?)+$", "(.*a){20}", "(.*)*$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(x+x+)+y",
    "((a+)+)+b", "x{1000}{1000}", "(?:a{0,1000}){1000}", "(?:a?){500}a{500}", "(a|b)*a(a|b){20}",
    "(?:.{0,200}a){5}", r"\pL{500}", r"(\w+\s?)*$", "^(a?){50}a{50}$", r"([a-zA-Z]+)*\d", "(.*?,){30}P",
    "a{1000}", ".*.*.*.*.*x",
    "(a|b)*a(a|b){200}", "(([^a]*a)*b)*c",
]  # fmt: skip


@pytest.mark.parametrize("text", ["a" * 100_000 + "!", "ab" * 50_000, "word, " * 20_000, "aé急\0" * 25_000])
def test_hostile_patterns_come_to_an_end_and_the_others_are_found(text: str) -> None:
    topics = [topic(f"h{number:02}", Trigger("pattern", hard)) for number, hard in enumerate(HOSTILE)]
    matcher = PatternMatcher([*topics, topic("z", Trigger("pattern", r"needle\d"))])
    assert "z" in matcher.match(f"needle1 {text}")
    assert "z" in matcher.match(f"{text} needle1")
    refused = {problem.where for problem in matcher.problems}
    assert {"topics/h08.md", "topics/h09.md", "topics/h12.md", "topics/h13.md"} == refused


def test_of_a_long_text_the_beginning_and_the_end_are_looked_at() -> None:
    text = "a" * MAX_START_CHARS + " middle " + "b" * MAX_END_CHARS
    assert len(text_to_match(text)) == MAX_START_CHARS + MAX_END_CHARS + 1
    assert not pattern("middle+").match(text)
    assert text_to_match(text[:-8]) == text[:-8]


def test_too_many_expressions_for_one_set_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_SET_MEMORY_BYTES", 40_000)
    topics = [topic(f"t{number:03}", Trigger("pattern", rf"w{number}x+[ab]?")) for number in range(300)]
    matcher = PatternMatcher(topics)
    assert matcher.match("w7x, w150xx and w299xa") == {"t007", "t150", "t299"}
    assert matcher.problems == ()


def test_without_the_engine_words_are_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    matcher = PatternMatcher(
        [
            topic("list", Trigger("pattern", r"\b(mail|inbox)\b")),
            topic("expression", Trigger("pattern", r"PR #\d+"), Trigger("pattern", "(a+)+$")),
            topic("words", Trigger("keywords", words=("deploy",))),
            topic("path", Trigger("glob", "*.py")),
            topic("host", Trigger("url", words=("github.com",))),
        ]
    )
    said = Stimulus("mail about PR #3, deploy, https://gist.github.com/x", paths=("src/a.py",))
    assert [found.topic for found in matcher.find(said)] == ["host", "list", "path", "words"]
    assert [problem.level for problem in matcher.problems] == ["warning"]
    assert "RE2" in matcher.problems[0].what


@pytest.mark.parametrize(
    "text", ["\ud800 PRR", "PRR \0", "PRR\u2028\x85", "\ufeffPRR", "🎉PRR🎉", "PRR" + "\u0301" * 0]
)
def test_strange_characters_do_no_harm(text: str) -> None:
    assert pattern("PR+").match(text) == {"t"}


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="ab(|)[]{}?*+.\\^$1,é急 -", max_size=12), max_size=5),
    st.text(alphabet="ab1é急 \n.", max_size=40),
)
def test_no_pattern_breaks_the_matcher(patterns: list[str], text: str) -> None:
    triggers = [Trigger("pattern", one) for one in patterns] + [Trigger("glob", one) for one in patterns]
    triggers += [Trigger("url", one) for one in patterns] + [Trigger("keywords", words=tuple(patterns))]
    matcher = PatternMatcher([topic("t", *triggers)])
    stimulus = Stimulus(text, paths=(text,))
    assert matcher.find(stimulus) == matcher.find(stimulus)
    assert all(problem.where == "topics/t.md" for problem in matcher.problems)


PIECES = st.sampled_from(
    ["mail", "Post", "ü", "é", "急", "(", ")", "(?:", "|", "?", "+", r"\b", r"\d", r"\w", "[a-zé]", "[^b]",
     " ", ".", "!", "^", "$", "{2}", "1", "_", "д"]
)  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(["mail", "post", "ü", "é", "急", " ", ".", "!", "1", "_", "д", "b", "mailü"]), max_size=8
).map("".join)


@settings(deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=6).map("".join), TEXTS)
def test_all_at_once_finds_what_the_exact_form_finds_alone(given: str, text: str) -> None:
    re2 = pytest.importorskip("re2")
    form = add_boundaries(given)
    expressions = regex.Expressions([form])
    data = text.encode()
    if not expressions.refused:
        options = re2.Options()
        options.case_sensitive = False
        alone = re2.compile(form.exact, options).search(text) is not None
        together = [
            number for number in expressions.hits(data) if expressions.words(number, data) is not None
        ]
        assert together == ([0] if alone else [])


def test_no_topics_match_nothing() -> None:
    matcher = PatternMatcher([])
    assert matcher.find(Stimulus("anything", paths=("a.py",), event=Event("webhook", "a", "b"))) == []
    assert matcher.problems == ()
