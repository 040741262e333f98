#!/usr/bin/env bash
# mutants.sh CRATE FILE...: changes the code of these files of a crate in many small ways, one at a time, and names those that the crate's own unit tests do not notice
# (cargo-mutants, installed below the target directory where it is missing). In a copy of the tree; 10 to 30 s for each change.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -ge 2 ] || { echo "mutants: usage: scripts/mutants.sh CRATE FILE..., for instance haul-cc crates/haul-cc/src/cubic.rs" >&2; exit 2; }
package=$1
shift
tools="$(scripts/target-dir.sh)/mutants"
[ -x "$tools/bin/cargo-mutants" ] || cargo install --locked --root "$tools" cargo-mutants
files=()
for file in "$@"; do files+=(-f "$file"); done
PATH="$tools/bin:$PATH" cargo mutants --package "$package" "${files[@]}" --timeout 60 --output "$tools" --no-shuffle -- --lib
