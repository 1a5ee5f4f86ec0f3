"""The docs say what the program does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from tacit.cli.commands import load_commands
from tacit.context.absence import SKIP_REASONS
from tacit.search.query_filter import Skip
from tests.commands import commands, fault
from tools import api, architecture

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse folds help differently from Python 3.13 on")
def test_the_command_reference_is_what_make_docs_writes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.cli_reference"], capture_output=True, text=True, check=True
    )
    assert (ROOT / "docs" / "cli.md").read_text() == done.stdout, "run: make docs"


def test_the_architecture_page_is_what_make_docs_writes() -> None:
    assert (ROOT / "docs" / "architecture.md").read_text() == architecture.render(), "run: make docs"


def test_the_table_of_operations_is_what_make_docs_writes() -> None:
    assert api.PAGE.read_text("utf-8") == api.render_page(), "run: make docs"
    assert api.TABLE.findall(api.render_page()) == [api.render_table()]


def test_the_pictures_on_the_architecture_page_name_code_that_exists() -> None:
    page = architecture.TEMPLATE.read_text()
    assert architecture.unknown_names(page) == [], "correct the pictures in tools/architecture.md"
    assert page.count("memory.Memory.turn ") == page.count("transcripts.capture.Session.end\n") == 1
    broken = page.replace("Memory.turn ", "Memory.turned ").replace("context.budget ", "context.limits ")
    assert architecture.unknown_names(broken) == ["memory.Memory.turned", "context.limits"]


def test_package_docstrings_name_modules_and_classes_that_exist() -> None:
    assert architecture.unknown_in_docstrings() == []


def test_every_command_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    assert [name for name in load_commands() if f"## tacit {name}\n" not in text] == []


def test_every_command_and_option_that_a_page_names_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")]
    named = [(page.name, one) for page in pages for one in commands(page.read_text())]
    assert len(named) > 100
    assert [(page, one, fault(one)) for page, one in named if fault(one)] == []


def test_links_between_the_docs_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    assert len(pages) > 8
    links = [(page, target) for page in pages for target in re.findall(r"\]\(([^)#\s]+)", page.read_text())]
    local = [(page, target) for page, target in links if "://" not in target]
    assert [f"{page.name} -> {target}" for page, target in local if not (page.parent / target).exists()] == []


def test_every_file_that_a_page_names_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    for page in pages:
        for name in re.findall(r"`((?:tests|tools|bench|tacit)/[\w/-]+\.\w+)", page.read_text()):
            assert (ROOT / name).is_file(), f"{page.name}: {name}"


def test_the_glossary_is_short_and_explains_each_word_once() -> None:
    words = re.findall(r"^\| \*\*(.+?)\*\* \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert 40 < len(words) <= 60
    assert words == sorted(set(words), key=str.casefold)


def test_requirements_name_tests_that_exist() -> None:
    text = (ROOT / "docs" / "requirements.md").read_text()
    named = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text))
    assert named
    for file, test in named:
        assert (ROOT / file).is_file(), file
        if test:
            assert f"def {test}(" in (ROOT / file).read_text(), f"{file}::{test}"


def test_requirements_count_those_that_hold() -> None:
    text = (ROOT / "docs" / "requirements.md").read_text()
    lines = re.findall(r"^- [A-Z]{3}-\d+: .*", text, re.MULTILINE)
    hold = sum("not yet" not in line for line in lines)
    assert f"{hold} of {len(lines)} hold." in text


def test_the_runbook_names_every_reason_to_give_nothing() -> None:
    text = (ROOT / "docs" / "runbooks" / "context-injection.md").read_text()
    of_the_client = {"busy", "daemon", "home", "usage", "bug"}
    codes = {*filter(None, get_args(Skip)), *SKIP_REASONS, *of_the_client}
    assert not {code for code in codes if f"`{code}`" not in text}


def test_no_file_names_a_package_address_or_a_machine_path() -> None:
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    for name in filter(None, listed.split(b"\0")):
        data = (ROOT / name.decode()).read_bytes()
        assert not re.search(rb"(^|[^A-Za-z0-9_.])/(work|farm|root)/", data), name
        if b"lock" in name:
            assert b"://" not in data, name
