#!/bin/sh
# What is checked without running anything of the farm: lint, types.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/ruff check --quiet .
.venv/bin/ruff format --check --quiet .
.venv/bin/mypy
