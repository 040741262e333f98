"""`haul.fleet`, with daemons on loopback as its servers."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree as xml
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import HAUL, run

import haul
import haul.fleet


@dataclass
class Servers:
    """Daemons, each with a root `data`; who has the keys in `state` may write."""

    hosts: list[str]
    roots: list[Path]
    state: Path
    processes: list[subprocess.Popen[bytes]]

    def fleet(self, **words: object) -> haul.fleet.Fleet:
        return haul.fleet.Fleet(self.hosts, way="daemon", state=self.state, **words)  # type: ignore[arg-type]


@pytest.fixture
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    top = tmp_path_factory.mktemp("fleet")
    made = Servers([], [], top / "client", [])
    own = haul.own_key(made.state).fingerprint
    for number in range(3):
        root, state, log = top / f"root{number}", top / f"state{number}", top / f"log{number}"
        root.mkdir()
        # A daemon of a fleet is told from others by its address: here all have another one of loopback.
        address = f"127.0.0.{number + 1}"
        with log.open("wb") as said:
            words = [HAUL, "serve", "--state", str(state), "--listen", f"{address}:0", "--root", f"data={root}:rw"]
            made.processes.append(subprocess.Popen(words, stderr=said, stdout=subprocess.DEVNULL))
        deadline = time.monotonic() + 60
        while not (found := re.search(rf"{re.escape(address)}:(\d+)", log.read_text())):
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        key = re.search(r"SHA256:\S{43}", run(HAUL, "key", "show", "--state", str(state)))
        assert key is not None
        run(HAUL, "key", "authorize", "--state", str(state), own)
        haul.trust(f"{address}:{found[1]}", key[0], str(made.state))
        made.hosts.append(f"haul://{address}:{found[1]}/data")
        made.roots.append(root)
    yield made
    for process in made.processes:
        process.kill()
        process.wait(20)


def fill(root: Path, names: range, size: int = 100_000) -> dict[str, bytes]:
    content = {f"set/part-{name}": os.urandom(size) for name in names}
    (root / "set").mkdir(exist_ok=True)
    for name, data in content.items():
        (root / name).write_bytes(data)
    return content


def test_a_data_set_comes_from_all_servers(servers: Servers, tmp_path: Path) -> None:
    content: dict[str, bytes] = {}
    for number, root in enumerate(servers.roots):
        content.update(fill(root, range(10 * number, 10 * number + 10)))
    looks: list[haul.fleet.Progress] = []
    with servers.fleet(logs=tmp_path / "logs") as fleet:
        assert not fleet.absent
        done = fleet.download("set", tmp_path, recursive=True, progress=looks.append).check()
        again = fleet.download("set", tmp_path, recursive=True, skip_same=True)
        excluded = fleet.download("set", tmp_path / "some", recursive=True, exclude=["part-1*"], limit="100M")
    assert (done.files, done.bytes, len(done.servers)) == (30, 3_000_000, 3) and done.seconds > 0 and done.rate > 0
    assert {share.bytes for share in done.servers} == {1_000_000} and not done.absent
    assert looks and looks[-1].total_files == 30 and len(looks[-1].servers) == 3
    assert {(name, (tmp_path / name).read_bytes()) for name in content} == set(content.items())
    assert again.files in (0, 30) and excluded.files == 19
    assert len(list((tmp_path / "logs").iterdir())) == 3


def test_files_go_to_as_many_servers_as_were_asked_for(servers: Servers, tmp_path: Path) -> None:
    content = fill(tmp_path, range(6))
    with servers.fleet() as fleet:
        done = fleet.upload(tmp_path / "set", "kept", recursive=True, replicas=2).check()
        with pytest.raises(haul.UsageError, match="replicas"):
            fleet.upload(tmp_path / "set", "kept", recursive=True, replicas=4)
    assert done.bytes >= sum(map(len, content.values()))
    for name, data in content.items():
        copies = [root / "kept" / name for root in servers.roots]
        assert [copy.read_bytes() == data for copy in copies if copy.exists()] == [True, True], name


def test_several_jobs_at_once_and_by_await(servers: Servers, tmp_path: Path) -> None:
    fill(servers.roots[0], range(3))
    (servers.roots[1] / "other").write_bytes(b"of the other job")
    with servers.fleet() as fleet:
        jobs = [fleet.begin_download("set", tmp_path, recursive=True), fleet.begin_download("other", tmp_path)]
        assert [job.wait(60).files for job in jobs] == [3, 1] and all(job.is_over for job in jobs)

        async def both() -> list[haul.fleet.Done]:
            (tmp_path / "awaited").mkdir()
            jobs = [fleet.begin_download(name, tmp_path / "awaited", recursive=True) for name in ("set", "other")]
            return [await job for job in jobs]

        assert [done.files for done in asyncio.run(both())] == [3, 1]
    assert (tmp_path / "awaited" / "other").read_bytes() == b"of the other job"


def test_status_says_how_the_servers_are(servers: Servers) -> None:
    with servers.fleet() as fleet:
        status = fleet.status()
        assert len(status.servers) == 3 and not status.absent and status.pid == os.getpid()
        for server in status.servers:
            assert server.error is None and server.processors > 0 and server.version == haul.__version__
            assert server.memory_total > server.memory_available > 0
        servers.processes[1].kill()
        servers.processes[1].wait(20)
        assert len(fleet.status().servers) == 2


def test_a_server_that_is_gone_is_named_and_replaced(servers: Servers, tmp_path: Path) -> None:
    for root in servers.roots:
        (root / "whole").write_bytes(b"x" * 500_000)
        os.utime(root / "whole", (1_000_000, 1_000_000))
    servers.processes[2].kill()
    servers.processes[2].wait(20)
    with servers.fleet(timeout=10) as fleet:
        assert set(fleet.absent) == {"127.0.0.3"}
        done = fleet.download("whole", tmp_path)
        assert done.files == 1 and (tmp_path / "whole").read_bytes() == b"x" * 500_000


def test_threads_may_ask_at_once_why_a_job_failed(servers: Servers, tmp_path: Path) -> None:
    program = """
        import sys, threading, time
        import haul, haul.errors, haul.fleet
        with haul.fleet.Fleet(sys.argv[3:], way="daemon", state=sys.argv[1]) as fleet:
            native = fleet.begin_download("large", sys.argv[2], limit="8M")._native
            native.cancel()
            while not native.wait(1.0):
                pass
            make, failed = haul.errors.HaulError.__init__, []
            def slowly(*given, **named):
                time.sleep(0.2)  # lets the other thread run
                make(*given, **named)
            haul.errors.HaulError.__init__ = slowly
            def ask():
                try:
                    native.result()
                except haul.Cancelled:
                    failed.append(True)
            asking = [threading.Thread(target=ask) for _ in range(3)]
            for thread in asking:
                thread.start()
            for thread in asking:
                thread.join()
            assert failed == [True] * 3
    """
    (servers.roots[0] / "large").write_bytes(os.urandom(20_000_000))
    words = [sys.executable, "-c", textwrap.dedent(program), str(servers.state), str(tmp_path), *servers.hosts]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_fails_is_an_exception_of_its_class(servers: Servers, tmp_path: Path) -> None:
    with pytest.raises(haul.UsageError):
        haul.fleet.Fleet("a/b").start()
    with pytest.raises(haul.UsageError, match="write ssh-direct"):
        haul.fleet.Fleet("host", way="carrier pigeon").start()
    with pytest.raises(haul.UsageError, match="not up"):
        haul.fleet.Fleet("host").status()
    with pytest.raises(haul.NotFound, match="no fleet named"):
        haul.fleet.Fleet.attach("nobody-has-this-name")
    with servers.fleet() as fleet:
        with pytest.raises(haul.UsageError, match="already"):
            fleet.start()
        for limit in (0, "0", -1):
            with pytest.raises(haul.UsageError, match="limit: "):
                fleet.download("set", tmp_path, limit=limit)
        with pytest.raises(haul.UsageError, match="replicas: -1 "):
            fleet.upload(tmp_path, "x", replicas=-1)
        with pytest.raises(TypeError, match="sources: .* is wanted, not int"):
            fleet.download(3, tmp_path)  # type: ignore[arg-type]
        missing = fleet.download("no such set", tmp_path)
        assert not missing.ok
        with pytest.raises(haul.PartialCopy):
            missing.check()
        for _ in range(2):
            (servers.roots[0] / "large").write_bytes(os.urandom(20_000_000))
            job = fleet.begin_download("large", tmp_path, limit="8M")
            with pytest.raises(TimeoutError):
                job.wait(0.2)
            job.cancel()
            with pytest.raises(haul.Cancelled):
                job.wait(30)

        def stop(_: haul.fleet.Progress) -> None:
            raise RuntimeError("the caller's own")

        with pytest.raises(RuntimeError, match="own"):
            fleet.download("large", tmp_path, limit="8M", progress=stop)
        assert not (tmp_path / "large").exists()


def test_the_example_fetches_and_plots(servers: Servers, tmp_path: Path) -> None:
    for number, root in enumerate(servers.roots):
        fill(root, range(10 * number, 10 * number + 5), 400_000)
    example, plot = Path(__file__).parents[1] / "examples" / "fleet.py", tmp_path / "rates.svg"
    words = [sys.executable, str(example), ",".join(servers.hosts), "set", str(tmp_path), str(plot), str(servers.state)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "15 files, 6.0 MB" in done.stdout and "looks plotted" in done.stdout
    assert len(list((tmp_path / "set").iterdir())) == 15
    curves = xml.parse(plot).getroot().findall("{http://www.w3.org/2000/svg}polyline")
    assert len(curves) == 3
