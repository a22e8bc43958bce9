#!/bin/sh
# The engine's benchmark in a virtual environment of its own, with the peers of benchmarks/requirements.txt.
#
#   scripts/bench.sh [OPTIONS OF python -m benchmarks.engine]
set -eu
cd "$(dirname "$0")/.."
venv=build/bench-venv
wanted=$(cat constraints.txt benchmarks/requirements.txt | cksum)
if [ "$(cat $venv/made-for 2>/dev/null)" != "$wanted" ]; then
  printf 'bench: installing the peers into %s\n' $venv
  python3 -m venv $venv
  $venv/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/requirements.txt \
    numpy onnx pydantic pyopencl
  printf '%s\n' "$wanted" >$venv/made-for
fi
exec $venv/bin/python -m benchmarks.engine "$@"
