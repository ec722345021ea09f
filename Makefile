# Everything below needs only python3 and make; set-up happens in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
SERVICES := $(VENV)/services

.PHONY: setup demo redis chromium quick test test-plain test-services test-long bench generate lint types docs check clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[analysis,plots,frames,studies,shapes,collect,docs,dev]"
	touch $(READY)

demo: $(READY)  ## protected counts of made-up visits, and what noise does to readings
	$(BIN)/tempriv demo

FAST := not long and not services
# the files with quick tests (see tests/conftest.py), so that no others are collected
QUICK := tests/test_*.py tests/privacy tests/cli/test_cli.py tests/releases/test_python_api.py \
	tests/sampling/test_keys.py tests/mechanisms/test_sparse.py tests/conformance
# what runs kernels, which are compiled elsewhere
KERNELS := tests/sampling tests/mechanisms tests/conformance tests/correlation tests/landmarks \
	tests/local tests/streaming/test_streaming.py tests/streaming/test_stream_cells.py

quick: $(READY)  ## the inner loop: the design, the public names, one check of each mechanism
	$(BIN)/python -m pytest -n 2 -m "quick and $(FAST)" $(QUICK)

test: $(READY)  ## all tests, compiled kernels; ends with the slowest 20
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 20 -m "$(FAST)"

test-plain: $(READY)  ## what runs kernels again, as plain Python
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "$(FAST)" $(KERNELS)

test-long: $(SERVICES) redis chromium  ## hundreds of kills, thousands of charges, full enumerations
	$(BIN)/python -m pytest -m long

test-services: $(SERVICES) redis chromium  ## real Redis, PostgreSQL, Spark and a browser
	$(BIN)/python -m pytest -m "services and not long"

redis:
	@command -v redis-server >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq \
		&& apt-get install -y -qq redis-server; } \
		|| { echo "redis-server is missing: sudo apt-get install redis-server"; exit 1; }

chromium:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && apt-get update -qq \
		&& apt-get install -y -qq chromium; } \
		|| { echo "chromium is missing: sudo apt-get install chromium"; exit 1; }

$(SERVICES): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[redis,spark,services]"
	touch $(SERVICES)

bench: $(READY)  ## the table of docs/benchmarks.md, as ratios in one run
	$(BIN)/python -m benchmarks

generate: $(READY)  ## the files that are written from the code: stub, index, tables of the docs
	$(BIN)/python tools/generate.py

lint: $(READY)  ## style, layers of packages, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/generate.py --check

types: $(READY)
	$(BIN)/mypy

docs: $(READY)  ## the site, in docs/_build
	$(BIN)/python -m sphinx -q -W -b html docs docs/_build

check: lint types docs test test-plain  ## exactly what CI runs

clean:
	rm -rf $(VENV) docs/_build build
