"""Lessons → the `## Wisdom` section of SOUL.md: a few patterns that hold for more than one day.

    lessons     where lessons stand in a workspace's files, each with its line
    likeness    how alike two texts are, by vectors or by words
    themes      lessons that are about the same thing
    patterns    a theme in one short sentence, taken from what the lessons say
    asking      the same by a chat model, and reading its answer
    section     the section as text, both ways
    lint        what is wrong with a section, or with SOUL.md around it
    compress    the order of the steps

Everything here takes values and returns values. What it makes is a draft: nobody's SOUL.md is touched.
"""
