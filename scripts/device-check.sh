#!/usr/bin/env bash
# Checks SinkState on this machine's GPU and writes a report in Markdown to
# standard output (and to REPORT, where given). Run it from a bundle that
# scripts/make-device-bundle.sh made:
#
#   BUNDLE/device-check.sh [REPORT]
#
# SS_CHECK_ONLY="machine model tests sanitizer bench": which parts, all by
# default. The exit code is 0 only if nothing failed.
set -uo pipefail
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
report=${1:-/dev/null}
parts=${SS_CHECK_ONLY:-machine model tests bench sanitizer}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SS_CACHE_DIR=$work/cache
for cuda in "${CUDA_HOME:-}" /usr/local/cuda; do
  [ -n "$cuda" ] && [ -d "$cuda/bin" ] && PATH=$PATH:$cuda/bin
done
failures=0
rows=()

has_part() { [[ " $parts " == *" $1 "* ]]; }
heading() { printf '\n## %s\n\n' "$1"; }
quote() { printf '```\n'; cat; printf '```\n'; }

# step NAME SECONDS COMMAND...: runs it within a time, keeps its output in $log.
step() {
  local name=$1 seconds=$2; shift 2
  log=$work/log
  local begin=$EPOCHREALTIME code=0 result=passed
  timeout "$seconds" "$@" >"$log" 2>&1 || code=$?
  [ $code = 0 ] || result="**failed** (exit code $code)"
  [ $code != 124 ] || result="**did not end** in $seconds s"
  [ $code = 0 ] || failures=$((failures + 1))
  rows+=("| $name | $result | $(elapsed "$begin") |")
  return $code
}
elapsed() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'; }

# The end of a googletest log: what failed, what was skipped and why.
summarize() {
  grep -E '^\[  (PASSED|FAILED|SKIPPED) +\]' "$log" | grep -E 'tests?[.,]|listed' | sort -u
  grep -E '^\[  FAILED  \].*(,|\()' "$log" | head -n 20
  if grep -q '^\[  FAILED' "$log"; then
    grep -B2 -A12 -E ': Failure$|C\+\+ exception' "$log" | head -n 60
  fi
}
tests() { # tests NAME SECONDS COMMAND...
  step "$@"; local code=$?
  printf '\n**%s**\n\n' "$1"
  if grep -qE '^\[==========\].* ran' "$log"; then summarize | quote; else tail -n 25 "$log" | quote; fi
  return $code
}

machine() {
  heading Machine
  {
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit --format=csv 2>&1
    uname -srm
    grep -m1 'model name' /proc/cpuinfo
    nproc
  } | quote
}

model() {
  heading "The small model: states on the CPU and on the GPU"
  local tokens=2000 device
  for device in '' cuda; do
    step "tiny-hybrid, ${device:-cpu}, $tokens tokens" 120 "$bundle/bin/tiny-hybrid" \
      "$bundle/model" "$bundle/packages/tiny-hybrid" "$bundle/model/sample.bin" $tokens $device
    printf '%s: ' "${device:-cpu}"; tail -n 3 "$log"; echo
    cp "$log" "$work/model-${device:-cpu}"
  done
  # The text is predicted as well by both.
  step "bits per byte differ by at most 0.01" 5 awk '
    $4 ~ /^[0-9.]+,$/ { gsub(",", ""); bits[++n] = $4 }
    END { d = bits[1] - bits[2]; exit !(n == 2 && d <= 0.01 && d >= -0.01) }' \
    "$work/model-cpu" "$work/model-cuda"
  step "engine start with every kernel cached" 60 "$bundle/bin/tiny-hybrid" \
    "$bundle/model" "$bundle/packages/tiny-hybrid" "$bundle/model/sample.bin" 1 cuda
}

test_suites() {
  heading Tests
  if [ -x "$bundle/bin/conformance_tests" ]; then
    tests "conformance on CUDA" 300 "$bundle/bin/conformance_tests" \
      --packages "$bundle/conformance" --gtest_filter='*cuda_*' --gtest_brief=1
  fi
  tests "device tests" 180 "$bundle/bin/cuda-device-test" \
    --package "$bundle/packages/tiny-hybrid" --gtest_brief=1
}

sanitizer() {
  heading "Compute sanitizer"
  if ! command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer is not installed: not run"
    return
  fi
  local tool
  for tool in memcheck racecheck; do
    step "compute-sanitizer $tool" 150 compute-sanitizer --tool $tool --error-exitcode 9 \
      "$bundle/bin/cuda-device-test" --package "$bundle/packages/tiny-hybrid" \
      --gtest_filter='*GivesARequestTheSameBits*:*ReplaysTheBits*' --gtest_brief=1
    if grep -q 'Device not supported' "$log"; then
      echo "$tool: this machine does not let the sanitizer in"
    fi
    grep -E '=========|PASSED|FAILED' "$log" | sort | uniq -c | sort -rn | head -n 25 | quote
  done
}

bench() {
  heading "Decode benchmark"
  local preset form profile
  for preset in Nemotron-3-Nano-4B:nemo4b Qwen3.5-9B:qwen9b Kimi-Linear-48B-A3B:qwen9b; do
    profile=${preset#*:}
    for form in '' -dense; do
      step "ss-bench ${preset%:*}$form" 100 "$bundle/bin/ss-bench" decode \
        --package "$bundle/bench/${preset%:*}$form" --profile "$profile" \
        --batch 1,8,32,128 --repetitions 20
      sed "s|$bundle/bench/||" "$log"; echo
    done
  done
}

main() {
  printf '# SinkState on a GPU\n\nrevision %s, %s\n' "$(cat "$bundle/revision")" "$(date -u +%FT%TZ)"
  ! has_part machine || machine
  ! has_part model || model
  ! has_part tests || test_suites
  ! has_part bench || bench
  ! has_part sanitizer || sanitizer
  heading Summary
  printf '| step | result | time |\n|---|---|---|\n'
  [ ${#rows[@]} = 0 ] || printf '%s\n' "${rows[@]}"
  printf '\n%s steps failed\n' "$failures"
  echo "$failures" >"$work/failures"
}

main | tee "$report"
exit "$(($(cat "$work/failures") > 0))"
