"""The command line: main.py parses, one module per command acts, output.py prints."""
