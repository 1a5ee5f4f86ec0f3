"""What every host offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.hosts.base import load_hosts
from tests.conftest import Tacit
from tests.server.served import serving

FILES = [{"name": "AGENTS.md", "path": "AGENTS.md", "content": "Be kind."}]
TRANSLATIONS = {host.name: host.load_translation() for host in load_hosts()}


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_a_host_can_be_told_which_files_to_load(name: str) -> None:
    assert TRANSLATIONS[name].bootstrap_entries("agent:main:main", FILES) == FILES


@pytest.mark.parametrize("name", TRANSLATIONS)
def test_the_body_of_a_turn_does_not_name_the_host_any_more(name: str) -> None:
    assert "host" not in TRANSLATIONS[name].turn({"host": name, "message": "Hello"})


# A host is a folder and its name in HOSTS: here the folder is outside of the package, and a start-up file of
# Python adds the name.

HOST = """
from tacit.hosts.base import Command, Host, Snippet

HOST = Host(
    "parrot",
    translation="words",
    settings="config",
    commands=[Command("parrot", "command", "say what the host is")],
    snippets=[Snippet("parrot", "Parrot", "its cage", is_shared=False)],
)
"""
WORDS = """
from tacit.hosts.base import OperationCall

def turn(body):
    return {"message": body["heard"], "session_key": f"agent:main:{body['perch']}"}

def event(body):
    fields = {"session_key": f"agent:main:{body['perch']}"}
    if body.get("left"):
        return [OperationCall("end_session", fields)]
    return [OperationCall("message", {**fields, "role": "user", "text": body["heard"]})]

def bootstrap_entries(session_key, files):
    return list(files)
"""
CONFIG = """
from dataclasses import dataclass, field

@dataclass(frozen=True, slots=True)
class ParrotSettings:
    colour: str = field(default="green", metadata={"rule": {"kind": "name", "about": "Its colour."}})

SETTINGS = ParrotSettings()
"""
COMMAND = '''
"""Says what the host is."""

def arguments(parser):
    parser.add_argument("--loud", action="store_true", help="in capitals")

def run(options):
    print("PARROT" if options.loud else "parrot")
    return 0
'''
REGISTER = """
import tacit.hosts, tacit.hosts.base
tacit.hosts.__path__.append({folder!r})
tacit.hosts.base.HOSTS.append("parrot")
"""


@pytest.fixture
def parrot(tmp_path: Path) -> dict[str, str]:
    """The environment in which tacit has one host more."""
    folder = tmp_path / "hosts" / "parrot"
    folder.mkdir(parents=True)
    files = {"__init__": "", "host": HOST, "words": WORDS, "config": CONFIG, "command": COMMAND}
    for name, source in files.items():
        (folder / f"{name}.py").write_text(source)
    (tmp_path / "sitecustomize.py").write_text(REGISTER.format(folder=str(folder.parent)))
    return {"PYTHONPATH": str(tmp_path)}


def test_a_new_host_is_a_folder_and_one_line(home: Path, tacit: Tacit, parrot: dict[str, str]) -> None:
    with serving(home, env=parrot) as daemon:
        heard = {"host": "parrot", "perch": "one", "heard": "The spare key is under the blue flower pot."}
        assert daemon.ask("POST", "/v1/event", **heard)["done"][0]["operation"] == "message"
        daemon.ask("POST", "/v1/event", host="parrot", perch="one", left=True)
        turn = daemon.ask("POST", "/v1/turn", host="parrot", perch="main", heard="Where is the spare key?")
        assert "blue flower pot" in turn["text"]
        daemon.end()
    assert tacit("parrot", "--loud", env=parrot).stdout == "PARROT\n"
    assert "parrot.colour" in tacit("config", env=parrot).stdout
    assert tacit("skills", "--snippet", "parrot", env=parrot).code == 0
    assert tacit("parrot").code == 2
