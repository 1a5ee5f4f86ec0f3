"""The files that make the system start the daemon at login, rendered as text."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from typing import NamedTuple
from xml.sax.saxutils import escape

MARK = "Written by `tacit serve` (install); what it writes it can remove again (uninstall)."


class Service(NamedTuple):
    path: str  # of the service file
    text: str
    begin: str  # the command that starts it now and at every login
    end: str  # the command that stops what still runs after the file was removed
    link: str = ""  # the link that the system made elsewhere to enable it


class UserPaths(NamedTuple):
    home: str
    config: str  # $XDG_CONFIG_HOME or its default


def render_service(
    platform: str, user: UserPaths, program: str, home: str, options: tuple[str, ...] = ()
) -> Service:
    """The service file for this platform: launchd on macOS, systemd elsewhere."""
    make = _launchd_service if platform == "darwin" else _systemd_service
    return make(user, [program, "serve", "--home", home, *options], _service_name(user.home, home))


def is_ours(text: str) -> bool:
    return MARK in text


def _service_name(user_home: str, home: str) -> str:
    """A name for each home; the one in the default place is just `tacit`."""
    if home == os.path.join(user_home, "tacit"):
        return "tacit"
    base = re.sub(r"[^A-Za-z0-9]+", "-", os.path.basename(home)).strip("-")[:32]
    return "-".join(filter(None, ("tacit", base, sha256(os.fsencode(home)).hexdigest()[:8])))


# ---------------------------------------------------------------- systemd


_UNIT = """\
# {mark}
[Unit]
Description=tacit, memory and context for AI agents ({home})

[Service]
Type=notify
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
TimeoutStopSec=30
# Keys of model providers, one NAME=value in a line: a service does not get those of your shell.
EnvironmentFile=-%E/tacit/environment
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native

[Install]
WantedBy=default.target
"""


def _systemd_service(user: UserPaths, command: list[str], name: str) -> Service:
    unit = f"{name}.service"
    text = _UNIT.format(
        mark=MARK, home=_escape_specifiers(command[3]), command=" ".join(map(_quote, command))
    )
    return Service(
        os.path.join(user.config, "systemd/user", unit),
        text,
        f"systemctl --user daemon-reload && systemctl --user enable --now {unit}",
        f"systemctl --user stop {unit}; systemctl --user daemon-reload",
        os.path.join(user.config, "systemd/user/default.target.wants", unit),
    )


def _escape_specifiers(text: str) -> str:
    """Escape % (it begins a specifier) and put the text on one line."""
    return " ".join(text.split()).replace("%", "%%").replace("\\", "\\\\")


def _quote(argument: str) -> str:
    """Quote for a systemd command line, which has its own quotes and escapes, and $ for variables."""
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    escaped = "".join(ch if ch.isprintable() else f"\\x{ord(ch):02x}" for ch in escaped)
    return f'"{escaped}"'


# ---------------------------------------------------------------- launchd


_PLIST = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- {mark} -->
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{label}</string>
  <key>ProgramArguments</key>
  <array>
{arguments}
  </array>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ProcessType</key>
  <string>Background</string>
  <key>Umask</key>
  <integer>63</integer>
</dict>
</plist>
"""


def _launchd_service(user: UserPaths, command: list[str], name: str) -> Service:
    label = f"local.{name}"
    path = os.path.join(user.home, "Library/LaunchAgents", f"{label}.plist")
    arguments = "\n".join(f"    <string>{escape(argument)}</string>" for argument in command)
    return Service(
        path,
        _PLIST.format(mark=MARK, label=escape(label), arguments=arguments),
        f"launchctl bootstrap gui/$(id -u) {_quote_for_shell(path)}",
        f"launchctl bootout gui/$(id -u)/{label}",
    )


def _quote_for_shell(path: str) -> str:
    return path if re.fullmatch(r"[A-Za-z0-9_./-]+", path) else "'" + path.replace("'", "'\\''") + "'"
