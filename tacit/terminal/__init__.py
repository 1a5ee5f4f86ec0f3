"""What commands share: the options that many of them take, and how they print.

Output is plain lines that a person can read and a pipe can carry; colour and width come from the terminal.
Control characters in what users or agents wrote are shown, never sent. Start reading at `output.py`.
"""
