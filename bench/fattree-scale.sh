#!/bin/bash
# How large a FatTree the simulator carries: switches of 4, 8 and 16 ports (16, 128 and 1,024 hosts) and MMPTCP's tree
# (k = 8, four hosts for each port upwards: 512 hosts), a third of the hosts sending without end over MPTCP with eight
# subflows or haul with four paths, TCP flows of 70 KB beside them; events per second, and the most memory.
#
#     bench/fattree-scale.sh [DIRECTORY]
#
# Builds what it runs. Each line is one process on one processor. With DIRECTORY, what it prints stands in
# DIRECTORY/fattree-scale.txt too.
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
    mkdir -p "$1"
    exec > >(tee "$1/fattree-scale.txt")
fi
cargo build --release --locked -q -p haul-scenarios --example fattree
fattree=target/release/examples/fattree
echo "bench/fattree-scale.sh, commit $(git rev-parse --short=8 HEAD), release build, $(nproc) cores"
for tree in "4 10" "8 2" "16 0.5" "8x4 1"; do
    read -r ports seconds <<<"$tree"
    for background in tcp lia:8 fair:4; do
        echo "k = $ports, short flows begin for $seconds s, among $background:"
        "$fattree" tcp "$background" 70k 0.33 1 "$ports" "$seconds"
    done
done
