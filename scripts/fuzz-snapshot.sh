#!/bin/bash
# usage: scripts/fuzz-snapshot.sh [seconds] [folder]
# Fuzzes the reader of snapshots with libFuzzer and the address and undefined
# behaviour sanitizers, from the stored snapshots on; 600 seconds by default.
# Builds in the folder (default build/fuzz-snapshot) and leaves there what it
# finds. Needs clang with its sanitizer runtimes (CXX, CC; default clang-22).
set -eu -o pipefail
seconds=${1:-600}
case $seconds in
  *[!0-9]* | "") echo "error: found '$seconds' seconds, expected a whole number" >&2; exit 1 ;;
esac
source_folder=$(cd "$(dirname "$0")/.." && pwd)
work=${2:-$source_folder/build/fuzz-snapshot}
sanitizers=-fsanitize=fuzzer-no-link,address,undefined
compiler=${CC:-clang-22}
echo 'int main(void) { return 0; }' |
  "$compiler" -fsanitize=address,undefined -x c -o /dev/null - 2>/dev/null || {
  echo "error: '$compiler' cannot link its sanitizers, expected clang with their runtimes: install libclang-rt-22-dev, or name another clang by CC and CXX" >&2
  exit 1
}
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
