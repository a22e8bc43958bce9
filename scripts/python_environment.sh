# Part of setup.sh: .venv with the pinned dependencies and this checkout, editable.
# A stamp holds the hash of all that decides its content: with the same hash there is nothing to do.

python_fits() { "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  for candidate in ${PYTHON:-} python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
    if python_fits "$candidate"; then echo "$candidate"; return; fi
  done
  stop "no Python >= 3.11 with venv on this machine; Debian 12 and Ubuntu 24.04 have one, or give PYTHON=/path/to/python3"
}

environment_hash() {  # the folder counts, because an environment cannot be moved
  { pwd; .venv/bin/python -VV; cat pyproject.toml constraints.txt; } 2>&1 | sha256sum | cut -d' ' -f1
}

make_python_environment() {
  stamp=.venv/setup-stamp
  if [ -x .venv/bin/farm ] && [ "$(cat $stamp 2>/dev/null)" = "$(environment_hash)" ]; then return; fi
  # An environment of an older Python, or one that was moved here, is made again; another content is only updated.
  if ! grep -qsF "$PWD/.venv" .venv/bin/pip || ! python_fits .venv/bin/python; then
    python=$(find_python)
    say "making .venv with $("$python" -V)"
    rm -rf .venv
    "$python" -m venv .venv
  fi
  say "installing the Python packages of constraints.txt"
  log=.venv/pip.log
  if ! .venv/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off \
      -c constraints.txt -e '.[test,dev,notebook]' >$log 2>&1; then
    { grep -E '^(ERROR|Could not fetch| *error)' $log || tail -n 20 $log; } | awk '!seen[$0]++' | cut -c1-300 >&2
    stop "pip could not install the packages; everything that it said is in $log"
  fi
  environment_hash >$stamp
}
