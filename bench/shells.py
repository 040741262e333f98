#!/usr/bin/env python3
"""Makes a table of what the tests of `haul rsh` have timed: each tool by ssh and by haul over the same emulated WAN, in the same run.

    HAUL_SHELL_MB=100 HAUL_SHELL_TIMES=/tmp/shells cargo test --release -p e2e --test shells -- --test-threads=1
    bench/shells.py /tmp/shells [OUT]
    cargo xtask docs

A line of the file is WHAT, SHELL, MEGABYTES, SECONDS, as tests/e2e/tests/shells.rs writes it; of several lines for the same the median counts. OUT is
bench/results/DATE-rsh without a word.
"""

import statistics
import sys
from pathlib import Path

import report


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    times, megabytes = {}, set()
    for line in Path(sys.argv[1]).read_text().splitlines():
        what, shell, moved, seconds = line.split("\t")
        times.setdefault(what, {}).setdefault(shell, []).append(float(seconds.split()[0]))
        megabytes.add(moved)
    if len(megabytes) != 1:
        sys.exit("error: runs of {} in one file: begin a new one".format(", ".join(sorted(megabytes)) or "nothing"))
    rows = []
    for what, shells in times.items():
        ssh, haul = (statistics.median(shells[name]) if name in shells else None for name in ("ssh", "haul"))
        shown = ["{:.2f}".format(value) if value is not None else "-" for value in (ssh, haul)]
        rows.append([what, *shown, "{:.2f}".format(ssh / haul) if ssh and haul else "-"])
    made = report.Report("rsh", "haul rsh in the place of ssh, each tool over the same emulated WAN: 500 Mbit/s, 100 ms, 0.1 % loss each way; a file of {} and 40 small ones".format(megabytes.pop()))
    made.table("Seconds, the login among them", ["what", "by ssh, s", "by haul rsh, s", "times as fast"], rows)
    made.write(sys.argv[2] if len(sys.argv) == 3 else None)


main()
