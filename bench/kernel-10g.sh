#!/usr/bin/env bash
# One flow of the kernel's TCP at 10 Gbit/s, by congestion control: on loopback, which is as fast as this machine is, and over an emulated link of 10 Gbit/s. Each in turns
# with the kernel's BBR and CUBIC. Needs root, iperf3 and python3.
#
#     bench/kernel-10g.sh [--haul PATH] [--seconds 10] [--turns 3] [--rtt 20ms] [--keep DIR] [LAW ..]
#
# LAW: of the kernel's or a mode of `haul tcp`; by default bbr, cubic and all of haul's that are for one path. With --keep the rows are left in DIR too, in the form of
# bench/results (DATE-kernel-10g), of which `cargo xtask docs` makes docs/results.md.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
haul=$(cd "$root" && scripts/target-dir.sh)/release/haul
seconds=10 turns=3 rtt=20ms keep='' laws=()
words=("$@")
while [ $# -gt 0 ]; do
    case $1 in
        --haul) haul=$(realpath "$2"); shift 2 ;;
        --seconds) seconds=$2; shift 2 ;;
        --turns) turns=$2; shift 2 ;;
        --rtt) rtt=$2; shift 2 ;;
        --keep) keep=$(realpath -m "$2"); shift 2 ;;
        -*) echo "error: unknown option $1" >&2; exit 2 ;;
        *) laws+=("$1"); shift ;;
    esac
done
[ ${#laws[@]} -gt 0 ] || laws=(bbr cubic fair quickstart modest aggressive fast highspeed scalable bic westwood)
for program in iperf3 python3; do
    command -v "$program" >/dev/null || { echo "error: there is no $program (scripts/setup-bench.sh)" >&2; exit 2; }
done
# The laws are in the kernel as long as this runs below `haul tcp run`; each flow names its own.
if [ -z "${HAUL_10G:-}" ]; then
    HAUL_10G=1 exec "$haul" tcp run --mode fair -- "$0" "${words[@]}"
fi

in_kernel() { case $1 in cubic | bbr | reno) echo "$1" ;; *) echo "haul_$1" ;; esac; }
# What iperf3 has said of a flow, as cells: mean, second half, what was sent again.
cells='
import json, sys
told = json.load(sys.stdin)
if "error" in told:
    sys.exit("error: iperf3: " + told["error"])
rates = [interval["sum"]["bits_per_second"] for interval in told["intervals"]]
half = rates[len(rates) // 2:]
mean = told["end"]["sum_received"]["bits_per_second"]
again = told["end"]["sum_sent"].get("retransmits", 0)
print(f"{mean * 1e-6:.0f},{sum(half) / len(half) * 1e-6:.0f},{again}")
'
loopback() {
    iperf3 -s -1 -B 127.0.0.1 -p 5210 >/dev/null &
    until ss -Hlnt 'sport = :5210' | grep -q .; do sleep 0.1; done
    iperf3 -c 127.0.0.1 -p 5210 -C "$1" -t "$seconds" -J
    wait
}
wan() {
    # shellcheck disable=SC2016
    "$haul" lab wan run --rate 10G --rtt "$rtt" --tcp "$1" -- bash -c '
        on() { local host=$1; shift; "$HAUL" lab wan exec --name "$HAUL_LAB_NAME" "$host" -- "$@"; }
        for host in a b; do
            on $host sysctl -qw net.ipv4.tcp_wmem="4096 131072 2147483647" net.ipv4.tcp_rmem="4096 131072 2147483647"
        done
        on b iperf3 -s -1 >/dev/null &
        until on b ss -Hlnt "sport = :5201" | grep -q .; do sleep 0.1; done
        on a iperf3 -c "$HAUL_LAB_B_ADDRESS" -C "$LAW" -t "$SECONDS_EACH" -J
        wait
    '
}

machine="$("$haul" --version), $(uname -r), $(nproc) processors, $(date -u '+%F %H:%M') UTC, load $(cut -d' ' -f1-3 /proc/loadavg); bench/kernel-10g.sh at $(git -C "$root" rev-parse --short HEAD); $seconds s each, $rtt"
rows="way,turn,congestion control,mean Mbit/s,second half Mbit/s,sent again"
echo "$machine"
echo "$rows"
for turn in $(seq "$turns"); do
    for way in loopback wan; do
        for law in "${laws[@]}"; do
            row="$way,$turn,$law,$(HAUL=$haul LAW=$(in_kernel "$law") SECONDS_EACH=$seconds $way "$(in_kernel "$law")" | python3 -c "$cells")"
            echo "$row"
            rows+=$'\n'$row
        done
    done
done
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    echo "$machine" >"$keep/machine.txt"
    echo "$rows" >"$keep/10g.csv"
fi
