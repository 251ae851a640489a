#!/usr/bin/env bash
# Shows that tests and histories find faults: puts one defect after the other into the code and sees what notices it. A defect is a
# patch. Those in hack/mutants/PLUGIN name the tests that have to fail in the second line, as "# tests: PACKAGE... [-run PATTERN]".
# Those in test/histories/mutants are for histories of a cluster: the kept ones in test/histories/testdata and then random ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<END
Usage: hack/mutants.sh [--seeds FIRST-LAST] [--minutes N] [NAME...]

Tries the code as it is, which must show nothing, then with each of the mutants, by default all. NAME is a mutant, a
plugin, "tests" for those of all plugins, or "histories" for the others.
  --seeds    the random histories to live through (default 1-200)
  --minutes  how long to live through random histories for one mutant (default 10)
Exit status 1 if a mutant is not found, if the code as it is shows a fault, or if a patch does not apply or build.
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

# chosen prints the patches among those given that the names choose, all of which "$1" chooses as well.
chosen() {
  local patch name mutant folder all=$1
  shift
  for patch in "$@"; do
    mutant=$(basename "$patch" .patch) folder=$(basename "$(dirname "$patch")")
    [ ${#names[@]} -gt 0 ] || echo "$patch"
    for name in "${names[@]}"; do
      case $name in "$mutant" | "$folder" | "$all") echo "$patch" ;; esac
    done
  done
}
mapfile -t tested < <(chosen tests hack/mutants/*/*.patch)
mapfile -t lived < <(chosen histories test/histories/mutants/*.patch)
for name in "${names[@]}"; do
  case " tests histories ${tested[*]} ${lived[*]} " in
    *" $name "* | */"$name".patch\ * | */"$name"/*) ;;
    *) echo "mutants.sh: there is no mutant or plugin $name" >&2; exit 2 ;;
  esac
done

root=$PWD work=$PWD/.berth/mutants
mkdir -p "$work"
exec 9>"$work/lock"
flock --nonblock 9 || { echo "mutants.sh: another one is at work in $work" >&2; exit 1; }
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -buildvcs=false"

failed=0 began=$SECONDS
row() { printf '%-44s %-16s %5s  %s\n' "$@"; }
# fault prints a row of what makes the run fail, with the log if there is something in it.
fault() {
  failed=1
  row "$1" "$2" "$((SECONDS - began))s" "$3"
  [ ! -s "$work/log" ] || tail -n 50 "$work/log" >&2
}

# lay lays the patch over the code: go compiles copies of the files that it changes, and all else comes out of the build cache.
lay() {
  local file files="" patch=$root/$1
  rm -rf "$work/files"
  mkdir "$work/files"
  while read -r file; do
    mkdir -p "$work/files/$(dirname "$file")"
    cp "$file" "$work/files/$file" || return 1
    files+="${files:+,}\"$root/$file\":\"$work/files/$file\""
  done < <(sed -n 's,^+++ b/,,p' "$patch")
  echo "{\"Replace\":{$files}}" >"$work/overlay"
  # Else git would look for the files in this repository.
  (cd "$work/files" && GIT_CEILING_DIRECTORIES=$work git apply "$patch")
}

# tests_of prints the packages of a patch, or with "pattern" the pattern of its tests.
tests_of() {
  local line packages pattern
  line=$(sed -n '2s/^# tests: //p' "$1")
  packages=${line%% -run *} pattern=${line#"$packages"}
  if [ "${2:-}" = pattern ]; then echo "${pattern# -run }"; else echo "$packages"; fi
}

# run_tests runs the tests of a package that match a pattern. The result is 0 if they pass, 1 if one fails, and 2 if they do not build.
run_tests() {
  rm -f "$work/test"
  : >"$work/out"
  GOGC=400 GOMEMLIMIT=2GiB go test -c -vet=off -ldflags='-s -w' -overlay "$work/overlay" -o "$work/test" "$1" 2>"$work/log" || return 2
  [ -e "$work/test" ] || return 0
  (cd "$1" && RAPID_NOFAILFILE=true "$work/test" -test.failfast -test.timeout 5m -test.run "$2") >"$work/out" 2>&1 || return 1
}

# first_failure names the first test that failed, as far down as its name goes, or that ran when the time was over.
first_failure() {
  awk '/^ *--- FAIL: / { if (found == "" || index($3, found "/") == 1) found = $3; else exit }
    /^panic: test timed out/ { timeout = 1 }
    timeout && /^\t\t?[A-Z][^ ]* \(/ { found = $1 " (timeout)"; exit }
    END { print found }' "$work/out"
}

test_all() {
  local package patch patterns status found
  declare -A by_package
  for patch in "${tested[@]}"; do
    for package in $(tests_of "$patch"); do
      by_package[$package]+="${by_package[$package]:+|}$(tests_of "$patch" pattern)"
    done
  done
  began=$SECONDS
  echo '{}' >"$work/overlay"
  for package in "${!by_package[@]}"; do
    patterns=${by_package[$package]}
    if ! run_tests "$package" "$patterns"; then
      cat "$work/out" >>"$work/log"
      fault none tests "$package: fails without a defect"
    fi
  done
  [ "$failed" = 1 ] || row none tests "$((SECONDS - began))s" "-"
  for patch in "${tested[@]}"; do
    local name=${patch##*/} plugin=${patch%/*}
    name=${name%.patch} plugin=${plugin##*/} began=$SECONDS found=""
    if ! lay "$patch" 2>"$work/log"; then
      fault "$name" "$plugin" "ERROR: the patch does not apply"
      continue
    fi
    for package in $(tests_of "$patch"); do
      status=0
      run_tests "$package" "$(tests_of "$patch" pattern)" || status=$?
      [ "$status" = 0 ] || break
    done
    [ "$status" != 1 ] || found=$(first_failure)
    case $status in
      0)
        : >"$work/log"
        fault "$name" "$plugin" "NOT FOUND"
        ;;
      2) fault "$name" "$plugin" "ERROR: does not build" ;;
      1)
        if [ -z "$found" ]; then
          cp "$work/out" "$work/log"
          fault "$name" "$plugin" "ERROR: no test fails, but the process does"
        else
          row "$name" "$plugin" "$((SECONDS - began))s" "$package: $found"
        fi
        ;;
    esac
  done
}

