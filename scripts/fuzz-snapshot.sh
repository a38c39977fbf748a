#!/bin/bash
# usage: scripts/fuzz-snapshot.sh [seconds] [folder]
# Fuzzes the reader of snapshots with libFuzzer and the address and undefined
# behaviour sanitizers, from the stored snapshots on; 600 seconds by default.
# Builds in the folder (default build/fuzz-snapshot) and leaves there what it
# finds. Needs clang with its sanitizer runtimes (CXX, CC; default clang-22, whose
# libclang-rt-22-dev is installed where it is missing).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/common.sh
. "$here/lib/common.sh"
# shellcheck source=scripts/lib/packages.sh
. "$here/lib/packages.sh"
seconds=${1:-600}
case $seconds in
  *[!0-9]* | "") die "found '$seconds' seconds, expected a whole number" ;;
esac
source_folder=$(cd "$here/.." && pwd)
work=${2:-$source_folder/build/fuzz-snapshot}
sanitizers=-fsanitize=fuzzer-no-link,address,undefined
compiler=${CC:-clang-22}
links_sanitizers() {
  echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' |
    "$compiler" -fsanitize=fuzzer,address,undefined -x c -o /dev/null - 2> /dev/null
}
if [ -z "${CC:-}" ] && ! links_sanitizers; then
  packages+=(libclang-rt-22-dev)
  install_packages
fi
links_sanitizers ||
  die "'$compiler' cannot link libFuzzer and its sanitizers, expected clang with their runtimes: install libclang-rt-22-dev, or name another clang by CC and CXX"
cmake -G Ninja -S "$source_folder" -B "$work" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_C_COMPILER="$compiler" -DCMAKE_CXX_COMPILER="${CXX:-clang++-22}" \
  -DCMAKE_C_FLAGS="$sanitizers" \
  -DCMAKE_CXX_FLAGS="$sanitizers -fno-sanitize-recover=undefined" \
  -DSS_BUILD_COMPILER=OFF -DSS_BUILD_FUZZERS=ON > "$work.configure.log"
ninja -C "$work" snapshot-fuzz
mkdir -p "$work/corpus"
fuzzer=$(find "$work" -type f -name snapshot-fuzz -perm -u+x | head -1)
OMP_NUM_THREADS=1 "$fuzzer" -max_total_time="$seconds" -max_len=65536 \
  -rss_limit_mb=1024 -artifact_prefix="$work/" -print_final_stats=1 \
  "$work/corpus" "$source_folder/test/unit/handover/snapshots"
