#!/usr/bin/env bash
# Measures how the scheduler's CPU time per pod grows from 500 to 10,000 nodes, stock against berth. All sizes get the same
# pods, so that only the nodes grow. Writes growth.json and growth.svg to a folder, and prints the tables: of each size, and
# of the growth. Usage: hack/bench/growth/run.sh [FOLDER [REPEATS [SIZES]]], such as bin/growth 2 "500 1000 2000 5000 10000".
set -euo pipefail
out=$(realpath -m "${1:-bin/growth}") repeats=${2:-2} sizes=${3:-500 1000 2000 5000 10000}
cd "$(dirname "$0")/../../.."
mkdir -p "$out"
# 500 nodes hold 3,600 pods of one GPU, 50 hold 360.
nodes="" pods=""
for size in $sizes; do
  nodes+="${nodes:+,}$size"
  pods+="${pods:+,}$size=$((size < 500 ? size * 4 : 2000))"
done
go run ./hack/bench/throughput --nodes "$nodes" --pods "$pods" --workloads identical,distinct --contenders stock,berth \
  --repeats "$repeats" --json "$out/growth.json" --plot "$out/growth.svg"
