"""`tacit eval`: measures of a set and of one's own home, and clear words about what cannot be measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tacit as product
from tacit.cli.dispatch import dispatch
from tests.conftest import Ran, Tacit
from tests.evaluation.tiny import messages, questions, write, write_lines
from tests.search.sample_home import QUESTIONS, copy_of_sample


class Here:
    """Runs the command in this process, in a home that a test may name."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str | Path, home: Path | None = None) -> Ran:
        self._capture.readouterr()
        before = ["--home", str(home)] if home else []
        code = dispatch([*before, "eval", *map(str, arguments)])
        return Ran(code, *self._capture.readouterr())


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Here:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return Here(capsys)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write(tmp_path / "set")


@pytest.fixture
def pottery(tmp_path: Path) -> Path:
    """One of its two collections."""
    return write(tmp_path / "pottery", messages()[:5], questions()[:4])


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Path:
    return copy_of_sample(tmp_path_factory)[0]


def test_cli_eval_of_a_set_is_a_table(tiny: Path, home: Path, tacit: Tacit) -> None:
    done = tacit("eval", str(tiny), "--quiet", "--by-category")
    assert done.code == 0, done.stderr
    head, *rows = done.stdout.strip().split("\n")
    assert {"questions", "R@5", "R@10", "MRR", "nDCG@10", "strong"} <= set(head.split())
    assert [row.split()[0] for row in rows] == ["all", "absent", "name", "number"]


def test_cli_eval_json_has_the_same_numbers(tiny: Path, here: Here) -> None:
    rows = json.loads(here(tiny, "--json", "--by-category").stdout)
    assert rows["all"]["questions"] == 6
    assert rows["all"]["R@5"] == 1.0
    assert rows["all"]["unanswerable"] == 1
    assert (rows["name"]["questions"], rows["number"]["questions"], rows["absent"]["questions"]) == (3, 3, 0)
    assert 0 <= rows["absent"]["false strong"] <= 1


def test_cli_eval_leaves_nothing_behind(pottery: Path, here: Here, tmp_path: Path) -> None:
    here(pottery, "--json", "--mode", "words")
    assert not list(tmp_path.glob("tacit-eval-*"))


@pytest.mark.parametrize("mode", ["words", "vectors"])
def test_cli_eval_can_rank_by_one_side(pottery: Path, here: Here, mode: str) -> None:
    done = here(pottery, "--json", "--mode", mode, "-c", "name")
    assert done.code == 0
    rows = json.loads(done.stdout)
    assert rows["all"]["questions"] == 2
    assert rows["all"]["R@5"] >= 0.5


def test_cli_eval_tries_a_setting(pottery: Path, here: Here) -> None:
    for key in ("embedding_model", "search.embedding_model"):
        done = here(pottery, "--json", "--set", f"{key}=none")
        assert done.code == 0
        assert json.loads(done.stdout)["all"]["R@10"] == 1.0


def test_cli_eval_of_several_sets_adds_them_up(pottery: Path, tmp_path: Path, here: Here) -> None:
    other = write(tmp_path / "other", messages()[:5], questions()[:1])
    rows = json.loads(here(pottery, other, "--json", "--mode", "words").stdout)
    assert rows["all"]["questions"] == 4


def test_cli_eval_calibrate_prints_constants(tiny: Path, here: Here) -> None:
    done = here(tiny, "--calibrate", "--quiet")
    assert done.code == 0, done.stderr
    constants = json.loads(done.stdout)
    assert constants.keys() >= {"mean", "spread", "bias", "words", "meaning", "fall"}
    assert all(isinstance(value, float | int) for value in constants.values())


def test_cli_eval_calibrate_needs_two_collections(tmp_path: Path, here: Here) -> None:
    one = write(tmp_path / "one", messages()[:5], questions()[:2])
    done = here(one, "--calibrate")
    assert done.code == 2
    assert "has one collection" in done.stderr


def test_cli_eval_calibrate_needs_questions_that_are_answered(tmp_path: Path, here: Here) -> None:
    none = write(tmp_path / "none", asked=[{**one, "gold": []} for one in questions()])
    done = here(none, "--calibrate", "--quiet", "--set", "embedding_model=none")
    assert done.code == 2
    assert "Too little was found" in done.stderr


