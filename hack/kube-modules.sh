#!/usr/bin/env bash
# Sets the Kubernetes of a Go module: hack/kube-modules.sh VERSION [FOLDER], such as hack/kube-modules.sh 1.38.0. The
# module k8s.io/kubernetes names its own parts as v0.0.0 and replaces them by folders, which counts for itself alone: who
# requires it must replace each part by the release of the same version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?usage: hack/kube-modules.sh VERSION [FOLDER]}
if ! [[ $version =~ ^1\.[0-9]+\.[0-9]+$ ]]; then
  echo "hack/kube-modules.sh: version $version; must be that of a release, such as 1.38.0" >&2
  exit 2
fi
cd "${2:-.}"
part=v0.${version#1.}

file=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
mapfile -t parts < <(sed -n 's,^\t\(k8s\.io/[a-z-]*\) v0\.0\.0\( //.*\)\?$,\1,p' "$file" | sort -u)
if [ ${#parts[@]} -lt 20 ]; then
  echo "hack/kube-modules.sh: $file names ${#parts[@]} parts of Kubernetes; its form has changed" >&2
  exit 1
fi

edits=(-require "k8s.io/kubernetes@v$version")
while read -r module; do edits+=(-dropreplace "$module"); done < <(sed -n 's,^replace \(k8s\.io/[a-z-]*\) => .*,\1,p' go.mod)
while read -r module; do edits+=(-droprequire "$module"); done < <(sed -n 's,^\t\(k8s\.io/[a-z-]*\) v0\.[0-9]*\.[0-9]* // indirect$,\1,p' go.mod)
for module in "${parts[@]}"; do
  edits+=(-replace "$module=$module@$part")
  if grep -qE "^	$module v" go.mod; then edits+=(-require "$module@$part"); fi
done
go mod edit "${edits[@]}"
go mod tidy
