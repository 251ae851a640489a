#!/usr/bin/env bash
# Writes what a release consists of into a folder: binaries, OCI archives, a bill of materials for each binary, and
# checksums. `make dist` calls it as hack/dist.sh DIR. The same commit gives the same bytes, which `make verify-dist` checks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=${1:?usage: hack/dist.sh DIR}
: "${VERSION:?run make dist}" "${COMMIT:?}" "${TREE_STATE:?}" "${BUILD_DATE:?}" "${LDFLAGS:?}"
architectures=(${ARCHITECTURES:-amd64 arm64})

# Another compiler gives other bytes. The go command takes the pinned one by itself unless GOTOOLCHAIN forbids it.
pinned=$(sed -n 's/^toolchain //p' go.mod)
if [ "$(go env GOVERSION)" != "$pinned" ]; then
  echo "hack/dist.sh: Go is $(go env GOVERSION), and go.mod pins $pinned: set GOTOOLCHAIN=$pinned" >&2
  exit 1
fi

if [ "$TREE_STATE" != clean ]; then
  echo "hack/dist.sh: the working tree has changes that are not committed, so what is built is not that of commit $COMMIT" >&2
fi

rm -rf "$out"
mkdir -p "$out"
for architecture in "${architectures[@]}"; do
  for command in scheduler extender node-agent berth; do
    name=berth-$command
    if [ "$command" = berth ]; then name=berth; fi
    echo "building $name for linux/$architecture"
    GOOS=linux GOARCH=$architecture go build -trimpath -ldflags "$LDFLAGS" -o "$out/$name-linux-$architecture" "./cmd/$command"
  done
done

packer=$(mktemp -d)
trap 'rm -rf "$packer"' EXIT
go build -C hack/tools/ociarchive -o "$packer/ociarchive" .
go build -C hack/tools/sbom -o "$packer/sbom" .

for binary in "$out"/*-linux-*; do
  "$packer/sbom" --name "$(basename "$binary")" --version "$VERSION" --created "$BUILD_DATE" \
    --out "$binary.cdx.json" "$binary"
done

# pack NAME DESCRIPTION [flags of ociarchive]
pack() {
  local name=$1 description=$2 binaries=()
  shift 2
  for architecture in "${architectures[@]}"; do binaries+=("$architecture=$out/$name-linux-$architecture"); done
  "$packer/ociarchive" --name "$name" --description "$description" --version "$VERSION" --revision "$COMMIT" \
    --created "$BUILD_DATE" --out "$out/$name.oci.tar" "$@" "${binaries[@]}"
}
pack berth-scheduler "kube-scheduler with plugins for GPUs, gangs and costs" --user 65532:65532
pack berth-extender "GPUAware and CostOptimized behind the HTTP extender protocol of kube-scheduler" \
  --user 65532:65532
# The base is pulled from its registry. A tag may move: name a digest for an image that can be built again.
if [ -n "${GLIBC_IMAGE:-}" ]; then
  pack berth-node-agent "publishes which GPUs of a node are in use, and how they are linked" --base "$GLIBC_IMAGE"
else
  echo "no image of the node agent: it needs a base with glibc. Name one, for example" \
    "GLIBC_IMAGE=debian:bookworm-slim@sha256:..." >&2
fi

(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "wrote $out"
