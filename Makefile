# Everything a person needs: `make demo`, `make test`. `make help` lists the rest.
PY := .venv/bin/python
QUICK := tests/unit tests/fuzz $(wildcard tests/test_*.py)
# Many wait for phones, farms and clocks while others compute: two processes more than cores. A file to a process, in
# the order that tests/conftest.py gives: pytest-xdist would put files of few tests last.
SHARED = -n $$(($$(nproc) + 2)) --dist loadfile --no-loadscope-reorder --durations=15
.DEFAULT_GOAL := help

help:        ## List these targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup:       ## System packages, .venv with pinned packages, native agent; does only what is missing.
	@sh scripts/setup.sh

demo: setup  ## Run a first experiment on four virtual phones and this machine; under two minutes once it is set up.
	@.venv/bin/farm demo

nightly-demo: setup  ## Compare two builds on three virtual phones, one of which was made 8 % slower; under 4 minutes.
	@.venv/bin/farm demo --nightly

agent: setup ## Build the agent for phones, with the NDK in ANDROID_NDK, else with Zig; ABI=arm64-v8a for these alone.
	@$(PY) -m device_agent.build --phones '$(ABI)' $(if $(ANDROID_NDK),--ndk '$(ANDROID_NDK)')

test:        ## Set up and run all that CI runs: lint, types, every test, also after one has failed.
	@sh scripts/setup.sh --tests
	@sh scripts/check.sh
	$(PY) -m pytest tests $(SHARED)

check: setup ## Lint, types and the quick unit tests, before every commit.
	@sh scripts/check.sh
	$(PY) -m pytest $(QUICK) -n auto -m "not slow"

chaos: setup ## A farm under every fault, judged by what the phones saw; CHAOS='--seed 7 --jobs 10000 --phones 20'.
	$(PY) -m tests.chaos $(CHAOS)

fuzz: setup  ## Random inputs at every boundary and the agent's plan reader (needs clang++), random graphs, MINUTES=10 each.
	$(PY) -m tests.fuzz $(or $(MINUTES),10)
	$(PY) -m tests.contract.kernels.typed_fuzz --minutes $(or $(MINUTES),10)

bench:       ## Our engine beside ncnn, onnxruntime, LiteRT, tinygrad and PyTorch; BENCH='--networks lenet'.
	@sh scripts/bench.sh $(BENCH)

lint:        ## Mend what ruff can mend, and format.
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

pictures:    ## Draw the pictures of the documentation again, from real runs; needs chromium.
	$(PY) scripts/pictures.py

dashboards:  ## Write the JSON of Grafana's dashboards again, from dashboards/boards.
	$(PY) -m dashboards.boards

schemas:     ## Write the JSON Schemas of events, plans, experiments and suites again.
	$(PY) -m orchestrator.spec.json_schemas
	$(PY) -m orchestrator.nightly.suite_schema

clean:       ## Remove everything that make has made; leaves .farm (ledger and results) alone.
	rm -rf .venv build dist *.egg-info device_agent/build* .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup demo nightly-demo agent test check chaos fuzz bench lint pictures dashboards schemas clean
