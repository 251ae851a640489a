#!/usr/bin/env bash
# Builds an image from the Dockerfile: hack/image.sh NAME [flags of the builder]. BUILDER names the builder; without it,
# the first of docker, podman and buildah that works here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=${1:?usage: hack/image.sh NAME [flags of the builder]}
shift

builder=${BUILDER:-}
if [ -z "$builder" ]; then
  # A docker client without its daemon cannot build; the other two need no daemon.
  if docker info >/dev/null 2>&1; then builder=docker
  elif command -v podman >/dev/null; then builder=podman
  elif command -v buildah >/dev/null; then builder=buildah
  else
    echo "hack/image.sh: no way to build an image: start docker, or install podman or buildah" >&2
    exit 1
  fi
fi
case $builder in
docker | podman) command=("$builder" build) ;;
buildah) command=(buildah build) ;;
*)
  echo "hack/image.sh: BUILDER is $builder; must be docker, podman or buildah" >&2
  exit 1
  ;;
esac

flags=(--tag "$name")
for argument in VERSION COMMIT TREE_STATE BUILD_DATE GO_IMAGE GLIBC_IMAGE; do
  if [ -n "${!argument:-}" ]; then flags+=(--build-arg "$argument=${!argument}"); fi
done
echo "building image $name with $builder"
exec "${command[@]}" "${flags[@]}" "$@" .
