# Everything runs in a virtual environment of its own, .venv, made from the hashed lock file.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The lock file names every package: nothing is resolved, so that a new release on the index cannot break the set-up.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps
JOBS ?= 2
# Two test workers with two threads each would fight over two cores.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1
# Without the compiled files every process that a test starts compiles the package anew, and every worker all tests.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test bare-check coverage test-all lint docs structure claims report dist bench bench-smoke lock clean

run: $(READY)            ## set up, then: private releases with error bars and a report from a generated hospital network
	$(BIN)/sfumato demo

test: $(READY)           ## set up, then all tests
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not long" --claims-report .claims.json --durations=40

bare-check:              ## both commands in a clone that has Python, make and core utilities alone
	scripts/bare_check.sh

coverage: $(READY)       ## the same tests, and which lines they reach; fails below the share in pyproject.toml
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not long" --cov --cov-report=term

test-all: $(READY)       ## the long versions too
	SFUMATO_LONG=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: $(READY)           ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)           ## build the documentation; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

structure: $(READY)      ## draw docs/explanation/architecture.md from the imports
	$(BIN)/python scripts/structure.py

claims: $(READY)         ## run the claim tests and write docs/claims.md and docs/validation.md
	$(BIN)/python scripts/claims.py

report: $(READY)         ## write the validation report, as pages and as PDF (needs a browser)
	$(BIN)/python -m tests.docs.validation

dist: $(READY)           ## build wheel and sdist into dist, and write the bill of materials
	$(BIN)/python scripts/sbom.py
	$(BIN)/python scripts/distribution.py dist

bench: $(READY)          ## measure; writes benchmarks/results/*.json
	$(BIN)/python -m benchmarks

bench-smoke: $(READY)    ## run each benchmark small and check what it writes, never the speed
	$(BIN)/python -m benchmarks --smoke

lock: $(READY)           ## compile requirements.lock again from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra plots --extra graphs --extra postgres --extra spark --extra files --extra studies --extra learning --extra server --extra docs --extra dev --python-version 3.11 --universal \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o requirements.lock
	$(BIN)/python scripts/split_lock.py requirements.lock

clean:
	rm -rf $(VENV) site sfumato-demo .claims.json .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): requirements.lock requirements-torch-processors.lock requirements-torch-devices.lock pyproject.toml scripts/check_python.sh
	@sh scripts/check_python.sh $(PYTHON)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked packages into $(VENV) (a few minutes the first time) ..."
	@$(INSTALL) -r requirements.lock -r requirements-torch-processors.lock || { \
		echo "No build of torch for processors alone is to be had here: once more, as the index has it (on Linux, gigabytes)."; \
		$(INSTALL) -r requirements.lock -r requirements-torch-devices.lock; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
