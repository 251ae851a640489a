#!/usr/bin/env bash
# Writes what a release consists of into a folder. `make dist` calls it as hack/dist.sh DIR. The same commit gives the same
# bytes but for signatures, which `make verify-dist` checks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

out=${1:?usage: hack/dist.sh DIR}
: "${VERSION:?run make dist}" "${COMMIT:?}" "${TREE_STATE:?}" "${BUILD_DATE:?}" "${LDFLAGS:?}"
: "${RELEASE_URL:?}" "${SOURCE_URL:?}" "${BUILDER_URI:?}"
architectures=(${ARCHITECTURES:-amd64 arm64})

# Another compiler gives other bytes. The go command takes the pinned one by itself unless GOTOOLCHAIN forbids it.
pinned=$(sed -n 's/^toolchain //p' go.mod)
if [ "$(go env GOVERSION)" != "$pinned" ]; then
  echo "hack/dist.sh: Go is $(go env GOVERSION), and go.mod pins $pinned: set GOTOOLCHAIN=$pinned" >&2
  exit 1
fi

if [ -n "${COSIGN_KEY:-}" ] && [ ! -r "$COSIGN_KEY" ]; then
  echo "hack/dist.sh: COSIGN_KEY is $COSIGN_KEY, which cannot be read" >&2
  exit 1
fi

if [ "$TREE_STATE" != clean ]; then
  echo "hack/dist.sh: the working tree has changes that are not committed, so what is built is not that of commit $COMMIT" >&2
fi

rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for architecture in "${architectures[@]}"; do
  for command in scheduler extender node-agent berth; do
    name=berth-$command
    if [ "$command" = berth ]; then name=berth; fi
    echo "building $name for linux/$architecture"
    GOOS=linux GOARCH=$architecture go build -trimpath -ldflags "$LDFLAGS" -o "$work/bin/$architecture/$name" "./cmd/$command"
  done
done

for tool in ociarchive sbom licenses; do go build -C "hack/tools/$tool" -o "$work/tools/$tool" .; done
for command in scheduler extender node-agent berth; do
  name=berth-$command
  if [ "$command" = berth ]; then name=berth; fi
  mkdir -p "$work/texts/$name"
  cp LICENSE "$work/texts/$name/"
  "$work/tools/licenses" --texts "./cmd/$command" >"$work/texts/$name/THIRD_PARTY_LICENSES"
done

# archive FILE FOLDER NAME...: the same files give the same bytes.
archive() {
  local file=$1 folder=$2
  shift 2
  tar --sort=name --format=ustar --mtime="$BUILD_DATE" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    -cf - -C "$folder" "$@" | gzip -n9 >"$file"
}

for architecture in "${architectures[@]}"; do
  for binary in "$work/bin/$architecture"/*; do
    name=${binary##*/}
    release=$name-$VERSION-linux-$architecture
    cp "$work/texts/$name"/* "$work/bin/$architecture/"
    archive "$out/$release.tar.gz" "$work/bin/$architecture" "$name" LICENSE THIRD_PARTY_LICENSES
    rm "$work/bin/$architecture"/{LICENSE,THIRD_PARTY_LICENSES}
    "$work/tools/sbom" --name "$release" --version "$VERSION" --created "$BUILD_DATE" \
      --licenses docs/internals/licenses.md --out "$out/$release.cdx.json" "$binary"
  done
done

# pack NAME DESCRIPTION [flags of ociarchive]: prints the name and the digest.
pack() {
  local name=$1 description=$2 binaries=()
  shift 2
  for architecture in "${architectures[@]}"; do binaries+=("$architecture=$work/bin/$architecture/$name"); done
  "$work/tools/ociarchive" --name "$name" --description "$description" --version "$VERSION" --revision "$COMMIT" \
    --created "$BUILD_DATE" --license "$work/texts/$name/LICENSE" --license "$work/texts/$name/THIRD_PARTY_LICENSES" \
    --out "$out/$name.oci.tar" "$@" "${binaries[@]}" | tee -a "$work/images"
}
pack berth-scheduler "kube-scheduler with plugins for GPUs, gangs and costs" --user 65532:65532
pack berth-extender "GPUAware and CostOptimized behind the HTTP extender protocol of kube-scheduler" \
  --user 65532:65532
pack berth "the operator's tool; in a cluster it serves the dashboard" --user 65532:65532
# The base, which has glibc, is pulled from its registry for each architecture. A tag may move: name a digest for an image that can
# be built again. Without access to the registry of the usual base, the rest is still worth having.
base=${GLIBC_IMAGE:-docker.io/library/debian:bookworm-slim}
if ! pack berth-node-agent "publishes which GPUs of a node are in use, and how they are linked" --base "$base"; then
  if [ -n "${GLIBC_IMAGE:-}" ]; then exit 1; fi
  echo "no image of the node agent: name a base with glibc that can be pulled, for example" \
    "GLIBC_IMAGE=debian:bookworm-slim@sha256:..." >&2
fi

# With a registry, chart and install.yaml name the images there, the latter by their digest, which no tag can move.
image=berth-scheduler:$VERSION
mkdir "$work/chart"
cp -r charts/berth "$work/chart/berth"
if [ -n "${REGISTRY:-}" ]; then
  image=$REGISTRY/berth-scheduler@$(sed -n 's/^berth-scheduler:[^ ]* //p' "$work/images")
  sed -i "s,^\( *repository: \)berth,\1$REGISTRY/berth," "$work/chart/berth/values.yaml"
fi
cp LICENSE "$work/chart/berth/"
rm "$work/chart/berth"/{icon.svg,.helmignore}
archive "$out/berth-$VERSION.tgz" "$work/chart" berth
"$work/tools/ociarchive" --chart "$out/berth-$VERSION.tgz" --out "$out/berth-chart.oci.tar"
go run ./hack/install --image "$image" >"$out/install.yaml"

# The script and the manifest that install the command, with the checksums of its archives.
fill() { sed -e "s,@URL@,$RELEASE_URL,g" -e "s,@VERSION@,$VERSION,g" "$1"; }
fill hack/release/krew.yaml >"$out/berth.krew.yaml"
for architecture in "${architectures[@]}"; do
  file=berth-$VERSION-linux-$architecture.tar.gz
  sum=$(sha256sum "$out/$file")
  sum=${sum%% *}
  echo "$architecture) sum=$sum ;;" >>"$work/sums"
  cat >>"$out/berth.krew.yaml" <<END
    - selector: {matchLabels: {os: linux, arch: $architecture}}
      uri: $RELEASE_URL/$file
      sha256: $sum
      bin: berth
END
done
fill hack/release/install.sh | sed -e "/^@SUMS@\$/{r $work/sums" -e 'd;}' >"$out/install.sh"
chmod +x "$out/install.sh"

(cd "$out" && sha256sum -- * >SHA256SUMS)
if [ -n "${COSIGN_KEY:-}" ]; then
  go build -C hack/tools/sign -o "$work/tools/sign" .
  "$work/tools/sign" --key "$COSIGN_KEY" --source "$SOURCE_URL" --commit "$COMMIT" --version "$VERSION" \
    --builder "$BUILDER_URI" "$out/SHA256SUMS"
else
  echo "no signature and no provenance: COSIGN_KEY names no key" >&2
fi
echo "wrote $out"
