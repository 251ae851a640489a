#!/usr/bin/env bash
# Checks what the compiler and the linter do not: that the module file is complete and tidy, that the modules are the
# ones of go.sum, that the generated files are those that the sources generate, and that the binaries are stamped and
# static. An unstamped scheduler would take itself for Kubernetes 0.0.0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${EXPECTED_VERSION:?run make verify}"

failed=0
check() {
  local name=$1
  shift
  local output
  if output=$("$@" 2>&1); then
    echo "ok    $name"
  else
    failed=1
    echo "FAIL  $name: $*"
    sed 's/^/      /' <<<"$output"
  fi
}

check "every module of the build list resolves" go list -m all
check "go.mod and go.sum are tidy" go mod tidy -diff
check "the modules are those of go.sum" go mod verify
check "generated files are up to date" hack/generate.sh --check
check "documents and messages use plain words (hack/phrases.txt)" go test -vet=off ./docs -run UsePlainWords
check "the workflows are right" go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
# The harness itself is only compiled: it takes minutes to run.
check "the modules of upstream's benchmark are tidy" go -C hack/bench/perf mod tidy -diff
check "upstream's benchmark compiles" go test -C hack/bench/perf -vet=off -run '^$' ./...
check "the runner of upstream's benchmark is right" go test -C hack/bench/perf -vet=off .
# Known vulnerabilities in what the binaries call. GOVULNDB names a copy of the database, such as file:///srv/vulndb.
vulnerabilities=${GOVULNDB:-https://vuln.go.dev}
if [[ $vulnerabilities == file:* ]] || curl -fsSo /dev/null --max-time 20 "$vulnerabilities/index/db.json" 2>/dev/null; then
  check "no known vulnerability is called" go tool -modfile=hack/tools/govulncheck/go.mod govulncheck -db="$vulnerabilities" ./cmd/...
else
  echo "skip  no known vulnerability is called: $vulnerabilities cannot be reached"
fi
for name in berth-scheduler berth berth-node-agent berth-extender; do
  check "bin/$name is version $EXPECTED_VERSION" grep -qwF "$EXPECTED_VERSION" <(bin/$name --version)
  check "bin/$name is static" test -z "$(go version -m bin/$name | grep -w CGO_ENABLED=1)"
done

exit "$failed"
