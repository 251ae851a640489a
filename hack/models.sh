#!/usr/bin/env bash
# Plays random histories of the gang ledger and the GPU inventory against slow and obvious models of them: at least STEPS steps each,
# drawn from SEED. Prints a table of test, steps, seed, seconds and result; a failure is printed below it, with the seed of its history.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=${STEPS:-100000}
seed=${SEED:-$(date +%s)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Package, test and how many steps at the least one check of it takes in the mean, to know how many checks to ask for.
models='
./pkg/gang TestLedgerAgainstModel 250
./pkg/plugins/gpuaware TestInventoryAgainstModel 50
'

status=0
printf '%-28s %10s %12s %8s  %s\n' test steps seed seconds result
while read -r package test least; do
	[[ -n $package ]] || continue
	began=$SECONDS
	result=ok
	go test -count=1 -timeout 0 -v -run "^$test\$" "$package" -rapid.checks=$((steps / least + 1)) -rapid.seed="$seed" >"$log" 2>&1 || result=FAILED
	taken=$(sed -n 's/^ *[a-z_]*\.go:[0-9]*: \([0-9][0-9]*\) steps.*/\1/p' "$log" | awk '{sum += $1} END {print sum + 0}')
	printf '%-28s %10d %12s %8d  %s\n' "$test" "$taken" "$seed" $((SECONDS - began)) "$result"
	if [[ $result != ok ]]; then
		status=1
		tail -n 60 "$log"
	elif ((taken < steps)); then
		status=1
		echo "$test took $taken steps, want at least $steps: lower its number in $0" >&2
	fi
done <<<"$models"
exit $status
