#!/bin/sh
# Where a packet's processor time goes: the bare pump, the pump with AEAD, and haul, sampled by perf.
#
#   bench/budget.sh                      nanoseconds per packet, both sides together, by part
#   REALTIME=1 bench/budget.sh           the same under SCHED_RR, where other programs would disturb (root; some seconds of both processors)
#
# The best of ROUNDS runs (default 3), SECONDS_EACH each (default 3). One connection over loopback, AES-128-GCM, 1472 bytes of UDP payload a packet.
# Needs perf (Debian: linux-perf); no hardware counters: samples are taken by the clock.
set -eu
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-3}
seconds=${SECONDS_EACH:-3}
bin=${BIN:-}
if [ -z "$bin" ]; then
    cargo build --release --quiet -p haul --example pump --example bulk
    bin=${CARGO_TARGET_DIR:-target}/release/examples
fi
before=""
[ -z "${REALTIME:-}" ] || before="chrt -r 1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() {
    name=$1
    shift
    round=0
    while [ "$round" -lt "$rounds" ]; do
        perf record -q -e cpu-clock -F 2000 -o "$work/samples" $before "$@" --seconds "$seconds" > "$work/line" 2> "$work/errors" ||
            { cat "$work/errors"; return 1; }
        # "... ns" is one figure a side, or one for both.
        each=$(awk '{ for (i = 2; i <= NF; i++) if ($i ~ /^ns/) ns += $(i - 1); print ns }' "$work/line")
        perf script -i "$work/samples" -F ip,sym,dso 2> /dev/null | awk -v name="$name" -v each="$each" '
            /jent_|rol64|xoshiro|uint32rotl/ { next }
            {
                if (/aws_lc|aead_aes|gcm|CRYPTO_|skip_iv/) part = "aead"
                else if (/_copy_to_iter|_copy_from_iter|rep_movs/) part = "copies"
                else if (/kernel.kallsyms/) {
                    if (/schedule|finish_task_switch|_raw_spin_unlock_irqrestore|futex|hrtimer|wake|sched|clockevents|ktime|lapic/) part = "waking"
                    else part = "kernel"
                } else if (/libc|vdso/) part = "libc"
                else part = "own"
                count[part]++
                total++
            }
            END {
                printf "%s %.0f", name, each
                split("aead copies kernel waking own libc", parts, " ")
                for (i = 1; i <= 6; i++) printf " %.0f", each * count[parts[i]] / total
                printf "\n"
            }' >> "$work/results"
        round=$((round + 1))
    done
}

measure pump "$bin/pump"
measure pump+aead "$bin/pump" --aead
measure haul "$bin/bulk"
sort -k1,1 -k2,2n "$work/results" | awk '
    BEGIN { printf "%-10s %8s %8s %14s %14s %14s %12s %8s\n", "ns/packet", "in all", "AEAD", "kernel copies", "rest of kernel", "sleep and wake", "own code", "libc" }
    !seen[$1]++ { printf "%-10s %8d %8d %14d %14d %14d %12d %8d\n", $1, $2, $3, $4, $5, $6, $7, $8 }'
