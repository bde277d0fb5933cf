# make book · make check · make test · make bench · make clean — each sets up .venv from constraints.txt first, if it has to.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PROFILE ?= quick
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
VENV := .venv
BIN := $(VENV)/bin

EXTRAS_book := companion
EXTRAS_test := companion,test
EXTRAS_bench := companion,test,bench

.PHONY: book check test lint bench clean
.DEFAULT_GOAL := book
# Two goals at once would install into one .venv at the same time.
.NOTPARALLEL:

$(VENV)/.%: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS_$*)]'
	touch $@

.PRECIOUS: $(VENV)/.%

book: $(VENV)/.book
	$(BIN)/elementdp book build --profile $(PROFILE) --jobs $(JOBS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Two test processes with two threads each are slower than two with one.
ifneq ($(JOBS),1)
check test: export OMP_NUM_THREADS ?= 1
endif
# Tests run on every processor; those of one file stay together, since they share what they set up (Spark, a browser).
PYTEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile

# Lint, types and every test that needs no book: before each commit.
check: lint
	$(PYTEST) -m "not book"

# Everything, the whole book in its smallest size included.
test: lint
	$(PYTEST)

bench: $(VENV)/.bench
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf _build $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
