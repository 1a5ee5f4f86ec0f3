"""From a finished conversation to lines in notes: extractors, where each line goes, what it contradicts."""
