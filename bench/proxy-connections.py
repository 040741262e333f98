#!/usr/bin/env python3
"""Many connections through one pair of `haul proxy` that speak and then rest: what they cost, and that all of them live. Needs root.

    bench/proxy-connections.py [--count 10000] [--haul PATH] [--rate 1G] [--rtt 20ms] [--loss 0.1%] [--rest 10]

The proxies, a server that echoes beside one and a client beside the other run on the hosts of an emulated WAN. Connections are opened 500 at a time; on each
4 KiB go there and come back. Then all rest; then all speak again, at the same moment; then all close, and a second round opens and closes as many.
Prints the resident memory and the files of both proxies at each step, and the processor time that both take while all rest. It fails if a byte is
wrong, a connection does not live to the end, files are left, or the second round leaves more memory in use than the first.
"""

import asyncio
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import proxy_pair

SERVER_PORT = 9100
PROXY_PORT = 9101
AT_ONCE = 500
MESSAGE_BYTES = 4096
PATIENCE_S = 120
# Memory after a second round, to that after the first: the allocator keeps what was used and uses it again.
MOST_GROWTH = 1.25
OTHER_FILES = 100


def let_files_be_open(count):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < count + OTHER_FILES:
        sys.exit(f"error: {count} connections need {count + OTHER_FILES} files, and the system lets {hard} be open (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + OTHER_FILES, hard))


# ---------------------------------------------------------------- the server

async def serve(count):
    let_files_be_open(count)

    async def echo(reader, writer):
        while data := await reader.read(MESSAGE_BYTES):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", SERVER_PORT, backlog=4096, limit=MESSAGE_BYTES)
    async with server:
        await server.serve_forever()


# ---------------------------------------------------------------- the client

async def client(count):
    """Does what it reads, a word a line, and says so by a line of JSON."""
    let_files_be_open(count)
    connections = []

    async def speak(number, reader, writer):
        message = random.Random(number).randbytes(MESSAGE_BYTES)
        writer.write(message)
        if await reader.readexactly(MESSAGE_BYTES) != message:
            raise ValueError("other bytes came back")

    async def open_one(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", SERVER_PORT, limit=2 * MESSAGE_BYTES)
        await speak(number, reader, writer)
        connections.append((reader, writer))

    async def close_one(reader, writer):
        writer.write_eof()
        if await reader.read(1):
            raise ValueError("more came than was sent")
        writer.close()
        await writer.wait_closed()

    while word := (await asyncio.to_thread(sys.stdin.readline)).strip():
        begin = time.monotonic()
        if word == "open":
            for first in range(0, count, AT_ONCE):
                await asyncio.wait_for(asyncio.gather(*(open_one(first + n) for n in range(min(AT_ONCE, count - first)))), PATIENCE_S)
        elif word == "speak":
            await asyncio.wait_for(asyncio.gather(*(speak(n, *pair) for n, pair in enumerate(connections))), PATIENCE_S)
        elif word == "close":
            await asyncio.wait_for(asyncio.gather(*(close_one(*pair) for pair in connections)), PATIENCE_S)
            connections.clear()
        print(json.dumps({"done": word, "open": len(connections), "seconds": time.monotonic() - begin}), flush=True)


# ---------------------------------------------------------------- the whole

class Run:
    def __init__(self, options):
        self.options, self.wan = options, proxy_pair.Wan(options.haul)

    def measure(self):
        with tempfile.TemporaryDirectory(prefix="haul-connections-") as place:
            self.sides = self.wan.pair(Path(place), SERVER_PORT, PROXY_PORT, [])
            count = ["--count", str(self.options.count)]
            server = subprocess.Popen(self.wan.on("b") + [sys.executable, __file__, "--role", "server", *count])
            proxy_pair.start(*self.sides)
            self.client = subprocess.Popen(self.wan.on("a") + [sys.executable, __file__, "--role", "client", *count], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, text=True)
            ok = self.steps()
            self.client.stdin.close()
            self.client.wait(timeout=30)
            statuses = [side.end() for side in reversed(self.sides)]
            server.kill()
            print(f"exit status of the proxies after TERM: {statuses}; {'passed' if ok and statuses == [0, 0] else 'FAILED'}")
            if not ok:
                print((Path(place) / "log").read_text()[-3000:], file=sys.stderr)
            return ok and statuses == [0, 0]

    def steps(self):
        fresh = self.show("before")
        if not self.tell("open"):
            return False
        opened = self.show("all open", fresh)
        used = [side.processor_seconds() for side in self.sides]
        time.sleep(self.options.rest)
        idle = [side.processor_seconds() - before for side, before in zip(self.sides, used)]
        print(f"processor time while all rest, {self.options.rest} s: serve {idle[0]:.2f} s, connect {idle[1]:.2f} s", flush=True)
        if not self.tell("speak"):
            return False
        self.show("all spoke again", fresh)
        closed = []
        for word in ["close", "open", "close"]:
            if not self.tell(word):
                return False
            time.sleep(2)
            closed.append(self.show(f"after the second {word}" if closed else "all closed", fresh))
        files_left = any(files > before + 4 for (files, _), (before, _) in zip(closed[-1], fresh))
        grows = any(kib > MOST_GROWTH * first for (_, kib), (_, first) in zip(closed[-1], closed[0]))
        if files_left or grows:
            print(f"left behind: {'files' if files_left else 'memory'}")
        return all(files >= self.options.count for files, _ in opened) and not files_left and not grows

    def tell(self, word):
        self.client.stdin.write(word + "\n")
        self.client.stdin.flush()
        line = self.client.stdout.readline()
        if not line:
            print(f"{word}: the client failed", flush=True)
            return False
        answer = json.loads(line)
        print(f"{word}: {answer['seconds']:.1f} s, {answer['open']} are open", flush=True)
        return answer["open"] == (0 if word == "close" else self.options.count)

    def show(self, what, fresh=None):
        held = [side.held() for side in self.sides]
        cells = []
        for name, number, (files, kib) in zip(["serve", "connect"], range(2), held):
            each = f" ({(kib - fresh[number][1]) / self.options.count:.1f} KiB each)" if fresh else ""
            cells.append(f"{name} {files} files, {kib / 1024:.0f} MiB{each}")
        print(f"{what}: {'; '.join(cells)}", flush=True)
        return held


def main():
    parser = proxy_pair.arguments(__doc__, "1G", "20ms", ["server", "client"])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--rest", type=int, default=10)
    options = parser.parse_args()
    if options.role == "server":
        return asyncio.run(serve(options.count))
    if options.role == "client":
        return asyncio.run(client(options.count))
    if options.role == "whole":
        return sys.exit(not Run(options).measure())
    own = ["--count", str(options.count), "--rest", str(options.rest)]
    sys.exit(proxy_pair.inside_wan(__file__, options, own))


if __name__ == "__main__":
    main()
