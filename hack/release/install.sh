#!/bin/sh
# Installs the command berth of release @VERSION@ into ~/.local/bin, or into the folder that BIN names:
#   curl -fsSL @URL@/install.sh | sh
# URL names another place with the files of the release. The checksums of the archives are in this file.
set -eu

url=${URL:-@URL@}
bin=${BIN:-$HOME/.local/bin}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

[ "$(uname -s)" = Linux ] || fail "berth runs on Linux, and this is $(uname -s)"
case $(uname -m) in
x86_64 | amd64) architecture=amd64 ;;
aarch64 | arm64) architecture=arm64 ;;
*) fail "there is no release for $(uname -m): it has amd64 and arm64" ;;
esac
case $architecture in
@SUMS@
*) fail "this release has no archive for $architecture" ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
archive=berth-@VERSION@-linux-$architecture.tar.gz
curl -fsSL --retry 3 -o "$folder/$archive" "$url/$archive" || fail "cannot download $url/$archive"
echo "$sum  $folder/$archive" | sha256sum -c - >/dev/null 2>&1 ||
  fail "$url/$archive is not the archive of this release: its SHA-256 is not $sum"
tar -xzf "$folder/$archive" -C "$folder"
mkdir -p "$bin"
install -m 0755 "$folder/berth" "$bin/berth"
echo "installed $bin/berth"
case :$PATH: in
*:"$bin":*) ;;
*) echo "add it to your PATH: export PATH=\"$bin:\$PATH\"" ;;
esac
