#!/bin/sh
# Prints what has to come with the binary of a command: the licenses and notices of all that is linked into it. They are in the folders
# of the linked packages and in those above. hack/licenses.sh COMMAND
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C GOOS=linux CGO_ENABLED=0 # as they are released

command=${1:?usage: hack/licenses.sh COMMAND}
modules=$(go env GOMODCACHE)
packages=$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Dir}} {{$.Dir}}{{end}}{{end}}' "./cmd/$command")

# show FILE NAME
show() {
  printf '\n%s\n%s\n\n' ---------------------------------------------------------------------------------------------------- "$2"
  cat "$1"
}

cat <<'END'
The program contains Go's standard library and modules, under the licenses below. `go mod download MODULE@VERSION` brings
the source of a module.
END
show "$(go env GOROOT)/LICENSE" "Go's standard library"
echo "$packages" | while read -r module folder; do
  while echo "$folder" && [ "$folder" != "$module" ]; do folder=${folder%/*}; done
done | sort -u | tr '\n' '\0' | xargs -0 sh -c 'find "$@" -maxdepth 1 -type f' find |
  grep -Ei '/((un)?licen[cs]e|copying|copyright|notices?)([-._][^/]*)?$' | grep -vE '\.(go|docs)$' | sort |
  while read -r file; do show "$file" "${file#"$modules/"}"; done
