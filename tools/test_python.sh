#!/usr/bin/env bash
# Packs the wheel of build/release, installs it into a fresh environment and runs the tests of the package there: what a
# user gets is tested, not the source tree.  tools/test_python.sh [arguments of pytest]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/pack_wheel.sh
tools/python_env.sh pytest==9.2.0 pytest-xdist==3.8.0 ruff==0.17.5 mypy==2.4.1 transformers==5.22.2 triton==3.9.0 nbclient==0.11.0 \
  ipykernel==7.4.0 matplotlib==3.11.2
python=build/python-env/bin/python
"$python" -m pip install --disable-pip-version-check -q --no-deps --force-reinstall build/dist/siamesenorm-*.whl
"$python" -m ruff check
"$python" -m mypy
# A test on each core; what shares a fixture stays together (xdist_group). One thread each, or they would wait for each other.
OMP_NUM_THREADS=1 SIAMESE_BINARY=$PWD/build/release/siamese "$python" -m pytest -q -p no:cacheprovider -n "$(nproc)" \
  --dist loadgroup python/tests "$@"
