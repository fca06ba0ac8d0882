#!/usr/bin/env bash
# arm64_sysroot.sh FOLDER: the libraries that the torch-free rooms link, from Debian's arm64 packages, unpacked into
# FOLDER. apt works on lists and caches inside it: nothing is installed, this machine's own packages stay as they are,
# and root is not needed. A complete FOLDER is left alone.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: arm64_sysroot.sh FOLDER" >&2; exit 2; }

packages=(libhwy-dev libhwy1 libyaml-cpp-dev libyaml-cpp0.7 nlohmann-json3-dev libfmt-dev libfmt9 libgtest-dev
  libjpeg62-turbo-dev libjpeg62-turbo libpng-dev libpng16-16 zlib1g-dev zlib1g libxxhash-dev
  libpcre2-dev libpcre2-8-0 libutf8proc-dev libutf8proc2 libzstd-dev libzstd1)
mkdir -p "$1"
root=$(cd "$1" && pwd)
done_mark=$root/.packages
[ "$(cat "$done_mark" 2>/dev/null)" != "${packages[*]}" ] || exit 0

apt_folder=$root/.apt
rm -rf "$apt_folder"
mkdir -p "$apt_folder"/{state/lists/partial,cache/archives/partial,packages}
: >"$apt_folder/status"
apt_arm64() {
  apt-get -q -o "Dir::State=$apt_folder/state" -o "Dir::State::status=$apt_folder/status" \
    -o "Dir::Cache=$apt_folder/cache" -o APT::Architecture=arm64 -o APT::Architectures::=arm64 \
    -o "APT::Sandbox::User=$(id -un)" "$@"
}
# Sources without arm64 may fail; what then is missing, the download names.
apt_arm64 update || echo "arm64_sysroot: some package lists could not be fetched; going on" >&2
(cd "$apt_folder/packages" && apt_arm64 download "${packages[@]}")

for package in "$apt_folder"/packages/*.deb; do dpkg-deb -x "$package" "$root"; done
# zlib is in /lib, where nobody looks: Debian's /lib is /usr/lib.
cp -a "$root/lib/." "$root/usr/lib/"
# Links with absolute targets would leave the folder.
find "$root" -type l -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
echo "${packages[*]}" >"$done_mark"
