"""A path measured from memory to memory: ``haul perf`` as a function.

::

    measured = haul.perf.measure("host", seconds=5)
    print(measured.up.rate / 1e6, "Mbit/s")
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _haul, _logging

__all__ = ["Flow", "Interval", "Measured", "measure"]


@dataclass(frozen=True)
class Interval:
    """What arrived in a part of the time."""

    #: ``"up"``, to the server, or ``"down"``.
    direction: str
    #: Seconds since the beginning, and how many it lasted.
    start: float
    seconds: float
    bytes: int

    @property
    def rate(self) -> float:
        """Bits a second."""
        return self.bytes * 8 / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Flow:
    """What came one way, as the receiver counted it."""

    bytes: int
    seconds: float
    #: What went wrong, if it ended before its time.
    error: Optional[str] = None
    #: Round-trip time in seconds, packets sent and lost, as the sender saw them.
    rtt: float = 0.0
    sent_packets: int = 0
    lost_packets: int = 0

    @property
    def rate(self) -> float:
        """Bits a second, on average."""
        return self.bytes * 8 / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class Measured:
    """Each direction that was measured, and all intervals."""

    up: Optional[Flow]
    down: Optional[Flow]
    intervals: tuple[Interval, ...]


def measure(
    host: str,
    *,
    seconds: float = 10.0,
    bytes: Optional[Union[int, str]] = None,
    ways: str = "up",
    streams: int = 1,
    interval: float = 1.0,
    omit: float = 0.0,
    block: Optional[Union[int, str]] = None,
    limit: Optional[Union[int, str]] = None,
    mode: Optional[str] = None,
    paths: int = 1,
    trust: Optional[str] = None,
    state: Optional[Union[str, os.PathLike[str]]] = None,
    udp_port: Optional[Union[int, str]] = None,
    relay: Optional[str] = None,
    ssh: Optional[Mapping[str, Any]] = None,
) -> Measured:
    """Measures the path to a host: ``[user@]host`` by ssh, or ``haul://host[:port]`` of a daemon.

    ``seconds`` or ``bytes`` say how long; ``ways`` is ``"up"`` (to the host), ``"down"`` or ``"both"``; ``omit`` seconds at the beginning do not count. The others are those of :func:`haul.copy`.
    """
    _logging.start()
    kwargs: dict[str, Any] = {
        "seconds": None if bytes is not None else seconds,
        "bytes": bytes,
        "ways": ways,
        "streams": streams,
        "interval": interval,
        "omit": omit,
        "block": block,
        "trust": trust,
        "state": None if state is None else os.fspath(state),
        "udp_port": None if udp_port is None else str(udp_port),
        "relay": relay,
        "ssh": None if ssh is None else dict(ssh),
        "connection": {"limit": limit, "mode": mode, "paths": paths},
    }
    operand = host.rstrip("/") + "/." if "://" in host else f"{host}:"
    told = _haul.perf(os.fsencode(operand), kwargs)
    flows = {way: Flow(**told[way]) if way in told else None for way in ("up", "down")}
    return Measured(flows["up"], flows["down"], tuple(Interval(*one) for one in told["intervals"]))
