#!/usr/bin/env bash
# Installs what is missing, builds ss-run and decodes a text with the example
# model, its states in low-rank form and, for comparison, dense.
#
#   scripts/run.sh                        1,024 tokens, eps 0.03
#   scripts/run.sh --policy fixed:16      more options of ss-run replace or add to them
#   scripts/run.sh --help                 the options of ss-run
#   scripts/run.sh --print [options]      the command alone: nothing is built or run
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/common.sh
. "$here/lib/common.sh"
. "$here/lib/packages.sh"
. "$here/lib/build.sh"

# given NAME ARGUMENTS...: whether --NAME is among the arguments.
given() {
  local name=$1 argument
  shift
  for argument in "$@"; do
    case $argument in
    --"$name" | --"$name"=* | -"$name" | -"$name"=*) return 0 ;;
    esac
  done
  return 1
}

# add_defaults ARGUMENTS...: fills `arguments` with what the user left out, but
# for what the rest of the arguments says already or does not go with.
add_defaults() {
  local example=$root/examples/tiny-hybrid
  given model "$@" || arguments+=(--model "$example")
  given text "$@" || given calibrate-sink "$@" || arguments+=(--text "$example/sample.bin")
  given tokens "$@" || arguments+=(--tokens 1024)
  given policy "$@" || given package "$@" || given quality "$@" || given calibrate-sink "$@" ||
    arguments+=(--policy relative:0.03)
}

arguments=()
if [ "${1:-}" = --print ]; then
  shift
  add_defaults "$@"
  set -- "${arguments[@]}" "$@"
  echo "build/bin/ss-run $*"
  exit
fi

install_packages
configure
build_targets ss-run

add_defaults "$@"
set -- "${arguments[@]}" "$@"
say "build/bin/ss-run $*"
exec "$build/bin/ss-run" "$@"