def test_cli_eval_calibrate_is_not_for_a_file(tmp_path: Path, here: Here) -> None:
    file = write_lines(tmp_path / "own.jsonl", [{"text": "a"}])
    done = here(file, "--calibrate")
    assert done.code == 2
    assert "docs.jsonl cannot be read" in done.stderr


# Evidence at token budgets

ROWS = {"recall", "any", "tokens", "over"}
COMPILED = ROWS | {"p50 ms", "p95 ms", "false strong", "injected"}


def test_cli_eval_at_budgets_is_a_table(tiny: Path, here: Here) -> None:
    done = here(tiny, "--budgets", "512, 4096", "--quiet", "--set", "inject.confidence_gate=0")
    assert done.code == 0, done.stderr
    lines = [line.split() for line in done.stdout.strip().split("\n")]
    assert " ".join(lines[0]) == "6 questions with an answer: % of the evidence in the prompt"
    assert lines[1] == ["tokens", "512", "4,096"]
    rows = {" ".join(line[:-2]): line[-2:] for line in lines}
    for way in ("compiled", "recent", "bm25"):
        assert rows[way] == ["100.0", "100.0"]
    assert rows["over budget, %"] == ["0.0", "0.0"]
    assert rows["strong"] == ["0.0", "0.0"]
    assert rows["any"] == ["100.0", "100.0"]
    assert "in part" not in done.stdout
    assert done.stderr == ""


def test_cli_eval_at_budgets_has_a_part_for_each_category(tiny: Path, here: Here) -> None:
    lines = here(tiny, "--budgets", "512", "--quiet", "--by-category").stdout.split("\n")
    named = [line.strip() for line in lines if line.endswith(("question", "questions"))]
    assert named == ["absent: 1 question", "name: 3 questions", "number: 3 questions"]
    absent = lines[lines.index("  absent: 1 question") + 1 : lines.index("  name: 3 questions")]
    assert not any("recent" in line for line in absent)


def test_cli_eval_at_budgets_json_keeps_its_form(tiny: Path, here: Here) -> None:
    done = here(tiny, "--budgets", "4096,8,4096", "--json", "--by-category")
    found = json.loads(done.stdout)
    assert list(found) == ["budgets", "all", "categories", "notices"]
    assert found["budgets"] == [4096, 8]
    assert list(found["categories"]) == ["absent", "name", "number"]
    for one in (found["all"], *found["categories"].values()):
        assert list(one) == ["questions", "unanswerable", "compiled", "recent", "bm25"]
        for way in ("compiled", "recent", "bm25"):
            assert list(one[way]) == ["4096", "8"]
            assert set(one[way]["8"]) == (COMPILED if way == "compiled" else ROWS)
    assert (found["all"]["questions"], found["all"]["unanswerable"]) == (6, 1)
    assert found["all"]["recent"]["4096"]["recall"] == 1.0
    assert found["categories"]["absent"]["compiled"]["8"]["recall"] is None
    assert found["notices"]["message-shortened"] > 0
    assert done.stderr == ""


def test_cli_eval_at_budgets_tells_what_turns_did_without(pottery: Path, here: Here) -> None:
    done = here(pottery, "--budgets", "12", "--quiet")
    assert "of message-shortened, the first: The message is longer" in done.stderr


def test_cli_eval_at_budgets_asks_the_categories_it_was_told(pottery: Path, here: Here) -> None:
    found = json.loads(here(pottery, "--budgets", "512", "--json", "-c", "absent").stdout)
    assert (found["all"]["questions"], found["all"]["unanswerable"]) == (0, 1)
    assert found["categories"] == {}


def test_cli_eval_at_budgets_leaves_nothing_behind(pottery: Path, here: Here, tmp_path: Path) -> None:
    here(pottery, "--budgets", "512", "--json")
    assert not list(tmp_path.glob("tacit-eval-*"))


def test_cli_eval_at_budgets_of_no_questions_is_empty(pottery: Path, here: Here) -> None:
    (pottery / "queries.jsonl").write_text("")
    done = here(pottery, "--budgets", "512", "--json")
    assert json.loads(done.stdout)["all"]["compiled"]["512"]["recall"] is None
    assert here(pottery, "--budgets", "512", "--quiet").code == 0


