# One command each; every command makes its own environment in .venv when it is missing or out of date.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs

.PHONY: demo test check docs format slow bench release-check clean

demo: $(STAMP)
	$(BIN)/seqcritic compare demo --out runs/demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test
	$(MAKE) docs

# The site, in docs/_build/html; a warning is an error. The notebook runs here.
docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs docs/_build/html

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

slow: $(STAMP)
	$(BIN)/python -m pytest tests/slow --timeout 3600
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

bench: $(STAMP)
	$(BIN)/python benchmarks/bench.py

release-check: $(STAMP)
	$(BIN)/python .ci/release_check.py

clean:
	rm -rf $(VENV) .bench .npm build dist *.egg-info src/*.egg-info docs/_build

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(STAMP)

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	touch $(DOCS_STAMP)
