#!/usr/bin/env bash
# Prints the directory that cargo builds into.
set -euo pipefail
cargo metadata --no-deps --format-version=1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
