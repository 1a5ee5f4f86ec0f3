"""What a probe found out, in answers and in problems."""

from __future__ import annotations

from typing import Any

from tacit.hosts.openclaw import probe

ENTRY = {"name": "string", "path": "string", "content": "string", "missing": "boolean"}
SEEN: dict[str, Any] = {
    "event": dict.fromkeys(probe._EVENT_FIELDS, "object"),
    "context": dict.fromkeys(probe._CONTEXT_FIELDS, "string"),
    "sessionKey": "agent:main:probe",
    "files": [{"name": "SOUL.md", "shape": ENTRY}, {"name": "BOOTSTRAP.md", "shape": {"name": "string"}}],
}
ALL = " ".join(probe._MARKERS)


def problems(found: probe.ProbeResult) -> dict[str, str]:
    return {check.name: problem.level for check in probe.check_result(found) for problem in check.problems}


def test_a_host_as_it_was_tested_has_neither_problems_nor_surprises() -> None:
    found = probe.parse_result(SEEN, ALL)
    assert problems(found) == {}
    assert found.surprises == ()


def test_each_answer_that_tacit_cannot_do_without_is_a_problem() -> None:
    without = ALL.replace("probe-assigned", "").replace("probe-pushed", "").replace("probe-turn", "")
    found = probe.parse_result({**SEEN, "sessionKey": None, "files": []}, without)
    assert problems(found) == dict.fromkeys(("shape", "key", "list", "names", "prompt"), "error")


def test_what_is_new_or_gone_is_a_surprise() -> None:
    files = [{"name": "TOOLS.md", "shape": {**ENTRY, "scope": "string"}}]
    context = {name: "string" for name in probe._CONTEXT_FIELDS if name != "agentId"} | {"laneId": "string"}
    found = probe.parse_result({**SEEN, "files": files, "context": context}, ALL)
    assert any("scope" in one for one in found.surprises)
    assert "files that were not loaded before: TOOLS.md" in found.surprises
    assert "new in the context: laneId" in found.surprises
    assert "no longer in the context: agentId" in found.surprises
    assert problems(found) == {"surprises": "warning"}
