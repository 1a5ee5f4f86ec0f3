"""Every call of a model is counted before it is made, and no two processes pass a limit together."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.errors import LimitReached
from tacit.home.layout import Home
from tacit.llm import ledger as module
from tacit.llm.ledger import RETENTION_DAYS, Ledger, Price, SpendingLimits, SpendTotal
from tests.conftest import plain_user

PRICE = Price(1.0, 5.0)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 18, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ledger_in(home: Path, clock: Clock, **limits: float | None) -> Ledger:
    return Ledger(Home(home), clock, SpendingLimits(**limits))  # type: ignore[arg-type]


def file_of(home: Path, clock: Clock) -> Path:
    return home / ".tacit" / "ledger" / f"{clock().date()}.jsonl"


def test_a_call_is_kept_with_all_that_was_asked_for(home: Path, clock: Clock) -> None:
    ledger = ledger_in(home, clock)
    meter = ledger.meter("extract", "anthropic:m", PRICE)
    name = meter.begin(1000, 200)
    meter.end(name, "ok", 900, 100)
    (call,) = ledger.days(1)[clock().date()]
    assert call._replace(ms=0) == (
        name, "2026-11-18T12:00:00.000+00:00", "extract", "anthropic:m", "ok", 900, 100, 0.0014, 0, ""
    )  # fmt: skip
    assert ledger.today()._replace(ms=0) == SpendTotal(calls=1, tokens_in=900, tokens_out=100, usd=0.0014)
    assert file_of(home, clock).stat().st_mode & 0o777 == 0o600


def test_a_call_whose_process_died_counts_at_the_most_it_may_have_taken(home: Path, clock: Clock) -> None:
    ledger_in(home, clock).meter("extract", "m", PRICE).begin(1000, 200)
    spent = ledger_in(home, clock).today()
    assert (spent.calls, spent.tokens, spent.usd) == (1, 1200, 0.002)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"calls": 2}, r"limit of 2 calls .*models\.daily_calls"),
        ({"tokens": 2999}, r"limit of 2999 tokens .*may take 1000.*models\.daily_tokens"),
        ({"usd": 0.0029}, r"limit of \$0.0029 .*may cost \$0.0010.*models\.daily_usd"),
        ({"calls": 0}, "limit of 0 calls"),
    ],
)
def test_the_call_that_would_pass_a_limit_is_refused_and_kept_as_that(
    home: Path, clock: Clock, limits: dict[str, float], why: str
) -> None:
    meter = ledger_in(home, clock, **limits).meter("extract", "m", Price(1.0, 0.0))
    for _ in range(min(2, int(limits.get("calls", 2)))):
        meter.end(meter.begin(1000, 0), "ok", 1000, 0)
    with pytest.raises(LimitReached, match=why):
        meter.begin(1000, 0)
    today = ledger_in(home, clock).today()
    assert today.refused == 1
    assert today.calls == min(2, int(limits.get("calls", 2)))
    assert today.tokens == 1000 * today.calls
    with pytest.raises(LimitReached):
        ledger_in(home, clock, **limits).meter("gate", "other", Price(1.0, 0.0)).begin(1000, 0)


def test_the_next_day_begins_with_nothing_spent(home: Path, clock: Clock) -> None:
    meter = ledger_in(home, clock, calls=1).meter("extract", "m", PRICE)
    meter.begin(1, 1)
    with pytest.raises(LimitReached):
        meter.begin(1, 1)
    clock.now += timedelta(days=1)
    assert meter.begin(1, 1)


def test_what_ends_after_midnight_belongs_to_the_day_it_began(home: Path, clock: Clock) -> None:
    ledger = ledger_in(home, clock)
    meter = ledger.meter("extract", "m", PRICE)
    name = meter.begin(10, 10)
    clock.now += timedelta(days=1)
    meter.end(name, "ok", 7, 0)
    assert [day.isoformat() for day in ledger.days(2)] == ["2026-11-18"]
    assert ledger.days(2)[clock().date() - timedelta(1)][0].tokens_in == 7


def test_a_model_without_a_price_is_refused_under_a_limit_of_money_and_told_what_to_do(
    home: Path, clock: Clock
) -> None:
    meter = ledger_in(home, clock, usd=1.0).meter("extract", "openai:new", None)
    with pytest.raises(LimitReached, match=r'has no price.*models\.prices: \["openai:new INPUT OUTPUT"\]'):
        meter.begin(1, 1)
    free = ledger_in(home, clock).meter("extract", "openai:new", None)
    free.end(free.begin(10, 10), "ok", 5, 5)
    today = ledger_in(home, clock).today()
    assert (today.calls, today.unpriced, today.usd) == (1, 1, 0.0)


def test_what_costs_nothing_passes_a_limit_of_no_money(home: Path, clock: Clock) -> None:
    assert ledger_in(home, clock, usd=0.0).meter("extract", "local:m", Price(0, 0)).begin(9, 9)


def test_a_failure_and_a_bad_answer_are_told_apart(home: Path, clock: Clock) -> None:
    ledger = ledger_in(home, clock)
    meter = ledger.meter("extract", "m", PRICE)
    meter.end(meter.begin(10, 10), "failed", 0, 0, "status 500 " + "x" * 1000)
    meter.end(meter.begin(10, 10), "ok", 10, 10)
    meter.bad("no JSON")
    today = ledger.today()
    assert (today.calls, today.failed, today.bad, today.tokens) == (2, 1, 1, 20)
    assert all(len(call.why) <= 300 for call in ledger.days(1)[clock().date()])


def test_two_processes_never_pass_a_limit_together(home: Path, clock: Clock) -> None:
    code = (
        "import sys\n"
        "from datetime import UTC, datetime\n"
        "from pathlib import Path\n"
        "from tacit.errors import LimitReached\n"
        "from tacit.llm.ledger import SpendingLimits\n"
        "from tacit.home.layout import Home\n"
        "from tacit.llm.ledger import Ledger\n"
        "day = datetime(2026, 11, 18, 12, tzinfo=UTC)\n"
        "limits = SpendingLimits(calls=40)\n"
        "meter = Ledger(Home(Path(sys.argv[1])), lambda: day, limits).meter('t', 'm', None)\n"
        "passed = 0\n"
        "for _ in range(40):\n"
        "    try:\n"
        "        meter.begin(1, 1)\n"
        "        passed += 1\n"
        "    except LimitReached:\n"
        "        pass\n"
        "print(passed)\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    passed = [int(one.communicate(timeout=60)[0]) for one in running]
    assert sum(passed) == 40
    assert ledger_in(home, clock).today().calls == 40


def test_lines_that_cannot_be_read_are_passed_over_and_take_nothing_with_them(
    home: Path, clock: Clock
) -> None:
    ledger = ledger_in(home, clock, calls=10)
    meter = ledger.meter("extract", "m", PRICE)
    meter.begin(1, 1)
    file = file_of(home, clock)
    with file.open("ab") as opened:
        opened.write(b'not json\n[]\n{"id": 7}\n\xff\xfe\n{"id": "x", "at": "a", "task": "t", "mod')
    meter.begin(1, 1)
    meter.begin(1, 1)
    assert ledger.today().calls == 3
    assert ledger_in(home, clock, calls=3).today().calls == 3
    with pytest.raises(LimitReached):
        ledger_in(home, clock, calls=3).meter("extract", "m", PRICE).begin(1, 1)


def test_a_ledger_that_was_deleted_meanwhile_begins_anew(home: Path, clock: Clock) -> None:
    meter = ledger_in(home, clock, calls=2).meter("extract", "m", PRICE)
    meter.begin(1, 1)
    meter.begin(1, 1)
    file_of(home, clock).unlink()
    assert meter.begin(1, 1)


def test_it_does_not_grow_for_ever(home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / ".tacit" / "ledger"
    folder.mkdir(parents=True)
    kept, gone = (
        folder / f"{clock().date() - timedelta(days)}.jsonl" for days in (RETENTION_DAYS, RETENTION_DAYS + 1)
    )
    for file in (kept, gone):
        file.write_text("")
    monkeypatch.setattr(module, "_MAX_REFUSED_LINES", 3)
    meter = ledger_in(home, clock, calls=0).meter("extract", "m", PRICE)
    for _ in range(10):
        with pytest.raises(LimitReached):
            meter.begin(1, 1)
    assert (kept.exists(), gone.exists()) == (True, False)
    assert len(file_of(home, clock).read_text().splitlines()) == 3


@pytest.mark.parametrize("hurried", [False, True])
def test_where_it_cannot_be_written_nothing_is_asked(home: Path, hurried: bool) -> None:
    (home / ".tacit").mkdir(exist_ok=True)
    (home / ".tacit" / "ledger").write_text("a file in its place")
    meter = ledger_in(home, Clock()).meter("extract", "m", PRICE, hurried=hurried)
    with pytest.raises(LimitReached, match="ledger of model calls cannot be written"):
        meter.begin(1, 1)
    meter.bad("no")


def test_a_turn_does_not_wait_long_for_another_process_and_asks_nothing_uncounted(
    home: Path, clock: Clock
) -> None:
    ledger = ledger_in(home, clock)
    with ledger._hold_lock(1.0), pytest.raises(LimitReached, match="another process holds it"):
        ledger.meter("gate", "m", PRICE, hurried=True).begin(1, 1)
    assert ledger.today().calls == 0


def test_a_limit_holds_in_turns_too(home: Path, clock: Clock) -> None:
    with pytest.raises(LimitReached):
        ledger_in(home, clock, calls=0).meter("gate", "m", PRICE, hurried=True).begin(1, 1)


def test_a_folder_that_may_not_be_written_is_told(home: Path) -> None:
    code = (
        "import sys\n"
        "from datetime import UTC, datetime\n"
        "from pathlib import Path\n"
        "from tacit.errors import LimitReached\n"
        "from tacit.home.layout import Home\n"
        "from tacit.llm.ledger import Ledger\n"
        "ledger = Ledger(Home(Path(sys.argv[1])), lambda: datetime.now(UTC))\n"
        "try:\n"
        "    ledger.meter('extract', 'm', None).begin(1, 1)\n"
        "except LimitReached as error:\n"
        "    print(error)\n"
    )
    folder = home / ".tacit" / "ledger"
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    done = subprocess.run(
        plain_user(sys.executable, "-c", code, str(home)), capture_output=True, text=True, check=True
    )
    folder.chmod(0o700)
    assert "so nothing is asked" in done.stdout


def test_lines_are_plain_json(home: Path, clock: Clock) -> None:
    meter = ledger_in(home, clock).meter("extract", "http://host/v1#\ud800", PRICE)
    meter.begin(1, 1)
    (line,) = file_of(home, clock).read_bytes().splitlines()
    assert json.loads(line)["outcome"] == "begun"
