#!/usr/bin/env bash
# Trains the comparison of configs/demo.yaml, shown live meanwhile: what `make demo` does behind the build.
#   tools/demo.sh build/release/siamese runs/demo [key=value ...]
set -euo pipefail
siamese=$1 out=$2
shift 2
mkdir -p "$out"

# The live page begins before the first run and ends with the sweep, however that ends.
said=$(mktemp)
"$siamese" watch "$out" --port 0 > "$said" 2>&1 &
watch=$!
trap 'kill "$watch" 2> /dev/null && wait "$watch" || true; rm -f "$said"' EXIT
for _ in {1..100}; do
  if grep -q http "$said" || ! kill -0 "$watch" 2> /dev/null; then break; fi
  sleep 0.1
done
if address=$(grep -om1 'http://[0-9.:]*' "$said"); then
  printf 'Live, while they train: open %s in a browser.\n\n' "$address"
else
  printf 'No live page (%s). In a second terminal: %s watch %s\n\n' "$(head -n1 "$said")" "$siamese" "$out"
fi
"$siamese" sweep "$(dirname "${BASH_SOURCE[0]}")/../configs/demo.yaml" --out "$out" "$@"
