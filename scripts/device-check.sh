#!/usr/bin/env bash
# Checks SinkState on this machine's GPU and writes a report in Markdown to
# standard output (and to REPORT, where given). Run it from a bundle that
# scripts/make-device-bundle.sh made:
#
#   BUNDLE/device-check.sh [REPORT]
#
# SS_CHECK_ONLY="machine model start tests device bench serving handover storages sanitizer suite":
# which parts, all but storages and suite by default (storages: decode times of rows in
# f32, f16, bf16 and fp8; tests: the conformance suite; device: the device tests, with
# cuSOLVER as an oracle, large grids and memories; suite: some of the conformance
# suite under the compute sanitizer, which takes many minutes). It builds nothing. The exit
# code is 0 only if nothing failed.
set -uo pipefail
die() { printf 'error: %s\n' "$*" >&2; exit 1; }
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ $# -le 1 ] || die "found $# arguments, expected at most one, the report's file"
report=${1:-/dev/null}
all_parts="machine model start tests device bench serving handover storages sanitizer suite"
parts=${SS_CHECK_ONLY:-${all_parts/ storages sanitizer suite/ sanitizer}}
for part in $parts; do
  [[ " $all_parts " == *" $part "* ]] || die "SS_CHECK_ONLY has '$part', expected some of: $all_parts"
done
[ -e "$bundle/revision" ] || die "'$bundle' is no bundle, expected a folder that scripts/make-device-bundle.sh made"
: 2>/dev/null >>"$report" || die "'$report' cannot be written, expected a path for the report"
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
  awk '/^\[  (PASSED|FAILED|SKIPPED)/ && /[0-9]+ tests?[.,]/ {
    for (i = 1; i < NF; ++i) if ($i ~ /^(PASSED|FAILED|SKIPPED)$/) sum[$i] += $(i + 2) }
    END { for (what in sum) print sum[what], tolower(what) }' "$log"
  awk '/: Skipped$/ { getline; reasons[$0]++ }
    END { for (reason in reasons) print "skipped", reasons[reason], "times:", reason }' "$log"
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

# figure FILE GROUP NAME: a number of ss-run's JSON.
figure() {
  awk -v group="\"$2\":" -v name="\"$3\":" '
    $1 == group { inside = 1 } inside && $1 == name { gsub(",", ""); print $2; exit }' "$1"
}

# run_model NAME PACKAGE DEVICE OPTION...: ss-run on the small model.
run_model() {
  local name=$1 package=$2 device=$3; shift 3
  step "ss-run $name, $device" 180 "$bundle/bin/ss-run" --device "$device" \
    --model "$bundle/model" --text "$bundle/model/sample.bin" \
    --package "$bundle/packages/$package" --json "$work/$name-$device.json" "$@"
  local code=$?
  quote <"$log"
  return $code
}

# compare_devices NAME GROUP FIGURE: the text is predicted as well by both.
compare_devices() {
  local name=$1 group=$2 value=$3 cpu gpu
  cpu=$(figure "$work/$name-cpu.json" "$group" "$value")
  gpu=$(figure "$work/$name-cuda.json" "$group" "$value")
  printf '\n%s, bits per byte, %s: %s on the CPU, %s on the GPU\n' "$name" "$value" "$cpu" "$gpu"
  step "$name: bits per byte, $value, within 1e-3" 5 awk -v a="$cpu" -v b="$gpu" '
    BEGIN { d = a - b; exit !(a > 0 && b > 0 && d <= 0.001 && d >= -0.001) }'
}

model() {
  heading "The small model: states on the CPU and on the GPU"
  # The same configuration on both: no dense fallback, no consolidation, and
  # policies whose ranks stay below the layers' bounds of rows. With relative:0.1
  # the error is so large that roundings decide what is dropped: shown, not
  # compared.
  local same=(--tokens 2000 --dense-fallback off --consolidate off
    --dense-package "$bundle/packages/tiny-hybrid-dense") device
  for device in cpu cuda; do
    run_model relative:0.1 tiny-hybrid-0.1 $device "${same[@]}"
    run_model fixed:32 tiny-hybrid-fixed-32 $device "${same[@]}"
  done
  compare_devices fixed:32 bits_per_byte compressed
  compare_devices relative:0.1 bits_per_byte dense
  # Consolidations that land at fixed tokens keep ranks below the bounds on both.
  for device in cpu cuda; do
    run_model relative:0.03 tiny-hybrid $device --tokens 2000 \
      --consolidate 4 --consolidation deterministic
  done
  compare_devices relative:0.03 bits_per_byte compressed
  # What each device does by default; where rows ran out, it says so.
  for device in cpu cuda; do
    run_model relative:0.03-defaults tiny-hybrid $device --tokens 2000
  done
  step "no GPU is exit code 3" 30 env CUDA_VISIBLE_DEVICES=-1 bash -c "'$bundle/bin/ss-run' --device cuda \
    --model '$bundle/model' --text '$bundle/model/sample.bin' --tokens 2 \
    --package '$bundle/packages/tiny-hybrid'; [ \$? = 3 ]"
}

