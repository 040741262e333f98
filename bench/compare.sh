#!/bin/sh
# Compares haul with what the machine can do and with quinn, in one run: the programs take turns, ROUNDS times (default 5), SECONDS_EACH each (default 3).
#
#   bench/compare.sh             speed, and CPU time per packet
#   bench/compare.sh --count     instructions per packet in user space too, counted by valgrind's callgrind
#   REALTIME=1 bench/compare.sh  under SCHED_RR, where other programs would disturb (root)
#
# One connection over loopback, encrypted (AES-128-GCM), memory to memory, 1472 bytes of UDP payload a packet. The pump has no protocol.
set -eu
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-3}
cargo build --release --quiet -p haul --example pump --example bulk
cargo build --release --quiet -p quinn-bulk
bin=${CARGO_TARGET_DIR:-target}/release
before=""
[ -z "${REALTIME:-}" ] || before="chrt -r 1"
results=$(mktemp)
trap 'rm -f "$results" "$results".*' EXIT

run() {
    name=$1
    shift
    # A line is "NAME GBITS NANOSECONDS": the programs print "... 9.41 Gbit/s payload, ... ns" with one figure a side or one for both.
    $before "$@" --seconds "$seconds" | awk -v name="$name" '{
        for (i = 2; i <= NF; i++) if ($i == "Gbit/s") rate = $(i - 1)
        ns = 0
        for (i = 2; i <= NF; i++) if ($i ~ /^ns/) ns += $(i - 1)
        print name, rate, ns
    }' >> "$results"
}

round=0
while [ "$round" -lt "$rounds" ]; do
    run pump "$bin/examples/pump"
    run pump+aead "$bin/examples/pump" --aead
    run quinn "$bin/quinn-bulk"
    run haul "$bin/examples/bulk"
    run haul,ordered "$bin/examples/bulk" --ordered
    round=$((round + 1))
done

# Medians, and ratios to quinn.
sort -k1,1 -k2,2n "$results" | awk '
    { rates[$1] = rates[$1] " " $2; cpu[$1] = cpu[$1] " " $3; count[$1]++ }
    function median(list,    parts, n, i, j, t) {
        n = split(list, parts, " ")
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (parts[j] + 0 < parts[i] + 0) { t = parts[i]; parts[i] = parts[j]; parts[j] = t }
        return parts[int((n + 1) / 2)]
    }
    function edge(list, last,    parts, n) { n = split(list, parts, " "); return last ? parts[n] : parts[1] }
    END {
        printf "%-14s %10s %17s %9s %15s %9s\n", "", "Gbit/s", "(least .. most)", "x quinn", "cpu ns/packet", "x quinn"
        base = median(rates["quinn"]); base_ns = median(cpu["quinn"])
        order = split("pump pump+aead quinn haul haul,ordered", names, " ")
        for (i = 1; i <= order; i++) {
            name = names[i]; rate = median(rates[name]); ns = median(cpu[name])
            printf "%-14s %10.2f %17s %9.2f %15.0f %9.2f\n", name, rate, "(" edge(rates[name], 0) " .. " edge(rates[name], 1) ")", rate / base, ns, ns / base_ns
        }
    }'

[ "${1:-}" = "--count" ] || exit 0

# Instructions of every thread between 10 MB and 60 MB, so that start and handshake cancel out; valgrind has no AVX-512, so the cipher is slower there than in truth.
count() {
    name=$1
    shift
    for bytes in 10000000 60000000; do
        valgrind --tool=callgrind --callgrind-out-file="$results.$bytes" --separate-threads=no "$@" --bytes "$bytes" --seconds 600 \
            > "$results.out" 2> "$results.err" || { cat "$results.err"; return 1; }
        sed -n 's/^summary: *//p; s/^totals: *//p' "$results.$bytes" | head -n 1 > "$results.sum.$bytes"
    done
    echo "$name $(cat "$results.sum.10000000") $(cat "$results.sum.60000000")" |
        awk '{ printf "%-14s %8.0f instructions/packet in user space, both sides\n", $1, ($3 - $2) / (50000000 / 1432) }'
}
count pump+aead "$bin/examples/pump" --aead
count quinn "$bin/quinn-bulk"
count haul "$bin/examples/bulk"
