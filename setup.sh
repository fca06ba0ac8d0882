#!/usr/bin/env bash
# Makes a Debian 12 machine ready to build: the Debian packages below, and .venv with the `torch` wheel, from which
# CMake takes LibTorch. What is there already is not touched. `make demo` and `make test` call this; `make fuzz` and
# `make lint` name further Debian packages as arguments. docs/building.md has other distributions.
#   TORCH_INDEX=URL            the package index to take torch from (pip's --index-url), for a wheel of your choice
#   SIAMESE_TORCH_PREFIX=DIR   folder of a torch package that is there already: nothing is downloaded by pip
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

packages=(g++ cmake ninja-build libhwy-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libfmt-dev libgtest-dev
  libjpeg-dev libpng-dev libcpp-httplib-dev libxxhash-dev libpcre2-dev libutf8proc-dev zlib1g-dev libzstd-dev
  libgoogle-perftools-dev libopenmpi-dev openmpi-bin iproute2
  clang-format chromium "$@")
torch_version=2.13.0
log=build/setup.log
log_begun=

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: error: %s\n' "$*" >&2
  exit 1
}

# Everything a step prints goes to the log; of that, the lines `filter` (a sed expression) makes also to the screen.
logged() {
  local filter=$1
  shift
  mkdir -p build
  if [ -z "$log_begun" ]; then : >"$log"; fi
  log_begun=yes
  printf '\n$ %s\n' "$*" >>"$log"
  "$@" </dev/null 2>&1 | tee -a "$log" | sed -un "$filter"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# The last line in which a tool says why it failed.
reason() { grep -E '^(E|ERROR|Error|error|sudo)\b' "$log" 2>/dev/null | tail -n 1 || true; }

# --- Debian packages ---------------------------------------------------------------------------------------------

missing_packages() {
  local have package
  have=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    case "$have" in *" $package=installed "*) ;; *) printf '%s\n' "$package" ;; esac
  done
}

apt_install() {
  logged 's/^Setting up \([^ :]*\).*/setup:   \1/p' as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@"
}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "no apt-get here: the counterparts of these Debian 12 packages have to be installed already: $*"
    return 0
  fi
  local missing package
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
    die "the Debian packages ${missing[*]} are missing, and this needs root or sudo to install them"
  say "installing Debian packages: ${missing[*]} (log: $log)"
  # A failed update is no reason to give up: the lists that are there may do.
  logged '' as_root apt-get -o DPkg::Lock::Timeout=300 update || say "the package lists could not be refreshed; going on"
  apt_install "${missing[@]}" && return 0
  # Which one was it? Alone, each tells.
  for package in "${missing[@]}"; do
    [ -z "$(missing_packages "$package")" ] || apt_install "$package" ||
      die "the Debian package $package could not be installed ($(reason)); see $log"
  done
}

# at_least WHAT HAVE WANT
at_least() {
  [ "$(printf '%s\n%s\n' "$3" "$2" | sort -V | head -n 1)" = "$3" ] ||
    die "$1 $3 or newer is needed, and $(command -v "$1") is $2: put a newer $1 first on PATH"
}

check_versions() {
  local version
  version=$(g++ -dumpfullversion 2>/dev/null) || die "g++ does not run"
  at_least g++ "$version" 12
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
  [ -n "$version" ] || die "cmake does not run"
  at_least cmake "$version" 3.25
}

# --- .venv -------------------------------------------------------------------------------------------------------

# The version of a Python package in .venv by its metadata (importing torch takes seconds), without "+cpu" and the like.
venv_version() {
  .venv/bin/python -c "import importlib.metadata as m, sys; print(m.version(sys.argv[1]).split('+')[0])" "$1" \
    2>/dev/null || true
}

make_venv() {
  if ! command -v python3 >/dev/null; then
    install_packages python3 python3-venv
  elif ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    install_packages python3-venv
  fi
  say "making .venv with $(python3 --version 2>&1)"
  # An environment whose python is gone (moved, upgraded) is made anew; one that only lacks pip is completed.
  local clear=--clear
  ! .venv/bin/python -c '' 2>/dev/null || clear=
  # shellcheck disable=SC2086
  logged '' python3 -m venv $clear .venv ||
    die "the Python environment .venv could not be made: python3 ($(command -v python3)) lacks ensurepip, which the" \
      "Debian package python3-venv brings for Debian's own python3; see $log"
}

# pip_install NAME [OPTION...]: pip names each file and its size before it downloads it, and so do we.
pip_install() {
  local package=$1
  shift
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then make_venv; fi
  say "installing the Python package $package into .venv (log: $log)"
  logged 's/^Collecting \([^ ]*\).*/setup:   \1/p; s/^ *Downloading \(.*\/\)\?\(.*\.whl\) (\(.*\))$/setup:   downloading \2, \3/p' \
    .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off "$@" "$package" ||
    die "the Python package $package could not be installed into .venv ($(reason)); see $log"
}

install_torch() {
  if [ "$(venv_version torch)" = "$torch_version" ]; then
    [ -z "${TORCH_INDEX:-}" ] || say "torch $torch_version is in .venv already, so TORCH_INDEX is not used: remove .venv for another wheel"
    return 0
  fi
  local index=()
  if [ -n "${TORCH_INDEX:-}" ]; then
    index=(--index-url "$TORCH_INDEX")
    say "torch $torch_version comes from TORCH_INDEX"
  else
    say "torch $torch_version comes from pip's own index. On x86-64 that is usually the wheel for CUDA, with its" \
      "libraries some GB to download and more on disk; one for the CPU alone is 0.2 GB, 0.8 GB on disk, and all" \
      "that this engine needs on a CPU: TORCH_INDEX=URL names the index of such wheels"
  fi
  pip_install "torch==$torch_version" "${index[@]}"
}

# A torch that somebody else installed: used as it is. CMake reads the same variable.
check_torch_prefix() {
  local found
  [ -e "$SIAMESE_TORCH_PREFIX/lib/libtorch_cpu.so" ] && [ -d "$SIAMESE_TORCH_PREFIX/include/ATen" ] ||
    die "SIAMESE_TORCH_PREFIX: expected the folder of a torch package, with lib/libtorch_cpu.so and include/ATen, got" \
      "$SIAMESE_TORCH_PREFIX"
  found=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$SIAMESE_TORCH_PREFIX/version.py" 2>/dev/null || true)
  [ "$found" = "$torch_version" ] ||
    say "SIAMESE_TORCH_PREFIX is torch ${found:-of no known version}: this engine is built and tested with $torch_version"
  say "using the torch of SIAMESE_TORCH_PREFIX; .venv, which the tests in Python need, is not made"
}

# Headers for the binding of the Python package; Debian's own python3 keeps them in a package apart.
has_python_headers() {
  .venv/bin/python -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))'
}

install_packages "${packages[@]}"
check_versions
if [ -n "${SIAMESE_TORCH_PREFIX:-}" ]; then
  check_torch_prefix
else
  install_torch
  [ -n "$(venv_version numpy)" ] || pip_install numpy
  has_python_headers || install_packages python3-dev
fi
say "ready"
