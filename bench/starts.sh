#!/usr/bin/env bash
# Starts of the kernel's TCP across an emulated WAN: 1 MB and 10 MB, the first time and the second time to the same peer, by congestion control. From the call of connect
# until the receiver's word that all has come, a new connection each. Needs root and python3.
#
#     bench/starts.sh [--haul PATH] [--rate 1G] [--rtt 100ms] [--room BYTES] [LAW ..]
#
# LAW: of the kernel's or a mode of `haul tcp`; by default cubic bbr fair quickstart. --room is what the receiver's window begins with (the second number of tcp_rmem).
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
haul=$(cd "$root" && scripts/target-dir.sh)/release/haul
rate=1G rtt=100ms room=131072 laws=()
while [ $# -gt 0 ]; do
    case $1 in
        --haul) haul=$(realpath "$2"); shift 2 ;;
        --rate) rate=$2; shift 2 ;;
        --rtt) rtt=$2; shift 2 ;;
        --room) room=$2; shift 2 ;;
        -*) echo "error: unknown option $1" >&2; exit 2 ;;
        *) laws+=("$1"); shift ;;
    esac
done
[ ${#laws[@]} -gt 0 ] || laws=(cubic bbr fair quickstart)

receiver='
import socket
listener = socket.create_server(("0.0.0.0", 9000))
while True:
    end, _ = listener.accept()
    left = int(end.recv(16, socket.MSG_WAITALL))
    while left:
        left -= len(end.recv(1 << 20))
    end.sendall(b"x")
    end.close()
'
sender='
import socket, sys, time
peer, law, sizes = sys.argv[1], sys.argv[2], [1_000_000, 10_000_000]
# A peer of its own each: to one of them 10 MB are the first that it ever hears of.
for address, size in zip(peer.split(), sizes):
    for turn in ("first", "second", "third"):
        begin = time.monotonic()
        end = socket.socket()
        end.connect((address, 9000))
        end.sendall(b"%16d" % size + bytes(size))
        end.recv(1)
        print(f"{law:<16}{size // 1_000_000:>4} MB  {turn:<8}{(time.monotonic() - begin) * 1e3:8.0f} ms", flush=True)
        end.close()
        # The second one begins when the first one is over at both ends.
        time.sleep(1)
'
if [ -z "${HAUL_STARTS:-}" ]; then
    echo "$("$haul" --version), $(uname -r), $(nproc) processors, $(date -u '+%F %H:%M') UTC, load $(cut -d' ' -f1-3 /proc/loadavg); $rate, $rtt, room $room"
    for law in "${laws[@]}"; do
        wan=("$haul" lab wan run)
        case $law in
            fair | quickstart | modest | aggressive) wan=("$haul" tcp run --mode "$law" -- "${wan[@]}" --tcp "haul_$law") ;;
            *) wan+=(--tcp "$law") ;;
        esac
        HAUL_STARTS=$law "${wan[@]}" --rate "$rate" --rtt "$rtt" -- "$root/bench/starts.sh" --haul "$haul" --room "$room"
    done
    exit
fi

on() { local host=$1; shift; "$haul" lab wan exec --name "$HAUL_LAB_NAME" "$host" -- "$@"; }
device() { on "$1" ip -o -4 address show to "$2" | awk '{ print $2; exit }'; }
# Addresses that no earlier run has met.
peers="10.81.$((RANDOM % 256)).$((RANDOM % 254 + 1)) 10.82.$((RANDOM % 256)).$((RANDOM % 254 + 1))"
for peer in $peers; do
    on b ip address add "$peer/32" dev "$(device b "$HAUL_LAB_B_ADDRESS")"
    case $HAUL_STARTS in cubic | bbr | reno) law=$HAUL_STARTS ;; *) law=haul_$HAUL_STARTS ;; esac
    on a ip route add "$peer/32" dev "$(device a "$HAUL_LAB_A_ADDRESS")" congctl "$law"
done
on b sh -c "sysctl -qw net.ipv4.tcp_rmem='4096 $room 2147483647'"
# What the kernel itself remembers of peers would be another law's.
for host in a b; do on $host sysctl -qw net.ipv4.tcp_no_metrics_save=1; done
on b python3 -c "$receiver" &
until on b ss -Hlnt 'sport = :9000' | grep -q .; do sleep 0.1; done
on a python3 -c "$sender" "$peers" "$HAUL_STARTS"
