"""What a new user does: the copy of the README, in an environment that has haul and nothing else, against a daemon of its own. `fresh.py README`"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import haul


def main() -> None:
    print(f"haul {haul.__version__} in Python {sys.version.split()[0]}")
    buffers()
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        results = top / "there" / "results"
        results.mkdir(parents=True)
        (results / "table").write_bytes(os.urandom(1_000_000))
        program = os.environ["HAUL"]
        log = (top / "log").open("wb")
        daemon = subprocess.Popen([program, "serve", "--state", str(top / "server"), "--listen", "127.0.0.1:0", "--root", f"data={top / 'there'}"], stderr=log)
        try:
            while not (port := re.search(r"127\.0\.0\.1:(\d+)", (top / "log").read_text())):
                assert daemon.poll() is None
                time.sleep(0.05)
            subprocess.run([program, "key", "authorize", "--state", str(top / "server"), haul.own_key(top / "client").fingerprint], check=True, capture_output=True)
            shown = subprocess.run([program, "key", "show", "--state", str(top / "server")], check=True, capture_output=True, text=True)
            key = re.search(r"SHA256:\S{43}", shown.stdout)
            assert key
            haul.trust(f"127.0.0.1:{port[1]}", key[0], str(top / "client"))
            lines = re.search(r"```python\n(.*?)```", Path(sys.argv[1]).read_text(), re.S)
            assert lines and lines[1].count("\n") == 3, "three lines"
            words = lines[1].replace("host:results", f"haul://127.0.0.1:{port[1]}/data/results").replace('"/data"', f'"{top}", state="{top}/client"')
            exec(words, {})
            assert (top / "results" / "table").read_bytes() == (results / "table").read_bytes()
        finally:
            daemon.terminate()
            daemon.wait(20)


def buffers() -> None:
    """Blocks by Python's buffer protocol, which the stable ABI of this Python may not have."""
    identity = haul.Identity()
    with haul.listen(("127.0.0.1", 0), identity=identity) as server:
        near = haul.connect(server.address, trust=identity.fingerprint)
        far = server.accept(timeout=10)

        def send() -> None:
            with near.open_blocks() as sender:
                for data in (b"bytes", bytearray(b"bytearray"), memoryview(b"memoryview")[6:]):
                    sender.send(data)

        sending = threading.Thread(target=send)
        sending.start()
        arrived = {block.index: bytes(block.data[:]) for block in far.accept_blocks(timeout=10)}
        sending.join()
        assert arrived == {0: b"bytes", 1: b"bytearray", 2: b"view"}, arrived


main()
