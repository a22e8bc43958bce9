#!/bin/sh
# Bring this machine to the point where the farm runs: system packages, virtual environment, native agent.
#
#   scripts/setup.sh             what the farm needs
#   scripts/setup.sh --tests     and what its tests need
#   scripts/setup.sh --packages  only the system packages
#
# Every step looks first whether there is something to do: run again, it takes less than a second.
set -eu
cd "$(dirname "$0")/.."
. scripts/system_packages.sh
. scripts/python_environment.sh

say() { printf 'setup: %s\n' "$*"; }
stop() { printf 'setup: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in
  "") kinds="run" ;;
  --tests) kinds="run test try" ;;
  --packages) kinds="run" ;;
  *) stop "unknown argument '$1'; give --tests, --packages or nothing" ;;
esac

install_system_packages $kinds
[ "${1:-}" != --packages ] || exit 0
make_python_environment
ls device_agent/build/*/pocketfarm-agent >/dev/null 2>&1 || say "building the native agent: a minute or two"
.venv/bin/python -m device_agent.build >/dev/null
.venv/bin/python -m compileall -q farm orchestrator workers kernels dashboards device_agent virtual_phones tests
say "ready: .venv/bin/farm; after '. .venv/bin/activate' it is farm"
