"""Downloads a data set, shows a bar, and plots how fast it came.

    python download.py SOURCE TARGET PLOT.svg [STATE]

`SOURCE` is a directory of another host, `host:results` or `haul://host/root/results`. Written as cells of a notebook.
"""

# %% What to fetch

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Optional

import haul

source, target, plot = sys.argv[1:4]
state = sys.argv[4] if len(sys.argv) > 4 else None

# %% Fetch it. A bar if tqdm is there; every look at the copy is kept.

looks: list[haul.Progress] = []
bar: Optional[Callable[[haul.Progress], None]] = None
try:
    bar = haul.tqdm_progress(desc=Path(source).name)
except ImportError:
    print("no bar: tqdm is not there")


def watch(progress: haul.Progress) -> None:
    looks.append(progress)
    if bar is not None:
        bar(progress)


copied = haul.copy(source, target, recursive=True, progress=watch, state=state).check()
print(f"{copied.files} files, {copied.bytes / 1e6:.1f} MB in {copied.seconds:.1f} s, {copied.rate / 1e6:.0f} Mbit/s")
if copied.verdict:
    print(copied.verdict)

# %% Plot the rate over time, as SVG


def line(points: list[tuple[float, float]], width: int = 640, height: int = 240, margin: int = 48) -> str:
    most_x = max((x for x, _ in points), default=1.0) or 1.0
    most_y = max((y for _, y in points), default=1.0) or 1.0
    places = " ".join(
        f"{margin + x / most_x * (width - 2 * margin):.1f},{height - margin - y / most_y * (height - 2 * margin):.1f}" for x, y in points
    )
    text = '<text x="{x}" y="{y}" font-size="12" font-family="sans-serif" text-anchor="{anchor}">{words}</text>'
    labels = [
        text.format(x=margin, y=margin - 12, anchor="start", words=f"Mbit/s, up to {most_y:.0f}"),
        text.format(x=width - margin, y=height - margin + 20, anchor="end", words=f"{most_x:.1f} s"),
    ]
    frame = f'<rect x="{margin}" y="{margin}" width="{width - 2 * margin}" height="{height - 2 * margin}" fill="none" stroke="#888"/>'
    curve = f'<polyline points="{places}" fill="none" stroke="#1f77b4" stroke-width="2"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{frame}{curve}{"".join(labels)}</svg>\n'


Path(plot).write_text(line([(look.seconds, look.rate / 1e6) for look in looks]), encoding="utf-8")
print(f"{len(looks)} looks plotted in {plot}")
