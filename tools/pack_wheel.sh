#!/usr/bin/env bash
# Packs build/dist/siamesenorm-*.whl from what build/release holds; nothing is compiled.  tools/pack_wheel.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$PWD/${1:-build/release}

tools/python_env.sh
rm -rf build/dist build/pack
build/python-env/bin/python -m pip wheel . --disable-pip-version-check -q --no-deps --no-build-isolation -w build/dist \
  -C build-dir=build/pack -C cmake.define.SIAMESE_PREBUILT="$build" >build/pack_wheel.log 2>&1 || {
  tail -n 30 build/pack_wheel.log >&2
  echo "pack_wheel: error: see build/pack_wheel.log" >&2
  exit 1
}
echo "pack_wheel: $(ls build/dist/*.whl)"