start_up() {
  heading "Start-up: an empty kernel cache, and every kernel cached"
  local package
  for package in packages/tiny-hybrid bench/Nemotron-3-Nano-4B bench/Qwen3.5-9B \
    bench/Kimi-Linear-48B-A3B; do
    step "start of $(basename $package)" 200 "$bundle/bin/ss-bench" start --package "$bundle/$package"
    sed "s|$bundle/||" "$log"; echo
  done
}

# shards NUMBER COMMAND...: the tests of a program, spread over processes.
shards() {
  local number=$1 index code=0 pids=(); shift
  for ((index = 0; index < number; ++index)); do
    GTEST_TOTAL_SHARDS=$number GTEST_SHARD_INDEX=$index "$@" >"$SS_SHARDS.$index" 2>&1 &
    pids+=($!)
  done
  for index in "${!pids[@]}"; do wait "${pids[index]}" || code=1; done
  cat "$SS_SHARDS".* || code=1
  return $code
}
export -f shards

# All processors but two, at most fourteen: most of the time kernels are compiled, and
# all share the GPU.
workers() { awk -v n="$(nproc)" 'BEGIN {
  n = n - 2; if (n < 1) n = 1; if (n > 14) n = 14; print n }'; }

test_suites() {
  heading "Conformance suite"
  if [ -x "$bundle/bin/conformance_tests" ]; then
    export SS_SHARDS=$work/shard
    tests "conformance on CUDA" 400 bash -c 'shards "$@"' shards "$(workers)" \
      "$bundle/bin/conformance_tests" --packages "$bundle/conformance" \
      --gtest_filter='*/cuda_*' --gtest_brief=1
  fi
}

