"""The truth on disk: files and git. The only layer that writes it."""
