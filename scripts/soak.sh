#!/usr/bin/env bash
# A daemon under everything for an hour: scripts/soak.sh MINUTES [SEED]; docs/torture.md says what happens and what is judged. What it does is printed, its figures go to RESULT (a file),
# if that is set. Needs root, sshd, iproute2. HAUL names the program: a release of this source by default.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:?usage: scripts/soak.sh MINUTES [SEED]}
seed=${2:-1}
haul=${HAUL:-}
if [ -z "$haul" ]; then
    cargo build --release --locked -p haul-cli
    haul=$(scripts/target-dir.sh)/release/haul
fi
if [ -n "${RESULT:-}" ]; then
    HAUL_SOAK_RESULT=$(realpath "$RESULT")
    export HAUL_SOAK_RESULT
fi
HAUL_BIN=$haul HAUL_SOAK_MINUTES=$minutes HAUL_SOAK_SEED=$seed CI=true cargo test --locked -p torture --test soak -- --nocapture