live_through_all() {
  local patch name file kept found histories
  for patch in none "${lived[@]}"; do
    name=${patch##*/} name=${name%.patch} began=$SECONDS
    echo '{}' >"$work/overlay"
    if [ "$patch" != none ] && ! lay "$patch" 2>"$work/log"; then
      fault "$name" histories "ERROR: the patch does not apply"
      continue
    fi
    if ! go build -ldflags '-s -w' -overlay "$work/overlay" -o "$work/histories" ./test/histories 2>"$work/log"; then
      fault "$name" histories "ERROR: does not build"
      continue
    fi
    kept=0
    for file in test/histories/testdata/*.yaml; do
      "$work/histories" --child --file "$file" >"$work/out" 2>"$work/log" || kept=$((kept + 1))
    done
    timeout "${minutes}m" "$work/histories" --seeds "$seeds" --until-fault >"$work/out" 2>"$work/log" || true
    # Two processes look at a time, so the fault that is reported first need not be that of the lowest seed.
    found=$(sed -n 's/^\([0-9]*\): \([^:]*\).*/seed \1: \2/p' "$work/out" | sort -k 2n | head -n 1)
    histories=$(sed -n 's/^\([0-9]*\) histories in .*/\1/p' "$work/out")
    found="$kept kept, ${found:-none} (of ${histories:--})"
    case $patch:$found in
      none:0\ kept,\ none*) row none histories "$((SECONDS - began))s" "-" ;;
      none:*) fault none histories "$found without a defect" ;;
      *:0\ kept,\ none*) fault "$name" histories "NOT FOUND: $found" ;;
      *) row "$name" histories "$((SECONDS - began))s" "$found" ;;
    esac
  done
}

row mutant plugin time "found by"
[ ${#tested[@]} = 0 ] || test_all
[ ${#lived[@]} = 0 ] || live_through_all
exit "$failed"
