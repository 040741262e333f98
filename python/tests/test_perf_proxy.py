"""`haul.perf` and `haul.proxy`, on loopback."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest
from conftest import Daemon

import haul
import haul.perf
import haul.proxy


def test_a_path_is_measured(daemon: Daemon) -> None:
    measured = haul.perf.measure(daemon.url(), seconds=0.6, interval=0.2, ways="both", limit="50M", state=daemon.state)
    assert measured.up is not None and measured.down is not None
    for flow in (measured.up, measured.down):
        assert flow.bytes > 0 and 0 < flow.rate < 100e6 and flow.error is None and flow.rtt > 0 and flow.sent_packets > 0
    assert {interval.direction for interval in measured.intervals} == {"up", "down"}
    assert sum(interval.bytes for interval in measured.intervals) > 0
    one = haul.perf.measure(daemon.url(), bytes="1MiB", state=daemon.state)
    assert one.down is None and one.up is not None and one.up.bytes >= 1 << 20
    with pytest.raises(haul.UsageError):
        haul.perf.measure(daemon.url(), ways="sideways", state=daemon.state)
    for words, message in (({"limit": "0"}, "limit: nothing"), ({"streams": -1}, "streams: -1 "), ({"seconds": -1}, "seconds: -1: ")):
        with pytest.raises(haul.UsageError, match=message):
            haul.perf.measure(daemon.url(), state=daemon.state, **words)  # type: ignore[arg-type]


def test_a_pair_of_proxies() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def echo() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:
                    return
                # The end of the proxies resets what they still carry.
                with client, contextlib.suppress(ConnectionResetError):
                    while data := client.recv(65536):
                        client.sendall(data.upper())

        threading.Thread(target=echo, daemon=True).start()
        with haul.proxy.serve(allow=[f"127.0.0.1:{port}"], anyone=True) as far:
            with haul.proxy.connect(f"127.0.0.1:{far.port}", f"127.0.0.1:{port}", key=far.fingerprint) as near:
                assert near.is_running and near.port > 0
                for _ in range(3):
                    with socket.create_connection(("127.0.0.1", near.port), timeout=10) as client:
                        client.sendall(b"hello")
                        assert client.recv(100) == b"HELLO"
                kept = near.port
            with pytest.raises(OSError):
                socket.create_connection(("127.0.0.1", kept), timeout=1)
    with pytest.raises(haul.UsageError, match="who is let in"):
        haul.proxy.serve(allow=["*:*"])
    with pytest.raises(haul.UsageError):
        haul.proxy.connect("127.0.0.1:1", "nonsense", key=haul.Identity().fingerprint)
