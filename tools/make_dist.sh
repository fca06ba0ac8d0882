#!/usr/bin/env bash
# Packs the committed tree as dist/siamese-VERSION.tar.gz and proves the archive by itself: it is unpacked outside of any
# repository, compared file by file with the commit, asked for the commit that a build of it will name, and passes
# `make check`. With --full it also builds and runs every test there (an hour).    tools/make_dist.sh [--full]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'make_dist: %s\n' "$*"; }
die() {
  printf 'make_dist: error: %s\n' "$*" >&2
  exit 1
}

full=
case "${1:-}" in
'') ;;
--full) full=yes ;;
*) die "expected no argument or --full, got $1" ;;
esac

commit=$(git rev-parse --verify HEAD) || die "expected a git repository with a commit"
version=$(sed -n 's/^project(siamese VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
[ -n "$version" ] || die "CMakeLists.txt: expected project(siamese VERSION ...)"
[ -z "$(git status --porcelain --untracked-files=no)" ] || say "files differ from the commit: the archive is of the commit"

name=siamese-$version
mkdir -p dist
git archive --format=tar.gz --prefix="$name/" -o "dist/$name.tar.gz" "$commit"

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
tar -xzf "dist/$name.tar.gz" -C "$room"
unpacked=$room/$name

# Every file with its content; the one that git fills in is compared by what it must say.
stamp=cmake/archive_commit.txt
git ls-tree -r --name-only "$commit" | grep -vFx "$stamp" | while IFS= read -r file; do
  git cat-file blob "$commit:$file" | cmp -s - "$unpacked/$file" || die "$file: not in the archive as it is in the commit"
done
[ "$(cat "$unpacked/$stamp")" = "$commit" ] || die "$stamp: expected $commit, got $(cat "$unpacked/$stamp")"
for git in '' "$(command -v git)"; do
  cmake -DOUT="$room/source.cc" -DROOT="$unpacked" -DVERSION="$version" -DGIT="$git" -P "$unpacked/cmake/source_version.cmake"
  grep -qF "kSourceCommit = \"$commit\"" "$room/source.cc" || die "a build of the archive would not name the commit $commit"
done

make -C "$unpacked" check >"$room/check.log" 2>&1 || {
  tail -n 20 "$room/check.log" >&2
  die "make check fails in the archive"
}
if [ -n "$full" ]; then
  say "building and testing the archive in $unpacked"
  make -C "$unpacked" test || die "make test fails in the archive"
fi
say "dist/$name.tar.gz, $(wc -c <"dist/$name.tar.gz") bytes, of commit $commit: complete, and its make ${full:+test and make }check pass"
