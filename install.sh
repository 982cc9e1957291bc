#!/bin/sh
# Installs a release of Chorus: fetches the archive for this machine, compares it with its checksum, and puts the program, the manual page
# and the completion into place. Nothing is written before the checksum was found right.
#
#   sh install.sh                        from CHORUS_RELEASES, a URL or a folder with the archives and checksums.txt
#   PREFIX=/usr/local sh install.sh      somewhere else than ~/.local
#   CHORUS_VERSION=v1.2.0 sh install.sh  another version than the newest
set -eu

prefix=${PREFIX:-$HOME/.local}
from=${CHORUS_RELEASES:-}
fail() {
	echo "install.sh: $*" >&2
	exit 1
}

[ -n "$from" ] || fail 'set CHORUS_RELEASES to the address or the folder of the releases (with checksums.txt in it)'
case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "there is no release for $(uname -s); build it with: make install" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no release for $(uname -m); build it with: make install" ;;
esac

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fetch() { # fetch NAME: into $dir
	case $from in
	http://* | https://*)
		if command -v curl >/dev/null; then
			curl -fsSL --retry 3 --max-time 600 -o "$dir/$1" "${from%/}/$1"
		elif command -v wget >/dev/null; then
			wget -q -T 600 -O "$dir/$1" "${from%/}/$1"
		else
			fail 'neither curl nor wget is here'
		fi || fail "cannot fetch ${from%/}/$1"
		;;
	*) cp "${from%/}/$1" "$dir/$1" || fail "there is no ${from%/}/$1" ;;
	esac
}
sum() {
	if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

fetch checksums.txt
name=$(sed -n "s/^[0-9a-f]\{64\}  \(chorus-.*-$os-$arch\.tar\.gz\)\$/\1/p" "$dir/checksums.txt" | grep -F -- "${CHORUS_VERSION:-}" | tail -n 1)
[ -n "$name" ] || fail "checksums.txt names no archive for $os-$arch ${CHORUS_VERSION:-}"
fetch "$name"
want=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$dir/checksums.txt")
have=$(sum "$dir/$name")
[ "$want" = "$have" ] || fail "$name is not what checksums.txt says (want $want, have $have); nothing was installed"

tar -xzf "$dir/$name" -C "$dir"
mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d" "$prefix/share/doc/chorus"
cp "$dir/chorus/chorus" "$prefix/bin/.chorus.new"
chmod 755 "$prefix/bin/.chorus.new"
mv "$prefix/bin/.chorus.new" "$prefix/bin/chorus" # a chorus that runs keeps its own file
cp "$dir/chorus/chorus.1" "$prefix/share/man/man1/chorus.1"
cp "$dir/chorus/chorus.bash" "$prefix/share/bash-completion/completions/chorus"
cp "$dir/chorus/chorus.zsh" "$prefix/share/zsh/site-functions/_chorus"
cp "$dir/chorus/chorus.fish" "$prefix/share/fish/vendor_completions.d/chorus.fish"
cp "$dir/chorus/LICENSE" "$dir/chorus/THIRD_PARTY_LICENSES" "$prefix/share/doc/chorus/"
echo "Installed $("$prefix/bin/chorus" version) as $prefix/bin/chorus."
case :$PATH: in
*:"$prefix/bin":*) echo 'Next: chorus serve' ;;
*) echo "Next: add it to your PATH with: export PATH=\"$prefix/bin:\$PATH\", then: chorus serve" ;;
esac
