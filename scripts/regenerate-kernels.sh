#!/usr/bin/env bash
# Prints the CUDA C++ of the standard models into kernels_generated/, with the tools of a
# build:
#   scripts/regenerate-kernels.sh [--tools build/bin] [--check]
# SS_BUILD_DIR names another build folder.
# --check: compares with what is there instead, and fails if anything differs.
# Without --check it also compiles them and writes what they take (resources.json), where
# NVRTC is; the test kernels-generated.resources compares that.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tools=${SS_BUILD_DIR:-$root/build}/bin
check=false
while [ $# -gt 0 ]; do
  case $1 in
    --tools)
      [ $# -ge 2 ] || { echo "error: --tools has no value, expected the folder of the tools" >&2; exit 2; }
      tools=$2
      shift 2
      ;;
    --check) check=true; shift ;;
    *) echo "error: found '$1', expected --tools FOLDER or --check" >&2; exit 2 ;;
  esac
done
for tool in ss-import ss-opt ss-translate ss-kernels; do
  [ -x "$tools/$tool" ] || { echo "error: no $tools/$tool, expected it: build it or name its folder with --tools" >&2; exit 2; }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/new"

# print_model NAME ss-import arguments...: the kernels of a model, and what the manifest says of it.
# $pipeline: the passes, and what they make beside decode, compact and densify.
pipeline=--ss-pipeline
print_model() {
  name=$1
  shift
  "$tools/ss-import" "$@" |
    "$tools/ss-opt" "$pipeline" --mlir-print-debuginfo |
    "$tools/ss-translate" --ssk-to-cuda-files --cuda-folder="$folder/new" >"$folder/lines"
  cat "$folder/lines" >>"$folder/kernels"
  kernels=$(sed 's/.*"name":\("[^"]*"\).*/\1/' "$folder/lines" | paste -s -d, | sed 's/,/, /g')
  echo "  {\"name\": \"$name\", \"kernels\": [$kernels]}" >>"$folder/models"
}

print_model tiny-hybrid "$root/examples/tiny-hybrid/config.json"
for preset in Nemotron-3-Nano-4B Qwen3.5-9B Kimi-Linear-48B-A3B; do
  print_model "$preset" --preset="$preset"
  for storage in f16 bf16 fp8; do
    print_model "$preset-$storage" --preset="$preset" --storage="$storage"
  done
  print_model "$preset-sink" --preset="$preset" --policy=sink:16
done
print_model Kimi-Linear-48B-A3B-fp8-stochastic --preset=Kimi-Linear-48B-A3B --storage=fp8 --rounding=stochastic
print_model Qwen3.5-9B-svd --preset=Qwen3.5-9B --core=svd
print_model Qwen3.5-9B-dense --preset=Qwen3.5-9B --form=dense
print_model Qwen3.5-9B-deferred --preset=Qwen3.5-9B --form=deferred
pipeline=--ss-pipeline=init=true
print_model Nemotron-3-Nano-4B-init --preset=Nemotron-3-Nano-4B
print_model Qwen3.5-9B-init --preset=Qwen3.5-9B

# with_commas FILE: its lines as elements of a JSON array.
with_commas() { sed '$!s/$/,/' "$1"; }

LC_ALL=C sort -u "$folder/kernels" | sed 's/^/  /' >"$folder/unique"
{
  echo '{"format": "sinkstate-kernels", "version": 1,'
  echo ' "models": ['
  with_commas "$folder/models"
  echo ' ],'
  echo ' "kernels": ['
  with_commas "$folder/unique"
  echo ' ]}'
} >"$folder/new/manifest.json"

if $check; then
  diff -r -x README.md -x resources.json "$root/kernels_generated" "$folder/new" >&2 ||
    { echo "kernels_generated/ is not what the compiler prints: run scripts/regenerate-kernels.sh and look at the difference" >&2; exit 1; }
  exit 0
fi
mkdir -p "$root/kernels_generated"
rm -f "$root"/kernels_generated/*.cu
cp "$folder"/new/* "$root/kernels_generated/"
echo "$(ls "$folder/new" | grep -c '\.cu$') kernels in kernels_generated/"
"$tools/ss-kernels" resources "$root/kernels_generated" || {
  [ $? = 77 ] || exit 1
  echo "resources.json is not written: do it where NVRTC is" >&2
}
