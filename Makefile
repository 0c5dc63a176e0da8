# `make verify` and `make test` need python3 (3.11 or newer) and make; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ARGS ?=

.PHONY: verify test lint types layers nightly wheel clean

verify: $(INSTALLED)  ## run the ledger: every claim, three kinds of evidence; writes out/
	$(BIN)/nonmixing verify $(ARGS)

test: lint types layers  ## what continuous integration runs
	$(BIN)/python -m pytest -n 2 $(ARGS)

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(INSTALLED)
	$(BIN)/basedpyright

layers: $(INSTALLED)
	$(BIN)/lint-imports

nightly: $(INSTALLED)  ## the tests that take too long for every change
	$(BIN)/python -m pytest -n 2 -m nightly $(ARGS)

wheel: $(INSTALLED)
	$(BIN)/python -m build --wheel

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]"
	touch $@

clean:
	rm -rf $(VENV) out dist
