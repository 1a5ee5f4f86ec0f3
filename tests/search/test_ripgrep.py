"""ripgrep is a help: it is asked safely, and whatever goes wrong with it, nobody notices."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tacit.search import home_index
from tacit.search.home_index import run_ripgrep
from tests.search.fake_rg import SOURCE, install


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    for folder in ("knowledge", "topics"):
        (root / folder).mkdir(parents=True)
    (root / "knowledge" / "a.md").write_text("The Kiln is hot.\n")
    (root / "knowledge" / "-e.md").write_text("a (b+ [c] kiln\n")
    (root / "knowledge" / ".gitignore").write_text("*\n")
    (root / "topics" / "new\nline.md").write_text("glaze -e --pre=x\n")
    (root / "other.md").write_text("kiln glaze\n")
    return root


@pytest.fixture(params=["fake", *(["real"] if shutil.which("rg") else [])])
def rg(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "fake":
        install(tmp_path / "bin")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))


FOLDERS = ("knowledge", "topics")


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (["kiln"], {"knowledge/a.md", "knowledge/-e.md"}),
        (["KILN"], {"knowledge/a.md", "knowledge/-e.md"}),
        (["glaze", "hot"], {"knowledge/a.md", "topics/new\nline.md"}),
        (["(b+ [c]"], {"knowledge/-e.md"}),
        (["k.ln"], set()),
        (["-e"], {"topics/new\nline.md"}),
        (["--pre=x"], {"topics/new\nline.md"}),
        (["--", "absent"], {"topics/new\nline.md"}),
        (["absent"], set()),
    ],
)
def test_the_files_with_any_of_the_words_are_named(
    rg: None, root: Path, words: list[str], paths: set[str]
) -> None:
    found = run_ripgrep(str(root), FOLDERS, words)
    assert found is not None
    assert set(found) == paths


def test_a_name_that_is_not_utf_8_comes_with_its_bytes(rg: None, root: Path) -> None:
    (root / os.fsdecode(b"knowledge/\xff.md")).write_text("zebra\n")
    found = run_ripgrep(str(root), FOLDERS, ["zebra"])
    assert found is not None
    assert [os.fsencode(path) for path in found] == [b"knowledge/\xff.md"]


def test_links_lead_nowhere(rg: None, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("zebra\n")
    (root / "knowledge" / "link.md").symlink_to(tmp_path / "secret.md")
    assert run_ripgrep(str(root), FOLDERS, ["zebra"]) == []


def test_without_ripgrep_it_cannot_be_told(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_ripgrep(str(root), FOLDERS, ["kiln"]) is None


def test_no_words_are_not_looked_for(rg: None, root: Path) -> None:
    assert run_ripgrep(str(root), FOLDERS, []) is None


@pytest.mark.parametrize("word", ["a\0b", "\ud800", "x" * 3_000_000])
def test_words_that_no_program_takes_are_not_looked_for(rg: None, root: Path, word: str) -> None:
    assert run_ripgrep(str(root), FOLDERS, [word]) is None


@pytest.mark.parametrize(
    "source",
    [
        "#!{python}\nimport sys; sys.exit(2)\n",
        "#!{python}\nimport os; print('knowledge/a.md', end=chr(0), flush=True); os.abort()\n",
        "#!/nowhere/at/all\n",
    ],
)
def test_a_ripgrep_that_fails_is_as_none(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    install(tmp_path / "bin", source)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert run_ripgrep(str(root), FOLDERS, ["kiln"]) is None


def test_a_ripgrep_that_hangs_is_left(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "bin", "#!{python}\nimport time; time.sleep(60)\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(home_index, "_RIPGREP_TIMEOUT_S", 0.2)
    assert run_ripgrep(str(root), FOLDERS, ["kiln"]) is None


def test_the_settings_of_the_user_are_not_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = install(tmp_path / "bin", SOURCE)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    run_ripgrep(str(root), FOLDERS, ["kiln"])
    assert log.read_bytes().startswith(b"--no-config\0")
