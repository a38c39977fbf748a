# Sourced by the scripts: installs what is missing on Debian 12.
# shellcheck shell=bash

# What the build, the tools and the tests need. python3 comes with
# llvm-22-tools and is used by lit alone.
packages=(
  cmake ninja-build ccache
  clang-22 lld-22
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools libomp-22-dev
  libgtest-dev libbenchmark-dev nlohmann-json3-dev libeigen3-dev libzstd-dev zlib1g-dev
)

# Prints the packages of the list that are not installed.
missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null)" = 'ii ' ] || echo "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    die "this is not Debian (no apt-get); install LLVM and MLIR 22.1, clang 22, lld 22, CMake 3.25, ninja, ccache, GoogleTest, Eigen 3.4 and nlohmann-json 3.11 and build with CMake (see README.md)"
  local missing
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} -eq 0 ]; then
    say "all ${#packages[@]} packages are installed"
    return
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "packages are missing and you are not root; run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q ||
    die "apt-get update failed; check the network and /etc/apt/sources.list"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}" ||
    die "apt-get could not install ${missing[*]}; LLVM 22 is in Debian 12's security archive (bookworm-security)"
}
