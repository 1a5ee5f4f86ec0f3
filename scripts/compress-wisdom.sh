#!/bin/sh
# Sources are listed, a draft of the wisdom section is made from them, and a review is asked for. SOUL.md is not
# touched. All arguments go to `tacit wisdom draft`; TACIT names another program than the one of this checkout.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tacit=${TACIT:-$here/.venv/bin/tacit}
[ -x "$tacit" ] || tacit=tacit
exec "$tacit" wisdom draft "$@"
