"""`tacit forget` never says that nothing is left while something is: held against a search that shares no
code with it. What stays is listed with the command that removes it, and these commands do."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

import tacit as product
from tests.conftest import Tacit
from tests.erase.test_forget import killed
from tests.traces import traces

TEXT = "Zoë Müller 7719"
SLUG = "zoe-muller-7719"
PERSON = ("-c", "user.name=U", "-c", "user.email=u@example.com", "-c", "core.hooksPath=/dev/null")
ALL_GONE = "Nothing is left"
Make = Callable[[Path], object]


def git(home: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *PERSON, *arguments], cwd=home, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def put(home: Path, path: str, text: str | bytes) -> None:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)


def commit(home: Path, path: str, text: str | bytes, message: str = "a note") -> None:
    put(home, path, text)
    git(home, "add", "-f", "--", path)
    git(home, "commit", "-q", "-m", message)


def say(home: Path, *messages: str) -> None:
    with product.open(home).session(session_id="talk") as session:
        for text in messages:
            session.message("user", text)


def commands(stdout: str) -> list[list[str]]:
    """Those that it lists to remove what stays."""
    lines = stdout.partition("To remove them too:\n")[2].splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("  tacit forget ")]


def forget_all(home: Path, tacit: Tacit, text: str = TEXT) -> str:
    """Do what is said until nothing stays. Returns the first answer."""
    first = tacit("forget", "--yes", "--", text)
    assert (ALL_GONE in first.stdout) == (traces(home, text) == []), (first.stdout, traces(home, text))
    todo, done = commands(first.stdout), [["forget", "--yes", "--", text]]
    while todo:
        command = todo.pop()
        if command not in done:
            done.append(command)
            todo += commands(tacit(*command).stdout)
        assert len(done) < 20
    assert traces(home, text) == []
    assert subprocess.run(["git", "fsck", "--strict"], cwd=home, capture_output=True).returncode == 0
    assert [item for item in product.open(home).verify() if not item.good] == []
    return first.stdout


def in_a_note(form: str) -> Make:
    return lambda home: commit(home, "knowledge/people/noor.md", f"one {form} two\nthree\n")


def in_a_name(form: str) -> Make:
    return lambda home: commit(home, f"knowledge/projects/{form}.md", "plan\n")


def in_a_folder(form: str) -> Make:
    return lambda home: commit(home, f"knowledge/reference/{form}/a.md", "plan\n")


def in_a_deleted_name(form: str) -> Make:
    def make(home: Path) -> None:
        commit(home, f"attachments/{form}.txt", "plan\n")
        git(home, "rm", "-q", "--", f"attachments/{form}.txt")
        git(home, "commit", "-q", "-m", "gone")

    return make


def in_a_message(form: str) -> Make:
    return lambda home: git(home, "commit", "-q", "--allow-empty", "-m", f"about {form}, and more")


def in_a_branch(form: str) -> Make:
    return lambda home: git(home, "branch", f"explore/{form}")


def in_a_tag(form: str) -> Make:
    return lambda home: git(home, "tag", "-a", "-m", f"for {form}", f"v-{form.replace(' ', '.')}")


def in_a_note_of_git(form: str) -> Make:
    return lambda home: git(home, "notes", "--ref", "reviews", "append", "-m", form)


def in_a_notes_ref(form: str) -> Make:
    return lambda home: git(home, "notes", "--ref", form, "add", "-m", "x")


def in_a_reflog(form: str) -> Make:
    return lambda home: git(home, "update-ref", "-m", f"moved for {form}", "HEAD", "HEAD~0")


def in_a_branch_description(form: str) -> Make:
    return lambda home: git(home, "config", "branch.main.description", f"for {form}")


def in_a_stash(form: str) -> Make:
    def make(home: Path) -> None:
        put(home, "drafts/d.md", f"{form}\nrest\n")
        git(home, "add", "drafts/d.md")
        git(home, "stash", "push", "-q", "-m", f"wip {form}")

    return make


def in_an_object_that_nothing_leads_to(form: str) -> Make:
    def make(home: Path) -> None:
        put(home, ".tacit/x", f"{form}\n")
        git(home, "hash-object", "-w", ".tacit/x")
        (home / ".tacit/x").unlink()

    return make


def in_a_file_of_tacit(form: str) -> Make:
    return lambda home: put(home, ".tacit/rebuilds/v2/calls.jsonl", json.dumps({"user": form}) + "\n")


def in_the_index(form: str) -> Make:
    def make(home: Path) -> None:
        commit(home, "knowledge/people/noor.md", f"# Noor\n\nHer bird is {form}\n")
        memory = product.open(home)
        memory.search("bird")
        memory.services.searcher.close()

    return make


def in_a_conversation(form: str) -> Make:
    return lambda home: say(home, f"{form} is mine", "Yes")


def in_a_link(form: str) -> Make:
    return lambda home: put(home, "knowledge/people/noor.md", f"[[{form}]] and [x](../projects/{form}.md)\n")


WRITTEN = {
    "as it is": TEXT,
    "decomposed": unicodedata.normalize("NFD", TEXT),
    "in capitals": TEXT.upper(),
    "small": TEXT.lower(),
    "without accents": "Zoe Muller 7719",
    "as a slug": SLUG,
    "as a slug with accents": "zoë-müller-7719",
    "as a slug with capitals": "Zoe_Muller_7719",
}
PLACES = [
    in_a_note,
    in_a_name,
    in_a_folder,
    in_a_deleted_name,
    in_a_message,
    in_a_note_of_git,
    in_a_reflog,
    in_a_branch_description,
    in_a_stash,
    in_an_object_that_nothing_leads_to,
    in_a_file_of_tacit,
    in_the_index,
    in_a_conversation,
    in_a_link,
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_stays_is_listed_and_goes_with_the_commands_that_are_listed(
    home: Path, tacit: Tacit, place: Callable[[str], Make]
) -> None:
    for form in WRITTEN.values():
        place(form)(home)
    forget_all(home, tacit)


@pytest.mark.parametrize("form", [TEXT.upper(), SLUG], ids=["in capitals", "as a slug"])
@pytest.mark.parametrize(
    "place", [in_a_message, in_a_name, in_a_branch_description], ids=lambda p: p.__name__
)
def test_a_text_that_stands_in_one_way_only(
    home: Path, tacit: Tacit, place: Callable[[str], Make], form: str
) -> None:
    place(form)(home)
    forget_all(home, tacit)


@pytest.mark.parametrize("form", [SLUG, "zoë-müller-7719", "Zoe_Muller_7719", "ZOË-MÜLLER-7719"])
@pytest.mark.parametrize("place", [in_a_branch, in_a_tag, in_a_notes_ref], ids=lambda place: place.__name__)
def test_names_of_branches_and_tags(
    home: Path, tacit: Tacit, place: Callable[[str], Make], form: str
) -> None:
    place(form)(home)
    forget_all(home, tacit)


@pytest.mark.parametrize(
    "form",
    [
        "Zoë\nMüller\n> 7719",
        "> Zoë\n> Müller 7719",
        json.dumps(TEXT),
        json.dumps(TEXT.upper()),
        json.dumps(TEXT.replace(" ", "\n")),
        quote(TEXT),
        quote(TEXT.upper()),
        f"[a](people/{quote(TEXT)}.md)",
        f"https://example.org/?q={quote(TEXT).lower()}",
        TEXT.encode("utf-16"),
        TEXT.encode("latin-1"),
    ],
    ids=range(11),
)
def test_other_ways_of_writing(home: Path, tacit: Tacit, form: str | bytes) -> None:
    commit(home, "knowledge/people/noor.md", form if isinstance(form, bytes) else f"a {form} b\nc\n")
    forget_all(home, tacit)


@pytest.mark.parametrize(
    "text", ["objects", "hooks", "spool", "sessions", "receipts", "worktrees", "senders"]
)
def test_no_advice_removes_what_tacit_and_git_need(home: Path, tacit: Tacit, text: str) -> None:
    tacit("compile", "Where is the tea?")
    git(home, "worktree", "add", "-q", "-b", "other", str(home.parent / text))
    for place in (".tacit/spool", ".tacit/sessions", ".git/worktrees"):
        (home / place).mkdir(exist_ok=True)
    (home / ".tacit/senders.json").write_text("{}")
    done = tacit("forget", "--yes", "--", text)
    assert ALL_GONE not in done.stdout
    assert "rm -r" not in done.stdout
    assert tacit("verify").code == 0


def test_patterns_keep_their_width(home: Path, tacit: Tacit) -> None:
    ignored = (home / ".gitignore").read_text()
    put(home, ".gitignore", f"{ignored}{SLUG}*\n/{SLUG}/keys\n")
    commit(home, ".gitmodules", f'[submodule "{SLUG}"]\n\tpath = x\n\turl = https://e.org/{SLUG}.git\n')
    put(home, ".git/info/exclude", f"/{SLUG}-drafts/\n")
    assert ALL_GONE in forget_all(home, tacit)
    assert (home / ".gitignore").read_text() == f"{ignored}forgotten*\n/forgotten/keys\n"
    assert '[submodule "forgotten"]' in (home / ".gitmodules").read_text()
    assert (home / ".git/info/exclude").read_text() == "/forgotten-drafts/\n"
    put(home, "knowledge/people/mara.md", "tea\n")
    assert "knowledge/people/mara.md" in git(home, "status", "--short", "-uall")


def test_a_file_that_is_not_checked_out_is_not_deleted_by_its_new_name(home: Path, tacit: Tacit) -> None:
    commit(home, f"knowledge/{SLUG}/a.md", "tea\n")
    git(home, "sparse-checkout", "set", "--no-cone", "/*", f"!/knowledge/{SLUG}/")
    assert not (home / f"knowledge/{SLUG}").exists()
    assert ALL_GONE in forget_all(home, tacit)
    assert git(home, "status", "--short") == ""
    assert tacit("run", "commit").code == 0
    assert git(home, "show", "HEAD:knowledge/forgotten/a.md") == "tea\n"
    assert (home / ".git/info/sparse-checkout").read_text() == "/*\n!/knowledge/forgotten/\n"


@pytest.mark.parametrize("form", ["utf-16", "utf-32", "utf-16-be"])
@pytest.mark.parametrize("text", ["金継ぎの器", TEXT, "Кот Борис"], ids=ascii)
def test_files_in_wide_characters(home: Path, tacit: Tacit, text: str, form: str) -> None:
    begin = "\ufeff" if form == "utf-16-be" else ""
    apart = unicodedata.normalize("NFD", text)
    written = f"{begin}one {text} two\r\n{apart}\r\n{text.upper()}\r\nthree\r\n"
    commit(home, "attachments/wide.txt", written.encode(form))
    first = tacit("forget", "--yes", "--", text)
    left = (home / "attachments/wide.txt").read_bytes().decode("utf-32" if form == "utf-32" else "utf-16")
    stays = "" if text.upper() == text else f"{text.upper()}\r\n"
    assert left == f"one two\r\n{stays}three\r\n"
    assert (ALL_GONE in first.stdout) is not bool(stays)
    assert len(commands(first.stdout)) == bool(stays)


@pytest.mark.parametrize(
    "text", ["blue heron 7719", "noor@example.com", "+49 170 1234567", "Кот Борис", "東京 タワー"]
)
def test_texts_of_other_kinds_in_names_and_messages(home: Path, tacit: Tacit, text: str) -> None:
    slug = "-".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())
    commit(home, f"knowledge/projects/{slug}.md", "plan\n", f"memory: knowledge/projects/{slug}.md")
    git(home, "branch", f"explore/{slug}")
    say(home, f"{text} is mine")
    commit(home, "knowledge/people/noor.md", f"[[{slug}]] {text.upper()}\n", f"{text.upper()} and {text}")
    forget_all(home, tacit, text)


def test_links_lead_to_the_file_under_its_new_name(home: Path, tacit: Tacit) -> None:
    commit(home, "knowledge/projects/forgotten.md", "taken\n")
    commit(home, f"knowledge/projects/{SLUG}.md", "plan\n")
    commit(home, f"knowledge/people/{TEXT}.md", "who\n")
    links = (
        f"[[{SLUG}]], [[projects/{SLUG}|it]], [a]({SLUG}.md), [b](../projects/{SLUG}.md#part), "
        f"[c](../people/{quote(TEXT)}.md), [[{TEXT}]], [d](<{TEXT}.md>)\n"
    )
    commit(home, "knowledge/people/noor.md", links)
    assert ALL_GONE in forget_all(home, tacit)
    assert (home / "knowledge/people/noor.md").read_text() == (
        "[[forgotten-2]], [[projects/forgotten-2|it]], [a](forgotten-2.md), "
        "[b](../projects/forgotten-2.md#part), "
        "[c](../people/forgotten.md), [[forgotten]], [d](<forgotten.md>)\n"
    )
    assert (home / "knowledge/projects/forgotten-2.md").read_text() == "plan\n"


@pytest.mark.parametrize(
    "text", ["memory", "identity", "knowledge", "conversations", "true", "heads", "SOUL", "main"]
)
def test_names_that_tacit_and_git_need_stay_and_are_told(home: Path, tacit: Tacit, text: str) -> None:
    before = {str(file.relative_to(home)) for file in (home / "knowledge").rglob("*")}
    done = tacit("forget", "--yes", "--", text)
    assert ALL_GONE not in done.stdout or traces(home, text) == []
    assert {str(file.relative_to(home)) for file in (home / "knowledge").rglob("*")} == before
    assert (home / "memory-config.yaml").exists()
    assert git(home, "status", "--short") == ""
    assert tacit("status").code == 0
    assert tacit("verify").code == 0


def test_a_limit_to_one_folder_does_not_promise_the_whole_home(home: Path, tacit: Tacit) -> None:
    commit(home, "knowledge/people/noor.md", f"{TEXT}\ntea\n", f"about {TEXT}")
    git(home, "branch", SLUG)
    done = tacit("forget", "--yes", "--path", "knowledge/people", "--", TEXT)
    assert done.code == 0
    assert ALL_GONE not in done.stdout
    assert ["forget", "--yes", "--", TEXT] in commands(done.stdout)
    assert ["forget", "--yes", "--", SLUG] in commands(done.stdout)


def test_a_rebuild_loses_it_in_its_files_and_its_index(home: Path, tacit: Tacit) -> None:
    commit(home, "knowledge/people/noor.md", f"# Noor\n\nHer bird is {TEXT}\ntea\n")
    tree = home / ".tacit/rebuilds/v2/home"
    git(home, "worktree", "add", "-q", "-b", "extract/v2", str(tree))
    memory = product.open(home)
    put(tree, ".tacit/receipts/2026-11.jsonl", json.dumps({"message": TEXT}) + "\n")
    memory.search("bird")
    memory.services.searcher.close()
    put(tree, ".tacit/memory.db", (home / ".tacit/memory.db").read_bytes())
    forget_all(home, tacit)
    assert git(tree, "status", "--short") == ""
    assert (tree / "knowledge/people/noor.md").read_text() == "# Noor\n\nHer bird is\ntea\n"


def test_a_transcript_in_the_archive_goes_with_its_session(home: Path, tacit: Tacit) -> None:
    say(home, "Which engobe for the plates?")
    old = next((home / "raw").rglob("*.md")).relative_to(home)
    new = str(old).replace("raw/", "archive/", 1)
    (home / new).parent.mkdir(parents=True)
    git(home, "mv", str(old), new)
    git(home, "commit", "-q", "-m", "archive")
    assert tacit("forget", "--session", "talk", "--yes").code == 0
    assert not (home / new).exists()
    assert traces(home, "engobe for the plates") == []


def test_a_session_leaves_no_name_of_it_untold(home: Path, tacit: Tacit) -> None:
    say(home, "Which engobe for the plates?")
    commit(home, "knowledge/people/noor.md", "x\n", "learned from which-engobe-for-the-plates")
    git(home, "branch", "explore/which-engobe-for-the-plates")
    done = tacit("forget", "--session", "talk", "--yes")
    assert ALL_GONE not in done.stdout
    for command in commands(done.stdout):
        tacit(*command)
    assert traces(home, "engobe for the plates") == []


def test_a_daily_note_outside_the_home_is_named(home: Path, tacit: Tacit, tmp_path: Path) -> None:
    put(tmp_path, "daily/2026-11-18.md", f"saw {TEXT}\n")
    put(tmp_path, "daily/2026-11-17.md", "nothing\n")
    config = home / "memory-config.yaml"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("inject:")]
    config.write_text("\n".join([*lines, "inject:", f"  daily_directory: {tmp_path / 'daily'}", ""]))
    commit(home, "knowledge/people/noor.md", f"{TEXT}\ntea\n")
    shown = tacit("forget", "--", TEXT).stdout
    assert str(tmp_path / "daily/2026-11-18.md") in shown
    assert "2026-11-17" not in shown


def test_a_remote_is_named_with_the_commands_for_it(home: Path, tacit: Tacit, tmp_path: Path) -> None:
    commit(home, "knowledge/people/noor.md", f"{TEXT}\ntea\n")
    git(home, "branch", SLUG)
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "far.git")], check=True)
    git(home, "remote", "add", "origin", str(tmp_path / "far.git"))
    git(home, "push", "-q", "--all", "origin")
    git(home, "fetch", "-q")
    shown = tacit("forget", "--", TEXT).stdout
    assert "it has what was pushed before" in shown
    assert f"git push origin --delete {SLUG}" in shown


def test_a_forget_that_was_cut_short_is_told_by_the_next(home: Path, tacit: Tacit) -> None:
    commit(home, "knowledge/people/noor.md", f"{TEXT}\ntea\n")
    put(home, ".tacit/forget-0123456789abcdef.json", '{"kind": "passage", "began": "2026-11-18T10:00:00"}')
    for arguments in (["forget", "--", TEXT], ["status"], ["doctor"]):
        done = tacit(*arguments)
        assert "was cut short" in done.stdout + done.stderr, arguments
    assert os.path.exists(home / ".tacit/forget-0123456789abcdef.json")


def test_purging_claims_no_more_than_it_does(home: Path, tacit: Tacit) -> None:
    say(home, f"{TEXT} is mine")
    for _ in range(2):
        done = tacit("purge", "--origin", "talk", "--yes")
        assert "nothing of it is left" not in done.stdout
        assert "are still in transcripts" in done.stdout


@pytest.mark.parametrize(
    "point", ["files:_replace:1", "switch:_move_head:1", "forget:drop_unreachable_objects:1"]
)
def test_names_that_are_slugs_go_after_a_kill_too(home: Path, tacit: Tacit, point: str) -> None:
    commit(home, "knowledge/projects/forgotten.md", "taken\n")
    commit(home, f"knowledge/projects/{SLUG}.md", "plan\n", f"memory: knowledge/projects/{SLUG}.md")
    commit(home, "knowledge/people/noor.md", f"[[{SLUG}]]\n")
    git(home, "switch", "-q", "-c", f"explore/{SLUG}")
    assert killed(home, point, TEXT).returncode == -9
    assert "was cut short" in tacit("status").stdout
    assert ALL_GONE in forget_all(home, tacit)
    assert "was cut short" not in tacit("status").stdout
    assert (home / "knowledge/projects/forgotten-2.md").read_text() == "plan\n"
    assert (home / "knowledge/people/noor.md").read_text() == "[[forgotten-2]]\n"
    assert git(home, "branch", "--show-current").strip() == "explore/forgotten"
    assert git(home, "status", "--short") == ""
