"""A home on disk: its layout, files that survive a crash, init, status, doctor, attached workspaces."""
