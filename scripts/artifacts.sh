#!/usr/bin/env bash
# Builds and packs all that a release hands out, of the tree as it is: scripts/artifacts.sh [OUT]     (dist/)
#
#   haul-VERSION-MACHINE-linux            static, one file          .debug beside it: its symbols
#   haul-VERSION-MACHINE-linux-static.tar.gz, haul_VERSION_ARCH.deb, haul-VERSION-1.MACHINE.rpm
#   libhaulSO_VERSION_ARCH.deb, libhaul-dev_VERSION_ARCH.deb, libhaul-VERSION-1.MACHINE.rpm, libhaul-devel-VERSION-1.MACHINE.rpm
#   haul-VERSION.cdx.json                 what the program is made of (CycloneDX); haul-VERSION-MACHINE.cdx.json where that of another machine differs
#   SHA256SUMS
#   haul-VERSION.md                       a table of these: sizes, hashes (scripts/artifact-table.sh)
#
# MACHINES are those that are built for: this one and aarch64, unless it is said (MACHINES=x86_64). For another one its compiler is needed (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross), and
# Rust's library for it, by rustup. What is built for it runs nowhere here: it is packed, and not tried.
#
# HAUL and STATIC, programs that are there already, are packed in the place of new ones, for this machine alone; LIBRARY is the directory that libhaul was built in, if it is to be packed beside such a HAUL.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-dist}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
own=$(uname -m)
home=${CARGO_HOME:-$HOME/.cargo}
dir=$(scripts/target-dir.sh)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

fail() {
    echo "artifacts: error: $*" >&2
    exit 2
}

usual="$own aarch64"
[ -z "${HAUL:-}${STATIC:-}" ] || usual=$own
# Each once, this one first: it writes the manual pages for the others.
machines=$(tr ' ' '\n' <<<"$own ${MACHINES:-$usual}" | awk 'NF && !seen[$0]++')

# Said before anything is built.
for machine in $machines; do
    if [ "$machine" != "$own" ]; then
        command -v "$machine-linux-gnu-gcc" >/dev/null ||
            fail "no $machine-linux-gnu-gcc: apt-get install gcc-${machine/_/-}-linux-gnu and its libc6-dev-..-cross, or MACHINES=$own"
        ls "$(rustc --print target-libdir --target "$machine-unknown-linux-gnu")"/libstd-*.rlib >/dev/null 2>&1 ||
            rustup -q target add "$machine-unknown-linux-gnu" ||
            fail "no Rust for $machine-unknown-linux-gnu: rustup target add it, or MACHINES=$own"
    fi
done
mkdir -p "$out"

# haul and libhaul for this distribution on a machine, in the directory that is printed.
build() {
    local target=$1-unknown-linux-gnu options=() built=$dir/dist-build/dist
    if [ "$1" != "$own" ]; then
        local name=${target//-/_}
        options=(--target "$target")
        built=$dir/dist-build/$target/dist
        export "CC_$name=$1-linux-gnu-gcc" "AR_$name=$1-linux-gnu-ar" "CARGO_TARGET_${name^^}_LINKER=$1-linux-gnu-gcc"
    fi
    echo "artifacts: building for this distribution on $1" >&2
    RUSTFLAGS="--remap-path-prefix=$PWD=/haul --remap-path-prefix=$home=/cargo --remap-path-prefix=$dir=/target" \
        CFLAGS="-ffile-prefix-map=$PWD=/haul -ffile-prefix-map=$home=/cargo -ffile-prefix-map=$dir=/target" \
        CARGO_TARGET_DIR=$dir/dist-build CARGO_INCREMENTAL=0 cargo build --profile dist --locked "${options[@]}" -p haul-cli -p haul-ffi >&2
    echo "$built"
}

declare -A static haul library
for machine in $machines; do
    if [ "$machine" = "$own" ] && [ -n "${STATIC:-}" ]; then
        static[$machine]=$STATIC
    else
        static[$machine]=$(scripts/static.sh "$machine")
    fi
    if [ "$machine" = "$own" ] && [ -n "${HAUL:-}" ]; then
        haul[$machine]=$HAUL library[$machine]=${LIBRARY:-}
    else
        library[$machine]=$(build "$machine")
        haul[$machine]=${library[$machine]}/haul
    fi
done

for machine in $machines; do
    others=
    for other in $machines; do
        [ "$other" = "$machine" ] || others+=" ${static[$other]}"
    done
    MACHINE=$machine WRITER=${haul[$own]} OTHERS=$others \
        scripts/package.sh "${haul[$machine]}" "${static[$machine]}" "$out" ${library[$machine]:+"${library[$machine]}"}
    install -m 755 "${static[$machine]}" "$out/haul-$version-$machine-linux"
    [ ! -e "${static[$machine]}.debug" ] || install -m 644 "${static[$machine]}.debug" "$out/haul-$version-$machine-linux.debug"
    bill=$out/haul-$version-$machine.cdx.json
    scripts/sbom.py "$machine-unknown-linux-musl" >"$bill"
    if [ "$machine" = "$own" ]; then
        mv "$bill" "$out/haul-$version.cdx.json"
    elif cmp -s "$bill" "$out/haul-$version.cdx.json"; then
        rm "$bill"
    fi
done
rm -f "$out/haul-$version.md"
(cd "$out" && sha256sum -- haul[-_]"$version"* $(ls libhaul* 2>/dev/null) >SHA256SUMS && cat SHA256SUMS)
scripts/artifact-table.sh "$out"
