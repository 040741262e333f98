#!/usr/bin/env python3
"""Copies between haul of Linux and haul.exe under Wine, over a daemon with keys: a tree of odd names both ways, with the daemon on either side; then a pipe, a measurement, and an interrupt.

`scripts/windows/exchange.py HAUL HAUL.EXE`. Contents are compared by hash. Wine is not Windows: what it takes for a name, and what it does to it, is its own; that no file gets a name that Windows could not have is haul's.
"""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WINE = [os.path.join(HERE, "wine")]
PATIENCE_S = 120

GOOD = [
    "plain.txt",
    "with two  spaces",
    " leading",
    ".hidden",
    "ünïcödé-日本語-🦀",
    "a\u0301 decomposed",
    "per%20cent & 'quotes' $HOME `x` (1) [2] {3} #4 +5 =6 !7 @8 ^9 ~$t;,",
    "l" * 200 + ".txt",
    "console",
    "com10",
    "nul-but-not",
    "crlf.txt",
    "empty",
    "large.bin",
    "holes.bin",
    "deep/" + "/".join(["d" * 60] * 6) + "/far.txt",
    "-dash",
    "日" * 80,
]
BAD = ["con", "NUL.txt", "Com1", "lpt9.log", "AUX", "dot.", "space ", "what?", "a:b", "back\\slash", "st*r", 'q"q', "<x>", "p|pe", "new\nline"]
NO_UTF8 = b"not-utf8-\xff\xfe"
PAIR = ["Case.txt", "case.txt", "CASE.TXT"]


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def make_good(root):
    for at, name in enumerate(GOOD):
        content = (name + "\n").encode() * (at + 1)
        if name == "crlf.txt":
            content = b"one\r\ntwo\nthree\r\n"
        elif name == "empty":
            content = b""
        elif name == "large.bin":
            content = b"".join(hashlib.sha256(str(n).encode()).digest() for n in range(200_000))
        path = os.path.join(root, name)
        write(path, content)
        if name == "holes.bin":
            with open(path, "r+b") as file:
                file.truncate(3_000_000)
                file.seek(2_000_000)
                file.write(b"x")
        os.utime(path, ns=(0, 1_234_567_890_123_456_700 + at * 1_000_000_000))
    os.makedirs(os.path.join(root, "empty directory", "in it"))


