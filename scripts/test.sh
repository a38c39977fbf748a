#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test.
#
#   scripts/test.sh                 all tests
#   scripts/test.sh -R lit          options for ctest, such as a selection
#   SS_SANITIZERS=""  scripts/test.sh    without sanitizers; or a list of them
#
# Without options for ctest the runtime and some of its tests are then built and
# run with the thread, address and undefined-behaviour sanitizers, which takes
# minutes (scripts/sanitize.sh has more tests).
#
# The last line is "N passed, N failed, N skipped"; the exit code is 0 only if
# nothing failed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/common.sh
. "$here/lib/common.sh"
. "$here/lib/packages.sh"
. "$here/lib/build.sh"

# count KEY: an attribute of the test suite in ctest's report.
count() { sed -n '/<testsuite/,/>/s/.*[[:space:]]'"$1"'="\([0-9]*\)".*/\1/p' "$report" | head -n 1; }

install_packages
configure
build_targets

report=$build/test-report.xml
rm -f "$report"
say "running the tests"
code=0
# Far above what the longest takes: a test that hangs ends, and the others run.
ctest --test-dir "$build" --output-on-failure -j2 --timeout 1200 --output-junit "$report" "$@" || code=$?
[ -s "$report" ] || die "ctest wrote no report (exit code $code)"
total=$(count tests) failed=$(count failures)
skipped=$(($(count skipped) + $(count disabled)))
[ "${total:-0}" -gt 0 ] || die "ctest found no tests"
sanitizers=${SS_SANITIZERS-thread address undefined}
if [ $# -eq 0 ] && [ -n "$sanitizers" ]; then
  say "running tests of the runtime with sanitizers"
  log=$build/sanitize.log
  SS_SANITIZE_TESTS="${SS_SANITIZE_TESTS:-consolidation-test cuda-test handover-test runtime-test soak-test}" \
    "$here/sanitize.sh" $sanitizers > "$log" 2>&1 || code=1
  cat "$log"
  clean=$(grep -c ': clean$' "$log" || true)
  # A build that fails is a failure as well.
  wrong=$(grep -cE '^[a-z]+ [a-z-]+: FAILED|^error: ' "$log" || true)
  total=$((total + clean + wrong)) failed=$((failed + wrong))
fi
echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
exit "$code"
