# `make demo` and `make test` need Python 3.11 or newer, make and a package index; nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint clean objects incidents

demo: $(VENV)/installed
	$(BIN)/drtool demo

# the files of tests over three processes: most wait for a server
test: lint
	$(BIN)/pytest --numprocesses 3 --dist loadfile

# every incident and healthy case, expected and found
incidents: $(VENV)/installed
	$(BIN)/python -m tests.incidents.table

# types of the Kubernetes API decoded exactly, per release (needs Go, or k8s.io/api in its module cache)
objects: $(VENV)/installed
	$(BIN)/python -m tests.registry.published

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "drtool needs Python 3.11 or newer and $(PYTHON) is %d.%d: install one and name it, as in make PYTHON=python3.12 test" % sys.version_info[:2])'
	@$(PYTHON) -m venv --clear $(VENV) || { echo "$(PYTHON) cannot make a virtual environment: on Debian and Ubuntu install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[demo,test]'
	@$(BIN)/python -m compileall -q drtool manifests snapshots tui  # as a wheel's install does: a check starts faster
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis
