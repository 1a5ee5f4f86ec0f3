"""Compresses lessons into the `## Wisdom` section of SOUL.md: a few patterns that hold for more than one day.

    lessons     reads lessons from a workspace's files, each with its line
    similarity  how similar two texts are, by vectors or by words
    themes      groups lessons about the same thing
    patterns    sums up a theme in one short sentence, taken from the lessons
    model       does the same with a chat model and parses its answer
    section     reads and writes the section
    lint        problems of a section, or of the SOUL.md around it
    compress    runs the steps

Everything here takes values and returns values. The result is a draft: SOUL.md is not touched.
"""
