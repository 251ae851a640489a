#!/usr/bin/env bash
# Measures the CPU time of the whole dry run of a tree of three levels, 1,000 pods on 5,000 nodes, in virtual time:
# hack/bench/trees/run.sh [runs]
set -euo pipefail
cd "$(dirname "$0")/../../../test/scenarios"
runs=${1:-5}
work=$(mktemp -d)
script=testdata/bench-tree.scenario
trap 'rm -rf "$work" "$script"' EXIT

list() { seq -s , -f "$1%g" 0 199; }
{
  echo "# A zone, in it 125 replicas that are each in one rack, in each two pods of eight GPUs and six of one."
  echo "nodes 5000 n gpu=8 label:topology.kubernetes.io/rack=$(list r) label:topology.kubernetes.io/zone=a,b"
  echo 'group g annotation:berth.dev/topology-required=topology.kubernetes.io/zone annotation:berth.dev/groups=[{"name":"replica","copies":125,"required":"topology.kubernetes.io/rack","groups":[{"name":"prefill","pods":2},{"name":"decode","pods":6}]}]'
  for i in $(seq 0 124); do
    echo "pods g 2 set=prefill gpu=8 label:berth.dev/group=replica-$i.prefill"
    echo "pods g 6 set=decode gpu=1 label:berth.dev/group=replica-$i.decode"
  done
  echo "expect prefill bound=250 within=60s"
  echo "expect decode bound=750 within=60s"
} > "$script"
go test -c -vet=off -o "$work/scenarios" .
for _ in $(seq "$runs"); do
  "$work/scenarios" -test.run 'TestScenarios/.*/bench-tree' -test.cpuprofile "$work/cpu" > /dev/null
  go tool pprof -top -cum -nodecount=2000 "$work/scenarios" "$work/cpu" 2> /dev/null |
    awk '/Total samples/ {all = $6} /dryrun.*Planner..Plan$/ {plan = $4}
      END {print "dry run " plan ", the whole run with its API " all}'
  rm "$work/cpu"
done
