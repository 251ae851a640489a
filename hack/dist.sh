#!/usr/bin/env bash
# Writes what a release consists of into a folder. `make dist` calls it as hack/dist.sh DIR. The same commit gives the same
# bytes, which `make dist VERIFY=1` checks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

out=${1:?usage: hack/dist.sh DIR}
: "${VERSION:?run make dist}" "${COMMIT:?}" "${TREE_STATE:?}" "${BUILD_DATE:?}" "${LDFLAGS:?}"
: "${RELEASE_URL:?}" "${IMAGE:?}"
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

go build -ldflags '-s -w' -o "$work/tools/kubectl" k8s.io/kubernetes/cmd/kubectl
for command in scheduler extender node-agent berth; do
  name=berth-$command
  if [ "$command" = berth ]; then name=berth; fi
  mkdir -p "$work/texts/$name"
  cp LICENSE "$work/texts/$name/"
  hack/licenses.sh "$command" >"$work/texts/$name/THIRD_PARTY_LICENSES"
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
  done
done

# With a registry, the chart names the images there.
mkdir "$work/chart"
cp -r charts/berth "$work/chart/berth"
if [ -n "${REGISTRY:-}" ]; then
  sed -i "s,^\( *repository: \)berth,\1$REGISTRY/berth," "$work/chart/berth/values.yaml"
fi
cp LICENSE "$work/chart/berth/"
rm "$work/chart/berth"/{icon.svg,.helmignore}
archive "$out/berth-$VERSION.tgz" "$work/chart" berth
{
  echo "# The definitions and the scheduler of Berth, in kube-system: kubectl apply --server-side -f install.yaml"
  "$work/tools/kubectl" kustomize manifests/crd
  echo ---
  "$work/tools/kubectl" kustomize manifests/base | sed "s,image: berth-scheduler:.*,image: $IMAGE,"
} >"$out/install.yaml"

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
echo "wrote $out"
