"""The examples run, and do what they say."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

from conftest import Daemon

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_a_data_set_is_downloaded_and_plotted(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    for number in range(20):
        (room / f"part-{number}").write_bytes(os.urandom(200_000))
    plot = tmp_path / "rates.svg"
    words = [sys.executable, str(EXAMPLES / "download.py"), daemon.url(f"data/{room.name}"), str(tmp_path), str(plot), str(daemon.state)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "20 files, 4.0 MB" in done.stdout and "looks plotted" in done.stdout
    assert (tmp_path / room.name / "part-19").read_bytes() == (room / "part-19").read_bytes()
    drawn = xml.parse(plot).getroot()
    curve = drawn.find("{http://www.w3.org/2000/svg}polyline")
    assert curve is not None and len((curve.get("points") or "").split()) >= 1
