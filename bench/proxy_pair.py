"""A pair of proxies on the two hosts of `haul lab wan run`, for the programs that try them."""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class Wan:
    """The emulated WAN that this program runs in."""

    def __init__(self, haul):
        self.haul, self.name = haul, os.environ["HAUL_LAB_NAME"]

    def on(self, host):
        """What a command starts with to run on a host."""
        return [self.haul, "lab", "wan", "exec", "--name", self.name, host, "--"]

    def set_loss(self, loss):
        subprocess.run([self.haul, "lab", "wan", "set", "--name", self.name, "--loss", loss], check=True, stdout=subprocess.DEVNULL)

    def pair(self, place, target_port, proxy_port, options):
        """`haul proxy serve` on b for a target there, and `haul proxy connect` on a with the same port; both have still to be started."""
        log = open(place / "log", "wb")
        environment = dict(os.environ, XDG_CONFIG_HOME=str(place / "b"), XDG_STATE_HOME=str(place / "b"))
        shown = subprocess.run([self.haul, "key", "show"], env=environment, check=True, capture_output=True, text=True).stdout
        key = next(word for word in shown.split() if word.startswith("SHA256:"))
        serve = ["serve", "--to", f"127.0.0.1:{target_port}", "-p", str(proxy_port), "--anyone", *options]
        connect = ["connect", f"{os.environ['HAUL_LAB_B_ADDRESS']}:{proxy_port}", "--listen", str(target_port), "--key", key, *options]
        return Side(self, "b", serve, log, place / "b"), Side(self, "a", connect, log, place / "a")


def arguments(description, rate, rtt, roles):
    """A parser of what all such programs take: haul, the link, and what part of the program it is to be."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--haul", default=str(Path(__file__).resolve().parent.parent / "target/release/haul"))
    parser.add_argument("--rate", default=rate)
    parser.add_argument("--rtt", default=rtt)
    parser.add_argument("--loss", default="0.1%")
    parser.add_argument("--role", choices=[*roles, "whole"], help=argparse.SUPPRESS)
    return parser


def inside_wan(program, options, own):
    """Runs a program again with `--role whole` and its own arguments, inside an emulated WAN; gives its exit status."""
    link = ["--rate", options.rate, "--rtt", options.rtt, "--loss", options.loss]
    again = [sys.executable, program, "--role", "whole", "--haul", options.haul, "--loss", options.loss, *own]
    command = [options.haul, "lab", "wan", "run", "--name", Path(program).stem, *link, "--", *again]
    return subprocess.run(command).returncode


class Side:
    """One of the two proxies."""

    def __init__(self, wan, host, arguments, log, state):
        self.wan, self.host, self.arguments, self.log, self.state = wan, host, arguments, log, state
        self.process = None

    def start(self):
        environment = dict(os.environ, XDG_CONFIG_HOME=str(self.state), XDG_STATE_HOME=str(self.state))
        self.process = subprocess.Popen(self.wan.on(self.host) + [self.wan.haul, "proxy", *self.arguments], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, env=environment)

    def pid(self):
        """The proxy's own: `haul lab wan exec` stands above it."""
        pid = self.process.pid
        while children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            pid = int(children[0])
        return pid

    def kill(self):
        os.kill(self.pid(), signal.SIGKILL)
        self.process.wait()

    def end(self):
        os.kill(self.pid(), signal.SIGTERM)
        return self.process.wait(timeout=30)

    def held(self):
        """Open files, and resident memory in KiB, of the proxy."""
        pid = self.pid()
        status = Path(f"/proc/{pid}/status").read_text()
        return len(os.listdir(f"/proc/{pid}/fd")), int(status.split("VmRSS:")[1].split()[0])

    def processor_seconds(self):
        """What the proxy has used since its start."""
        fields = Path(f"/proc/{self.pid()}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(serve, connect):
    """Starts both, and waits until they are there."""
    serve.start()
    time.sleep(1)
    connect.start()
    time.sleep(2)
