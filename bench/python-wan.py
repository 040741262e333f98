#!/usr/bin/env python3
"""pandas reading Parquet and xarray reading a zarr store across an emulated WAN: through haul:// and through sftp:// (fsspec's, paramiko), in turns. Needs root and sshd.

    bench/python-wan.py [--haul PATH] [--rate 1G] [--rtt 100ms] [--loss 0.1%] [--megabytes 100] [--chunks 200] [--turns 3] [--out DIR]

Needs haul for Python (a release wheel), fsspec, pandas, pyarrow, xarray, zarr and paramiko where it is run. The far host has `haul serve` and an sshd of its own over the same
directory; each turn is a process of its own, so nothing is in memory, and no connection open. What is read is compared with what was written.

    parquet       the whole table
    columns       two of its eight columns, of half of its groups of rows
    zarr          a variable of a store whose chunks are a file each
    slice         a tenth of it along the first axis
"""

import asyncio
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import proxy_pair
import report

HAUL_PORT, SSH_PORT = 7701, 2222
COLUMNS = 8
WORKS = {
    "parquet": "pandas, a Parquet file, whole",
    "columns": "pandas, 2 of its 8 columns, half of its rows",
    "zarr": "xarray, a zarr store, whole",
    "slice": "xarray, a tenth of it",
}


# ---------------------------------------------------------------- the data, and reading it

