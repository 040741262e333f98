#!/usr/bin/env bash
# Builds haul as one file that needs nothing of the system that it runs on (musl, static): scripts/static.sh [MACHINE]   (x86_64, aarch64; this machine's)
# Prints the program's path. Its symbols lie beside it, in a file with `.debug` behind the name.
#
# Rust for the target comes from rustup (`rustup target add MACHINE-unknown-linux-musl`, which is tried). Where that is not to be had, Debian's compiler and the source of its library do (rustc-web, cargo-web, rust-web-src): the library is then built here,
# once. C needs musl: Debian's musl-dev, and gcc; for another machine its compiler (gcc-aarch64-linux-gnu), and musl-dev for it, which is then fetched.
set -euo pipefail
cd "$(dirname "$0")/.."

machine=${1:-$(uname -m)}
target=$machine-unknown-linux-musl
# What a far side can be given: small enough for a slow line.
most_bytes=15000000

fail() {
    echo "static: error: $*" >&2
    exit 2
}

say() {
    echo "static: $*" >&2
}

built=${STATIC_DIR:-$(scripts/target-dir.sh)/static}
mkdir -p "$built"
built=$(realpath "$built")

# Paths of this machine do not belong into a program: the same source gives the same bytes anywhere.
home=${CARGO_HOME:-$HOME/.cargo}
flags=(-C target-feature=+crt-static "--remap-path-prefix=$PWD=/haul" "--remap-path-prefix=$home=/cargo" "--remap-path-prefix=$built=/target")
# Nothing unwinds through C.
c_flags="-fno-unwind-tables -fno-asynchronous-unwind-tables -ffile-prefix-map=$PWD=/haul -ffile-prefix-map=$home=/cargo -ffile-prefix-map=$built=/target"

# The C compiler for musl.
gcc=$machine-linux-gnu-gcc ar=$machine-linux-gnu-ar objcopy=$machine-linux-gnu-objcopy
command -v "$gcc" >/dev/null || fail "no $gcc: apt-get install gcc-$(tr _ - <<<"$machine")-linux-gnu"
cc=$(scripts/musl-cross.sh "$machine" "$built")

# The library asks for LLVM's unwinder by the name libunwind; that of gcc does the same. Debian's asks glibc where an address's tables are, which musl does not know: here it is told from the program's own headers.
unwinder() {
    mkdir -p "$1"
    "$cc" -O2 -fPIC -c -o "$1/find.o" scripts/musl-unwind.c
    cp "$("$gcc" -print-file-name=libgcc_eh.a)" "$1/libunwind.a"
    "$ar" rD "$1/libunwind.a" "$1/find.o"
}

# A compiler of Debian's, and the target's library from its source.
from_source() {
    local source compiler=/usr/bin/rustc
    source=$(ls -d /usr/src/rustc-*/library 2>/dev/null | tail -1)
    [ -n "$source" ] && [ -x "$compiler" ] && [ -x /usr/bin/cargo ] ||
        fail "no Rust for $target: rustup target add $target, or on Debian: apt-get install rustc-web cargo-web rust-web-src"
    local version library=$built/sysroot/lib/rustlib/$target/lib
    local how="-Zforce-unstable-if-unmarked -Cembed-bitcode=yes --remap-path-prefix=$built/library=/library --remap-path-prefix=$home=/cargo"
    version=$("$compiler" --version)
    if [ "$(cat "$library/version" 2>/dev/null)" != "$version $how" ]; then
        say "building the library of $version for $target, once"
        # With what was built upon another one.
        rm -rf "$built/library" "$library" "${built:?}/$target"
        cp -r "$source" "$built/library"
        RUSTC_BOOTSTRAP=1 RUSTC=$compiler CARGO_TARGET_DIR=$built/std RUSTFLAGS=$how \
            /usr/bin/cargo build --quiet --release --locked --manifest-path "$built/library/sysroot/Cargo.toml" --target "$target" --features panic-unwind,backtrace >&2
        mkdir -p "$library"
        cp "$built/std/$target/release/deps/"*.rlib "$library"
        rm -rf "$built/std" "$built/library"
        echo "$version $how" >"$library/version"
    fi
    unwinder "$built/crt-$machine"
    flags+=(--sysroot "$built/sysroot" -C link-self-contained=no "-Lnative=$built/crt-$machine" "-Clinker=$cc")
    cargo=/usr/bin/cargo
    export RUSTC=$compiler
}

# LLVM's linker, which comes with Rust: functions of the same code are one.
linker=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/gcc-ld
[ -x "$linker/ld.lld" ] || command -v ld.lld >/dev/null || fail "no ld.lld, neither beside $(command -v rustc) nor in PATH: apt-get install lld"
flags+=("-Clink-arg=-B$linker" -Clink-arg=-fuse-ld=lld -Clink-arg=-Wl,--icf=all)

cargo=cargo
if ls "$(rustc --print target-libdir --target "$target" 2>/dev/null)"/libstd-*.rlib >/dev/null 2>&1 || rustup -q target add "$target" 2>/dev/null; then
    # It has musl's start files with it; another machine's linker is to be named.
    [ "$machine" = "$(uname -m)" ] || flags+=("-Clinker=$gcc")
    # That is a musl which knows how to relocate itself by two bits for each address, in the place of 24 bytes (since 1.2.4; Debian's is older).
    flags+=(-Clink-arg=-Wl,--pack-dyn-relocs=relr)
else
    from_source
fi

# Arguments that are pushed take less room than those that are moved, and what unwinds past them takes more than that.
[ "$machine" != x86_64 ] || flags+=(-Cllvm-args=-no-x86-call-frame-opt)

name=${target//-/_}
export "CC_$name=$cc" "AR_$name=$ar" "CFLAGS_$name=$c_flags"
export CARGO_ENCODED_RUSTFLAGS
CARGO_ENCODED_RUSTFLAGS=$(printf '%s\x1f' "${flags[@]}")
CARGO_ENCODED_RUSTFLAGS=${CARGO_ENCODED_RUSTFLAGS%$'\x1f'}

export CARGO_INCREMENTAL=0
say "building for $target"
# shellcheck disable=SC2086  # options, as many as there are
CARGO_TARGET_DIR=$built "$cargo" build --profile dist --locked --target "$target" -p haul-cli ${STATIC_CARGO_OPTIONS:-} >&2

program=$built/haul-$machine-linux
cp "$built/$target/dist/haul" "$program.all"
"$objcopy" --only-keep-debug "$program.all" "$program.debug"
"$objcopy" --strip-all "$program.all" "$program"
rm "$program.all"
if readelf -lW "$program" | grep -q INTERP; then
    fail "$program needs a loader: it is not static"
fi
bytes=$(stat -c %s "$program")
[ "$bytes" -le "$most_bytes" ] || fail "$program has $bytes bytes, more than $most_bytes"
say "$bytes bytes"
echo "$program"
