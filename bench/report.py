"""A run in the form in which `cargo xtask docs` takes it into docs/results.md: `report.json` in a directory DATE-KIND of bench/results."""

import datetime
import json
import os
import platform
import shlex
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


def load():
    return "{:.2f}".format(os.getloadavg()[0])


class Report:
    """What was measured, and on what."""

    def __init__(self, kind, heading):
        now = datetime.datetime.now(datetime.timezone.utc)
        self.kind, self.heading = kind, heading
        self.tables, self.notes, self.verdicts = [], [], []
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.machine())
        self.facts = {
            "date": now.strftime("%Y-%m-%d %H:%M UTC"),
            "cpu": cpu,
            "cores": str(os.cpu_count()),
            "memory": "{:.0f} GiB".format(int(lines["MemTotal"].split()[0]) / 1048576),
            "kernel": platform.release(),
            "load average at the start": load(),
            "command": shlex.join(["python3", os.path.relpath(sys.argv[0], RESULTS.parent.parent), *sys.argv[1:]]),
        }

    def table(self, title, columns, rows):
        self.tables.append({"title": title, "columns": columns, "rows": [[str(cell) for cell in row] for row in rows]})

    def note(self, text):
        self.notes.append(text)

    def verdict(self, who, goal, value, met):
        self.verdicts.append({"who": who, "goal": goal, "value": value, "met": met})

    def write(self, out=None):
        """Into this directory, or the one of today's date and the kind; and shows it."""
        self.facts["load average at the end"] = load()
        place = Path(out) if out else RESULTS / "{}-{}".format(self.facts["date"][:10], self.kind)
        place.mkdir(parents=True, exist_ok=True)
        report = {"heading": self.heading, "tables": self.tables, "notes": self.notes, "verdicts": self.verdicts, "facts": self.facts}
        (place / "report.json").write_text(json.dumps(report, indent=1) + "\n")
        print(self.heading)
        for table in self.tables:
            print("\n" + table["title"])
            rows = [table["columns"], *table["rows"]]
            widths = [max(len(row[column]) for row in rows) for column in range(len(table["columns"]))]
            for row in rows:
                print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)))
        for judged in self.verdicts:
            print("  {who}: {0}: {goal}: {value}".format("MET" if judged["met"] else "NOT MET", **judged))
        print("\nwritten: {}".format(place / "report.json"))
