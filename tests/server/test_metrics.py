"""What /metrics tells, and that it tells nothing private; what the log keeps, and how much of it."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from pathlib import Path

import pytest

from tacit.server import metrics
from tacit.server.log import Log
from tacit.server.metrics import MAX_SERIES, Counter, Histogram, Metrics

SAMPLE = re.compile(
    r"[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-z_]+=\"(\\.|[^\"\\\n])*\",?)*\})? (NaN|[+-]Inf|[-0-9.e+]+)\Z"
)


def lines(one: Counter | Histogram) -> list[str]:
    return [line for line in one.lines() if not line.startswith("#")]


def test_a_counter_tells_each_combination_of_labels() -> None:
    counter = Counter("a_total", "About.", ("x", "y"))
    counter.add("1", "2")
    counter.add("1", "2", by=2.5)
    counter.add("1", "3")
    assert list(counter.lines()) == [
        "# HELP a_total About.",
        "# TYPE a_total counter",
        'a_total{x="1",y="2"} 3.5',
        'a_total{x="1",y="3"} 1',
    ]


def test_a_counter_without_labels_begins_with_zero() -> None:
    assert lines(Counter("a_total", "About.")) == ["a_total 0"]


def test_a_histogram_counts_what_is_at_most_each_bound() -> None:
    histogram = Histogram("a_seconds", "About.", ("x",), bounds=(0.1, 1.0))
    for amount in (0.05, 0.1, 0.5, 7):
        histogram.add(amount, "v")
    assert lines(histogram) == [
        'a_seconds_bucket{x="v",le="0.1"} 2',
        'a_seconds_bucket{x="v",le="1"} 3',
        'a_seconds_bucket{x="v",le="+Inf"} 4',
        'a_seconds_sum{x="v"} 7.65',
        'a_seconds_count{x="v"} 4',
    ]


@pytest.mark.parametrize(
    "value", ["agent:main:telegram:direct:7 said hello", 'a"b', "a\nb", "ü", "x" * 60, "\\"]
)
def test_a_value_that_is_no_code_is_other(value: str) -> None:
    counter = Counter("a_total", "About.", ("x",))
    counter.add(value)
    assert lines(counter) == ['a_total{x="other"} 1']


def test_labels_are_escaped() -> None:
    assert metrics._format_labels(("a",), ('x"\\\n',)) == '{a="x\\"\\\\\\n"}'


def test_a_label_has_no_end_of_values() -> None:
    counter = Counter("a_total", "About.", ("x",))
    for number in range(MAX_SERIES * 3):
        counter.add(str(number))
    assert len(lines(counter)) == MAX_SERIES + 1
    assert counter.value("other") == MAX_SERIES * 2


def test_numbers_of_others_are_told_when_somebody_asks() -> None:
    one = Metrics()
    one.gauge("tacit_sessions_open", "Open.", lambda: 3)
    one.gauge("tacit_files", "By kind.", lambda: {"notes": 2, "topics": 1.5}, label="kind")
    one.gauge("tacit_absent", "Not here.", lambda: None)
    one.gauge("tacit_broken", "Fails.", lambda: 1 / 0)
    text = one.text()
    assert "tacit_sessions_open 3\n" in text
    assert 'tacit_files{kind="notes"} 2\ntacit_files{kind="topics"} 1.5\n' in text
    assert "tacit_absent" not in text
    assert "tacit_broken" not in text
    assert "tacit_sessions_open" not in one.text(quick=True)


def test_a_name_that_nobody_could_read_is_refused() -> None:
    for name in ("", "A", "a-b", "1a", "a\n"):
        with pytest.raises(ValueError):
            Metrics().gauge(name, "About.", lambda: 1)


def test_all_of_it_is_in_the_form() -> None:
    one = Metrics()
    one.requests.add("turn", "200")
    one.seconds.add(0.01, "turn")
    one.gauge("tacit_inf", "More\nthan \\ one line.", lambda: float("inf"))
    names: list[str] = []
    for line in one.text().splitlines():
        if line.startswith("# TYPE "):
            names.append(line.split()[2])
        elif not line.startswith("# HELP "):
            assert SAMPLE.match(line), line
            assert line.startswith(names[-1])
    assert len(names) == len(set(names))
    assert {"process_resident_memory_bytes", "process_open_fds", "tacit_uptime_seconds"} <= set(names)


def test_threads_lose_no_count() -> None:
    one = Metrics()

    def work() -> None:
        for _ in range(2000):
            one.requests.add("turn", "200")
            one.seconds.add(0.01, "turn")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.requests.value("turn", "200") == 8000
    assert 'tacit_request_seconds_count{operation="turn"} 8000' in one.text()


# ---------------------------------------------------------------- the log


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_of_the_log_is_an_object_and_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    mask = os.umask(0)
    try:
        Log(path, now=lambda: 0.0).say("info", "started", port=None, number=3, text="a\nb\ud800", path=path)
    finally:
        os.umask(mask)
    assert read(path) == [
        {
            "at": "1970-01-01T01:00:00+0100",
            "level": "info",
            "event": "started",
            "pid": os.getpid(),
            "port": None,
            "number": 3,
            "text": "a\nb\ud800",
            "path": str(path),
        }
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    path.touch(0o666)
    path.chmod(0o666)
    Log(path).say("info", "started")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_long_values_are_cut_and_of_a_trace_the_end_is_kept(tmp_path: Path) -> None:
    log = Log(tmp_path / "daemon.log")
    log.say("error", "bug", text="x" * 10_000, trace="y" * 10_000 + "the end")
    (line,) = read(tmp_path / "daemon.log")
    assert len(str(line["text"])) == 300
    assert len(str(line["trace"])) == 4000
    assert str(line["trace"]).endswith("the end")


def test_the_log_has_a_largest_size(tmp_path: Path) -> None:
    log = Log(tmp_path / "daemon.log", largest=5000)
    for number in range(300):
        log.say("info", "again", number=number, text="x" * 100)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes.keys() <= {"daemon.log", "daemon.log.1"}
    assert all(size < 6000 for size in sizes.values())
    kept = [line["number"] for name in ("daemon.log.1", "daemon.log") for line in _lines(tmp_path / name)]
    assert kept == list(range(300 - len(kept), 300))


def _lines(path: Path) -> list[dict[str, object]]:
    return read(path) if path.exists() else []


def test_what_happens_all_the_time_is_said_once_in_a_while(tmp_path: Path) -> None:
    now = [0.0]
    log = Log(tmp_path / "daemon.log", clock=lambda: now[0])
    for _ in range(50):
        log.sometimes("warning", "busy", operation="turn")
    log.sometimes("warning", "other")
    now[0] = 11.0
    log.sometimes("warning", "busy", operation="turn")
    assert [(line["event"], line.get("times")) for line in read(tmp_path / "daemon.log")] == [
        ("busy", None),
        ("other", None),
        ("busy", 50),
    ]


def test_a_log_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    Log(tmp_path / "nowhere" / "daemon.log").say("info", "started")
    Log(tmp_path).say("info", "started")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    Log(tmp_path / "link").say("info", "started")
    assert not (tmp_path / "target").exists()
    os.mkfifo(tmp_path / "fifo")
    Log(tmp_path / "fifo").say("info", "started")


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    log = Log(tmp_path / "daemon.log")

    def work() -> None:
        for _ in range(100):
            log.say("info", "line", text="x" * 200)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read(tmp_path / "daemon.log")) == 400


def test_no_secret_gets_into_the_log(tmp_path: Path) -> None:
    secret = "sk-ant-" + "api03-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9" * 3
    log = Log(tmp_path / "daemon.log")
    log.say("error", "bug", trace=f"ValueError: <private>my diary</private> {secret}", error=secret)
    text = (tmp_path / "daemon.log").read_text()
    assert secret not in text
    assert "my diary" not in text
