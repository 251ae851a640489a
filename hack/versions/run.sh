#!/usr/bin/env bash
# Tries the scheduler against the API servers of older Kubernetes minors: hack/versions/run.sh [MINOR…], all of this folder
# without one. Builds each kube-apiserver (five minutes on two cores), runs the demonstration on it, then tests of gangs,
# shares, claims and prices. Prints a line for each; the logs are in bin/versions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

out=$PWD/bin/versions
mkdir -p "$out"
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
make build

# The sandbox tests that say whether what users rely on works: gangs of every form, shares, HAMi, claims, prices.
tests=(
  "./test/scenarios TestScenarios/(shipped|owners|elastic|roles|claims|gpu|policy|cost|topology|preempt-exactly|kill-fifty|started|seat-of)"
  "./test/integration/plugins TestShipped/(policies|hami)|TestShippedWithKubelets|TestHandOvers"
  "./test/release TestOnA(Bare|Guarded)ControlPlane"
)

# What needs fields or kinds that these API servers leave out by default: claims for pods that ask for a resource by name, of
# resource.k8s.io; and MutatingAdmissionPolicy, also in the chart.
claims="TestScenarios/(claims-extended-resource|gpu-claims-are-packed)"
policies="TestOnAGuarded|TestOnABareControlPlane/the_chart"
declare -A lacks=([1.34]="$claims|$policies" [1.35]="$claims|$policies")

failed=0
try() {
  local what=$1 log=$2
  shift 2
  if "$@" >"$log" 2>&1; then
    echo "  ok    $what"
  else
    failed=1
    echo "  FAIL  $what: $log"
  fi
}

minors=("$@")
if [ ${#minors[@]} -eq 0 ]; then minors=($(cd hack/versions && ls -d 1.*)); fi
for minor in "${minors[@]}"; do
  version=$(sed -n 's,^\(require \|\t\)k8s.io/kubernetes \(v[0-9.]*\).*,\2,p' "hack/versions/$minor/go.mod")
  server=$out/kube-apiserver-$minor
  stamp="-s -w -X k8s.io/component-base/version.gitVersion=$version"
  stamp+=" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor#1.}"
  echo "kube-apiserver $version"
  (cd "hack/versions/$minor" && go build -o "$server" -ldflags "$stamp" k8s.io/kubernetes/cmd/kube-apiserver)
  try "demo" "$out/$minor-demo.log" bin/berth demo --kube-apiserver "$server"
  for test in "${tests[@]}"; do
    read -r package pattern <<<"$test"
    world=()
    if [ "$package" = ./test/scenarios ]; then world=(-world=real); fi
    try "$package" "$out/$minor-$(basename "$package").log" \
      env BERTH_KUBE_APISERVER="$server" go test -count=1 -timeout 20m -run "$pattern" -skip "${lacks[$minor]:-^$}" "$package" "${world[@]}"
  done
done
exit "$failed"
