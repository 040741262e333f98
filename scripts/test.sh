#!/usr/bin/env bash
# Every test, several programs at once; at the end how long each took, and after that all that a failed one said. `scripts/test.sh PART..` runs the programs
# whose names contain one of these, such as e2e/kills. CI=true makes the end-to-end tests fail where they would otherwise be skipped (no root, no sshd). Then those of haul for Python (scripts/python.sh) and for Windows (scripts/windows.sh test).
set -euo pipefail
cd "$(dirname "$0")/.."

# Minutes of random copies with random faults, in the place of the one that `cargo test` has.
export HAUL_TORTURE_MINUTES=${HAUL_TORTURE_MINUTES:-5}

status=0
cargo xtask test "$@" || status=$?
if [ $# -eq 0 ]; then
    scripts/python.sh || status=1
    windows=0
    scripts/windows.sh test || windows=$?
    # 77: it has said what is missing here.
    [ "$windows" = 0 ] || [ "$windows" = 77 ] || status=1
fi
exit "$status"
