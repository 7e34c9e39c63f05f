SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup system-packages engine demo test test-slow check format bench lock clean

VENV ?= .venv
BIN := $(VENV)/bin
UV := .uv/bin/uv
UV_VERSION := 0.13.9
ROOMS := envs data agents league evaluation balance platform
INSTALLED := $(VENV)/.installed
SYSTEM_PACKAGES := chromium

export RAY_ENABLE_UV_RUN_RUNTIME_ENV := 0
export RAY_USAGE_STATS_ENABLED ?= 0
export MLFLOW_DISABLE_TELEMETRY ?= true
export DO_NOT_TRACK ?= 1

help: ## Show what can be made.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

$(UV):
	@command -v python3 >/dev/null || { echo "python3 is missing: apt-get install python3 python3-venv make git" >&2; exit 2; }
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { echo "python3 cannot make virtual environments: apt-get install python3-venv" >&2; exit 2; }
	@command -v git >/dev/null || { echo "git is missing: apt-get install git" >&2; exit 2; }
	python3 -m venv .uv
	.uv/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# A fitting interpreter: on PATH, then under pyenv, else one that uv fetches.
define FIND_PYTHON
for candidate in python3.13 python3.12 python3 $$(ls -d $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.1[32].*/bin/python 2>/dev/null | sort -rV); do \
  if path=$$(command -v "$$candidate") && "$$path" -c 'import sys; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
    "$$path" -c 'import sys; print(sys.executable)'; exit 0; fi; done; echo 3.13
endef

$(INSTALLED): requirements.lock pyproject.toml | $(UV)
	python=$$($(FIND_PYTHON)); echo "Python: $$python"; \
	[ -x $(BIN)/python ] || $(UV) venv --quiet --python "$$python" $(VENV)
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

setup: $(INSTALLED) system-packages engine ## Make .venv with everything that requirements.lock names.

system-packages: ## Install the Debian packages that some tests use, or say which.
	@missing=""; for package in $(SYSTEM_PACKAGES); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; done; \
	[ -z "$$missing" ] && exit 0; \
	if ! command -v apt-get >/dev/null; then echo "Not installed (no apt-get here):$$missing; the tests that need them will say so."; exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then run=""; elif sudo -n true 2>/dev/null; then run="sudo"; else \
	  echo "To run every test: sudo apt-get install --no-install-recommends$$missing"; exit 0; fi; \
	$$run apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$run apt-get install -y -qq --no-install-recommends $$missing >/dev/null \
	  || echo "Could not install:$$missing; the tests that need them will say so."

engine: $(INSTALLED) ## Find the Godot engine, or put Debian's under the user's cache.
	@$(BIN)/lanista godot install || echo "No Godot engine here: Godot games and their tests will say so; all else works."

demo: $(INSTALLED) ## Run the main job on a small corpus: record, train, judge, report.
	$(BIN)/lanista demo

test: setup ## Run the tests (under 15 minutes on 2 cores).
	$(BIN)/python -m pytest -m "not slow"

test-slow: setup ## Run the long tests: kills, long plays, the 20-world expert.
	$(BIN)/python -m pytest -m slow --timeout 2400

check: $(INSTALLED) ## Lint, formatting, types, import direction, compose schema.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if [ -f docker-compose.yml ]; then $(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml; fi

format: $(INSTALLED) ## Format the code and apply safe fixes.
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(INSTALLED) ## Print the speed and memory ratios of docs/benchmarks.md.
	$(BIN)/python -m benchmarks

lock: $(UV) ## Resolve requirements.lock anew from pyproject.toml.
	$(UV) pip compile pyproject.toml --all-extras --universal --generate-hashes --python-version 3.12 \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" --upgrade -o requirements.lock

clean: ## Remove environments and caches; datasets/ and runs/ stay.
	rm -rf .venv .uv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find $(ROOMS) tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
