#!/usr/bin/env bash
# Runs the fuzzers that the preset `fuzz` built, as many at a time as there are cores:
#   fuzz/run.sh SECONDS [FORMAT...]        each for SECONDS, all formats when none is named
# Each begins with the seeds, the hostile files of the tests and what earlier runs found worth keeping
# (build/fuzz/corpus). The first input of a format that breaks a property is kept in build/fuzz/findings, and the run fails
# with it when all formats have been tried.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/fuzz
seconds=${1:?usage: fuzz/run.sh SECONDS [FORMAT...]}
shift
formats=("$@")
[ ${#formats[@]} -gt 0 ] || mapfile -t formats < <(ls "$build/fuzzers")

# Bytes an input may have: enough for the format's structure, few enough for thousands of inputs a second.
longest() {
  case "$1" in
    cifar) echo 6300 ;;
    token_file) echo 2200 ;;
    jpeg) echo 4096 ;;
    *) echo 1024 ;;
  esac
}

fuzz() {
  local format=$1 folder log
  log="$build/findings/$format.log"
  local known=()
  for folder in "$build/seeds/$format" "tests/hostile/corpus/$format"; do
    if [ -d "$folder" ]; then known+=("$folder"); fi
  done
  if [ "$format" = yaml ]; then known+=(configs); fi
  local options=(-max_total_time="$seconds" -timeout=60 -rss_limit_mb=1024 -max_len="$(longest "$format")"
    -print_final_stats=1 -artifact_prefix="$build/findings/$format-")
  if [ -f "fuzz/dictionaries/$format.dict" ]; then options+=(-dict="fuzz/dictionaries/$format.dict"); fi
  mkdir -p "$build/corpus/$format" "$build/findings"
  # Without symbols: finding them in the middle of an allocation can wait for ever. Repeating the input has them.
  if ASAN_OPTIONS=symbolize=0 UBSAN_OPTIONS=symbolize=0 timeout -k 10 $((2 * seconds + 120)) \
    "$build/fuzzers/$format" "${options[@]}" "$build/corpus/$format" "${known[@]}" >"$log" 2>&1; then
    printf 'fuzz: %-12s %9s inputs, nothing found\n' "$format" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
    return 0
  fi
  grep -E -m 3 'ERROR|runtime error|what\(\)|ALARM' "$log" >&2 || tail -n 5 "$log" >&2
  local input
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  printf 'fuzz: %s: an input broke a property (log: %s); to see it again:\n  %s/fuzzers/%s %s\n' \
    "$format" "$log" "$build" "$format" "${input:-(no input was kept)}" >&2
  return 1
}

rm -rf "$build/seeds"
"$build/fuzz/make_seeds" "$build/seeds"
export build seconds
export -f fuzz longest
printf '%s\n' "${formats[@]}" | xargs -P "$(nproc)" -I {} bash -c 'set -euo pipefail; fuzz "$1"' fuzz {}
