# Part of setup.sh: install the packages of packages.txt that are missing, and nothing else.

packages_of() {  # packages_of KIND... -> names, one a line
  for kind; do awk -v kind="$kind" '$1 == kind { print $2 }' scripts/packages.txt; done
}

is_installed() { dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

# Has a file in the package lists that apt has. Ubuntu's chromium has one too, but it only fetches a snap.
is_available() {
  apt-cache show --no-all-versions "$1" 2>/dev/null | awk '/^Version: .*snap/ { snap = 1 } /^Filename:/ { file = 1 }
    END { exit !(file && !snap) }'
}

missing_of() {
  for package in $(packages_of "$@"); do is_installed "$package" || printf '%s ' "$package"; done
}

# What a person writes before a command for root: nothing as root, and where there is no sudo.
sudo=""
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then sudo="sudo "; fi

as_root() {  # stops with the one line that a person must run where we may not
  if [ "$(id -u)" = 0 ]; then "$@"
  elif sudo -n true 2>/dev/null; then sudo -n "$@"
  else return 77
  fi
}

install_system_packages() {  # install_system_packages KIND...
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg on this machine: bring these yourself (names as in Debian): $(packages_of run | xargs)"
    return
  fi
  wants_try=$(echo "$@" | grep -w try || true)
  needed=$(missing_of $(echo "$@" | sed 's/\<try\>//'))
  wanted=$(missing_of "$@")
  [ -n "$wanted" ] || return 0
  if ! as_root true; then tell_what_is_missing "$wanted"; return; fi
  # What is only tried is not worth fetching the lists in every run.
  [ -z "$needed" ] || as_root apt-get update -qq || say "apt-get update failed; trying with the lists that are here"
  for package in $needed; do
    is_available "$package" || stop "apt does not know $package. On Ubuntu adb, pocl-opencl-icd, prometheus and redis-server
  are in the component 'universe': ${sudo}add-apt-repository -y universe; then the same command again"
  done
  [ -z "$needed" ] || apt_install $needed || stop "apt-get could not install them; its message is above"
  [ -z "$wants_try" ] || for package in $(missing_of try); do try_package "$package"; done
  tell_about_services $needed
}

try_package() {
  if ! is_available "$1"; then say "$1 is not in this distribution: its tests are skipped"
  elif ! apt_install "$1"; then say "$1 could not be installed: its tests are skipped"
  fi
}

tell_what_is_missing() {  # where we may not install
  if [ -z "$(missing_of run)" ] && [ "${CI:-}" != true ]; then
    say "tests that need these are skipped; as root: ${sudo}apt-get install -y --no-install-recommends ${1% }"
    return
  fi
  stop "system packages are missing. Run this line as root, then the same command again:
  ${sudo}apt-get update && ${sudo}apt-get install -y --no-install-recommends ${1% }"
}

apt_install() {
  say "installing: $*"
  without_starting_services as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
}

tell_about_services() {
  services=$(printf '%s\n' "$@" | grep -xE 'redis-server|postgresql|prometheus|prometheus-alertmanager' | xargs)
  [ -z "$services" ] || say "no service of these packages was started; to keep them off after a reboot as well:
  ${sudo}systemctl disable $services"
}

# The farm starts a Redis of its own; Debian's packages would start theirs on the standard ports.
without_starting_services() {
  policy=/usr/sbin/policy-rc.d
  if [ -e "$policy" ]; then "$@"; return; fi
  as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
  trap 'as_root rm -f "$policy"' EXIT INT TERM HUP
  "$@" && status=0 || status=$?
  as_root rm -f "$policy"
  trap - EXIT INT TERM HUP
  return $status
}
