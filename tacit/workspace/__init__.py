"""The folder of an agent on its host, and what tacit proposes for its files. Nothing in it is changed but
by a draft that somebody approved; drafts, backups and the list of the day are what tacit adds by itself."""

from tacit.workspace.place import ARTEFACTS, Place

__all__ = ["ARTEFACTS", "Place"]
