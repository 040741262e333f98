#!/usr/bin/env bash
# Every test. CI=true makes the end-to-end tests fail where they would otherwise be skipped (no root, no sshd).
set -euo pipefail
cd "$(dirname "$0")/.."

# Minutes of random copies with random faults, in the place of the one that `cargo test` has.
export HAUL_TORTURE_MINUTES=${HAUL_TORTURE_MINUTES:-5}

# The programs first: the end-to-end tests run target/debug/haul.
cargo build --locked --workspace --bins
HAUL_BIN="$(scripts/target-dir.sh)/debug/haul" cargo test --locked --workspace
