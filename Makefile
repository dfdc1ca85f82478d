PYTHON ?= python3
BIN := .venv/bin

# Compiled code is kept, whatever the environment says: the tests start the command, and workers, again and again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run check test style types tests quick-tests docs benchmark clean

# The main job on the bundled example.
run: .venv/core
	$(BIN)/dprisk demo
	@echo
	$(BIN)/dprisk report src/dprisk/examples/clinic.toml --out clinic-report.html
	@echo "Open clinic-report.html in a browser: the report on the same clinic, for a review board."

# The inner loop: style, types, and the tests that take under a minute together.
check: style
	@$(MAKE) --no-print-directory -j 2 types quick-tests

# Everything that must hold: style, types, tests, doctests, README and docs examples. Types are checked by one process,
# beside tests of which some wait.
test: style
	@$(MAKE) --no-print-directory -j 2 types tests

style: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/test
	$(BIN)/mypy

tests: .venv/test
	$(BIN)/pytest -n auto --dist worksteal

quick-tests: .venv/test
	$(BIN)/pytest -n auto --dist worksteal -m "not slow"

docs: .venv/test
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html in a browser."

benchmark: .venv/test
	$(BIN)/pip install -q -c constraints.txt -e ".[benchmark]"
	$(BIN)/python benchmarks/exact.py
	$(BIN)/python benchmarks/calibrate.py
	$(BIN)/python -m benchmarks.continuous
	$(BIN)/python benchmarks/audit.py --quick
	$(BIN)/python benchmarks/files.py
	$(BIN)/python -m benchmarks.learning
	$(BIN)/python -m benchmarks.false_alarms --quick

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e .
	touch $@

.venv/test: .venv/core
	$(BIN)/pip install -q -c constraints.txt torch
	$(BIN)/pip install -q -c constraints.txt -e ".[test]"
	touch $@

clean:
	rm -rf .venv docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis clinic-report.html
