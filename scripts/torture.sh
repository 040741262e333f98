#!/usr/bin/env bash
# Random copies over an emulated WAN with random faults: scripts/torture.sh MINUTES [SEED]. SEED is a number, or `random`. What it does is printed; what a
# failure was about stays in /tmp/torture-evidence-SEED-PID. Needs root, sshd, iproute2. HAUL names the program: a release of this source by default.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:?usage: scripts/torture.sh MINUTES [SEED]}
seed=${2:-random}
haul=${HAUL:-}
if [ -z "$haul" ]; then
    cargo build --release --locked -p haul-cli
    haul=$(scripts/target-dir.sh)/release/haul
fi
HAUL_BIN=$haul HAUL_TORTURE_MINUTES=$minutes HAUL_TORTURE_SEED=$seed CI=true cargo test --locked -p torture --test torture -- --nocapture
