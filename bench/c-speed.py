#!/usr/bin/env python3
"""libhaul from C beside the crate from Rust: blocks and streams of 1 MiB pieces from memory to memory over loopback, in turns.

    cargo build --release -p haul-ffi --example speed
    bench/c-speed.py [--rounds 9] [--seconds 2] [--program target/release/examples/speed] [--out DIR]
    cargo xtask docs

The program is an example of haul-ffi, which compiles its twin in C; each turn is a process of its own. The goal is at most 2 % less than Rust. OUT is bench/results/DATE-c without a word.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"blocks": "blocks of 1 MiB", "stream": "an ordered stream"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--program", default=str(ROOT / "target/release/examples/speed"))
    parser.add_argument("--out")
    options = parser.parse_args()
    made = report.Report("c", "libhaul from C, beside Rust")
    done = subprocess.run([options.program, str(options.rounds), str(options.seconds)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {options.program}: {done.stderr}")
    turns = {}
    for line in done.stdout.splitlines():
        words = line.split()
        if words[1] in ("Rust", "C"):
            turns[words[0].rstrip(":"), words[1]] = [float(rate) for rate in words[2:-1]]
    rows = []
    for kind, name in KINDS.items():
        rust, c = (statistics.median(turns[kind, language]) for language in ("Rust", "C"))
        rows.append([name, f"{rust:.2f}", f"{c:.2f}", f"{100 * c / rust:.1f} %", *(" ".join(f"{rate:.2f}" for rate in turns[kind, language]) for language in ("Rust", "C"))])
        made.verdict("libhaul", f"{name}: from C at least at 98 % of Rust's rate", f"{100 * c / rust:.1f} %", c >= 0.98 * rust)
    columns = ["what", "Rust, Gbit/s", "C, Gbit/s", "C of Rust", "turns of Rust", "turns of C"]
    made.table(f"From memory to memory over loopback, both ends in one process, medians of {options.rounds} turns of {options.seconds:g} s each", columns, rows)
    made.write(options.out)


main()
