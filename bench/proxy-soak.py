#!/usr/bin/env python3
"""Soak of `haul proxy`: mixed connections through a pair of proxies while ends are killed and the link goes away. Needs root.

    bench/proxy-soak.py [--minutes 30] [--haul PATH] [--rate 200M] [--rtt 40ms] [--loss 0.1%] [--workers 24] [--seed 1]

The two proxies, a server beside one and clients beside the other run on the hosts of an emulated WAN. Clients do at random: downloads and uploads of up to
16 MiB checked by their SHA-256, echoes after a half-close, resets by either side in the middle, connections that rest. Meanwhile, one disturbance at a
time: one proxy is killed (KILL) and started again, or the link loses everything for 3 to 20 s. After the last third, which passes without kills, everything is
let go, and what the proxies still hold is looked at.

It fails if a byte is wrong, a stream ends early without an error, a reset looks like an end, an operation fails with nothing to blame for it, one is still
under way after its deadline, or files or connections are left. Prints a line a minute and the counts at the end.
"""

import asyncio
import hashlib
import json
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import proxy_pair

SERVER_PORT = 9100
PROXY_PORT = 9101
MOST_BYTES = 16 << 20
# Longer than an outage, --dead-after, and coming back together.
DEADLINE_S = 150
# What a disturbance may still break after it is over: the dead time, and the way back.
AFTERMATH_S = 50
DEAD_AFTER_S = 15
HEADER = struct.Struct("!cQQ")


def content(seed, size):
    return random.Random(seed).randbytes(size)


def reset(writer):
    """Closes with RST."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


# ---------------------------------------------------------------- the server

async def serve_one(reader, writer):
    try:
        kind, size, seed = HEADER.unpack(await reader.readexactly(HEADER.size))
        if kind == b"d":
            writer.write(content(seed, size))
        elif kind == b"u":
            digest, left = hashlib.sha256(), size
            while left:
                piece = await reader.read(min(left, 1 << 16))
                if not piece:
                    raise ConnectionError("short upload")
                digest.update(piece)
                left -= len(piece)
            writer.write(digest.digest())
        elif kind == b"e":
            data = await reader.read(-1)
            writer.write(data)
        elif kind == b"r":
            writer.write(content(seed, size))
            await writer.drain()
            await asyncio.sleep(0.2)
            return reset(writer)
        elif kind == b"i":
            writer.write(b"!")
            await reader.read(-1)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def serve():
    server = await asyncio.start_server(serve_one, "0.0.0.0", SERVER_PORT, backlog=1024)
    async with server:
        await server.serve_forever()


# ---------------------------------------------------------------- the clients

class Wrong(Exception):
    """What must not be, whatever happens."""


async def read_all(reader, size):
    data = bytearray()
    while len(data) < size:
        piece = await reader.read(min(size - len(data), 1 << 16))
        if not piece:
            raise Wrong(f"a clean end after {len(data)} of {size} bytes")
        data += piece
    return bytes(data)


async def operate(rng, kind):
    reader, writer = await asyncio.open_connection("127.0.0.1", SERVER_PORT)
    try:
        seed = rng.getrandbits(62)
        size = int(2 ** rng.uniform(0, 24)) if kind != "i" else 0
        size = min(size, MOST_BYTES)
        writer.write(HEADER.pack(kind.encode() if kind not in "c" else b"d", size, seed))
        if kind == "d":
            if await read_all(reader, size) != content(seed, size):
                raise Wrong("a download with other bytes")
            if await reader.read(1):
                raise Wrong("more than was sent")
        elif kind == "u":
            data = content(seed, size)
            writer.write(data)
            await writer.drain()
            if await read_all(reader, 32) != hashlib.sha256(data).digest():
                raise Wrong("an upload with other bytes")
        elif kind == "e":
            data = content(seed, min(size, 1 << 20))
            writer.write(data)
            writer.write_eof()
            if await read_all(reader, len(data)) != data or await reader.read(1):
                raise Wrong("an echo with other bytes")
        elif kind == "r":
            try:
                data = await reader.read(-1)
            except ConnectionResetError:
                return
            raise Wrong(f"a reset that looked like an end, after {len(data)} of {size} bytes")
        elif kind == "c":
            await reader.read(1 << 14)
            reset(writer)
        elif kind == "i":
            await read_all(reader, 1)
            await asyncio.sleep(rng.uniform(1, 20))
    finally:
        writer.close()


async def clients(seed, workers):
    """Runs until standard input ends; a line of JSON for each operation."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_reader(sys.stdin, lambda: sys.stdin.readline() == "" and stop.set())

    async def worker(number):
        rng = random.Random(f"{seed}/{number}")
        while not stop.is_set():
            kind = rng.choices("dueric", weights=[4, 4, 3, 2, 2, 2])[0]
            begin = time.time()
            try:
                await asyncio.wait_for(operate(rng, kind), DEADLINE_S)
                result = "ok"
            except Wrong as error:
                result = f"WRONG: {error}"
            except asyncio.TimeoutError:
                result = "WRONG: not over after its deadline"
            except OSError as error:
                result = f"failed: {error}"
                await asyncio.sleep(0.5)
            print(json.dumps([kind, begin, time.time(), result]), flush=True)

    await asyncio.gather(*(worker(number) for number in range(workers)))


