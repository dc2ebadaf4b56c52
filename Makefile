# Every target sets up .venv first, from constraints.txt; no other step is needed on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := results/demo
TAG = v$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
EXTRAS := rna,botorch,joblib,slurm,data,sklearn,excel
TESTS_OF_EXTRAS := tests/tasks/test_rna.py tests/baselines/test_qlogei.py tests/test_conformance.py -k "rna or qlogei or bo_qei"
PUBLISHED := regret signs peak known_graph chains chains_small chains_large training controls confidence supplement mixture later_code_map \
	forms noise rows discovery binding landscapes cross rules surface trust coverage early_stopping parity superconductor factors regimes

.PHONY: docs help setup demo test numerics quick coverage lint smoke slurm extras dist figures tables paper bench clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: $(VENV)/installed ## create .venv and install everything with exact versions

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "ddobench needs Python 3.11 to 3.13, got $$($(PYTHON) --version); run: make PYTHON=python3.12 ..."; exit 1; }
	@for name in tasks baselines conf; do test -e ddobench/$$name || ln -s ../$$name ddobench/$$name; done # a source distribution has no links
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@

# Tiny runs gain nothing from threads, and crawl if other work holds the cores.
demo smoke: export OMP_NUM_THREADS := 1
demo smoke: export OPENBLAS_NUM_THREADS := 1

demo: setup ## a small sweep of every task and some methods, and its report
	$(BIN)/python -m ddobench -m experiment=regret seed=0-9 results_dir=$(DEMO)/runs
	$(BIN)/python -m ddobench -m experiment=smoke method=naive,random,linear,ga,fgm,additive,units seed=0-2 results_dir=$(DEMO)/runs
	$(BIN)/python -m ddobench.report results_dir=$(DEMO)/runs report_dir=$(DEMO)/report

test: setup ## the whole suite
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

quick: setup ## the tests that are not marked slow, within a minute on two idle cores
	@echo "make quick: the tests that are not marked slow; make test runs them all"
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow"

SOME := not test_conformance or chain

# One after the other, what a CPU with fewer instructions would compute, and what two threads do.
numerics: setup ## the promises to the bit again, under other instruction sets and with two threads
	ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 $(BIN)/python -m pytest -q -n 2 -m bits -k "$(SOME)"
	OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 $(BIN)/python -m pytest -q -m bits -k "$(SOME)"

# OmegaConf takes the tracer for a debugger and changes its error messages, unless OC_CAUSE is 0.
coverage: export OC_CAUSE := 0
coverage: setup ## the whole suite with its coverage, which must reach the floor in pyproject.toml
	$(BIN)/python -m pytest -q -n 2 --cov=ddobench --cov-report=term

lint: setup ## ruff, mypy and the contracts about imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

SMOKE := $(BIN)/python -m ddobench -m experiment=smoke results_dir=results/smoke/runs
SMOKE_REPORT := $(BIN)/python -m ddobench.report results_dir=results/smoke/runs report_dir=results/smoke/report
HALVES := 'method=glob("[a-k]*")' 'method=glob("[l-z]*")'

# On two cores: half of the methods on each, then the sweep once more beside the report.
smoke: setup ## every method on every task, twice: the second time there must be nothing to do
	rm -rf results/smoke
	for half in $(HALVES); do $(SMOKE) "$$half" & jobs="$$jobs $$!"; done; \
	  for job in $$jobs; do wait $$job || failed=1; done; test -z "$$failed"
	$(SMOKE) | grep "nothing to run" & again=$$!; $(SMOKE_REPORT) 'formats=[svg]'; status=$$?; \
	  wait $$again && exit $$status

# A private cluster below a temporary folder, ended by its pid files; nothing of the system is changed.
slurm: setup ## sweeps on a real SLURM, from Debian's packages slurm-wlm and munge, which root can install
	@if ! command -v slurmctld slurmd munged >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null; fi; \
	  if [ "$$(id -u)" = 0 ] && command -v slurmctld slurmd munged >/dev/null; then \
	    DDOBENCH_SLURM=1 $(BIN)/python -m pytest -q tests/cli/test_slurm.py; \
	  else echo "make slurm: skipped, as it needs root and the packages slurm-wlm and munge (apt-get install)"; fi

# Ray's launcher needs an older cloudpickle than the others: an environment of its own.
extras: setup ## install every extra and run the tests that skip without them
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	$(BIN)/python -m pytest -q -rs -n 2 --dist worksteal $(TESTS_OF_EXTRAS)
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/pip install --quiet --constraint constraints-ray.txt --editable '.[ray]' pytest hypothesis
	.venv-ray/bin/python -m pytest -q -rs tests/cli/test_launchers.py

# An index shows neither pictures nor links that are relative, so with REPOSITORY=https://HOST/OWNER/NAME they become absolute.
dist: setup ## the wheel and the source distribution of the last commit, in dist/
	rm -rf build/release dist && mkdir -p build/release
	git archive HEAD | tar -x -C build/release --exclude 'results/*'
	@test -z "$(REPOSITORY)" || sed -Ei -e 's~(!\[[^]]*\]\()([^):]+\))~\1$(REPOSITORY)/raw/$(TAG)/\2~g' \
	  -e 's~\]\(([^):#]+(#[^)]*)?\))~]($(REPOSITORY)/blob/$(TAG)/\1~g' build/release/README.md
	@test -z "$(REPOSITORY)" || sed -Ei 's~^\[project.urls\].*~&\nSource = "$(REPOSITORY)"~' build/release/pyproject.toml
	$(BIN)/python -m build --outdir dist build/release
	$(BIN)/pip install --quiet twine && $(BIN)/twine check --strict dist/*

RECORDS ?= results/paper/records
REPORT ?= results/paper

figures: setup ## every published table and figure again, from the published records: nothing is run
	$(BIN)/python -m ddobench.report results_dir=$(RECORDS) report_dir=$(REPORT) 'formats=[svg]'
	$(MAKE) tables

tables: setup ## the published scores of the package, every generated table of ARCHITECTURE.md and README.md, and the pins
	$(BIN)/python -m ddobench.store.published $(RECORDS)
	$(BIN)/python -m ddobench.parts
	$(BIN)/python -m ddobench.report.readme_tables
	$(BIN)/python -m ddobench.cards
	$(BIN)/python -m tests.runner.test_pins

paper: setup ## the published sweeps (resumable), their records and figures; says first what they cost
	@echo "what the published runs cost, by the command that made them:"
	@cat $(REPORT)/tables/command_costs.md || echo "not known yet; plan=true says what an experiment will cost"
	for name in $(PUBLISHED); do $(BIN)/python -m ddobench -m experiment=$$name || exit 1; done
	$(BIN)/python -m ddobench -m suite=ddobench-1 'method=glob(*)'
	$(BIN)/python -m ddobench.compact results/runs --publish $(RECORDS)
	$(BIN)/python -m ddobench.cli.plan $(RECORDS)
	$(MAKE) figures

docs: setup ## the documentation as a site, in site/
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: setup ## every benchmark (some minutes); each prints its numbers beside its limits
	@status=0; for file in benchmarks/*.py; do \
	  echo "== $$file"; $(BIN)/python $$file || { echo "$$file: missed"; status=1; }; \
	done; exit $$status

clean: ## remove the virtual environment and what the demo made
	rm -rf $(VENV) $(DEMO) results/smoke
