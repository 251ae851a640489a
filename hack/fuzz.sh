#!/usr/bin/env bash
# Runs each fuzz target for a time, in turn, and prints a table: package, target, executions, new inputs that reach code which none did
# before, and the result. What failed is printed below, with the file of the input. A second argument is a part of the package or of
# the target's name: then only those are run.
set -euo pipefail
cd "$(dirname "$0")/.."

fuzztime=${1:-10s}
wanted=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

targets=$(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' cmd hack pkg test | sed 's,\(.*\)/[^/]*:func ,./\1 ,' | sort)
status=0
printf '%-32s %-24s %12s %6s  %s\n' package target executions new result
while read -r package target; do
  [[ -z $wanted || "$package $target" == *"$wanted"* ]] || continue
  log=$work/log
  result=ok
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package" >"$log" 2>&1 || result=FAILED
  executions=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  new=$(sed -n 's/.*new interesting: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  printf '%-32s %-24s %12s %6s  %s\n' "$package" "$target" "${executions:-0}" "${new:-0}" "$result"
  if [[ $result != ok ]]; then
    status=1
    grep -v '^fuzz: elapsed' "$log" | head -n 40
  fi
done <<<"$targets"
exit $status
