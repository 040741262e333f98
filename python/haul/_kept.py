"""``haul.interrupted`` and ``haul.discard_interrupted``: what ``haul cp --list-interrupted`` and ``--discard`` do, as functions."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _haul, _logging

__all__ = ["Interrupted", "discard_interrupted", "interrupted"]

#: ``host:path``, ``haul://host[:port]/root/path``, or a local path.
Directory = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


@dataclass(frozen=True)
class Interrupted:
    """What an interrupted copy has kept, for a later one of the same sources to the same place to go on with."""

    #: Its hidden directory, spelled as the directory was in the call: :func:`haul.discard_interrupted` takes it.
    path: str
    #: The first names that it was to make.
    names: tuple[str, ...]
    #: What it takes on the disk.
    bytes: int
    #: Seconds since something was last written to it.
    idle: float
    #: It is not interrupted: a copy works on it.
    running: bool
    #: Why it was not discarded; none where it was, or was not to be.
    stays: Optional[str] = None


def interrupted(
    dst: Directory,
    *,
    transport: Optional[str] = None,
    relay: Optional[str] = None,
    udp_port: Optional[Union[int, str]] = None,
    trust: Optional[str] = None,
    state: Optional[Union[str, "os.PathLike[str]"]] = None,
    ssh: Optional[Mapping[str, Any]] = None,
) -> list[Interrupted]:
    """The interrupted copies that are kept in a directory, as ``haul cp --list-interrupted`` shows them: of this machine, or of another host as :func:`haul.copy` names it.

    Of a hidden directory that a copy has made (:attr:`Interrupted.path`) that copy alone. The first 256 by name are told; how many there are besides is logged. The other arguments are those of
    :func:`haul.copy`.
    """
    return _kept(dst, False, transport, relay, udp_port, trust, state, ssh)


def discard_interrupted(
    dst: Directory,
    *,
    transport: Optional[str] = None,
    relay: Optional[str] = None,
    udp_port: Optional[Union[int, str]] = None,
    trust: Optional[str] = None,
    state: Optional[Union[str, "os.PathLike[str]"]] = None,
    ssh: Optional[Mapping[str, Any]] = None,
) -> list[Interrupted]:
    """Removes what interrupted copies have kept in a directory, as ``haul cp --discard`` does, and says what that was: all of it, or that of one copy, whose hidden directory is named.

    What a copy is working on stays, and so does what haul did not put there: :attr:`Interrupted.stays` says why. The arguments are those of :func:`haul.interrupted`.
    """
    return _kept(dst, True, transport, relay, udp_port, trust, state, ssh)


def _kept(
    dst: Directory,
    discard: bool,
    transport: Optional[str],
    relay: Optional[str],
    udp_port: Optional[Union[int, str]],
    trust: Optional[str],
    state: Optional[Union[str, "os.PathLike[str]"]],
    ssh: Optional[Mapping[str, Any]],
) -> list[Interrupted]:
    _logging.start()
    kwargs: dict[str, Any] = {
        "transport": transport,
        "relay": relay,
        "udp_port": None if udp_port is None else str(udp_port),
        "trust": trust,
        "state": None if state is None else os.fspath(state),
        "ssh": None if ssh is None else dict(ssh),
    }
    copies, more = _haul.kept(os.fsencode(dst), discard, kwargs)
    if more:
        logging.getLogger("haul").warning("%s: interrupted copies: %d more", os.fsdecode(dst), more)
    return [
        Interrupted(
            path=_within(os.fsdecode(dst), os.fsdecode(copy["name"])),
            names=tuple(os.fsdecode(name) for name in copy["names"]),
            bytes=copy["bytes"],
            idle=float(copy["idle"]),
            running=copy["running"],
            stays=copy["stays"],
        )
        for copy in copies
    ]


def _within(directory: str, name: str) -> str:
    """A hidden directory in it, or itself."""
    bare = directory.rstrip("/")
    if bare.rpartition("/" if "/" in bare else ":")[2] == name:
        return bare
    # `host:` is the home directory there, `host:/` the top.
    is_whole = directory.endswith("/") or (directory.endswith(":") and "/" not in directory)
    return directory + name if is_whole else f"{directory}/{name}"
