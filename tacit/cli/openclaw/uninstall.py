"""Take tacit out of OpenClaw.

The plugin is removed by the host's own command. Its config becomes what it was, byte for byte, unless
somebody else has changed it since: then only what is tacit's goes. No workspace is touched, and the home
stays.
"""

from __future__ import annotations

import argparse
import os

from tacit.cli.openclaw.options import add_host_options, confirm
from tacit.home.layout import find_home
from tacit.hosts.openclaw.host import find_host
from tacit.hosts.openclaw.install import is_installed, uninstall
from tacit.terminal import output


def arguments(parser: argparse.ArgumentParser) -> None:
    add_host_options(parser)
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def run(options: argparse.Namespace) -> int:
    home = find_home(options.home, os.environ)
    host = find_host(os.environ, options.openclaw)
    if not is_installed(host):
        output.say("Nothing to do: there is nothing of tacit's in this OpenClaw.")
        return 0
    if not options.yes and not confirm(f"Remove what is tacit's from {host.config}?", "Say --yes."):
        output.say("Nothing was changed.")
        return 1
    removal = uninstall(host, home, os.environ)
    for path in removal.removed:
        output.say(f"removed {path}")
    for path in removal.kept:
        output.warn(f"tacit: {path} is not as tacit made it, so it was left. The host no longer loads it.")
    if removal.config:
        output.say(removal.config)
    output.say(f"No workspace was touched. The home stays: {home.root}")
    return 0
