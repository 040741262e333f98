#!/usr/bin/env bash
# What both ends of a measurement take of the processors, and how often their threads are woken: bench/wakeups.sh RATE RTT SECONDS HAUL.., as root, in turns for each program.
# Needs perf (apt-get install linux-perf).
set -euo pipefail
if [ $# -lt 4 ]; then
    echo "usage: $0 RATE RTT SECONDS HAUL.. (bench/wakeups.sh 100M 150ms 8 target/release/haul)" >&2
    exit 2
fi
command -v perf >/dev/null || { echo "there is no perf here: apt-get install linux-perf" >&2; exit 1; }
rate=$1 rtt=$2 seconds=$3
shift 3
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT

# The two ends, on the hosts of the WAN that is there.
cat >"$here/ends.sh" <<'ENDS'
set -euo pipefail
haul=$1 seconds=$2 here=$3
count=(perf stat -x , -e task-clock,context-switches)
"$haul" lab wan exec b -- "${count[@]}" -o "$here/receiver" "$haul" perf -s --one-off >"$here/server" &
server=$!
until "$haul" lab wan exec b -- ss -Hlnu "sport = :7701" | grep -q .; do sleep 0.1; done
"$haul" lab wan exec a -- "${count[@]}" -o "$here/sender" "$haul" perf -c 10.80.128.1 -t "$seconds" >"$here/client"
wait "$server"
ENDS

value() { awk -F , -v name="$2" '$3 ~ name { printf "%.0f", $1 }' "$here/$1"; }
echo "$rate, $rtt, $seconds s"
for haul in "$@"; do
    haul=$(realpath "$haul")
    "$haul" lab wan run --rate "$rate" --rtt "$rtt" -- bash "$here/ends.sh" "$haul" "$seconds" "$here" >/dev/null
    received=$(sed -n 's/.*received \(.*\)/\1/p' "$here/server" | tail -1)
    echo "$haul: $received; receiver $(value receiver task-clock) ms, $(value receiver context-switches) switches; sender $(value sender task-clock) ms, $(value sender context-switches) switches"
done
