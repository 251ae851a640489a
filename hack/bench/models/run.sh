#!/usr/bin/env bash
# Replays gangs on three GPU models, with and without berth.dev/mixed-gpu-models: allow, for several seeds and loads, and prints a
# line each. Usage: hack/bench/models/run.sh [LOADS [SEEDS]], such as "0.9 1.2" and "1 2 3 4 5".
set -euo pipefail
cd "$(dirname "$0")/../../.."
loads=${1:-0.9 1.2} seeds=${2:-1 2 3 4 5}
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
printf 'load\tseed\tmixed\tallocated %%\tgang wait mean s\tgang wait p95 s\tpod wait mean s\tbill $\tlast end s\tscheduler CPU\tprocess CPU s\n'
for load in $loads; do
  for seed in $seeds; do
    for mixed in false true; do
      awk -v seed="$seed" -v jobs=250 -v load="$load" -v mixed="$mixed" -f hack/bench/models/jobs.awk >"$dir/jobs.csv"
      TIMEFORMAT=%U+%S
      { time bin/berth replay --nodes hack/bench/models/nodes.csv --jobs "$dir/jobs.csv" -o json >"$dir/result.json" 2>/dev/null; } 2>"$dir/time"
      cpu=$(bin/berth replay --nodes hack/bench/models/nodes.csv --jobs "$dir/jobs.csv" 2>/dev/null | sed -n 's/^ Scheduler CPU  *\([0-9].*\)$/\1/p')
      jq -r --arg load "$load" --arg seed "$seed" --arg mixed "$mixed" --arg cpu "$cpu" --arg process "$(bc <"$dir/time")" \
        '[$load, $seed, $mixed, .allocatedPercent, .gangWaitSeconds.mean, .gangWaitSeconds.p95, .podWaitSeconds.mean,
          .microDollars / 1e6, .virtualSeconds, $cpu, $process] | @tsv' "$dir/result.json"
    done
  done
done
