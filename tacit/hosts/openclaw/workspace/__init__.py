"""An agent's folder on its host, and what tacit proposes for its files. Only an approved draft changes a
file; drafts, backups and the day's queue are what tacit adds by itself."""

from tacit.hosts.openclaw.workspace.layout import ARTEFACTS, AgentWorkspace

__all__ = ["ARTEFACTS", "AgentWorkspace"]