def tree(root):
    found = {}
    for at, directories, files in os.walk(os.fsencode(root)):
        for name in directories:
            found[os.path.relpath(os.path.join(at, name), os.fsencode(root)) + b"/"] = None
        for name in files:
            path = os.path.join(at, name)
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            # Windows keeps 100 ns.
            found[os.path.relpath(path, os.fsencode(root))] = (digest, os.stat(path).st_mtime_ns // 100)
    return found


def same(one, other, what):
    a, b = tree(one), tree(other)
    if a != b:
        differing = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
        fail(f"{what}: {len(differing)} names differ: {differing[:8]}")
    print(f"exchange: {what}: {len(a)} names, the same")


def fail(why):
    print(f"exchange: FAILED: {why}", file=sys.stderr)
    sys.exit(1)


class Side:
    """One of the two programs, with keys of its own."""

    def __init__(self, name, command, room):
        self.name, self.command = name, command
        self.state = os.path.join(room, f"state {name}")
        self.key = self.run("key", "show").stdout.decode().split()[0]

    def path(self, path):
        """A path of Linux as this side has it: to Wine, drive Z is all of it."""
        return "Z:" + path.replace("/", "\\") if self.name == "windows" else path

    def arguments(self, words):
        state = ["--state", self.path(self.state)] if words[0] in ("cp", "key", "serve", "pipe", "perf") else []
        return [*self.command, words[0], *state, *words[1:]]

    def run(self, *words, status=0, stdin=b""):
        done = subprocess.run(self.arguments(words), input=stdin, capture_output=True, timeout=PATIENCE_S)
        if status is not None and done.returncode != status:
            fail(f"{self.name}: {words}: status {done.returncode}, not {status}\n{done.stdout.decode(errors='replace')}{done.stderr.decode(errors='replace')}")
        return done

    def start(self, *words, until):
        """Starts what stays, and waits for the words that say that it is there."""
        said = tempfile.NamedTemporaryFile()
        running = subprocess.Popen(self.arguments(words), stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        for _ in range(PATIENCE_S * 10):
            with open(said.name, encoding="utf-8", errors="replace") as file:
                found = re.search(until, file.read())
            if found:
                return running, found, said
            if running.poll() is not None:
                break
            time.sleep(0.1)
        running.kill()
        with open(said.name, encoding="utf-8", errors="replace") as file:
            fail(f"{self.name}: {words} does not start: {file.read()}")

    def end(self, running, said, what):
        """As Ctrl-C does."""
        running.send_signal(signal.SIGINT)
        try:
            status = running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()
            fail(f"{what} does not end when it is interrupted")
        said.close()
        if status != 0:
            fail(f"{what}: status {status}")


def daemon(server, client, room):
    """Copies by `client` from and to a daemon of `server`."""
    title = f"{client.name} <-> daemon on {server.name}"
    served = os.path.join(room, f"served by {server.name}")
    for name in ("pub", "in"):
        os.makedirs(os.path.join(served, name))
    make_good(os.path.join(served, "pub", "tree"))
    server.run("key", "authorize", client.key, "--name", "client")
    roots = [f"pub={server.path(served)}{'/' if server.name == 'linux' else chr(92)}pub", f"in={server.path(served)}{'/' if server.name == 'linux' else chr(92)}in:rw"]
    running, found, said = server.start("serve", "--listen", "127.0.0.1:0", "--root", roots[0], "--root", roots[1], until=r"address=127\.0\.0\.1:(\d+)")
    port = found.group(1)
    at = f"haul://127.0.0.1:{port}"
    stranger = client.run("cp", "-r", f"{at}/pub/tree", client.path(os.path.join(room, "nowhere")), status=None)
    if stranger.returncode == 0:
        fail(f"{title}: a daemon whose key nobody trusts was believed")
    client.run("key", "trust", f"127.0.0.1:{port}", server.key)

    here = os.path.join(room, f"fetched by {client.name}")
    client.run("cp", "-rp", f"{at}/pub/tree", client.path(here))
    same(os.path.join(served, "pub", "tree"), here, f"{title}: fetched")
    client.run("cp", "-rp", "--verify", "read-back", client.path(here), f"{at}/in/")
    same(here, os.path.join(served, "in", os.path.basename(here)), f"{title}: sent")
    again = client.run("cp", "-rp", "--skip-same", client.path(here), f"{at}/in/")
    print(f"exchange: {title}: again: {again.stderr.decode(errors='replace').strip().splitlines()[-1:]}")

    # Names that Windows has not, from a store that has them to one that has not.
    odd = os.path.join(room, f"odd for {server.name}")
    if server.name == "linux":
        odd = os.path.join(served, "pub", "odd")
    for name in BAD + PAIR + ["good"]:
        write(os.path.join(odd, name), name.encode())
    write(os.path.join(os.fsencode(odd), NO_UTF8), b"x")
    if server.name == "linux":
        to = os.path.join(room, "odd here")
        told = client.run("cp", "-r", f"{at}/pub/odd", client.path(to), status=1)
    else:
        to = os.path.join(served, "in", os.path.basename(odd))
        told = client.run("cp", "-r", client.path(odd), f"{at}/in/", status=1)
    there, text = tree(to), told.stderr.decode(errors="replace")
    if len(there) != 2 or b"good" not in there:
        fail(f"{title}: of names that Windows has not: {sorted(there)}\n{text}")
    for name in BAD:
        shown = name.encode("unicode_escape").decode() if "\n" in name else name
        if not any(shown in line and "no file can have on Windows" in line for line in text.splitlines()):
            fail(f"{title}: {name!r} is not named in:\n{text}")
    if text.count("in another spelling") != 2:
        fail(f"{title}: names that differ in case alone:\n{text}")
    print(f"exchange: {title}: {len(BAD) + 3} names that cannot be there are named, one by one, and the others are there")

    interrupted(client, at, room)
    measured = client.run("perf", "--time", "1", at, status=None)
    if measured.returncode != 0:
        fail(f"{title}: perf: {measured.stderr.decode(errors='replace')}")
    print(f"exchange: {title}: a measurement ends well")
    server.end(running, said, f"{title}: the daemon")


def interrupted(client, at, room):
    """A copy that is interrupted, and gone on with."""
    source = os.path.join(room, f"slow of {client.name}")
    write(os.path.join(source, "slow.bin"), os.urandom(6_000_000))
    words = ("cp", "-r", "--limit", "8M", client.path(source), f"{at}/in/")
    running = subprocess.Popen(client.arguments(words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(3)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    if running.returncode != 130:
        fail(f"{client.name}: an interrupted copy ends with {running.returncode}: {said.decode(errors='replace')}")
    client.run("cp", "-r", client.path(source), f"{at}/in/")
    print(f"exchange: {client.name}: a copy that is interrupted has status 130, and the next one goes on")


def pipe(listener, caller):
    running, found, said = listener.start("pipe", "-l", "--anyone", "-d", "-s", "127.0.0.1", until=r"UDP port (\d+); .* --key (\S+)")
    content = os.urandom(1 << 20)
    caller.run("pipe", "--key", found.group(2), "127.0.0.1", found.group(1), stdin=content)
    running.wait(30)
    with open(said.name, "rb") as file:
        # Behind the line that says where it listens.
        if not file.read().endswith(content):
            fail(f"pipe from {caller.name} to {listener.name}: not what was sent")
    said.close()
    print(f"exchange: pipe from {caller.name} to {listener.name}: {len(content)} bytes, the same")


def main():
    linux, windows = sys.argv[1:3]
    room = tempfile.mkdtemp(prefix="haul-windows-")
    try:
        sides = [Side("linux", [linux], room), Side("windows", [*WINE, windows], room)]
        said = sides[1].run("fleet", "status", status=2).stderr.decode(errors="replace")
        if "haul for Windows has no `haul fleet`" not in said:
            fail(f"a command that is not there: {said}")
        daemon(sides[0], sides[1], room)
        daemon(sides[1], sides[0], room)
        pipe(sides[0], sides[1])
        pipe(sides[1], sides[0])
        print("exchange: all well")
    finally:
        shutil.rmtree(os.fsencode(room), ignore_errors=True)


main()