# ---------------------------------------------------------------- the whole

class Run:
    def __init__(self, options):
        self.options, self.wan = options, proxy_pair.Wan(options.haul)
        self.rng = random.Random(options.seed)
        self.disturbed = []
        self.results = []

    def soak(self):
        with tempfile.TemporaryDirectory(prefix="haul-soak-") as place:
            place = Path(place)
            serve, connect = self.wan.pair(place, SERVER_PORT, PROXY_PORT, ["--dead-after", str(DEAD_AFTER_S)])
            server = subprocess.Popen(self.wan.on("b") + [sys.executable, __file__, "--role", "server"])
            proxy_pair.start(serve, connect)
            fresh = [side.held()[0] for side in (serve, connect)]
            worker = subprocess.Popen(self.wan.on("a") + [sys.executable, __file__, "--role", "clients", "--seed", str(self.options.seed), "--workers", str(self.options.workers)],
                                      stdin=subprocess.PIPE, stdout=open(place / "results", "wb"))
            begin = time.time()
            end = begin + self.options.minutes * 60
            quiet_from = begin + self.options.minutes * 40
            next_disturbance, next_line = begin + 20, begin + 60
            memory = []
            while time.time() < end:
                time.sleep(1)
                now = time.time()
                if now >= next_disturbance:
                    self.disturb([serve, connect] if now < quiet_from else [])
                    next_disturbance = time.time() + self.rng.uniform(40, 90)
                if now >= next_line:
                    held = [side.held() for side in (serve, connect)]
                    memory.append(held)
                    print(f"{(now - begin) / 60:4.0f} min: {self.counts(place / 'results')}; files {held[0][0]} + {held[1][0]}, memory {held[0][1] >> 10} + {held[1][1] >> 10} MiB", flush=True)
                    next_line += 60
            worker.stdin.close()
            worker.wait(timeout=DEADLINE_S + 30)
            time.sleep(AFTERMATH_S / 2)
            left = [side.held() for side in (serve, connect)]
            ok = self.judge(place / "results", fresh, left)
            statuses = [side.end() for side in (connect, serve)]
            server.kill()
            print(f"exit status of the proxies after TERM: {statuses}")
            return ok and statuses == [0, 0]

    def disturb(self, sides):
        """Kills a proxy and starts it again, or takes the link away for a while."""
        begin = time.time()
        if sides and self.rng.random() < 0.6:
            side = self.rng.choice(sides)
            side.kill()
            time.sleep(self.rng.uniform(0, 3))
            side.start()
            what = f"killed {side.arguments[0]}"
        else:
            time_out = self.rng.uniform(3, 20)
            self.wan.set_loss("100%")
            time.sleep(time_out)
            self.wan.set_loss(self.options.loss)
            what = f"no link for {time_out:.0f} s"
        self.disturbed.append((begin, time.time() + AFTERMATH_S, what))

    def counts(self, path):
        results = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")]
        kinds = Counter("ok" if result == "ok" else result.split(":")[0] for *_, result in results)
        return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())

    def judge(self, path, fresh, left):
        results = [json.loads(line) for line in path.read_text().splitlines()]
        wrong = [result for *_, result in results if result.startswith("WRONG")]
        excused = lambda begin, end: any(begin < until and end > since for since, until, _ in self.disturbed)
        unexplained = [(kind, result) for kind, begin, end, result in results if result.startswith("failed") and not excused(begin, end)]
        print(f"{len(results)} operations: {self.counts(path)}; by kind {dict(Counter(kind for kind, *_ in results))}")
        print(f"{len(self.disturbed)} disturbances: {dict(Counter(what.split(' for')[0] for *_, what in self.disturbed))}")
        print(f"wrong: {len(wrong)} {Counter(wrong).most_common(5)}")
        print(f"failed with nothing to blame: {len(unexplained)} {Counter(unexplained).most_common(5)}")
        print(f"files before {fresh}, after {[files for files, _ in left]}; memory after {[kib >> 10 for _, kib in left]} MiB")
        leaked = any(files > before + 4 for before, (files, _) in zip(fresh, left))
        ok = not wrong and not unexplained and not leaked and any(result == "ok" for *_, result in results)
        print("passed" if ok else "FAILED")
        return ok


def main():
    parser = proxy_pair.arguments(__doc__, "200M", "40ms", ["server", "clients"])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--workers", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.role == "server":
        return asyncio.run(serve())
    if options.role == "clients":
        return asyncio.run(clients(options.seed, options.workers))
    if options.role == "whole":
        return sys.exit(not Run(options).soak())
    own = ["--minutes", str(options.minutes), "--workers", str(options.workers), "--seed", str(options.seed)]
    sys.exit(proxy_pair.inside_wan(__file__, options, own))


if __name__ == "__main__":
    main()
