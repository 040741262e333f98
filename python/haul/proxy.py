"""TCP connections carried over haul, inside a program: a pair in two lines.

::

    far = haul.proxy.serve(allow=["127.0.0.1:5432"], anyone=True)                     # on one host
    near = haul.proxy.connect("db-host:7702", "127.0.0.1:5432", key=far.fingerprint)  # on another: near.port is the database's

Both run in threads of their own until they are closed, at the end of a ``with`` or by ``close``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

from . import _haul, _logging
from ._haul import Identity
from .errors import UsageError

__all__ = ["Proxy", "connect", "serve"]


class Proxy:
    """One end of a proxy. ``port`` is a TCP port of the near end, the UDP port of the far one."""

    def __init__(self, native: _haul.Proxy, fingerprint: Optional[str] = None) -> None:
        self._native = native
        #: Of the far end's key: what the near end has to know.
        self.fingerprint = fingerprint

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._native.port

    @property
    def is_running(self) -> bool:
        """Whether it runs; raises why it failed, if it did."""
        return not self._native.is_over()

    def close(self) -> None:
        """Ends it with all that it carries."""
        self._native.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(
    port: int = 0,
    *,
    allow: Iterable[str],
    address: str = "127.0.0.1",
    identity: Optional[Identity] = None,
    authorized: Optional[Union[str, os.PathLike[str]]] = None,
    anyone: bool = False,
) -> Proxy:
    """The far end: connects to the targets that ``allow`` names (``host:port``, ``*`` for any of either) for near ends.

    ``authorized`` is a directory with the file ``authorized_keys`` of those who are let in; ``anyone=True`` lets everybody in who reaches the port.
    """
    _logging.start()
    if (authorized is None) != anyone:
        raise UsageError("who is let in? Name the directory of keys, authorized=, or say anyone=True")
    identity = identity or Identity()
    where = None if authorized is None else os.fspath(authorized)
    return Proxy(_haul.Proxy.serve(address, port, identity, list(allow), where), identity.fingerprint)


def connect(
    server: str,
    target: str,
    *,
    listen: Union[int, str] = 0,
    key: Optional[str] = None,
    state: Optional[Union[str, os.PathLike[str]]] = None,
    relay: Optional[str] = None,
    ssh: Optional[Mapping[str, Any]] = None,
    **settings: Any,
) -> Proxy:
    """The near end: a TCP port of this host from which connections go to ``target``, ``host:port`` as the server sees it.

    ``server`` is ``host:port`` of a far end with the fingerprint ``key``, or ``[user@]host`` by ssh. ``listen`` is the port, or ``address:port``; 0 is any free one. ``relay``: as for
    :func:`haul.copy`.
    """
    _logging.start()
    kwargs = {
        "state": None if state is None else os.fspath(state),
        "relay": relay,
        "ssh": None if ssh is None else dict(ssh),
        "connection": settings,
    }
    return Proxy(_haul.Proxy.connect(str(listen), target, server if key is not None else f"{server}:", key, kwargs))
