#!/usr/bin/env bash
# Shows that two builds are equal: builds this commit's release twice, from two clones in two directories with two names, and compares every file: scripts/reproduce.sh [--static]
# --static: the static program alone. Takes as long as two builds from nothing. What differs is named, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/var/tmp}/haul-reproduce-XXXXXX")
trap 'rm -rf "$work"' EXIT
for place in one another/place/two; do
    mkdir -p "$work/$place"
    git clone -q --no-hardlinks . "$work/$place/haul"
    (
        cd "$work/$place/haul"
        export CARGO_TARGET_DIR=$PWD/target TZ=$([ "$place" = one ] && echo UTC || echo Asia/Tokyo)
        unset STATIC_DIR
        if [ "${1:-}" = --static ]; then
            program=$(scripts/static.sh)
            mkdir -p dist
            cp "$program" dist/
        else
            scripts/artifacts.sh dist >/dev/null
        fi
        rm -rf target
    )
    mv "$work/$place/haul/dist" "$work/dist-$(basename "$place")"
    rm -rf "$work/$place/haul"
done
cd "$work"
if diff -r dist-one dist-two; then
    echo "reproduce: equal: $(cd dist-one && sha256sum -- * | grep -v SHA256SUMS | tr '\n' ';')"
else
    echo "reproduce: error: two builds of one commit differ" >&2
    exit 1
fi
