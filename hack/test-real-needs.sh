#!/usr/bin/env bash
# Says what the tests against real control planes, servers and tools need, and which version of each there is. It fails if something is
# missing, with what to install or to build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=0
lacks() {
  missing=1
  printf 'MISSING  %-12s %s\n' "$1" "$2"
}

# program NAME PACKAGE: of the machine, in a package of Debian and Ubuntu.
program() {
  if ! command -v "$1" >/dev/null; then
    lacks "$1" "install the package $2, for example: apt-get install --no-install-recommends $2"
    return
  fi
  printf 'found    %-12s %s\n' "$1" "$("$1" --version 2>/dev/null | sed -n '1{s/ (.*//;p;q}')"
}

# built FILE TARGET: by make, in bin.
built() {
  if [ -x "bin/$1" ]; then
    printf 'found    %-12s bin/%s\n' "${1##*/}" "$1"
  else
    lacks "${1##*/}" "run make $2"
  fi
}

program prometheus prometheus
program promtool prometheus
program chromium chromium
program buildah buildah
program python3 python3
program curl curl
if [ "$(id -u)" -eq 0 ]; then
  printf 'found    %-12s uid 0\n' root
else
  lacks root "run as root: buildah makes containers without user namespaces here"
fi
for name in berth berth-scheduler berth-node-agent berth-extender; do built "$name" build; done
for name in kubectl helm; do built "tools/$name" "bin/tools/$name"; done
exit "$missing"
