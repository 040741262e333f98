#!/usr/bin/env bash
# Prints the directory that cargo builds into.
set -euo pipefail
# root, by sudo, may have no cargo; then it is where cargo builds unless it is told otherwise.
command -v cargo >/dev/null || { echo "${CARGO_TARGET_DIR:-$(cd "$(dirname "$0")/.." && pwd)/target}"; exit 0; }
cargo metadata --no-deps --format-version=1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
