# Everything a newcomer needs: `make run` serves, `make test` checks and tests. Nothing needs root.
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c '$(SUPPORTED)' 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_VENV := .venv-bench
PREFECT_VENV := .venv-bench-prefect
MUTANTS_VENV := .venv-mutants
FUZZ_VENV := .venv-fuzz

CAMPAIGNS := campaign-fuzzing campaign-killed campaign-cluster campaign-money campaign-nemesis campaign-releases campaign-orders

# Bytecode of modules and templates, which an installed package has: the first start need not compile them, nor any
# start where Python is told to write none.
COMPILE = $(BIN)/python -m compileall -q -j 0 tolsey && \
	$(BIN)/python -c "from tolsey.http.layout.templates import compile_all; compile_all()"

.PHONY: setup build-name run test test-slow newcomer gate nightly check types rules suite format bench campaign $(CAMPAIGNS) client conformance mutants sandbox messages lock clean

setup: $(STAMP) build-name

$(STAMP): requirements-dev.lock pyproject.toml
	@test -n "$(PYTHON)" || \
		{ echo "tolsey needs Python 3.11, 3.12 or 3.13; set PYTHON=/path/to/one"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	$(COMPILE)
	@touch $@

# The build's name is written down, so that nothing that runs asks git for it.
build-name:
	@git describe --tags --always --dirty > tolsey/build.txt 2>/dev/null || rm -f tolsey/build.txt

run: setup
	$(BIN)/tolsey serve

sandbox: setup
	$(BIN)/tolsey sandbox

# Types take longest, on one core; the rest is done beside them.
check: setup
	@$(MAKE) --no-print-directory -k -j 2 types rules

# Runs every check even if one fails; CI reads TEST_RESULTS and lists those that did (tests/ci/stages.py).
TEST_RESULTS ?= /dev/null
RUN_CHECKS := { status=0; while read -r check; do echo "$(BIN)/$$check"; $(BIN)/$$check </dev/null || \
	{ status=1; echo "{\"red\": {\"$$check\": \"failed\"}}" >> "$(TEST_RESULTS)"; }; done; exit $$status; }
RULES := 'ruff format --check .' 'ruff check .' lint-imports 'deptry tolsey' \
	$(foreach module,ci.quarantine wire.golden unique_names rules plain_calls real_time valid_description writing,'python -m tests.$(module)')

types: setup
	@echo mypy | $(RUN_CHECKS)

rules: setup
	@printf '%s\n' $(RULES) | $(RUN_CHECKS)

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A container sets it; every run would compile all of the tests anew.
unexport PYTHONDONTWRITEBYTECODE

# Four at a time on two cores: each waits for the servers, for leases or for processes now and then.
# One hash seed, so that what an order of a set breaks breaks again.
# In CI a test that fails runs once more, alone (tests/ci/retry.py).
RETRY := $(if $(CI),--retry)
PYTEST := PYTHONHASHSEED=$${PYTHONHASHSEED:-0} $(BIN)/pytest $(RETRY) --forks 4 --ignore=tests/mcp/real

# The checks run beside the tests, and what they find is told at once.
test: setup
	@$(MAKE) --no-print-directory -k -j 3 types rules suite

suite: setup
	$(PYTEST) -m "not slow"

# Browsers, processes of the service that are killed or replaced, and campaigns.
test-slow: setup
	$(PYTEST) -m slow

# Those of the slow tests that every landing passes, with 20 seconds of the campaign of money.
gate: setup
	CAMPAIGN_SECONDS=20 $(PYTEST) -m gate tests/campaigns/money tests/journeys tests/pages

# What CI runs in a newcomer's place: the tests that need no server, and one journey.
newcomer: setup
	$(PYTEST) -m "not slow and not served"
	$(BIN)/pytest $(RETRY) tests/journeys/test_newcomer.py::test_the_sandbox_shows_the_main_job_on_its_own

# Everything else, a share of the campaigns each night; ONLY=name runs one part, NIGHT=n another night's.
nightly: setup
	@NIGHT=$(NIGHT) ONLY=$(ONLY) $(BIN)/python -m tests.ci.nightly

$(FUZZ_VENV)/.installed: tests/campaigns/fuzzing/requirements.lock
	test -x $(FUZZ_VENV)/bin/python || $(PYTHON) -m venv $(FUZZ_VENV)
	$(FUZZ_VENV)/bin/python -m pip install --quiet --no-deps --require-hashes -r tests/campaigns/fuzzing/requirements.lock
	@touch $@

campaign: $(CAMPAIGNS)

campaign-fuzzing: setup $(FUZZ_VENV)/.installed
	FUZZ_CASES=$${FUZZ_CASES:-20000} $(BIN)/pytest tests/campaigns/fuzzing -s

campaign-killed: setup
	CAMPAIGN_SECONDS=$${CAMPAIGN_SECONDS:-60} $(BIN)/pytest tests/campaigns/test_killed_*.py -s --timeout=1200

campaign-cluster: setup
	CAMPAIGN_SECONDS=$${CAMPAIGN_SECONDS:-300} $(BIN)/pytest tests/campaigns/cluster -s --timeout=1200

campaign-money: setup
	CAMPAIGN_SECONDS=$${CAMPAIGN_SECONDS:-60} $(BIN)/pytest tests/campaigns/money -s --timeout=1200

campaign-nemesis: setup
	CAMPAIGN_SECONDS=$${CAMPAIGN_SECONDS:-180} $(BIN)/pytest tests/campaigns/nemesis -s --timeout=1200

campaign-releases: setup
	CAMPAIGN_OPERATIONS=$${CAMPAIGN_OPERATIONS:-100000} $(BIN)/pytest tests/campaigns/releases -s

# Every other campaign, so that none is left out.
campaign-orders: setup
	CAMPAIGN_SECONDS=$${CAMPAIGN_SECONDS:-60} $(BIN)/pytest tests/campaigns -s --timeout=1200 --ignore-glob='*/test_killed_*' \
		$(foreach folder,fuzzing cluster money nemesis releases,--ignore=tests/campaigns/$(folder))

# The clients are tried last, and what they found is printed; `--write` puts it into docs/agents.md.
conformance: setup
	$(BIN)/python -m tests.mcp.conformance.suite
	$(BIN)/python -m tests.mcp.real.clients.catalogue
	$(BIN)/pytest $(RETRY) tests/mcp/real
	cd tests/journeys/description && npm ci --no-audit --no-fund --silent --ignore-scripts
	$(BIN)/pytest $(RETRY) tests/journeys/description
	$(BIN)/python -m tests.mcp.real.clients.table

$(BENCH_VENV)/.installed: bench/requirements.lock requirements-dev.lock
	test -x $(BENCH_VENV)/bin/python || $(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --no-deps --require-hashes -r requirements-dev.lock -r bench/requirements.lock
	$(BENCH_VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(PREFECT_VENV)/.installed: bench/peers/prefect/requirements.lock
	test -x $(PREFECT_VENV)/bin/python || $(PYTHON) -m venv $(PREFECT_VENV)
	$(PREFECT_VENV)/bin/python -m pip install --quiet --no-deps --require-hashes -r bench/peers/prefect/requirements.lock
	@touch $@

bench: $(BENCH_VENV)/.installed $(PREFECT_VENV)/.installed
	for file in start turns sleepers webhooks revenue shards limits ledger payments outbox_calls chat mcp growth history rehash retention scan registry launch launch_graph market signature pages; do $(BENCH_VENV)/bin/python -m bench.$$file || exit 1; done

$(MUTANTS_VENV)/.installed: tests/mutation/requirements.lock requirements-dev.lock
	test -x $(MUTANTS_VENV)/bin/python || $(PYTHON) -m venv $(MUTANTS_VENV)
	$(MUTANTS_VENV)/bin/python -m pip install --quiet --no-deps --require-hashes -r requirements-dev.lock -r tests/mutation/requirements.lock
	$(MUTANTS_VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Breaks the pure rules that `[tool.mutmut]` names, one line at a time, and fails where no test noticed
# and `tests/mutation/survivors.toml` does not say why none needs to.
mutants: $(MUTANTS_VENV)/.installed
	$(MUTANTS_VENV)/bin/mutmut run
	$(MUTANTS_VENV)/bin/python tests/mutation/explained.py

# Puts every sentence into each catalogue: of pages and mails, and of refusals, which pages tell; then compiles them.
messages: setup
	$(BIN)/pybabel --quiet extract --mapping-file pyproject.toml --add-comments "Translators:" \
		$(addprefix --keyword ,marked counted:1,2 problem:3 Refusal NotFound Unauthorized Forbidden Conflict Unprocessable PaymentRequired Unavailable) \
		--project tolsey --no-location --sort-output --output tolsey/http/locale/tolsey.pot tolsey
	for po in tolsey/http/locale/*/LC_MESSAGES/tolsey.po; do \
		$(BIN)/pybabel --quiet update --no-fuzzy-matching --ignore-obsolete --omit-header --width 100 \
			--domain tolsey --locale $$(basename $$(dirname $$(dirname $$po))) \
			--input-file tolsey/http/locale/tolsey.pot --output-file $$po && \
		$(BIN)/pybabel --quiet compile --use-fuzzy --domain tolsey --locale $$(basename $$(dirname $$(dirname $$po))) \
			--input-file $$po --output-file $${po%.po}.mo || exit 1; done

# A Python client of the whole service, made of /openapi.json as it is here; it is kept nowhere.
client: setup
	$(BIN)/python -m tests.client build/client

# Two locks of the same versions: what a server installs, and what is needed to work on it.
lock: setup
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --generate-hashes --no-header --no-emit-index-url \
		--no-emit-find-links --no-annotate --extra dev pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile --universal --generate-hashes --no-header --no-emit-index-url \
		--no-emit-find-links --no-annotate --extra build --extra uvicorn -c requirements-dev.lock pyproject.toml -o requirements.lock
	cd tests/mcp/real/clients/python && for one in mcp1 mcp2; do \
		$(CURDIR)/$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links --no-annotate $$one.in -o $$one.lock || exit 1; done

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(PREFECT_VENV) $(MUTANTS_VENV) $(FUZZ_VENV) mutants .data .mypy_cache .ruff_cache .pytest_cache .conformance .nightly .venv-3.*