def test_cli_eval_at_budgets_of_the_sample_home(sample: Path, here: Here) -> None:
    done = here(QUESTIONS, "--budgets", "512,8192", "--json", "-c", "identifier", home=sample)
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)["all"]
    assert found["questions"] > 5
    for way in ("compiled", "recent", "bm25"):
        assert found[way]["512"]["over"] == found[way]["8192"]["over"] == 0.0
        assert found[way]["512"]["recall"] <= found[way]["8192"]["recall"]
    assert found["compiled"]["8192"]["recall"] > 0.5


@pytest.mark.parametrize(
    "budgets", ["", "0", "5k", "512,,1024", "512,", "1.5", "1000001", "9" * 30, "٥١٢", "512 1024", "512;1024"]
)
def test_cli_eval_says_what_is_wrong_with_budgets(tiny: Path, here: Here, budgets: str) -> None:
    done = here(tiny, f"--budgets={budgets}")
    assert done.code == 2
    assert "is no number of tokens from 1 to 1,000,000; write default,512,1024" in done.stderr
    assert "Traceback" not in done.stderr


def test_cli_eval_measures_budgets_or_calibrates(tiny: Path, here: Here) -> None:
    done = here(tiny, "--budgets", "512", "--calibrate")
    assert done.code == 2
    assert "not allowed with" in done.stderr


def test_cli_eval_at_budgets_does_not_change_the_settings_of_a_home(sample: Path, here: Here) -> None:
    done = here(QUESTIONS, "--budgets", "512", "--set", "inject.strong=0.9", home=sample)
    assert done.code == 2
    assert "your home has its own in its config" in done.stderr


# One's own home


def test_cli_eval_asks_the_sample_home_170_questions(sample: Path, here: Here) -> None:
    done = here(QUESTIONS, "--json", "--by-category", home=sample)
    assert done.code == 0, done.stderr
    rows = json.loads(done.stdout)
    assert rows["all"]["questions"] == 90
    assert rows["all"]["unanswerable"] == 80
    assert rows["all"]["R@10"] >= 0.82
    assert rows["all"]["R@20"] >= rows["all"]["R@10"] >= rows["all"]["R@5"]
    assert rows["keyword"]["R@10"] >= 0.93
    assert rows["absent"]["unanswerable"] == 60
    assert rows["chatter"]["unanswerable"] == 20


@pytest.mark.parametrize(("mark", "share"), [("0", 1.0), ("1.1", 0.0)])
def test_cli_eval_of_a_category_and_a_mark(pottery: Path, here: Here, mark: str, share: float) -> None:
    rows = json.loads(here(pottery, "--json", "-c", "absent", "--strong", mark).stdout)
    assert rows["all"]["questions"] == 0
    assert rows["all"]["false strong"] == share


def test_cli_eval_does_not_change_the_settings_of_a_home(sample: Path, here: Here) -> None:
    done = here(QUESTIONS, "--mode", "words", home=sample)
    assert done.code == 2
    assert "your home has its own in its config" in done.stderr


# What cannot be measured


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Name a folder"),
        (("--mode", "magic"), "invalid choice: 'magic'"),
        (("--strong", "very"), "invalid float value: 'very'"),
        (("--set", "reranker"), "--set takes KEY=VALUE, not 'reranker'"),
    ],
)
def test_cli_eval_refuses_what_makes_no_sense(
    tiny: Path, here: Here, arguments: tuple[str, ...], said: str
) -> None:
    done = here(*arguments, *([tiny] if arguments else []))
    assert done.code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "setting", ["no_such_key=1", "vector_weight=heavy", "embedding_model=!!x", "vector_weight=1\nx: 2"]
)
def test_cli_eval_says_what_is_wrong_with_a_setting(tiny: Path, here: Here, setting: str) -> None:
    done = here(tiny, "--quiet", "--set", setting)
    assert done.code in (1, 2)
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("tacit: ")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("docs.jsonl", b"{\n", "docs.jsonl:1 is not a JSON object on one line."),
        ("docs.jsonl", b'{"id": 1}\n', "docs.jsonl:1 lacks collection, session, text."),
        ("docs.jsonl", b"\xff", "docs.jsonl cannot be read"),
        ("docs.jsonl", None, "docs.jsonl cannot be read"),
        ("docs.jsonl", b"", "of which docs.jsonl has nothing"),
        ("queries.jsonl", b"[]\n", "queries.jsonl:1 is not a JSON object on one line."),
        (
            "queries.jsonl",
            b'{"id": 1, "collection": "pottery", "text": "a", "gold": "x"}\n',
            "queries.jsonl:1 has a field that is not what it should be.",
        ),
        ("queries.jsonl", None, "queries.jsonl cannot be read"),
    ],
)
def test_cli_eval_says_where_a_set_is_wrong(
    tiny: Path, here: Here, file: str, content: bytes | None, said: str
) -> None:
    (tiny / file).unlink() if content is None else (tiny / file).write_bytes(content)
    done = here(tiny)
    assert done.code == 2
    assert said in done.stderr


