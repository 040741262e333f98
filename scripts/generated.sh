#!/usr/bin/env bash
# Manual pages and completions, made again from what the program says of itself.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --quiet --locked -p haul-cli
haul=${CARGO_TARGET_DIR:-target}/debug/haul
"$haul" man man
for name in haul hcp hperf; do
    "$haul" completions bash --name "$name" > "completions/$name.bash"
    "$haul" completions zsh --name "$name" > "completions/_$name"
    "$haul" completions fish --name "$name" > "completions/$name.fish"
done
