"""Where a line of a note comes from, and how to retract everything that came from one source."""
