"""Values only: frozen dataclasses, no I/O."""
