# Sourced by the scripts: configures and builds.
# shellcheck shell=bash

# What ccache must overlook for precompiled headers to be found again.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime

configure() {
  say "configuring $build"
  local log=$build/configure.log
  mkdir -p "$build"
  cmake -G Ninja -S "$root" -B "$build" \
    -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
    >"$log" 2>&1 || { tail -n 40 "$log" >&2; die "CMake failed; the whole log is $log"; }
}

# build_targets [target...]: everything without an argument.
build_targets() {
  say "building ${*:-everything} ($jobs at a time)"
  ninja -C "$build" -j "$jobs" "$@" || die "the build failed"
}
