"""What must not be stored or shown: secrets, private text, injected text; and who may see a note."""
