#!/usr/bin/env bash
# Installs build/release into build/install, builds examples/ against it as an outside project, runs each lesson, and
# fails when one fails or its loss does not fall.  tools/build_examples.sh [BUILD_DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
prefix=$PWD/build/install

rm -rf "$prefix" # a header that is no longer installed must be missed here
cmake --install "$build" --prefix "$prefix" >build/install.log
echo "examples: installed $build into build/install"
"$prefix/bin/siamese" --version >/dev/null || {
  echo "examples: error: the installed siamese does not run" >&2
  exit 1
}

cmake -S examples -B build/examples -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix"
cmake --build build/examples

for folder in examples/[0-9]*/; do
  lesson=$(basename "$folder")
  program=build/examples/$lesson/${lesson#*_}
  echo "examples: running $lesson"
  "$program" | tee "build/examples/$lesson.txt"
  awk '
    /^step/ { for (i = 1; i < NF; ++i) if ($i == "loss") { if (!seen++) first = $(i + 1); last = $(i + 1) } }
    END { exit !(seen > 1 && last ~ /^[0-9.]+$/ && last < 0.7 * first) }
  ' "build/examples/$lesson.txt" || {
    echo "examples: error: the loss of $lesson does not fall" >&2
    exit 1
  }
done
echo "examples: all lessons built, ran and learned"
