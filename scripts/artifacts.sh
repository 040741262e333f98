#!/usr/bin/env bash
# Builds and packs all that a release hands out, of the tree as it is: scripts/artifacts.sh [OUT]     (dist/)
#
#   haul-VERSION-MACHINE-linux            static, one file          .debug beside it: its symbols
#   haul-VERSION-MACHINE-linux-static.tar.gz, haul_VERSION_ARCH.deb, haul-VERSION-1.MACHINE.rpm
#   libhaulSO_VERSION_ARCH.deb, libhaul-dev_VERSION_ARCH.deb, libhaul-VERSION-1.MACHINE.rpm, libhaul-devel-VERSION-1.MACHINE.rpm
#   haul-VERSION.cdx.json                 what the program is made of (CycloneDX)
#   SHA256SUMS
#
# HAUL and STATIC, programs that are there already, are packed in the place of new ones; LIBRARY is the directory that libhaul was built in, if it is to be packed beside such a HAUL.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-dist}
mkdir -p "$out"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
machine=$(uname -m)
home=${CARGO_HOME:-$HOME/.cargo}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

static=${STATIC:-$(scripts/static.sh "$machine")}
if [ -z "${HAUL:-}" ]; then
    echo "artifacts: building for this distribution" >&2
    dir=$(scripts/target-dir.sh)
    RUSTFLAGS="--remap-path-prefix=$PWD=/haul --remap-path-prefix=$home=/cargo --remap-path-prefix=$dir=/target" \
        CFLAGS="-ffile-prefix-map=$PWD=/haul -ffile-prefix-map=$home=/cargo -ffile-prefix-map=$dir=/target" \
        CARGO_TARGET_DIR=$dir/dist-build CARGO_INCREMENTAL=0 cargo build --profile dist --locked -p haul-cli -p haul-ffi
    HAUL=$dir/dist-build/dist/haul LIBRARY=$dir/dist-build/dist
fi

scripts/package.sh "$HAUL" "$static" "$out" ${LIBRARY:+"$LIBRARY"}
install -m 755 "$static" "$out/haul-$version-$machine-linux"
[ ! -e "$static.debug" ] || install -m 644 "$static.debug" "$out/haul-$version-$machine-linux.debug"
scripts/sbom.py "$machine-unknown-linux-musl" >"$out/haul-$version.cdx.json"
(cd "$out" && sha256sum -- haul[-_]"$version"* $(ls libhaul* 2>/dev/null) >SHA256SUMS && cat SHA256SUMS)