def make(place, options):
    """The same bytes each time, as good as random, for nothing is compressed."""
    import numpy
    import pandas
    import xarray

    random = numpy.random.default_rng(19)
    rows = options.megabytes * 1_000_000 // (8 * COLUMNS)
    frame = pandas.DataFrame({f"c{column}": random.random(rows) for column in range(COLUMNS)})
    frame.to_parquet(place / "table.parquet", row_group_size=max(rows // 16, 1), compression="none")
    values = options.megabytes * 1_000_000 // 8
    data = xarray.DataArray(random.random((options.chunks, values // options.chunks)), dims=("time", "x"))
    encoding = {"value": {"chunks": (1, data.shape[1]), "compressors": None}}
    data.to_dataset(name="value").to_zarr(place / "store.zarr", mode="w", encoding=encoding, consolidated=True)


def read(work, place, words):
    """What was read, as a hash and bytes."""
    if work in ("parquet", "columns"):
        import pandas

        if work == "parquet":
            frame = pandas.read_parquet(f"{place}/table.parquet", storage_options=words)
        else:
            import fsspec
            import pyarrow.parquet

            with fsspec.open(f"{place}/table.parquet", **words) as file:
                table = pyarrow.parquet.ParquetFile(file, pre_buffer=True)
                groups = range(table.num_row_groups // 2)
                frame = table.read_row_groups(list(groups), columns=["c1", "c5"]).to_pandas()
        content = frame.to_numpy()
    else:
        import xarray

        store = xarray.open_zarr(zarr_store(f"{place}/store.zarr", words), consolidated=True, chunks=None)
        value = store["value"]
        content = (value if work == "zarr" else value[: max(value.shape[0] // 10, 1)]).to_numpy()
    return hashlib.sha256(content.tobytes()).hexdigest(), content.nbytes


def zarr_store(place, words):
    """What zarr makes of an address itself, but for a word of its own that fsspec's sftp:// hands on to paramiko, and for one call at a time by sftp://: zarr asks for ten chunks at once
    from ten threads, each of which reads from paramiko's one channel without regard to the others, so that pieces of packets go to the wrong one and all wait for ever."""
    import fsspec
    from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
    from zarr.storage import FsspecStore

    files, path = fsspec.core.url_to_fs(place, **words)
    alone = asyncio.Semaphore(1) if str(place).startswith("sftp:") else None
    return FsspecStore(AsyncFileSystemWrapper(files, asynchronous=True, semaphore=alone), path=path, read_only=True)


def one(options):
    """A turn: the modules are loaded before, for that is no matter of the path."""
    import fsspec
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import xarray
    import zarr  # noqa: F401

    xarray.DataArray([0.0]).to_numpy()
    if options.by == "haul":
        fsspec.get_filesystem_class("haul")
    elif options.by == "sftp":
        fsspec.get_filesystem_class("sftp")
    begun = time.monotonic()
    found, size = read(options.work, options.place, json.loads(options.words))
    print(json.dumps({"seconds": time.monotonic() - begun, "hash": found, "bytes": size}))


# ---------------------------------------------------------------- the two hosts

def whole(options):
    wan = proxy_pair.Wan(options.haul)
    address = os.environ["HAUL_LAB_B_ADDRESS"]
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        (top / "data").mkdir()
        make(top / "data", options)
        running = [daemon(wan, top, address), sshd(wan, top, address)]
        try:
            time.sleep(2)
            return compare(wan, top, address, options)
        finally:
            for process in running:
                process.terminate()
                process.wait()


def daemon(wan, top, address):
    import haul

    command = [wan.haul, "key", "authorize", "--state", str(top / "server"), haul.own_key(str(top / "client")).fingerprint]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    shown = subprocess.run([wan.haul, "key", "show", "--state", str(top / "server")], check=True, capture_output=True, text=True).stdout
    key = next(word for word in shown.split() if word.startswith("SHA256:"))
    haul.trust(f"{address}:{HAUL_PORT}", key, str(top / "client"))
    command = ["serve", "--state", str(top / "server"), "--listen", f"{address}:{HAUL_PORT}", "--root", f"data={top / 'data'}"]
    return subprocess.Popen([*wan.on("b"), wan.haul, *command], stdout=(top / "serve.log").open("wb"), stderr=subprocess.STDOUT)


def sshd(wan, top, address):
    script = f'. {Path(__file__).resolve().parent.parent}/scripts/sshd.sh; write_ssh_files {address} "Port {SSH_PORT}" "Subsystem sftp internal-sftp"'
    subprocess.run(["bash", "-ec", script], cwd=top, check=True)
    command = [*wan.on("b"), "/usr/sbin/sshd", "-D", "-e", "-f", str(top / "sshd_config")]
    return subprocess.Popen(command, stdout=(top / "sshd.log").open("wb"), stderr=subprocess.STDOUT)


def compare(wan, top, address, options):
    user = os.environ.get("USER") or "root"
    ways = {
        "haul": (f"haul://{address}:{HAUL_PORT}/data", {"state": str(top / "client")}),
        "sftp": (f"sftp://{address}{top}/data", {"port": SSH_PORT, "username": user, "key_filename": str(top / "user_key")}),
    }
    rows, faster = [], []
    for work, title in WORKS.items():
        wanted, size = read(work, top / "data", {})
        times = {by: [] for by in ways}
        for turn in range(options.turns):
            for by, (place, words) in ways.items():
                command = [sys.executable, __file__, "--role", "one", "--by", by, "--work", work, "--place", place, "--words", json.dumps(words)]
                done = subprocess.run([*wan.on("a"), *command], capture_output=True, text=True)
                if done.returncode != 0:
                    sys.exit(f"error: {work} by {by}: {done.stderr[-2000:]}")
                found = json.loads(done.stdout.splitlines()[-1])
                print(json.dumps({"work": work, "by": by, "turn": turn, "seconds": found["seconds"]}), flush=True)
                if found["hash"] != wanted:
                    sys.exit(f"error: {work} by {by}: other bytes were read")
                times[by].append(found["seconds"])
        ours, theirs = (statistics.median(times[by]) for by in ("haul", "sftp"))
        rows.append([title, f"{size / 1e6:.1f}", f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.2f}"])
        faster.append((title, ours, theirs))
    made = report.Report("python-wan", f"pandas and xarray across an emulated WAN, {options.rate}bit/s, {options.rtt}, {options.loss} loss each way, by fsspec's file systems: haul:// of a daemon and sftp:// (paramiko)")
    made.facts["command"] = options.command
    made.table(f"Seconds from the first call to the last byte, connecting among them; medians of {options.turns} turns", ["what", "MB that are read", "haul://, s", "sftp://, s", "times as fast"], rows)
    made.note("zarr asks sftp:// for one thing at a time: paramiko's channel is read by one thread, and several at once wait for ever")
    for title, ours, theirs in faster:
        made.verdict("haul://", f"{title}: at most as long as sftp:// ({theirs:.2f} s)", f"{ours:.2f} s", ours <= theirs)
    made.write(options.out)
    return 0


def main():
    parser = proxy_pair.arguments(__doc__, "1G", "100ms", ["one"])
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("--command", default="")
    for hidden in ("--by", "--work", "--place", "--words"):
        parser.add_argument(hidden)
    options = parser.parse_args()
    if options.role == "one":
        return one(options)
    if options.role == "whole":
        return whole(options)
    own = ["--rate", options.rate, "--rtt", options.rtt, "--megabytes", str(options.megabytes), "--chunks", str(options.chunks), "--turns", str(options.turns)]
    own += ["--command", " ".join(["bench/python-wan.py", *sys.argv[1:]])] + (["--out", options.out] if options.out else [])
    return proxy_pair.inside_wan(str(Path(__file__).resolve()), options, own)


sys.exit(main())
