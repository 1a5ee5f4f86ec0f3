"""Hosts: the programs that run agents, and all that tacit knows about each of them.

A host is a folder here and its name in `base.py`, which says what the folder has to offer. A host's plugin
forwards its records unchanged, and the host's folder translates them into operations. Nothing outside this
package names a host. Start reading at `base.py`, then at `hooks/`, the smaller of the two hosts.
"""
