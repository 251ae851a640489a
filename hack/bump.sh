#!/usr/bin/env bash
# Builds against another version of Kubernetes: hack/bump.sh VERSION, such as hack/bump.sh 1.38.0. Changes the module
# files, the version where text names it and what is generated; then builds, and says what a person has to look at.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

new=${1:?usage: hack/bump.sh VERSION}
old=$(sed -n 's,^\tk8s.io/kubernetes v\([0-9.]*\)$,\1,p' go.mod)
minor() { echo "${1%.*}"; }

hack/kube-modules.sh "$new"
hack/kube-modules.sh "$new" hack/bench/perf
sed -i "s/${old//./\\.}/$new/g" README.md CHANGELOG.md pkg/lab/simulation/memapi/discovery.go docs/install.md
if [ "$(minor "$old")" != "$(minor "$new")" ]; then
  sed -i "s/Minor: \"${old:2:2}\"/Minor: \"${new:2:2}\"/" pkg/lab/simulation/memapi/discovery.go
fi
hack/generate.sh
go build ./...
git --no-pager diff --stat

echo
echo "Built against Kubernetes $new. What is left for a person:"
echo "  1. make test, make lint and make verify"
if [ "$(minor "$old")" != "$(minor "$new")" ]; then
  echo "  2. the release notes of $(minor "$new"): scheduler, resource.k8s.io and scheduling.k8s.io, and feature gates;"
  echo "     manifests/base and manifests/static-pod switch some gates off, with the reason beside them"
  echo "  3. text about $(minor "$old"): git grep -n '$(minor "$old" | sed 's/\./\\./')' -- ':!*.sum' ':!*.mod'"
  echo "  4. hack/versions: a folder for $(minor "$old"), none for the oldest; then hack/versions/run.sh, and the versions in docs/install.md"
  echo "  5. hack/bench: the figures of docs/internals/throughput.md again; a slower cycle is a reason to wait with the release"
fi
