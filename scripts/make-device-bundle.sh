#!/usr/bin/env bash
# Makes a folder that scripts/device-check.sh runs on a machine with an NVIDIA
# GPU and without LLVM: the runtime, the tests and the tools that need no
# compiler, libraries they need, and packages made by ss-compile.
#
#   scripts/make-device-bundle.sh FOLDER
#
# ss-import, ss-compile and conformance_packages come from the ordinary build
# (scripts/test.sh makes it); SS_BUILD_DIR names another one.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/common.sh
. "$here/lib/common.sh"

[ $# -eq 1 ] || die "expected one argument, the folder to make"
bundle=$1
limit_mib=60
compiler_bin=$build/bin
for tool in ss-import ss-compile; do
  [ -x "$compiler_bin/$tool" ] || die "no $compiler_bin/$tool: build it first, or set SS_BUILD_DIR"
done
[ ! -e "$bundle" ] || [ -e "$bundle/revision" ] ||
  die "'$bundle' exists and is no bundle: give a new folder"
rm -rf "$bundle"
mkdir -p "$bundle"/{bin,lib,packages,bench,model}
git -C "$root" rev-parse HEAD >"$bundle/revision" 2>/dev/null || echo unknown >"$bundle/revision"

# --- programs ---------------------------------------------------------------
device_build=$build-device
say "configuring $device_build"
static="-static-libstdc++ -static-libgcc"
cmake -G Ninja -S "$root" -B "$device_build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
  -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
  -DSS_BUILD_COMPILER=OFF \
  -DCMAKE_EXE_LINKER_FLAGS="$static" -DCMAKE_SHARED_LINKER_FLAGS="$static" \
  -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON "-DCMAKE_INSTALL_RPATH=\$ORIGIN/../lib" \
  >"$device_build.log" 2>&1 || { tail -n 20 "$device_build.log" >&2; die "CMake failed"; }
targets=(sinkstate ss-run-packages ss-bench-packages ss-cache cuda-device-test real-state-test)
conformance=0
if ninja -C "$device_build" -t targets all | grep '^conformance_tests:' >/dev/null; then
  [ -x "$build/test/bin/conformance_packages" ] ||
    die "no $build/test/bin/conformance_packages: build it first"
  conformance=1
  targets+=(conformance_tests)
fi
say "building ${targets[*]}"
ninja -C "$device_build" -j "$jobs" "${targets[@]}"
cp "$device_build"/bin/{ss-run,ss-bench,ss-cache} "$bundle/bin"
cp "$device_build"/test/bin/{cuda-device-test,real-state-test} "$bundle/bin"
[ $conformance = 0 ] || cp "$device_build/test/bin/conformance_tests" "$bundle/bin"
cp "$device_build"/lib/libsinkstate.so "$bundle/lib"
strip "$bundle"/bin/* "$bundle"/lib/*
openmp=$(ldd "$device_build/lib/libsinkstate.so" | sed -n 's/.*libomp\.so[^ ]* => \([^ ]*\).*/\1/p')
[ -n "$openmp" ] || die "libsinkstate.so does not link libomp"
cp -L "$openmp" "$bundle/lib/$(basename "$openmp")"

# --- packages ---------------------------------------------------------------
say "making packages"
compile() { # compile FOLDER ss-compile's options -- ss-import's arguments
  local folder=$1; shift
  local options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  "$compiler_bin/ss-import" "$@" | "$compiler_bin/ss-compile" - -o "$folder" "${options[@]}"
}
tiny=$root/examples/tiny-hybrid
compile "$bundle/packages/tiny-hybrid" --cpu=x86-64-v3 -- "$tiny" --policy=relative:0.03
compile "$bundle/packages/tiny-hybrid-init" --no-cpu --init -- "$tiny" --policy=relative:0.03
compile "$bundle/packages/tiny-hybrid-0.1" --cpu=x86-64-v3 -- "$tiny" --policy=relative:0.1
compile "$bundle/packages/tiny-hybrid-fixed-32" --cpu=x86-64-v3 -- "$tiny" --policy=fixed:32
compile "$bundle/packages/tiny-hybrid-dense" --cpu=x86-64-v3 -- "$tiny" --form=dense
# The policies that the rank profiles were taken with.
for preset in Nemotron-3-Nano-4B:0.003 Qwen3.5-9B:0.01 Kimi-Linear-48B-A3B:0.01; do
  name=${preset%:*}
  for storage in f32 f16 bf16 fp8; do
    folder=$bundle/bench/$name
    [ $storage = f32 ] || folder+=-$storage
    compile "$folder" --no-cpu -- --preset="$name" --storage=$storage --policy="relative:${preset#*:}"
    [ $storage != fp8 ] || continue # matrices are not stored in 8 bits
    compile "$folder-dense" --no-cpu -- --preset="$name" --storage=$storage --form=dense
    compile "$folder-deferred" --no-cpu -- --preset="$name" --storage=$storage --form=deferred
  done
done
compile "$bundle/bench/Nemotron-3-Nano-4B-init" --no-cpu --init -- \
  --preset=Nemotron-3-Nano-4B --policy=relative:0.003
if [ $conformance = 1 ]; then
  "$build/test/bin/conformance_packages" "$bundle/conformance" --cpu x86-64-v3
fi
cp "$root"/examples/tiny-hybrid/{config.json,model.safetensors,sample.bin} "$bundle/model"
cp "$here"/{device-check.sh,dense-baselines.py} "$bundle"

# Every package has the headers that its kernels include: one file for all.
declare -A first=()
while read -r hash file; do
  [ -z "${first[$hash]:-}" ] || ln -f "${first[$hash]}" "$file"
  : "${first[$hash]:=$file}"
done < <(find "$bundle" -name '*.cuh' -exec sha256sum {} +)

mib=$(($(du -sk "$bundle" | cut -f1) / 1024))
[ "$mib" -le $limit_mib ] || die "'$bundle' has $mib MiB, expected at most $limit_mib"
say "'$bundle' has $mib MiB; run $bundle/device-check.sh on the GPU machine"
