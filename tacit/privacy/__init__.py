"""What must not be stored or shown: secrets, private text, injected text; and who may see a note.

Pure functions on text, applied before anything is written. Credentials are found by the forms they are
known to have; text that tacit itself put into a prompt is taken out of what comes back, so that it is never
learned from; delimiters around retrieved text cannot be imitated by that text. Start reading at
`redaction.py`.
"""
