#!/usr/bin/env bash
# Shows that two builds are equal: builds this commit's release twice, from two clones in two directories with two names, and compares every file: scripts/reproduce.sh [--static] [--keep OUT]
# --static: the static program alone. --keep: the files of the first one are kept in OUT, with a table (scripts/artifact-table.sh) that says of each whether the second one's is equal. Takes as long as
# two builds from nothing. What differs is named, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD only= keep=
while [ $# -gt 0 ]; do
    case $1 in
        --static) only=static ;;
        --keep)
            mkdir -p "$2"
            keep=$(realpath "$2")
            shift
            ;;
        *) echo "usage: scripts/reproduce.sh [--static] [--keep OUT]" >&2; exit 2 ;;
    esac
    shift
done
work=$(mktemp -d "${TMPDIR:-/var/tmp}/haul-reproduce-XXXXXX")
trap 'rm -rf "$work"' EXIT
for place in one another/place/two; do
    mkdir -p "$work/$place"
    git clone -q --no-hardlinks . "$work/$place/haul"
    (
        cd "$work/$place/haul"
        export CARGO_TARGET_DIR=$PWD/target TZ=$([ "$place" = one ] && echo UTC || echo Asia/Tokyo)
        unset STATIC_DIR
        if [ "$only" = static ]; then
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
if [ -n "$keep" ] && [ -z "$only" ]; then
    cp -r "$work/dist-one/." "$keep"
    (cd "$root" && scripts/artifact-table.sh "$keep" "$work/dist-two")
fi
cd "$work"
if diff -r dist-one dist-two; then
    echo "reproduce: equal: $(cd dist-one && sha256sum -- * | grep -v SHA256SUMS | tr '\n' ';')"
else
    echo "reproduce: error: two builds of one commit differ" >&2
    exit 1
fi
