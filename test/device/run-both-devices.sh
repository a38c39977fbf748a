#!/bin/sh
# ss-run on the CPU and on the fake GPU, with the same package:
#   run-both-devices.sh SS-RUN MODEL PACKAGE LIBSS_FAKE_MACHINE
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() { # run JSON OPTION...
  json=$1; shift
  "$program" --model "$model" --text "$model/sample.bin" --package "$package" \
    --tokens 96 --batch 2 --dense-fallback off --json "$json" "$@"
}
same() { # same CPU-JSON CUDA-JSON
  python3 "$(dirname "$0")/../lit/tools/Inputs/same_run.py" "$1" "$2" \
    bits_per_byte kl_nats rank compactions
}
program=$1 model=$2 package=$3 machine=$4
off='--consolidate off'
# Results land at the same tokens, wherever they come from.
beside='--consolidate 2 --consolidation deterministic'
# shellcheck disable=SC2086
run "$folder/cpu.json" --device cpu $off
# shellcheck disable=SC2086
run "$folder/cpu-beside.json" --device cpu $beside
export SS_FAKE_PACKAGES="$package"
# shellcheck disable=SC2086
LD_PRELOAD=$machine run "$folder/cuda.json" --device cuda $off --timing
# shellcheck disable=SC2086
LD_PRELOAD=$machine run "$folder/cuda-beside.json" --device cuda $beside
same "$folder/cpu-beside.json" "$folder/cuda-beside.json"
same "$folder/cpu.json" "$folder/cuda.json"