device_tests() {
  heading "Device tests"
  tests "states of the small model, initialised" 240 "$bundle/bin/real-state-test" \
    "$bundle/model" "$bundle/packages/tiny-hybrid-init" cuda
  tests "device tests" 240 "$bundle/bin/cuda-device-test" \
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

# Pools, consolidation, conversions, hand-over, sinks and initialisation, each with one
# model of every layer type, under the tools that the device tests run under.
sanitized_suite() {
  heading "Conformance suite under the compute sanitizer"
  local tool filter='*/cuda_hybrid_relative_qr:*/cuda_mixed_sink:*/cuda_init_hybrid'
  local suite=(--packages "$bundle/conformance" --gtest_filter="$filter" --gtest_brief=1)
  # Kernels are compiled and cached before: the tools slow down everything.
  export SS_SHARDS=$work/sanitized
  tests "the same tests without a tool" 150 bash -c 'shards "$@"' shards "$(workers)" \
    "$bundle/bin/conformance_tests" "${suite[@]}"
  for tool in memcheck racecheck; do
    tests "conformance, $tool" 500 bash -c 'shards "$@"' shards "$(workers)" \
      compute-sanitizer --tool $tool --error-exitcode 9 "$bundle/bin/conformance_tests" \
      "${suite[@]}"
    grep -hE '(ERROR|RACECHECK) SUMMARY|Race reported' "$log" | sort | uniq -c | sort -rn |
      head -n 20 | quote
  done
}

# The dense kernels that people use, where PyTorch is; sets $baselines to
# ss-bench's option. SS_CHECK_WHEELS: a folder of wheels for what is missing.
dense_baselines() {
  baselines=()
  local python=${PYTHON:-python3} wheels=()
  [ -z "${SS_CHECK_WHEELS:-}" ] || wheels=(--wheels "$SS_CHECK_WHEELS")
  if ! "$python" -c 'import torch, triton' 2>/dev/null; then
    printf 'PyTorch and Triton are not installed: baselines not run\n\n'
    return
  fi
  if step "dense baselines" 400 "$python" "$bundle/dense-baselines.py" --batch "$bench_batches" \
    --json "$bench_out/baselines.json" "${wheels[@]}"; then
    baselines=(--baselines "$bench_out/baselines.json")
  else
    tail -n 5 "$log" | quote
  fi
}

# SS_CHECK_BATCH: the batch sizes. SS_CHECK_OUT: a folder that keeps the JSON and
# SVG files. SS_CHECK_STEPS: steps timed for every row of the table.
# SS_CHECK_STORAGE: "f32 f16" for rows of 16 bits too, beside dense forms of 16
# bits and of f32. SS_CHECK_ROWS: "fixed" for as many rows for all states, in place
# of pools.
bench() {
  heading "Decode benchmark"
  local preset name storage forms baselines=() bench_batches=${SS_CHECK_BATCH:-1,8,32,128}
  local bench_out=${SS_CHECK_OUT:-$work}
  mkdir -p "$bench_out"
  dense_baselines
  for preset in Nemotron-3-Nano-4B:nemo4b Qwen3.5-9B:qwen9b Kimi-Linear-48B-A3B:qwen9b; do
    for storage in ${SS_CHECK_STORAGE:-f32}; do
      name=${preset%:*}
      forms=()
      if [ "$storage" != f32 ]; then
        name+=-$storage
        forms=(--dense-f32-package "$bundle/bench/${preset%:*}-dense")
      fi
      # Matrices are not stored in 8 bits.
      [ "$storage" = fp8 ] || forms+=(--dense-package "$bundle/bench/$name-dense"
        --deferred-package "$bundle/bench/$name-deferred")
      step "ss-bench $name" 500 "$bundle/bin/ss-bench" --package "$bundle/bench/$name" \
        "${forms[@]}" --profile "${preset#*:}" --batch "$bench_batches" \
        --data synthetic,random --stagger on,off \
        --rows "${SS_CHECK_ROWS:-pools}" --steps "${SS_CHECK_STEPS:-1000}" "${baselines[@]}" \
        --json "$bench_out/$name.json" --svg "$bench_out/$name.svg"
      sed "s|$bundle/bench/||" "$log"; echo
    done
  done
}

# Steps of states that go on: P50 and P99 staggered and not, with consolidation
# and without, and the memory of row pools. SS_CHECK_SERVED: the batch sizes.
serving() {
  heading "Steps that go on"
  local out=${SS_CHECK_OUT:-$work}
  mkdir -p "$out"
  step "ss-bench, steps that go on" 120 "$bundle/bin/ss-bench" \
    --package "$bundle/bench/Nemotron-3-Nano-4B" --profile nemo4b --batch "${SS_CHECK_SERVED:-128}" \
    --data synthetic --stagger on,off --steps 24 --copy-mib 256 --serve "${SS_CHECK_STEPS:-1000}" \
    --consolidation off,async --json "$out/serving.json"
  sed "s|$bundle/bench/||" "$log"; echo
}

# The same ranks in every storage.
storages() {
  heading "Decode by storage"
  local preset name storage out=${SS_CHECK_OUT:-$work}
  mkdir -p "$out"
  for preset in Nemotron-3-Nano-4B:nemo4b Qwen3.5-9B:qwen9b Kimi-Linear-48B-A3B:qwen9b; do
    for storage in "" -f16 -bf16 -fp8; do
      name=${preset%:*}$storage
      step "ss-bench $name" 300 "$bundle/bin/ss-bench" --package "$bundle/bench/$name" \
        --profile "${preset#*:}" --batch "${SS_CHECK_BATCH:-32,128}" --data synthetic --stagger on \
        --steps "${SS_CHECK_STEPS:-400}" --json "$out/$name-decode.json"
      sed "s|$bundle/bench/||" "$log"; echo
    done
  done
}

# States from dense matrices, and snapshots and forks of one request.
hand_over() {
  heading "Hand-over"
  local out=${SS_CHECK_OUT:-$work}
  step "ss-bench init" 500 "$bundle/bin/ss-bench" init \
    --package "$bundle/bench/Nemotron-3-Nano-4B-init" --json "$out/init.json"
  sed "s|$bundle/bench/||" "$log"; echo
  local preset
  for preset in Nemotron-3-Nano-4B:nemo4b Qwen3.5-9B:qwen9b Kimi-Linear-48B-A3B:qwen9b; do
    step "ss-bench hand-over ${preset%:*}" 200 "$bundle/bin/ss-bench" hand-over --device cuda \
      --package "$bundle/bench/${preset%:*}" --profile "${preset#*:}"
    sed "s|$bundle/bench/||" "$log"; echo
  done
}

main() {
  printf '# SinkState on a GPU\n\nrevision %s, %s\n' "$(cat "$bundle/revision")" "$(date -u +%FT%TZ)"
  ! has_part machine || machine
  ! has_part model || model
  ! has_part start || start_up
  ! has_part tests || test_suites
  ! has_part device || device_tests
  ! has_part bench || bench
  ! has_part serving || serving
  ! has_part storages || storages
  ! has_part handover || hand_over
  ! has_part sanitizer || sanitizer
  ! has_part suite || sanitized_suite
  heading Summary
  printf '| step | result | time |\n|---|---|---|\n'
  [ ${#rows[@]} = 0 ] || printf '%s\n' "${rows[@]}"
  printf '\n%s steps failed\n' "$failures"
  echo "$failures" >"$work/failures"
}

main | tee "$report"
exit "$(($(cat "$work/failures") > 0))"
