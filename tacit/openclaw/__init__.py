"""OpenClaw as a host: where it is, what is set there, what tacit adds to it and takes away again.

Pure: `settings`, `plan`, `restore`, `listing`, `compare`. Everything that runs the host's own command goes
through `command`. How the host's records read in our words is in tacit/hosts/openclaw.py.
"""
