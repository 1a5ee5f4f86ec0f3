from __future__ import annotations
from typing import TYPE_CHECKING
import socket, pytest
if TYPE_CHECKING:
    from tests.conftest import GitLog, Tacit
from tacit.memory import Memory

def test_x(memory: Memory, tacit: Tacit, git_log: GitLog) -> None:
    with memory.session() as s:
        s.message("user", "hi there")
    print(git_log()[0], tacit("status"))
    print((memory.home.root / s.path).read_text())
    with pytest.raises(AssertionError):
        socket.socket()
    a, b = socket.socketpair()
    a.close(); b.close()
    assert 0
