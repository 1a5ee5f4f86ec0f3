"""The index: what is found in the files, made from them and deletable at any time."""