def test_cli_eval_of_nothing_says_so(tmp_path: Path, home: Path, here: Here) -> None:
    done = here(tmp_path / "nowhere.jsonl", home=home)
    assert done.code == 2
    assert "nowhere.jsonl cannot be read" in done.stderr


def test_cli_eval_of_no_questions_is_empty(pottery: Path, here: Here) -> None:
    (pottery / "queries.jsonl").write_text("")
    rows = json.loads(here(pottery, "--json", "--mode", "words").stdout)
    assert rows["all"]["questions"] == 0


# What is learned


def test_cli_eval_measures_the_extractors_on_the_sample(here: Here) -> None:
    done = here("--extractors", "--json")
    found = json.loads(done.stdout)
    assert done.code == 0
    assert list(found) == ["all", "odd", "even"]
    assert list(found["all"]) == ["decisions", "lessons", "people", "procedures", "facts", "journal"]
    for name, row in found["all"].items():
        assert row["wanted"] == found["odd"][name]["wanted"] + found["even"][name]["wanted"]
        assert row["found"] + len(row["missed"]) == row["wanted"]
        assert row["right"] + len(row["mistaken"]) == row["lines"]


def test_cli_eval_measures_the_extractors_on_a_home_by_its_own_key(
    here: Here, tmp_path: Path, tacit: Tacit
) -> None:
    home = tmp_path / "home"
    memory = product.init(home)
    with memory.session("agent:main:main", session_id="ses_1") as session:
        session.message("user", "We decided to close the shop at six.")
        session.message("user", "The gate code is 4471.")
    key = tmp_path / "key.yaml"
    key.write_text("ses_1:\n  decisions: {wanted: [[1, close, six]]}\n  facts: {wanted: [[2, 4472]]}\n")
    found = json.loads(here("--extractors", "--key", key, "--json", home=home).stdout)["all"]
    assert (found["decisions"]["recall"], found["decisions"]["precision"]) == (1.0, 1.0)
    assert found["facts"]["missed"] == ["ses_1#2 4472"]
    assert found["facts"]["mistaken"] == ["ses_1#2 The gate code is 4471."]
    shown = here("--extractors", "--key", key, home=home)
    assert "decisions" in shown.stdout
    assert "100 %" in shown.stdout


def test_cli_eval_says_what_is_wrong_with_a_key(here: Here, tmp_path: Path, home: Path) -> None:
    product.init(home)
    key = tmp_path / "key.yaml"
    assert "cannot be read" in here("--extractors", "--key", key, home=home).stderr
    key.write_text("a: [")
    assert "cannot be read" in here("--extractors", "--key", key, home=home).stderr
    key.write_text("- a")
    assert "is no key" in here("--extractors", "--key", key, home=home).stderr
    key.write_text("a: {}")
    done = here("--extractors", "--key", key, home=home)
    assert (done.code, "names no conversation" in done.stderr) == (2, True)


def test_cli_eval_without_anything_to_measure_says_what_there_is(here: Here) -> None:
    done = here()
    assert done.code == 2
    assert "--extractors" in done.stderr


def test_cli_eval_measures_what_prompts_hold_by_what_may_be_searched(here: Here) -> None:
    done = here("--searchable", "knowledge", "--json")
    found = json.loads(done.stdout)
    assert list(found) == ["budgets", "knowledge"]
    assert found["knowledge"]["questions"] >= 25
    assert found["knowledge"]["compiled"]["2048"]["recall"] >= 0.3
