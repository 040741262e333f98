#!/bin/bash
# What a fleet reaches and costs beside its evaluation (haul lab run fleet): one file from three replicas, with the
# fastest server killed half way and without, over the emulator's lines and over the kernel's, with frames of 1500 and
# of 9000 bytes; a hundred servers; a million files.
#
#     bench/fleet.sh [DIRECTORY]
#
# Builds what it runs. As root, for it makes network namespaces. With DIRECTORY, what it prints stands in
# DIRECTORY/fleet-scale.txt too. Some seven minutes, and five more for the build.
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    exec > >(tee "$1/fleet-scale.txt")
fi
cargo build --release --locked -q -p haul-cli
cargo build --release --locked -q -p e2e --example replicas
cargo build --release --locked -q -p haul-plan --example million
export HAUL_BIN="$PWD/target/release/haul"
echo "bench/fleet.sh, commit $(git rev-parse --short=8 HEAD), release build, $(nproc) cores"
for turn in 1 2 3; do
    echo "one file of 2 GB from three replicas, turn $turn:"
    target/release/examples/replicas 2000
    echo "the same, the fastest server killed half way:"
    target/release/examples/replicas 2000 kill
    for mtu in 1500 9000; do
        echo "one file of 2 GB from three replicas over the kernel's lines, turn $turn:"
        target/release/examples/replicas 2000 --kernel --mtu "$mtu"
    done
done
echo "a hundred servers on this machine:"
cargo test --release --locked -q -p haul-fleet --test many -- a_member_costs --nocapture | grep KiB
echo "a million files in a catalogue, and all orders of the job:"
target/release/examples/million
