"""class Memory and one turn of it: the only place that knows the order of things."""

from tacit.memory.memory import Memory, Worked

__all__ = ["Memory", "Worked"]
