#!/usr/bin/env bash
# Everything that reads the code without running it. Goes on after a failure, to show all of them, and fails at the end.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=()
partly=()
step() {
    local name=$1 status=0
    shift
    echo "== $name"
    "$@" || status=$?
    case $status in
        0) ;;
        # What could be checked here is sound, and something could not be checked.
        77) partly+=("$name") ;;
        *) failed+=("$name") ;;
    esac
}

documentation() {
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --quiet
}

# The fuzz targets are a workspace of their own, which only `make fuzz` builds: they, and their lock file, would fall behind unseen. Stable Rust is enough; the
# instrumentation is left out.
fuzz_targets() {
    cargo check --locked --quiet --manifest-path fuzz/Cargo.toml --bins
}

step "format" cargo fmt --all --check
step "format of fuzz" cargo fmt --manifest-path fuzz/Cargo.toml --check
step "clippy" cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
step "fuzz targets" fuzz_targets
step "oldest Rust" scripts/platforms.sh oldest
step "ARM64" scripts/platforms.sh arm64
step "Windows" scripts/windows.sh check
step "workspace" cargo xtask check
step "documentation" documentation
step "licences and advisories" scripts/deny.sh

if [ ${#failed[@]} -gt 0 ]; then
    printf 'check: FAILED: %s\n' "${failed[@]}" >&2
    exit 1
fi
if [ ${#partly[@]} -gt 0 ]; then
    printf 'check: NOT CHECKED in part, see above: %s\n' "${partly[@]}" >&2
    echo "check: all else clean"
    exit 0
fi
echo "check: all clean"
