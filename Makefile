# streamskit: `make lab` to learn, `make test` to check, `make doctor` when something is wrong.
# Plain make: it runs with GNU make 3.81 (macOS) and newer.

SHELL := /bin/sh
VENV := .venv
PYTHON_IN_VENV := $(VENV)/bin/python
READY := $(VENV)/.ready
TESTS_READY := $(VENV)/.ready-tests
DOCS_READY := $(VENV)/.ready-docs
SITE := build/site
ARGS ?=
# What the marks mean stands in pyproject.toml.
QUICK := quick or not (spark or broker or browser or container or slow or soak)

.PHONY: help setup lab check quick-tests test lint class-sharing notebooks doctor docs wheel soak bench clean

help:
	@echo 'make lab        open the course in JupyterLab (ARGS=--no-browser passes options on)'
	@echo 'make doctor     look at this machine: what is wrong, and what to do'
	@echo 'make check      in three minutes, without a broker: lint, types, unit tests, one recorded vector of each area'
	@echo 'make test       lint, types, all tests, notebooks'
	@echo 'make lint       lint and types only'
	@echo 'make notebooks  run the notebooks and compare their outputs'
	@echo 'make soak       an hour and more: faults at random, and every wrong answer to the labs'
	@echo 'make bench      the benchmarks'
	@echo 'make docs       the site: lessons, labs, documents and reference with search, into build/site'
	@echo 'make wheel      the wheel, into dist, tried in an environment that has nothing else (needs the network)'
	@echo 'make clean      stop the broker and remove its data, and all caches of this folder'

setup: $(TESTS_READY)

lab: $(READY)
	@$(PYTHON_IN_VENV) -m streamskit lab $(ARGS)

doctor: $(READY)
	@$(PYTHON_IN_VENV) -m streamskit doctor

check: $(TESTS_READY)
	@$(MAKE) --no-print-directory -j 2 lint quick-tests

quick-tests: $(TESTS_READY)
	$(PYTHON_IN_VENV) -m pytest -n 2 --dist worksteal -m '$(QUICK)' tests/unit tests/conformance tests/labs $(ARGS)

# Hundreds of Pythons start; an installed package lies compiled, this one only where Python may write what it compiles.
test: $(TESTS_READY)
	@$(PYTHON_IN_VENV) -m compileall -q streamskit
	@$(MAKE) --no-print-directory -j 2 lint class-sharing
	$(PYTHON_IN_VENV) -m pytest -n 2 --dist worksteal tests/conformance tests/unit tests/labs $(ARGS)
	$(PYTHON_IN_VENV) -m pytest -n 3 --dist loadfile --no-loadscope-reorder --nbval $(wildcard notebooks) tests --ignore=tests/conformance --ignore=tests/unit --ignore=tests/labs $(ARGS)

# What makes Java start faster is made while mypy, on one core, reads all types.
class-sharing: $(TESTS_READY)
	$(PYTHON_IN_VENV) -m streamskit class-sharing

lint: $(TESTS_READY)
	$(PYTHON_IN_VENV) -m ruff check .
	$(PYTHON_IN_VENV) -m ruff format --check .
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(PYTHON_IN_VENV) -m mypy

notebooks: $(TESTS_READY)
	$(PYTHON_IN_VENV) -m pytest --nbval notebooks $(ARGS)

soak: $(TESTS_READY)
	$(PYTHON_IN_VENV) -m pytest -m soak -s tests/integration tests/examples tests/labs tests/browser $(ARGS)

docs: $(DOCS_READY)
	$(PYTHON_IN_VENV) -m tests.site $(SITE)

wheel: $(TESTS_READY)
	$(PYTHON_IN_VENV) -m tests.wheel

bench: $(TESTS_READY)
	$(PYTHON_IN_VENV) -m tests.benchmarks $(ARGS)

clean:
	@if [ -d .streamskit ] && [ -f $(READY) ]; then env -u STREAMSKIT_BOOTSTRAP_SERVERS -u STREAMSKIT_PROJECT $(PYTHON_IN_VENV) -m streamskit broker clean; fi
	rm -rf .streamskit .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist spark-warehouse metastore_db derby.log
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# Made again when the dependencies change; otherwise nothing here needs the network.
$(READY): pyproject.toml constraints.txt
	@found=; \
	for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo 'streamskit needs Python 3.11 to 3.14, and none is on PATH. Install one, or name it: make lab PYTHON=/path/to/python3' >&2; \
	  exit 1; \
	fi; \
	if $(PYTHON_IN_VENV) -c 'import pip' 2>/dev/null; then exit 0; fi; \
	if ! $$found -c 'import ensurepip' 2>/dev/null; then \
	  version=$$($$found -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "$$found cannot make virtual environments. On Debian or Ubuntu: sudo apt-get install python$$version-venv" >&2; \
	  exit 1; \
	fi; \
	echo "Making $(VENV) with $$($$found --version) ..."; \
	$$found -m venv --clear $(VENV)
	@echo 'Installing the packages of the course (1.5 GB on disk; about a minute on a fast line, once) ...'
	@quiet=; if $(PYTHON_IN_VENV) -c 'import importlib.metadata as m; m.version("streamskit")' 2>/dev/null; then quiet=-q; fi; \
	$(PYTHON_IN_VENV) -m pip install $$quiet --disable-pip-version-check -c constraints.txt -e '.[course]'
	@touch $(READY)
	@echo 'The Python environment is ready.'

# Each adds its packages to those above, once.
$(TESTS_READY): GROUPS := course,test
$(DOCS_READY): GROUPS := course,test,docs
$(TESTS_READY): $(READY)
$(DOCS_READY): $(TESTS_READY)
$(TESTS_READY) $(DOCS_READY):
	@echo 'Adding the packages of the groups $(GROUPS) ...'
	@$(PYTHON_IN_VENV) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[$(GROUPS)]'
	@touch $@
