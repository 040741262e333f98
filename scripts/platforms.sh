#!/usr/bin/env bash
# What README says of compilers and machines, each kept by the compiler: `scripts/platforms.sh oldest` checks the workspace with the oldest Rust that Cargo.toml names,
# `scripts/platforms.sh arm64` haul and libhaul for ARM64. Fetches the toolchain by rustup where it is missing; where that cannot be had, it says so, and the status is 77.
set -euo pipefail
cd "$(dirname "$0")/.."

not_checked() {
    echo "platforms: WARNING: $*" >&2
    exit 77
}

command -v rustup >/dev/null || not_checked "no rustup here, by which another toolchain is had"
# Of their own: the usual directory's results would be thrown away and made again at each turn.
CARGO_TARGET_DIR=$(scripts/target-dir.sh)/platforms
export CARGO_TARGET_DIR
case ${1:?usage: scripts/platforms.sh oldest|arm64} in
    oldest)
        oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
        rustup -q run "$oldest" rustc --version >/dev/null 2>&1 || rustup -q toolchain install "$oldest" --profile minimal ||
            not_checked "Rust $oldest is not to be had here"
        cargo "+$oldest" check --locked --quiet --workspace
        ;;
    arm64)
        target=aarch64-unknown-linux-gnu
        command -v aarch64-linux-gnu-gcc >/dev/null || not_checked "no aarch64-linux-gnu-gcc: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
        rustup -q target add "$target" || not_checked "Rust's library for $target is not to be had here"
        cargo check --locked --quiet --target "$target" -p haul-cli -p haul-ffi
        ;;
    *)
        echo "platforms: error: $1: oldest or arm64" >&2
        exit 2
        ;;
esac
