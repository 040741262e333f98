#!/usr/bin/env bash
# Every test, and at the end how long each part took. CI=true makes the end-to-end tests fail where they would otherwise be skipped (no root, no sshd).
set -euo pipefail
cd "$(dirname "$0")/.."

# Minutes of random copies with random faults, in the place of the one that `cargo test` has.
export HAUL_TORTURE_MINUTES=${HAUL_TORTURE_MINUTES:-5}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The programs first: the end-to-end tests run target/debug/haul.
began=$SECONDS
cargo build --locked --workspace --bins
cargo test --locked --workspace --no-run
built=$((SECONDS - began))

status=0
HAUL_BIN="$(scripts/target-dir.sh)/debug/haul" cargo test --locked --workspace 2>&1 | tee "$log" || status=$?
scripts/test-times.sh "$built" "$((SECONDS - began))" <"$log"
exit "$status"
