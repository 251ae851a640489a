#!/usr/bin/env bash
# Shows that histories find faults: puts a defect into the scheduler, lives through the kept histories and then through random ones until
# one shows it, and goes on with the next defect. The defects are the patches in hack/histories/mutants, the kept histories the files in
# hack/histories/testdata.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<END
Usage: hack/histories/mutants.sh [--seeds FIRST-LAST] [--minutes N] [MUTANT...]

Tries the code of HEAD as it is, then with each of the named mutants of hack/histories/mutants, by default all.
  --seeds    the histories to live through (default 1-200)
  --minutes  how long to look for one mutant (default 10)
The column "kept" counts the kept histories that show a fault, the others are about the random ones.
Exit status 1 if no history shows a mutant or one shows a fault in the code as it is, or if a patch does not apply or build.
END
}

seeds=1-200 minutes=10 names=()
while [ $# -gt 0 ]; do
  case $1 in
    --seeds | --minutes)
      [ $# -gt 1 ] || { usage >&2; exit 2; }
      declare "${1#--}=$2"
      shift 2
      ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) names+=("$1"); shift ;;
  esac
done
patches=$PWD/hack/histories/mutants
if [ ${#names[@]} -eq 0 ]; then
  for patch in "$patches"/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi

# Always the same folder, as what Go has compiled in another one is compiled again.
work=$PWD/.berth/mutants
mkdir -p "$work"
exec 9>"$work/lock"
flock --nonblock 9 || { echo "mutants.sh: another one is at work in $work" >&2; exit 1; }
trap 'git worktree remove --force "$work/tree" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
git worktree remove --force "$work/tree" 2>/dev/null || true # left by one that was killed
git worktree add --quiet --detach "$work/tree" HEAD
cd "$work/tree"
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false

failed=0
row() { printf '%-36s %4s %-8s %-52s %9s %6s\n' "$@"; }
row mutant kept seed fault histories time
for name in none "${names[@]}"; do
  git checkout --quiet .
  if [ "$name" != none ] && ! git apply "$patches/$name.patch" 2>"$work/log"; then
    failed=1
    row "$name" - - "the patch does not apply" 0 -
    cat "$work/log" >&2
    continue
  fi
  if ! go build -ldflags '-s -w' -o "$work/histories" ./hack/histories 2>"$work/log"; then
    failed=1
    row "$name" - - "does not build" 0 -
    cat "$work/log" >&2
    continue
  fi
  kept=0
  for file in hack/histories/testdata/*.yaml; do
    "$work/histories" --child --file "$file" >"$work/out" 2>"$work/log" || kept=$((kept + 1))
  done
  began=$SECONDS
  timeout "${minutes}m" "$work/histories" --seeds "$seeds" --until-fault >"$work/out" 2>"$work/log" || true
  # Two processes look at a time, so the fault that is reported first need not be that of the lowest seed.
  found=$(sed -n 's/^\([0-9]*\): \([^:]*\).*/\1|\2/p' "$work/out" | sort -n | head -n 1)
  histories=$(sed -n 's/^\([0-9]*\) histories in .*/\1/p' "$work/out")
  shown=$((kept > 0))
  [ -z "$found" ] || shown=1
  [ "$shown" = "$([ "$name" = none ] && echo 0 || echo 1)" ] || { failed=1; cat "$work/log" >&2; }
  found=${found:--|no fault}
  row "$name" "$kept" "${found%%|*}" "${found#*|}" "${histories:--}" "$((SECONDS - began))s"
done
exit "$failed"
