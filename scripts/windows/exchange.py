#!/usr/bin/env python3
"""Copies between haul of Linux and haul.exe under Wine, over a daemon with keys: a tree of odd names both ways, with the daemon on either side; then a pipe, a measurement, and an interrupt. The same
by ssh, with the far side on either: what logs in is a stand-in, all else is as it is.

`scripts/windows/exchange.py HAUL HAUL.EXE SSH.EXE`. Contents are compared by hash. Wine is not Windows: what it takes for a name, and what it does to it, is its own; that no file gets a name that Windows could not have is haul's.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
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

    interrupted(client, f"{at}/in/", room)
    measured = client.run("perf", "--time", "1", at, status=None)
    if measured.returncode != 0:
        fail(f"{title}: perf: {measured.stderr.decode(errors='replace')}")
    print(f"exchange: {title}: a measurement ends well")
    server.end(running, said, f"{title}: the daemon")


def interrupted(client, to, room):
    """A copy that is interrupted, and gone on with."""
    source = os.path.join(room, f"slow of {client.name}")
    write(os.path.join(source, "slow.bin"), os.urandom(6_000_000))
    words = ("cp", "-r", "--limit", "8M", client.path(source), to)
    running = subprocess.Popen(client.arguments(words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    time.sleep(3)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    if running.returncode != 130:
        fail(f"{client.name}: an interrupted copy ends with {running.returncode}: {said.decode(errors='replace')}")
    client.run("cp", "-r", client.path(source), to)
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


class Sshd:
    """What ssh.exe leads to: a host whose home is a directory of `room`, and whose shell runs haul of Linux."""

    #: Nobody logs in there; there nobody answers, whether or not somebody still asks.
    CLOSED, SLOW = "closed", "slow"

    def __init__(self, linux, room):
        self.home = os.path.join(room, "home")
        os.makedirs(os.path.join(self.home, "in"))
        self.path = f"{os.path.dirname(os.path.abspath(linux))}:/usr/bin:/bin"
        self.calls, self.running, self.gone = [], [], False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            near, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        words = near.makefile("rb", buffering=0)
        length = struct.unpack(">I", self.exactly(words, 4))[0]
        called = self.exactly(words, length).decode().split("\0")
        self.calls.append(called)
        if "-G" in called:
            self.part(near, 1, b"user me\r\nhostname 127.0.0.1\r\n")
            return self.end(near, 0)
        host = called[called.index("--") + 1]
        if host == self.CLOSED or "-W" in called:
            self.part(near, 2, b"Permission denied (publickey).\r\n")
            return self.end(near, 255)
        while host == self.SLOW:
            try:
                near.sendall(struct.pack(">BI", 2, 1) + b".")
                time.sleep(0.1)
            except OSError:
                self.gone = True
                return None
        environment = {"PATH": self.path, "HOME": self.home, "SSH_CONNECTION": "127.0.0.1 50000 127.0.0.1 22"}
        pipe = subprocess.PIPE
        far = subprocess.Popen(["sh", "-c", called[-1]], stdin=pipe, stdout=pipe, stderr=pipe, env=environment, cwd=self.home)
        self.running.append(far)
        threading.Thread(target=self.feed, args=(words, far.stdin), daemon=True).start()
        streams = [threading.Thread(target=self.drain, args=(near, kind, stream), daemon=True) for kind, stream in ((1, far.stdout), (2, far.stderr))]
        for stream in streams:
            stream.start()
        for stream in streams:
            stream.join()
        self.end(near, far.wait())

    @staticmethod
    def exactly(stream, length):
        found = b""
        while len(found) < length:
            found += stream.read(length - len(found)) or fail("ssh.exe says nothing")
        return found

    @staticmethod
    def feed(words, stdin):
        try:
            while part := words.read(1 << 16):
                stdin.write(part)
                stdin.flush()
            stdin.close()
        except OSError:
            pass

    def drain(self, near, kind, stream):
        while part := os.read(stream.fileno(), 1 << 16):
            self.part(near, kind, part)

    @staticmethod
    def part(near, kind, part):
        try:
            near.sendall(struct.pack(">BI", kind, len(part)) + part)
        except OSError:
            # ssh.exe was ended.
            pass

    @staticmethod
    def end(near, status):
        try:
            near.sendall(struct.pack(">BI", 0, status & 0xFF))
            near.close()
        except OSError:
            pass


def carried_by(client, *words):
    """A copy, and what carried it."""
    done = client.run("cp", "--json", *words)
    events = [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith("{")]
    return [event for event in events if event["event"] == "summary"][0]["carried_by"]


def from_windows(linux, windows, ssh, room):
    """haul.exe starts ssh.exe, which is in its PATH; the far side is Linux."""
    title = "windows -> ssh.exe -> linux"
    room = os.path.join(room, "by ssh.exe")
    os.makedirs(os.path.join(room, "bin"))
    shutil.copy(ssh, os.path.join(room, "bin", "ssh.exe"))
    sshd = Sshd(linux.command[0], room)
    os.environ.update({"HAUL_TEST_SSH": str(sshd.port), "WINEPATH": windows.path(os.path.join(room, "bin"))})
    make_good(os.path.join(room, "tree"))
    for way in ("udp", "tcp", "ssh"):
        told = carried_by(windows, "-rp", "--transport", way, windows.path(os.path.join(room, "tree")), f"far:in/{way}")
        same(os.path.join(room, "tree"), os.path.join(sshd.home, "in", way), f"{title}: sent by {way}")
        if told != way:
            fail(f"{title}: by {told}, and not by {way}")
    back = os.path.join(room, "back")
    told = carried_by(windows, "-rp", "far:in/udp", windows.path(back))
    same(os.path.join(room, "tree"), back, f"{title}: fetched by {told}")
    for called in sshd.calls:
        if "ControlMaster=no" not in called or "ControlPath=none" not in called:
            fail(f"{title}: ssh of Windows shares no connections, and was not told so: {called}")
    interrupted(windows, "far:in/", room)

    content = os.urandom(1 << 20)
    piped = windows.run("pipe", "far", "--", "cat", stdin=content)
    if piped.stdout != content:
        fail(f"{title}: a pipe: {len(piped.stdout)} bytes, not what was sent")
    windows.run("perf", "--time", "1", "far")
    print(f"exchange: {title}: a pipe and a measurement end well")

    for words, status, said in (
        (("x", "closed:"), 2, ("Permission denied (publickey).", "ssh could not log in")),
        (("--remote-haul", "/nowhere/haul", "x", "far:"), 2, ("haul not found there",)),
        (("-S", "C:\\nowhere\\ssh.exe", "x", "far:"), 2, ("C:\\nowhere\\ssh.exe", "OpenSSH Client")),
    ):
        failed = windows.run("cp", *words, status=status).stderr.decode(errors="replace")
        if not all(part in failed for part in said):
            fail(f"{title}: {words}: not {said} in {failed}")
    print(f"exchange: {title}: what is wrong is said")

    # Who is killed takes ssh along, and the far side, whatever they wait for.
    write(os.path.join(room, "much"), os.urandom(6_000_000))
    before = len(sshd.running)
    words = ("cp", "--limit", "1M", windows.path(os.path.join(room, "much")), "far:")
    running = subprocess.Popen(windows.arguments(words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: any(".haul" in name for name in os.listdir(sshd.home)), f"{title}: a copy begins")
    running.kill()
    running.wait()
    until(lambda: all(far.poll() is not None for far in sshd.running[before:]), f"{title}: the far side of who was killed ends")
    words = ("cp", windows.path(os.path.join(room, "much")), "slow:")
    running = subprocess.Popen(windows.arguments(words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: any("slow" in called and "-G" not in called for called in sshd.calls), f"{title}: ssh logs in")
    running.kill()
    running.wait()
    until(lambda: sshd.gone, f"{title}: the ssh of who was killed ends")
    print(f"exchange: {title}: ssh and the far side of who was killed end")


def until(is_so, what):
    for _ in range(300):
        if is_so():
            return
        time.sleep(0.1)
    fail(f"{what}: not within 30 s")


def to_windows(linux, windows, room):
    """haul of Linux by ssh to where `haul remote` is that of Windows."""
    title = "linux -> ssh -> windows"
    room = os.path.join(room, "to windows")
    ssh = os.path.join(room, "ssh")
    write(
        ssh,
        b"#!/bin/sh\nfor word; do\n"
        b'    [ "$word" = -G ] && echo "hostname 127.0.0.1" && exit 0\n    [ "$word" = -W ] && exit 255\n'
        b'done\nset -- $word\n[ "$1 $2" = "haul remote" ] || exit 127\nshift\n'
        b'SSH_CONNECTION="127.0.0.1 50000 127.0.0.1 22" exec '
        + " ".join(f'"{word}"' for word in windows.command).encode()
        + b' "$@"\n',
    )
    os.chmod(ssh, 0o755)
    make_good(os.path.join(room, "tree"))
    os.makedirs(os.path.join(room, "in"))
    far = "far:" + windows.path(room).replace("\\", "/")
    for way in ("udp", "tcp", "ssh"):
        told = carried_by(linux, "-S", ssh, "-rp", "--transport", way, os.path.join(room, "tree"), f"{far}/in/{way}")
        same(os.path.join(room, "tree"), os.path.join(room, "in", way), f"{title}: sent by {way}")
        if told != way:
            fail(f"{title}: by {told}, and not by {way}")
    back = os.path.join(room, "back")
    told = carried_by(linux, "-S", ssh, "-rp", f"{far}/in/udp", back)
    same(os.path.join(room, "tree"), back, f"{title}: fetched by {told}")
    linux.run("perf", "--time", "1", "-S", ssh, "far")
    command = linux.run("pipe", "-S", ssh, "far", "--", "cat", status=127).stderr.decode()
    if "commands are not run on Windows" not in command:
        fail(f"{title}: a command: {command}")
    print(f"exchange: {title}: a measurement ends well, and a command is refused")


def main():
    linux, windows, ssh = sys.argv[1:4]
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
        from_windows(*sides, ssh, room)
        to_windows(*sides, room)
        print("exchange: all well")
    finally:
        shutil.rmtree(os.fsencode(room), ignore_errors=True)


main()
