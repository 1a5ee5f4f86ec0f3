# Everything sets itself up: `make demo` and `make test` need only Python 3.11+, git and make.
# Set PYTHON to choose another interpreter, TACIT_PYTEST to pass pytest arguments.

VENV  := .venv
READY := $(VENV)/.ready
BIN   := $(VENV)/bin

# Tests start the program thousands of times; without its compiled modules each start takes twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check faults bench docs lock clean

demo: $(READY)
	@$(BIN)/tacit demo

test: check
	@$(BIN)/pytest -n 3 $(TACIT_PYTEST)

check: $(READY)
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(BIN)/mypy

# The long form of the fault tests: power cuts, kills at every file call, full disks. Some need root and say so.
faults: $(READY)
	@$(BIN)/python -m tests.faults

bench: $(READY)
	@$(BIN)/python -m bench

docs: $(READY)
	@$(BIN)/python -m tools.cli_reference > docs/cli.md
	@$(BIN)/python -m tacit.skills docs/snippets
	@$(BIN)/python -m tools.architecture > docs/architecture.md
	@$(BIN)/python -m tools.api

# Exact versions with hashes and no address, for every supported Python.
lock:
	@python3 -m venv .cache/uv && .cache/uv/bin/pip install -q uv
	@.cache/uv/bin/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --no-emit-find-links --no-annotate --no-header --upgrade -q -o requirements.lock

$(READY): requirements.lock tools/weights.lock pyproject.toml tools/setup.sh
	@sh tools/setup.sh $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
