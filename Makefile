# The few commands there are. `make` alone lists them.
#
#   PYTHON   the interpreter the environment is made with   (make PYTHON=python3.12 test)
#   VENV     where the environment lives                    (default .venv)

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.made-from-pyproject
SHELL  := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help venv warm demo test test-spark crash fuzz elastic check conformance oracle oracle-deps brokers bench bench-full bench-parts bench-parse clean jdk

help: ## this list
	@awk -F':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## make the environment with everything in it

# The stamp is older than pyproject.toml when the dependencies may have changed.
$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "error: '$(PYTHON)' is missing or older than Python 3.10; say which to use: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "error: $(PYTHON) cannot make environments; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

jdk: $(STAMP)
	@$(BIN)/python -m kelda.doctor --java

warm: jdk ## let Spark start twice as fast from now on (once; 180 MB in ~/.cache/kelda)
	$(BIN)/python -m kelda.spark.warm

demo: jdk ## a continuous query over a small stream, on Spark
	@$(BIN)/kelda demo

# Tests with a JVM share one Spark, and it has both cores for itself.
test: check ## check, then all tests (those that need a JDK are skipped without one)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not spark"
	$(BIN)/python -m pytest -m spark

test-spark: jdk ## the tests of the Spark pipeline only
	$(BIN)/python -m pytest -m spark

crash: jdk ## kill processes under load and compare the answers (about half an hour)
	$(BIN)/python -m tests.crash --rounds 20
	$(BIN)/python -m tests.crash --only inprocess --rounds 50

fuzz: $(STAMP) ## odd bytes by every runner, thousands of them (KELDA_CASES=n for another number)
	KELDA_RANDOM=1 KELDA_CASES=$${KELDA_CASES:-7000} $(BIN)/python -m pytest tests/io/test_bytes.py

elastic: jdk ## workers join and leave under load; writes docs/elastic.svg
	$(BIN)/python -m bench.elastic

check: $(STAMP) ## lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

conformance: $(STAMP) ## the W3C SPARQL tests; writes docs/conformance.md
	$(BIN)/python -m tests.conformance

oracle: $(STAMP) ## thousands of random queries beside Apache Jena, about five minutes (needs a JDK and Maven)
	$(BIN)/python -m tests.oracle

oracle-deps: $(STAMP)
	@$(BIN)/python -m tests.oracle --prepare

brokers: $(STAMP) ## fetch Kafka, for the tests that need a broker (44 MB in ~/.cache/kelda)
	@$(BIN)/python -m tests.brokers.kafka

bench-parse: $(STAMP) ## how fast queries are parsed
	$(BIN)/python -m bench.parse

bench: $(STAMP) ## some of every benchmark in five minutes; writes build/kelda-bench.html
	$(BIN)/kelda bench --quick --json build/kelda-bench.json --html build/kelda-bench.html

bench-full: $(STAMP) ## every benchmark at full size, hours (docs/benchmarks.md)
	$(BIN)/kelda bench --full --json build/kelda-bench-full.json --html build/kelda-bench-full.html

bench-parts: $(STAMP) ## the benchmarks of single parts, about ten minutes
	for name in lsbench many indexes latency memory; do $(BIN)/python -m bench.$$name || exit 1; done

clean: ## remove everything that was made, the environment too
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find kelda tests bench -depth \( -name __pycache__ -o -name '*.nb[ic]' \) -exec rm -rf {} +
