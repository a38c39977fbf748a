#!/bin/sh
# ss-run on the CPU and on the fake GPU, with the same package:
#   run-both-devices.sh SS-RUN MODEL PACKAGE LIBSS_FAKE_MACHINE
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() { # run JSON OPTION...
  json=$1; shift
  "$program" --model "$model" --text "$model/sample.bin" --package "$package" \
    --tokens 96 --batch 2 --dense-fallback off --consolidate off --json "$json" "$@"
}
program=$1 model=$2 package=$3 machine=$4
run "$folder/cpu.json" --device cpu
export SS_FAKE_PACKAGES="$package"
LD_PRELOAD=$machine run "$folder/cuda.json" --device cuda --timing
python3 "$(dirname "$0")/../lit/tools/Inputs/same_run.py" "$folder/cpu.json" \
  "$folder/cuda.json" bits_per_byte kl_nats rank compactions
