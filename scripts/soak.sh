#!/usr/bin/env bash
# Random joins, leaves, pauses, padding and pressure of memory on the CPU, every
# output compared with the request alone.
#
#   scripts/soak.sh                 100,000 steps
#   scripts/soak.sh 5000 7          so many steps, another seed
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/common.sh
. "$here/lib/common.sh"
# shellcheck source=scripts/lib/build.sh
. "$here/lib/build.sh"

[ -f "$build/build.ninja" ] || configure
build_targets soak
exec "$build/test/bin/soak" "$@"
