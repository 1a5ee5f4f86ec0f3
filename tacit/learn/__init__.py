"""From a finished conversation to lines in notes: extractors, where each line goes, and what it contradicts.

Each extractor finds one kind of statement, by rules or with a model (`extractors/`). A `ChangeSet` is the
result: lines for notes, each with its source, its trust and the version of its extractor. A line never goes
into a note that more people can read than the conversation it comes from; what tools or strangers said does
not become knowledge by itself; running again adds nothing twice. Start reading at `pipeline.py`, which is
pure; `service.py` writes the result.
"""
