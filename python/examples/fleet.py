"""Downloads a data set from a fleet of servers, shows a bar, and plots how fast each of them was.

    python fleet.py HOSTS SOURCE TARGET PLOT.svg [STATE]

`HOSTS` are written as for `haul fleet`: `store[1-3]:/data`, or `haul://a/data,haul://b/data` of daemons; `SOURCE` is a path on them. Written as cells of a notebook.
"""

# %% From whom, and what

from __future__ import annotations

import sys
from pathlib import Path
from typing import Optional

import haul.fleet

hosts, source, target, plot = sys.argv[1:5]
state = sys.argv[5] if len(sys.argv) > 5 else None

# %% Fetch it. A bar if tqdm is there; every look at the job is kept.

looks: list[haul.fleet.Progress] = []
try:
    from tqdm.auto import tqdm

    bar: Optional[tqdm] = tqdm(desc=source, unit="B", unit_scale=True, unit_divisor=1024)
except ImportError:
    bar = None
    print("no bar: tqdm is not there")


def watch(progress: haul.fleet.Progress) -> None:
    looks.append(progress)
    if bar is not None:
        bar.total = progress.total_bytes
        bar.n = progress.bytes
        bar.set_postfix_str(f"{progress.rate / 1e6:.0f} Mbit/s from {sum(server.state == 'busy' for server in progress.servers)}", refresh=False)
        bar.refresh()


way = "daemon" if hosts.startswith("haul://") else "ssh-direct"
with haul.fleet.Fleet(hosts, way=way, state=state) as fleet:
    for name, why in fleet.absent.items():
        print(f"{name} is not there: {why}")
    done = fleet.download(source, target, recursive=True, progress=watch).check()
if bar is not None:
    bar.close()
print(f"{done.files} files, {done.bytes / 1e6:.1f} MB in {done.seconds:.1f} s, {done.rate / 1e6:.0f} Mbit/s")
for share in done.servers:
    print(f"  {share.name}: {share.bytes / 1e6:.1f} MB, busy for {share.busy:.1f} s" + (f", given up: {share.down}" if share.down else ""))

# %% Plot what came from each server over time, as SVG

COLOURS = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"]


def chart(looks: list[haul.fleet.Progress], width: int = 640, height: int = 280, margin: int = 48) -> str:
    names = [share.name for share in done.servers]
    most_x = max((look.seconds for look in looks), default=1.0) or 1.0
    most_y = max((server.rate / 1e6 for look in looks for server in look.servers), default=1.0) or 1.0

    def place(seconds: float, rate: float) -> str:
        return f"{margin + seconds / most_x * (width - 2 * margin):.1f},{height - margin - rate / 1e6 / most_y * (height - 2 * margin):.1f}"

    text = '<text x="{x}" y="{y}" font-size="12" font-family="sans-serif" text-anchor="{anchor}" fill="{fill}">{words}</text>'
    parts = [
        f'<rect x="{margin}" y="{margin}" width="{width - 2 * margin}" height="{height - 2 * margin}" fill="none" stroke="#888"/>',
        text.format(x=margin, y=margin - 12, anchor="start", fill="black", words=f"Mbit/s, up to {most_y:.0f}"),
        text.format(x=width - margin, y=height - margin + 20, anchor="end", fill="black", words=f"{most_x:.1f} s"),
    ]
    for number, name in enumerate(names):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(place(look.seconds, server.rate) for look in looks for server in look.servers if server.name == name)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(text.format(x=width - margin - 8, y=margin + 16 + 14 * number, anchor="end", fill=colour, words=name))
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{"".join(parts)}</svg>\n'


Path(plot).write_text(chart(looks), encoding="utf-8")
print(f"{len(looks)} looks plotted in {plot}")
