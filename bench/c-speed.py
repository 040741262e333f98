#!/usr/bin/env python3
"""libhaul from C beside the crate from Rust: blocks and streams of 1 MiB pieces from memory to memory over loopback, in turns.

    cargo build --release -p haul-ffi --example speed
    bench/c-speed.py [--rounds 150] [--seconds 0.5] [--program target/release/examples/speed] [--out DIR]
    cargo xtask docs

The program is an example of haul-ffi, which compiles its twin in C; each turn is a process of its own. What a shared machine takes away comes and goes within seconds and is many times as much as what is looked for, so turns are short
and many, a turn of Rust and one of C make a pair, and what counts is the median of the pairs' ratios, with the interval in which it lies for 95 of 100 drawings of as many pairs. Processor time for a byte is taken beside the rate. The
goal is at most 2 % less than Rust. Where valgrind is installed, it also counts the instructions of the border itself (crates/haul-ffi) among all that both ends of the program in C execute, which no other load disturbs. OUT is bench/results/DATE-c without a word.
"""

import argparse
import os
import random
import shutil
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


def of_the_border(command, environment, directory):
    """Instructions of haul-ffi's own code, and all of them, in a run under callgrind."""
    counted = os.path.join(directory, "counted")
    tool = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={counted}"]
    subprocess.run([*tool, *command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    told = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", counted], check=True, capture_output=True, text=True).stdout
    lines = [(int(line.split()[0].replace(",", "")), line) for line in told.splitlines() if line.strip()[:1].isdigit() and "%)" in line]
    total = next(count for count, line in lines if "PROGRAM TOTALS" in line)
    return sum(count for count, line in lines if "crates/haul-ffi/src/" in line), total


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
        counts, environment = [], {**os.environ, "LD_LIBRARY_PATH": directory}
        twin = subprocess.run([options.program, "twin", directory], capture_output=True, text=True, check=True).stdout.strip()
        for kind, name in KINDS.items():
            seconds = f"{options.seconds:g}"
            commands = {"Rust": [options.program, "turn", kind, seconds], "C": [twin, kind, seconds]}
            turns = {"Rust": [], "C": []}
            for number in range(options.rounds):
                # Whoever goes first in a pair goes second in the next one.
                for language in ("Rust", "C") if number % 2 == 0 else ("C", "Rust"):
                    turns[language].append(turn(commands[language], environment))
            rates, costs = ([(of_rust[field], of_c[field]) for of_rust, of_c in zip(turns["Rust"], turns["C"])] for field in (0, 1))
            rate, cost = (median_of([in_c / in_rust for in_rust, in_c in pairs]) for pairs in (rates, costs))
            both = [f"{statistics.median(side):.2f}" for side in zip(*rates)]
            spent = [f"{statistics.median(side):.3f}" for side in zip(*costs)]
            shown = [f"{100 * middle:.1f} % ({100 * low:.1f} to {100 * high:.1f})" for middle, low, high in (rate, cost)]
            rows.append([name, *both, shown[0], *spent, shown[1]])
            if shutil.which("valgrind"):
                border, total = of_the_border([twin, kind, "10"], environment, directory)
                counts.append([name, f"{border:,}", f"{total:,}", f"{100 * border / total:.3f} %"])
                made.verdict("libhaul", f"{name}: the border's instructions at most 2 % of all", f"{100 * border / total:.3f} %", border <= 0.02 * total)
            made.verdict("libhaul", f"{name}: from C at least at 98 % of Rust's rate", f"{100 * rate[0]:.1f} %", rate[0] >= 0.98)
    columns = ["what", "Rust, Gbit/s", "C, Gbit/s", "C of Rust", "Rust, ns of processor a byte", "C, ns", "C of Rust, processor"]
    made.table(f"From memory to memory over loopback, both ends in one process: medians of {options.rounds} pairs of turns of {options.seconds:g} s, ratios with their 95 % interval", columns, rows)
    if counts:
        made.table("Instructions that both ends execute in 10 s under callgrind, and those of the border to C among them", ["what", "border", "all", "border of all"], counts)
    made.write(options.out)


main()
