#!/usr/bin/env bash
# What to run between two thoughts: a debug build of the programs, then the tests that stand beside the code.
#
# Chosen by their processor time, unoptimised, over all of `make test`: the unit tests of every crate take about 8 s together, none over 2.5 s; those of
# haul-bench alone take twice that, for they run experiments. What crosses sockets, namespaces or minutes of virtual time is left to `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --locked --workspace --bins
built=$SECONDS
cargo test --locked --quiet --workspace --exclude haul-bench --lib --bins "$@"
echo "dev: built in $built s, tested in $((SECONDS - built)) s"
