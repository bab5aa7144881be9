# Everything starts from a clone with nothing but Python: each target sets up what it needs, once.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SETUP := pyproject.toml constraints.txt

.PHONY: tour core test lint docs bench clean

MAP := gpt2-xl gpt3-175b llama-3-8b llama-3.1-405b palm-540b qwen2.5-32b gemma-3-27b falcon-40b smollm2-360m pythia-1b

tour: $(VENV)/.tour  ## the main jobs on embedded defaults, in a few minutes
	$(BIN)/python -m deepwide tour

core: $(VENV)/.core  ## plan, audit, count, laws, models with the core alone (CI gives it a VENV of its own)
	$(BIN)/python -m deepwide plan 1.3B
	$(BIN)/python -m deepwide audit gpt3-175b llama-3-8b
	$(BIN)/python -m deepwide count gpt2 --json > /dev/null
	$(BIN)/python -m deepwide laws > /dev/null
	$(BIN)/python -m deepwide models llama > /dev/null

# What a machine does not have is skipped and listed at the end: development data in ../shared, root for a cut network.
test: $(VENV)/.dev  ## every test, Ray's included
	$(BIN)/python -m pytest -n 2 --dist worksteal -r s

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.dev  ## rewrite the pages with what their commands print, and redraw their pictures
	$(BIN)/python -m deepwide audit $(MAP) --plot docs/map.svg > /dev/null
	$(BIN)/python -m deepwide check-scaling --plot docs/scaling.svg > /dev/null
	$(BIN)/python -m deepwide fit results/fit/depth-width-cpu.csv results/fit/depth-width-between.csv --noise depth --plot docs/fit.svg > /dev/null
	$(BIN)/python -m deepwide fit results/fit/depth-width-long.csv --kind ridge --base power --picture map --plot docs/fit_map.svg > /dev/null
	$(BIN)/python -m deepwide fit results/fit/depth-width-long.csv --picture growth --plot docs/fit_growth.svg > /dev/null
	$(BIN)/python -m deepwide sweep design sweeps/depth-width-long.toml results/fit/depth-width-long.csv --target 4.1M --budget 1e14 --plot docs/design.svg > /dev/null
	$(BIN)/python -m deepwide bounds --depth 3 --width 3 --measured results/separation/ranks --plot results/separation/bounds.svg > /dev/null
	$(BIN)/python -m deepwide logic "P(a & (c S< a))" --word bacca --plot docs/logic.svg > /dev/null
	$(BIN)/python -m benchmarks.pages

bench: $(VENV)/.dev  ## what we claim, measured here; some of it with BENCH="planner fuzz"
	$(BIN)/python -m benchmarks $(BENCH)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "deepwide needs Python 3.11 or newer; say which with: make PYTHON=python3.12 …"; exit 2; }
	$(PYTHON) -m venv $(VENV)

# A stamp is written last, so that an interrupted install starts again and a finished one is not repeated.
$(VENV)/.core: $(SETUP) | $(BIN)/python
	@$(PIP) install --editable . --constraint constraints.txt
	@touch $@

$(VENV)/.tour: $(SETUP) | $(BIN)/python
	@echo "Setting up $(VENV) (once; torch takes a minute or two)…"
	@$(PIP) install --editable '.[plot,rank,fit,train]' --constraint constraints.txt
	@touch $@

$(VENV)/.dev: $(SETUP) | $(BIN)/python
	@echo "Setting up $(VENV) for tests (once; torch, transformers and Ray take a few minutes)…"
	@$(PIP) install --editable '.[dev]' --constraint constraints.txt
	@touch $@ $(VENV)/.tour

clean:
	rm -rf $(VENV) .venv-* .pytest_cache .mypy_cache .ruff_cache .hypothesis out
