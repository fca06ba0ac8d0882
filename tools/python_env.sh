#!/usr/bin/env bash
# A Python environment for building and testing siamesenorm, build/python-env: it sees the torch of .venv by a .pth file
# (no second download), and has of its own only what is named here.  tools/python_env.sh [NAME==VERSION...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
env=build/python-env
log=build/python-env.log

mkdir -p build
if ! "$env/bin/python" -c 'import torch' 2>/dev/null; then
  .venv/bin/python -m venv --clear "$env"
  shared=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  printf '%s\n' "$shared" >"$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/torch.pth"
fi
# Which of the packages NAME==VERSION are not there, by their metadata: one start of Python for all.
missing() {
  "$env/bin/python" -c 'import importlib.metadata as m, sys
for package in sys.argv[1:]:
    name, version = package.split("==")
    try:
        there = m.version(name)
    except m.PackageNotFoundError:
        there = None
    if there != version:
        print(package)' "$@"
}
install() { "$env/bin/python" -m pip install --disable-pip-version-check -q "$@" >"$log" 2>&1; }

mapfile -t wanted < <(missing scikit-build-core==1.1.1 "$@")
if [ ${#wanted[@]} -gt 0 ] && ! install "${wanted[@]}"; then
  # Which one was it? Alone, each tells.
  for package in "${wanted[@]}"; do
    install "$package" || {
      echo "python_env: error: the Python package $package could not be installed; see $log" >&2
      exit 1
    }
  done
fi
