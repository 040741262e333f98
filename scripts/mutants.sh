#!/usr/bin/env bash
# mutants.sh CRATE FILE...: changes the code of these files of a crate in many small ways, one at a time, and names those that the crate's own unit tests do not notice
# (cargo-mutants, installed below the target directory where it is missing). In a copy of the tree; 10 to 30 s for each change. SHARD=0/5 takes every fifth change, TESTS other tests:
# TESTS='--lib --test copy -- trees::'. At a low priority, one at a time: on a machine that is busy a test that is late would count as one that has noticed.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { echo "mutants: usage: scripts/mutants.sh CRATE FILE..., for instance haul-cc crates/haul-cc/src/cubic.rs" >&2; exit 2; }
package=$1
shift
tools="$(scripts/target-dir.sh)/mutants"
[ -x "$tools/bin/cargo-mutants" ] || cargo install --locked --root "$tools" cargo-mutants
files=()
for file in "$@"; do files+=(-f "$file"); done
# A property that fails is not written down: the next change would be noticed by what was found for this one, or by what is wrong without any.
export PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
part=()
[ -z "${SHARD:-}" ] || part=(--sharding round-robin --shard "$SHARD")
read -ra tests <<<"${TESTS:---lib}"
PATH="$tools/bin:$PATH" nice -n 15 cargo mutants --package "$package" "${files[@]}" "${part[@]}" --jobs 1 --timeout 120 --output "$tools" --no-shuffle -- "${tests[@]}"
