#!/usr/bin/env python3
"""libhaul from C beside the crate from Rust: blocks and streams of 1 MiB pieces from memory to memory over loopback, in turns.

    cargo build --release -p haul-ffi --example speed
    bench/c-speed.py [--rounds 150] [--seconds 0.5] [--program target/release/examples/speed] [--out DIR]
    cargo xtask docs

The program is an example of haul-ffi, which compiles its twin in C; each turn is a process of its own. What a shared machine takes away comes and goes within seconds and is many times as much as what is looked for, so turns are short
and many, a turn of Rust and one of C make a pair, and what counts is the median of the pairs' ratios, with the interval in which it lies for 95 of 100 drawings of as many pairs. Processor time for a byte is taken beside the rate. The
goal is at most 2 % less than Rust. OUT is bench/results/DATE-c without a word.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"blocks": "blocks of 1 MiB", "stream": "an ordered stream"}
DRAWINGS = 2000


def turn(command, environment):
    """Gbit/s, and nanoseconds of processor for a byte."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    said = child.stdout.read().split()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"error: {command[0]} ended with {status}")
    count, nanoseconds = (int(word) for word in said)
    return count * 8 / nanoseconds, (usage.ru_utime + usage.ru_stime) / count * 1e9


def median_of(ratios):
    """The median, and between what it is for most drawings."""
    chance = random.Random(1)
    drawn = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(DRAWINGS))
    return statistics.median(ratios), drawn[DRAWINGS * 25 // 1000], drawn[DRAWINGS * 975 // 1000]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--program", default=str(ROOT / "target/release/examples/speed"))
    parser.add_argument("--out")
    options = parser.parse_args()
    made = report.Report("c", "libhaul from C, beside Rust")
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        twin = subprocess.run([options.program, "twin", directory], capture_output=True, text=True, check=True).stdout.strip()
        for kind, name in KINDS.items():
            seconds = f"{options.seconds:g}"
            commands = {"Rust": [options.program, "turn", kind, seconds], "C": [twin, kind, seconds]}
            turns = {"Rust": [], "C": []}
            for number in range(options.rounds):
                # Whoever goes first in a pair goes second in the next one.
                for language in ("Rust", "C") if number % 2 == 0 else ("C", "Rust"):
                    turns[language].append(turn(commands[language], {**os.environ, "LD_LIBRARY_PATH": directory}))
            rates, costs = ([(of_rust[field], of_c[field]) for of_rust, of_c in zip(turns["Rust"], turns["C"])] for field in (0, 1))
            rate, cost = (median_of([in_c / in_rust for in_rust, in_c in pairs]) for pairs in (rates, costs))
            both = [f"{statistics.median(side):.2f}" for side in zip(*rates)]
            spent = [f"{statistics.median(side):.3f}" for side in zip(*costs)]
            shown = [f"{100 * middle:.1f} % ({100 * low:.1f} to {100 * high:.1f})" for middle, low, high in (rate, cost)]
            rows.append([name, *both, shown[0], *spent, shown[1]])
            made.verdict("libhaul", f"{name}: from C at least at 98 % of Rust's rate", f"{100 * rate[0]:.1f} %", rate[0] >= 0.98)
    columns = ["what", "Rust, Gbit/s", "C, Gbit/s", "C of Rust", "Rust, ns of processor a byte", "C, ns", "C of Rust, processor"]
    made.table(f"From memory to memory over loopback, both ends in one process: medians of {options.rounds} pairs of turns of {options.seconds:g} s, ratios with their 95 % interval", columns, rows)
    made.write(options.out)


main()
