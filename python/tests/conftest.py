"""A daemon of its own for each test session, and what goes with it."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import haul

#: The program: the debug build of this tree, unless `HAUL` names another.
HAUL = os.environ.get("HAUL") or str(Path(__file__).parents[2] / "target" / "debug" / "haul")


@dataclass
class Daemon:
    """`haul serve` on loopback: the root `data` may be written to, `pub` only read."""

    port: int
    key: str
    data: Path
    pub: Path
    #: Its own directory of keys, and that of its client, which it lets in.
    server_state: Path
    state: Path
    audit: Path

    def url(self, path: str = "") -> str:
        return f"haul://127.0.0.1:{self.port}/{path}"

    def authorize(self, key: str, *rights: str) -> None:
        run(HAUL, "key", "authorize", "--state", str(self.server_state), key, *rights)


def run(*words: str) -> str:
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def wanted(module: str) -> Any:
    """A module that a test needs and haul does not; under CI=true it must be there."""
    return importlib.import_module(module) if os.environ.get("CI") == "true" else pytest.importorskip(module)


def no_ssh(at: Path, before: str = "") -> Path:
    """A program that stands in for ssh and runs the far side here: login is ssh's own affair. `before` is what it does first."""
    at.mkdir(exist_ok=True)
    fake = at / "ssh"
    fake.write_text(f'#!/bin/bash\n# The last word is the command.\nexport PATH="{Path(HAUL).parent}:$PATH"\n{before}\nexec bash -c "${{@: -1}}"\n')
    fake.chmod(0o755)
    return fake


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    top = tmp_path_factory.mktemp("daemon")
    for name in ("data", "pub"):
        (top / name).mkdir()
    (top / "pub" / "read-me").write_text("only to be read")
    words = [HAUL, "serve", "--state", str(top / "server"), "--listen", "127.0.0.1:0"]
    words += ["--audit", str(top / "audit"), "--root", f"data={top / 'data'}:rw", "--root", f"pub={top / 'pub'}"]
    log = top / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(words, stderr=said, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (found := re.search(r"127\.0\.0\.1:(\d+)", log.read_text())):
        assert time.monotonic() < deadline and process.poll() is None, log.read_text()
        time.sleep(0.05)
    key = re.search(r"SHA256:\S{43}", run(HAUL, "key", "show", "--state", str(top / "server")))
    assert key is not None
    daemon = Daemon(int(found[1]), key[0], top / "data", top / "pub", top / "server", top / "client", top / "audit")
    daemon.authorize(haul.own_key(top / "client").fingerprint)
    haul.trust(f"127.0.0.1:{daemon.port}", daemon.key, str(daemon.state))
    yield daemon
    process.terminate()
    try:
        process.wait(20)
    finally:
        process.kill()


@pytest.fixture
def room(daemon: Daemon, request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty directory in the root `data`."""
    place = daemon.data / re.sub(r"\W", "-", request.node.name)[-60:]
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    yield place
    shutil.rmtree(place, ignore_errors=True)
