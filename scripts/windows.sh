#!/usr/bin/env bash
# haul for Windows, built and tried on Linux: `scripts/windows.sh check` has the compiler look at all that is built there, `scripts/windows.sh build` makes haul.exe, `scripts/windows.sh test`
# runs unit tests and copies between it and haul of Linux under Wine, `scripts/windows.sh cargo ..` and `scripts/windows.sh wine ..` run these two with what they need. What that takes is
# got once, into target/windows: mingw and Wine from Debian as root or by sudo; Rust's library for the target by rustup, or else compiled from Debian's source with Debian's compiler of the
# same version (80 s). Where one of these cannot be had, it says so, and the status is 77. Wine is not Windows: docs/use/windows.md says what it cannot show.
set -euo pipefail
cd "$(dirname "$0")/.."

target=x86_64-pc-windows-gnu
here=$(scripts/target-dir.sh)/windows
# What is built for Windows. Others need what Linux alone has, see docs/use/windows.md.
crates=() tested=()
while read -r crate tests; do
    crates+=(-p "$crate")
    [ -z "$tests" ] || tested+=(-p "$crate")
done < <(sed 's/#.*//; /^ *$/d' scripts/windows/crates)

not_checked() {
    echo "windows: WARNING: $*" >&2
    exit 77
}

debian() {
    command -v apt-get >/dev/null || not_checked "no apt-get here: install what provides $*"
    local as_root=
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || not_checked "needs root: apt-get install $*"
        as_root=sudo
    fi
    echo "windows: installing $*" >&2
    $as_root apt-get update -qq || not_checked "no packages to be had here: apt-get install $*"
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null || not_checked "cannot be installed here: $*"
}

linker() {
    command -v x86_64-w64-mingw32-gcc >/dev/null || debian gcc-mingw-w64-x86-64-posix
}

# Rust with the library for Windows: rustup's, or a copy of Debian's that stays below target, so that this machine's Rust is as it was.
rust() {
    linker
    [ -e "$here/rust/complete" ] && return
    [ -n "${HAUL_WINDOWS_RUST:-}" ] || ! rustup -q target add "$target" 2>/dev/null || { mkdir -p "$here/rust" && echo rustup >"$here/rust/complete" && return; }
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || not_checked "rustup has no library for $target here, and this is no Debian to compile one on"
    rm -rf "$here/rust" "$here/packages" "$here/library"
    mkdir -p "$here/rust" "$here/packages"
    local packages
    packages=$(apt-get -s install --no-install-recommends rustc-web rust-web-src 2>/dev/null | sed -n 's/^Inst \([^ ]*\) .*/\1/p')
    [ -n "$packages" ] || packages="rustc-web rust-web-src"
    echo "windows: unpacking ${packages//$'\n'/ } into $here/rust" >&2
    # shellcheck disable=SC2086
    (cd "$here/packages" && apt-get download -qq $packages 2>/dev/null) || not_checked "Debian's rustc-web cannot be had here"
    for package in "$here/packages"/*.deb; do dpkg -x "$package" "$here/rust"; done
    rm -rf "$here/packages"
    with_rust
    echo "windows: compiling Rust's library for $target" >&2
    cp -r "$here"/rust/usr/src/rustc-*/library "$here/library"
    # As the compiler's own build has it: panic_abort, for one, aborts. RUSTC_BOOTSTRAP is for this build alone.
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$here/library/built" RUSTFLAGS=-Zforce-unstable-if-unmarked cargo build --quiet --release --locked \
        --manifest-path "$here/library/sysroot/Cargo.toml" --target "$target" --features panic-unwind,backtrace || not_checked "Rust's library for $target does not build here"
    local lib=$here/rust/usr/lib/rustlib/$target/lib
    mkdir -p "$lib"
    cp "$here/library/built/$target/release/deps/"*.rlib "$lib"
    rm -rf "$here/library"
    echo debian >"$here/rust/complete"
}

with_rust() {
    if [ "$(cat "$here/rust/complete" 2>/dev/null)" != rustup ]; then
        # The compiler finds its libraries beside itself; what it starts does not get to see them.
        mkdir -p "$here/rust/bin"
        for program in rustc rustdoc; do
            printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$here/rust/usr/lib/x86_64-linux-gnu" "$here/rust/usr/bin/$program" >"$here/rust/bin/$program"
            chmod +x "$here/rust/bin/$program"
        done
        export RUSTC=$here/rust/bin/rustc RUSTDOC=$here/rust/bin/rustdoc
    fi
    export CARGO_TARGET_DIR=$here/build
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$PWD/scripts/windows/wine
}

# Wine's world: a prefix of its own, without windows, that says it is Windows 10.
wine() {
    [ -x /usr/lib/wine/wine64 ] || command -v wine64 >/dev/null || command -v wine >/dev/null || debian wine64
    export HAUL_WINDOWS_DIR=$here
    [ -e "$here/wine/complete" ] && return
    rm -rf "$here/wine"
    mkdir -p "$here/wine"
    linker
    scripts/windows/wine wineboot -i >/dev/null 2>&1 || not_checked "Wine does not start here"
    local system=$here/wine/drive_c/windows/system32
    [ -e "$system/bcryptprimitives.dll" ] || x86_64-w64-mingw32-gcc -O2 -s -shared -o "$system/bcryptprimitives.dll" scripts/windows/bcryptprimitives.c -ladvapi32
    scripts/windows/wine reg add 'HKCU\Software\Wine' /v Version /d win10 /f >/dev/null
    touch "$here/wine/complete"
}

build() {
    rust
    (
        with_rust
        cargo build --locked --quiet --target "$target" -p haul-cli
    )
}

case ${1:?usage: scripts/windows.sh check|build|test|cargo ..|wine ..} in
    check)
        rust
        with_rust
        cargo check --locked --quiet --target "$target" "${crates[@]}" --lib --bins
        cargo check --locked --quiet --target "$target" "${tested[@]}" --lib --profile test
        ;;
    build)
        build
        ls -l "$here/build/$target/debug/haul.exe"
        ;;
    test)
        linux=$(scripts/target-dir.sh)/debug/haul
        # Before the compiler is another's.
        cargo build --locked --quiet -p haul-cli
        rust
        wine
        build
        (
            with_rust
            cargo test --locked --quiet --target "$target" "${tested[@]}" --lib
        )
        (
            with_rust
            "${RUSTC:-rustc}" --edition 2024 --target "$target" -C linker=x86_64-w64-mingw32-gcc -o "$here/ssh.exe" scripts/windows/ssh.rs
        )
        scripts/windows/exchange.py "$linux" "$here/build/$target/debug/haul.exe" "$here/ssh.exe"
        ;;
    cargo)
        rust
        wine
        with_rust
        shift
        cargo "$@"
        ;;
    wine)
        wine
        shift
        exec scripts/windows/wine "$@"
        ;;
    *)
        echo "windows: error: $1: check, build, test, cargo or wine" >&2
        exit 2
        ;;
esac
