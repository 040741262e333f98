#!/usr/bin/env bash
# Gives haul perf's JSON to the class TestResult of the Python package iperf3 (which reads that of iperf3), and prints what it read.
# Needs python3 and the network, for the package. HAUL names the program: target/release/haul by default.
set -euo pipefail
cd "$(dirname "$0")/.."
haul=${HAUL:-$(scripts/target-dir.sh)/release/haul}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet iperf3==0.1.11
"$haul" perf -s -p 7799 >"$work/server.log" &
server=$!
for _ in $(seq 100); do grep -q listening "$work/server.log" && break; sleep 0.1; done
for options in "" "-R" "--bidir" "-P 3" "--tcp" "--tcp -R -P 2" "-n 50M -i 0.1"; do
    # shellcheck disable=SC2086 # words are wanted
    case $options in *-n*) time= ;; *) time="-t 1" ;; esac
    "$haul" perf -c 127.0.0.1:7799 $time -J $options >"$work/result.json" || { cat "$work/result.json"; exit 1; }
    "$work/venv/bin/python" - "$work/result.json" "$options" <<'PYTHON'
import sys
from iperf3 import TestResult
result = TestResult(open(sys.argv[1]).read())
assert result.error is None, result.error
assert result.sent_bytes > 0 and result.received_bytes > 0 and result.type == "client"
assert result.local_cpu_total > 0 and result.remote_cpu_total > 0
print(f"{sys.argv[2] or '(plain)':14} {result.num_streams} streams, sent {result.sent_Mbps:.0f} Mbit/s, received {result.received_Mbps:.0f} Mbit/s,"
      f" retransmits {result.retransmits}, cpu {result.local_cpu_total:.0f} % and {result.remote_cpu_total:.0f} %, {result.time}")
PYTHON
done
echo "all accepted"
