"""`tacit cost` and what `tacit status` says about models."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.errors import LimitReached
from tacit.home.layout import Home
from tacit.llm.ledger import Call, Ledger, Price, SpendingLimits
from tacit.llm.prices import Rates, estimate_items
from tacit.llm.retry import Breakers
from tacit.llm.tasks import TASKS
from tests.conftest import Tacit

HAIKU = "anthropic:claude-haiku-4-5"
NAMES = [
    "gates", "commit messages", "flush", "daily summary", "weekly rollup", "monthly rollup", "pruning",
    "extraction", "embedding text", "embedding questions", "rebuild of all transcripts",
    "reindex of everything", "a wisdom section", "a shorter SOUL.md",
]  # fmt: skip
# As the source document counts: four extractors, 3,000 tokens a session.
MEDIUM = Rates(15, 6, 2300, 1000, 100, 4, 30)


def configure(home: Path, text: str) -> None:
    (home / "memory-config.yaml").write_text(text)


def spend(home: Path, *calls: Call, days_ago: int = 0) -> None:
    at = datetime.now(UTC).astimezone() - timedelta(days_ago)
    ledger = Ledger(Home(home), lambda: at)
    for call in calls:
        meter = ledger.meter(call.task, call.model, Price(1, 5))
        meter.end(meter.begin(1, 1), call.outcome, call.tokens_in, call.tokens_out)


def call(task: str, model: str = HAIKU, outcome: str = "ok", read: int = 1000, wrote: int = 200) -> Call:
    return Call("", "", task, model, outcome, read, wrote)


def test_without_a_model_nothing_is_spent_and_it_says_how_to_see_what_one_would_cost(tacit: Tacit) -> None:
    done = tacit("cost")
    assert done.code == 0
    assert "No model is configured, so nothing is asked and nothing is spent." in done.stdout
    assert f"tacit cost --model {HAIKU}" in done.stdout
    assert "2000 calls, 2000000 tokens, $1" in done.stdout


def test_a_named_model_is_estimated_item_by_item(tacit: Tacit) -> None:
    done = tacit("cost", "--model", HAIKU, "--sessions", "15", "--json")
    found = json.loads(done.stdout)
    assert [item["name"] for item in found["items"]] == NAMES
    assert found["rates"]["sessions"] == 15
    monthly = [item["usd"] for item in found["items"] if not item["once"]]
    assert found["month_usd"] == pytest.approx(sum(monthly))
    assert found["month_usd"] > 1
    text = tacit("cost", "--model", HAIKU, "--sessions", "15").stdout
    assert f"all by {HAIKU}" in text
    assert all(name in text for name in NAMES)


def test_the_sessions_are_those_of_the_home_s_last_thirty_days(home: Path, tacit: Tacit) -> None:
    today = datetime.now(UTC).astimezone().date()
    for days_ago, count in ((0, 3), (4, 2), (40, 5)):
        day = today - timedelta(days_ago)
        folder = home / "raw" / "conversations" / f"{day:%Y/%m/%d}"
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"10{number:02}-ses_{number}-x.md").write_text("x" * 4000)
    rates = json.loads(tacit("cost", "--json").stdout)["rates"]
    assert rates["sessions"] == pytest.approx(5 / 30)
    assert (rates["transcripts"], rates["tokens"]) == (10, 1000)


def test_each_task_costs_by_the_model_that_the_config_names(home: Path, tacit: Tacit) -> None:
    configure(
        home, f"lifecycle: {{model: {HAIKU}}}\ngit: {{commit_message_model: 'http://127.0.0.1:1/v1#m'}}\n"
    )
    found = json.loads(tacit("cost", "--sessions", "10", "--json").stdout)
    by_name = {item["name"]: item for item in found["items"]}
    assert by_name["extraction"]["usd"] > 0
    assert (by_name["commit messages"]["model"], by_name["commit messages"]["usd"]) == (
        "http://127.0.0.1:1/v1#m",
        0,
    )
    assert (by_name["gates"]["model"], by_name["gates"]["usd"]) == ("", 0)


def test_a_model_without_a_price_is_told_and_a_price_can_be_given(home: Path, tacit: Tacit) -> None:
    configure(home, "lifecycle: {model: 'openai:brand-new'}\n")
    done = tacit("cost", "--sessions", "5")
    assert 'models.prices: ["openai:brand-new INPUT OUTPUT"]' in done.stdout
    assert json.loads(tacit("cost", "--sessions", "5", "--json").stdout)["month_usd"] is None
    configure(home, "lifecycle: {model: 'openai:brand-new'}\nmodels: {prices: ['openai:brand-new 1 5']}\n")
    assert json.loads(tacit("cost", "--sessions", "5", "--json").stdout)["month_usd"] > 0
    assert "openai:brand-new" in tacit("cost", "--prices").stdout


def test_what_was_really_spent_stands_beside_it(home: Path, tacit: Tacit) -> None:
    spend(home, call("extract"), call("extract", outcome="failed", read=0, wrote=0), call("gate", "openai:m"))
    spend(home, call("condense"), days_ago=3)
    spend(home, call("condense"), days_ago=20)
    found = json.loads(tacit("cost", "--json").stdout)
    assert [found["spent"][name]["calls"] for name in ("today", "7 days", "30 days")] == [3, 4, 5]
    assert found["spent"]["today"]["usd"] == pytest.approx(0.004)
    assert [(one["task"], one["model"], one["calls"]) for one in found["by_task"]] == [
        ("condense", HAIKU, 2), ("extract", HAIKU, 2), ("gate", "openai:m", 1),
    ]  # fmt: skip
    text = tacit("cost").stdout
    assert "1 failed" in text
    assert "4800 tokens" in text


def test_what_is_no_model_and_no_number_is_told(tacit: Tacit) -> None:
    assert tacit("cost", "--model", "gpt").code == 2
    assert tacit("cost", "--sessions", "many").code == 2
    assert tacit("cost", "--sessions", "-1").code == 2


# The estimate itself


def usd(rates: Rates, prices: Price, name: str, seen: list[Call] | None = None) -> float:
    models = dict.fromkeys(("gate", "commit", "extract", "condense", "prune", "embed"), "m")
    found = {item.name: item for item in estimate_items(rates, models, {"m": prices}, seen or [])}
    price = found[name].usd
    assert price is not None
    return price


def test_the_figures_of_the_source_document_come_out() -> None:
    old = Price(0.25, 1.25)
    assert usd(MEDIUM, old, "commit messages") == pytest.approx(900 * 0.0003125)
    assert usd(MEDIUM, old, "extraction") / (15 * 30) == pytest.approx(0.00425, rel=0.01)
    assert usd(MEDIUM, old, "rebuild of all transcripts") == pytest.approx(4.25, rel=0.01)
    sonnet = Price(3, 15)
    assert usd(MEDIUM, sonnet, "daily summary") == pytest.approx(30 * 0.0195)
    assert usd(MEDIUM, sonnet, "weekly rollup") == pytest.approx(52 / 12 * 0.048)
    assert usd(MEDIUM, sonnet, "monthly rollup") == 0, "no model is asked for it"
    assert usd(MEDIUM, Price(0.02, 0), "embedding questions") == pytest.approx(2700 * 100 * 0.02 / 1e6)


def test_commits_are_never_more_than_the_interval_allows() -> None:
    busy = MEDIUM._replace(sessions=1000)
    assert usd(busy, Price(1, 0), "commit messages") == pytest.approx(48 * 30 * 0.001)


def test_what_calls_took_before_is_better_than_a_guess() -> None:
    seen = [call("extract", "m", read=10_000, wrote=0)] * 5
    assert usd(MEDIUM, Price(1, 0), "extraction", seen) == pytest.approx(15 * 30 * 4 * 0.01)
    assert usd(MEDIUM, Price(1, 0), "extraction", seen[:4]) == pytest.approx(15 * 30 * 4 * 0.003)


def test_a_long_transcript_is_read_in_several_questions() -> None:
    long = MEDIUM._replace(tokens=15_000, questions=10)
    assert usd(long, Price(1, 0), "extraction") == pytest.approx(15 * 30 * 4 * 10 * 2200 / 1e6)
    seen = [call("extract", "m", read=2000, wrote=0)] * 5
    assert usd(long, Price(1, 0), "extraction", seen) == pytest.approx(15 * 30 * 4 * 10 * 0.002)
    assert usd(long, Price(1, 0), "rebuild of all transcripts", seen) == pytest.approx(1000 * 4 * 10 * 0.002)


def test_the_questions_are_those_of_the_home_s_own_transcripts(home: Path, tacit: Tacit) -> None:
    assert json.loads(tacit("cost", "--json").stdout)["rates"]["questions"] == 2
    folder = home / "raw/conversations" / datetime.now(UTC).astimezone().strftime("%Y/%m/%d")
    folder.mkdir(parents=True)
    (folder / "1000-ses_a-x.md").write_text("x" * 100)
    (folder / "1001-ses_b-x.md").write_text("x" * 30_000)
    assert json.loads(tacit("cost", "--json").stdout)["rates"]["questions"] == 3


def test_all_models_that_can_be_configured_are_in_the_estimate(home: Path, tacit: Tacit) -> None:
    found = json.loads(tacit("cost", "--model", HAIKU, "--json").stdout)["items"]
    assert {item["task"] for item in found if item["model"]} == set(TASKS)


# Status


def test_status_says_nothing_of_models_where_none_is_configured(tacit: Tacit) -> None:
    assert "models" not in tacit("status").stdout
    assert json.loads(tacit("status", "--json").stdout)["models"] is None


def test_status_tells_what_was_spent_today_and_what_is_left(home: Path, tacit: Tacit) -> None:
    configure(home, f"lifecycle:\n  model: {HAIKU}\n")
    spend(home, call("extract"))
    line = next(line for line in tacit("status").stdout.splitlines() if line.startswith("models"))
    assert line.split(None, 1)[1] == (f"today 1 of 2000 calls, 1200 of 2000000 tokens, $0.0020 of 1; {HAIKU}")
    told = json.loads(tacit("status", "--json").stdout)["models"]
    assert told["today"] == {"calls": 1, "tokens": 1200, "usd": 0.002, "refused": 0, "refused_why": ""}
    assert told["used"] == dict.fromkeys(("extract", "condense", "prune"), HAIKU)


def test_status_tells_why_calls_were_refused_though_no_limit_is_quite_reached(
    home: Path, tacit: Tacit
) -> None:
    configure(home, "lifecycle: {model: 'openai:brand-new'}\n")
    ledger = Ledger(Home(home), lambda: datetime.now(UTC).astimezone(), SpendingLimits(usd=1.0))
    with pytest.raises(LimitReached):
        ledger.meter("extract", "openai:brand-new", None).begin(1, 1)
    assert "1 call refused today: openai:brand-new has no price" in tacit("status").stdout


def test_status_tells_of_a_limit_that_is_reached_and_of_a_model_that_is_left_alone(
    home: Path, tacit: Tacit
) -> None:
    configure(home, f"lifecycle: {{model: {HAIKU}}}\nmodels: {{daily_calls: 1}}\n")
    spend(home, call("extract"))
    for _ in range(3):
        Breakers(Home(home)).of(HAIKU).tell("answered with status 500")
    problems = json.loads(tacit("status", "--json").stdout)["problems"]
    assert any(f"{HAIKU} is paused for" in one and "status 500" in one for one in problems)
    assert any("models.daily_calls is reached: 1 of 1" in one for one in problems)
    assert "is paused for" in tacit("status").stdout
