#!/usr/bin/env bash
# Builds the runtime and its tests with each sanitizer and runs them.
#
#   scripts/sanitize.sh                     thread, address and undefined
#   scripts/sanitize.sh thread              one of them
#   SS_SANITIZE_TESTS="a b" scripts/...     other test programs than the default
#
# The compiler half stays out: LLVM's libraries are not built with sanitizers.
# Kernels are the reference kernels, which are instrumented like the rest. GCC
# brings its sanitizers' libraries with it; CC and CXX name another compiler.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/common.sh
. "$here/lib/common.sh"
# shellcheck source=scripts/lib/build.sh
. "$here/lib/build.sh"

for sanitizer in "$@"; do
  case $sanitizer in
    thread | address | undefined) ;;
    *) die "found '$sanitizer', expected thread, address or undefined" ;;
  esac
done

tests=${SS_SANITIZE_TESTS:-consolidation-test cuda-test runtime-test runtime-internals-test handover-test runtime-c-api-test soak-test}

export TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_leaks=1 detect_stack_use_after_return=1 ${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1 ${UBSAN_OPTIONS:-}"

# of_what_failed LOG CODE: reports of sanitizers, failed assertions, the tests that
# failed, and how it ended. Names of tests have such words too.
of_what_failed() {
  local log=$1 code=$2 pattern
  pattern='^WARNING: ThreadSanitizer|^==[0-9]+==(ERROR|WARNING|HINT)|(Address|Leak|Thread|UndefinedBehavior)Sanitizer(:|[[:space:]]has encountered)|: runtime error: |: Failure$|^terminate called'
  grep -nE -A30 "$pattern" "$log" | head -n 200 || true
  grep -E '^\[  FAILED  \] [^ ]+( |,|$)' "$log" | sort -u || true
  # A test that began and did not end: the program ended within it.
  if ! grep -qE '^\[==========\].* ran\.' "$log"; then
    echo "in: $(grep -E '^\[ RUN      \]' "$log" | tail -n 1 || true)"
  fi
  if [ "$code" -gt 128 ]; then
    echo "exit code $code: signal $(kill -l $((code - 128)) 2>/dev/null || echo $((code - 128)))"
  else
    echo "exit code $code"
  fi
  echo "the end of the log:"
  tail -n 20 "$log"
}

failed=0
for sanitizer in "${@:-thread address undefined}"; do
  for one in $sanitizer; do
    folder=$build/sanitize-$one
    say "building with -fsanitize=$one"
    cmake -G Ninja -S "$here/.." -B "$folder" \
      -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 \
      "-DCMAKE_C_COMPILER=${CC:-gcc}" "-DCMAKE_CXX_COMPILER=${CXX:-g++}" \
      -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
      -DSS_BUILD_COMPILER=OFF "-DSS_SANITIZE=$one" > /dev/null
    # shellcheck disable=SC2086
    ninja -C "$folder" -j2 $tests > "$folder/build.log" || { tail -n 20 "$folder/build.log"; die "the build with $one failed"; }
    for test in $tests; do
      code=0
      "$folder/test/bin/$test" > "$folder/$test.log" 2>&1 || code=$?
      if [ "$code" -eq 0 ]; then
        echo "$one $test: clean"
      else
        echo "$one $test: FAILED, see $folder/$test.log"
        of_what_failed "$folder/$test.log" "$code" | sed 's/^/  | /'
        failed=1
      fi
    done
  done
done
exit "$failed"
