#!/usr/bin/env bash
# Makes a release: scripts/release.sh [--dry-run] VERSION
#
#   version in Cargo.toml, both lock files and haul.h, heading in CHANGELOG.md, manual pages     -> one commit, tag vVERSION
#   dist/haul-VERSION.tar.gz                the source, as tagged
#   dist/haul-VERSION-MACHINE.tar.gz        haul, hcp, hperf, libhaul, manual pages, completions, licences: unpack at /
#   dist/SHA256SUMS
#
# Refuses a tree with changes, a version that is not newer, a tag that is there, a changelog with nothing to release. Pushes nothing: it says how.
# --dry-run does it all in a clone that is then removed, and packs the program that is there (HAUL, or target/debug/haul) instead of building one.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "release: error: $*" >&2
    exit 2
}

dry=
if [ "${1:-}" = --dry-run ]; then
    dry=yes
    shift
fi
[ $# = 1 ] || fail "usage: scripts/release.sh [--dry-run] VERSION"
version=$1
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "\`$version\` is no version: write for instance 0.2.0"

current=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$current" ] || fail "no version in Cargo.toml"
[ "$version" != "$current" ] && [ "$(printf '%s\n' "$current" "$version" | sort -V | tail -1)" = "$version" ] ||
    fail "$version is not newer than $current"
[ -z "$(git status --porcelain)" ] || fail "the tree has changes: commit or stash them"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "there is a tag v$version"
unreleased=$(sed -n '/^## \[Unreleased\]/,/^## \[[0-9]/p' CHANGELOG.md | grep -c '^- ' || true)
[ "$unreleased" -gt 0 ] || fail "CHANGELOG.md has nothing under [Unreleased]"

haul=${HAUL:-}
if [ -n "$dry" ]; then
    haul=$(realpath "${haul:-$(scripts/target-dir.sh)/debug/haul}")
    [ -x "$haul" ] || fail "no program at $haul: cargo build -p haul-cli"
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    git clone -q --no-hardlinks . "$scratch/haul"
    cd "$scratch/haul"
    git config user.name "${GIT_AUTHOR_NAME:-release}"
    git config user.email "${GIT_AUTHOR_EMAIL:-release@localhost}"
fi

step() {
    echo "release: $*"
}

step "version $current -> $version"
sed -i "/^\[workspace.package\]/,/^\[/s/^version = \"$current\"\$/version = \"$version\"/" Cargo.toml
# In the lock files, the members alone, which have no source: what else is locked stays as it was tested.
for lock in Cargo.lock fuzz/Cargo.lock; do
    awk -v from="version = \"$current\"" -v to="version = \"$version\"" \
        'BEGIN { RS = ""; ORS = "\n\n" } !/\nsource = / { sub("\n" from "\n", "\n" to "\n"); sub("\n" from "$", "\n" to) } { print }' \
        "$lock" | sed '$ d' >"$lock.new"
    mv "$lock.new" "$lock"
done

header=crates/haul-ffi/include/haul.h
sed -i "s/^\(#define HAUL_VERSION_MAJOR\) .*/\1 ${version%%.*}/; s/^\(#define HAUL_VERSION_MINOR\) .*/\1 $(cut -d. -f2 <<<"$version")/" "$header"

step "changelog: $unreleased entries"
sed -i "s/^## \[Unreleased\]\$/## [Unreleased]\n\n## [$version] - $(date -u +%F)/" CHANGELOG.md

if [ -z "$dry" ]; then
    step "building"
    cargo build --release --locked -p haul-cli -p haul-ffi
    haul="$(scripts/target-dir.sh)/release/haul"
    step "manual pages"
    "$haul" man man
fi

step "commit and tag v$version"
git commit -q -a -m "release: $version"
git tag -a "v$version" -m "haul $version"

mkdir -p dist
step "dist/haul-$version.tar.gz"
git archive --prefix="haul-$version/" -o "dist/haul-$version.tar.gz" "v$version"

packed="haul-$version-$(uname -m)-linux.tar.gz"
step "dist/$packed"
root=$(mktemp -d)
symbols="haul-$version-$(uname -m)-linux.debug"
make -s install-files HAUL="$haul" DESTDIR="$root" PREFIX=/usr DEBUG="dist/$symbols"
# A dry run builds nothing, and has a library only if one is there.
library=$(dirname "$haul")
if [ -z "$dry" ] || [ -e "$library/libhaul_ffi.so" ] && [ -e "$library/libhaul_ffi.a" ]; then
    make -s install-library BUILT="$library" DESTDIR="$root" PREFIX=/usr
fi
install -D -m 644 -t "$root/usr/share/doc/haul" LICENSE-* README.md CHANGELOG.md SECURITY.md
# The same bytes from the same files, whoever packs them, and when.
tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -c . | gzip -n >"dist/$packed"
rm -rf "$root"
(cd dist && sha256sum "haul-$version.tar.gz" "$packed" "$symbols" >SHA256SUMS)

if [ -n "$dry" ]; then
    git --no-pager show --stat --format=%s HEAD
    for archive in "haul-$version.tar.gz" "$packed"; do
        echo "release: $archive has $(tar -tzf "dist/$archive" | wc -l) entries"
    done
    tar -tzf "dist/$packed"
    step "dry run: nothing was changed"
else
    step "done; what is left: git push --follow-tags, and the files of dist/"
fi
