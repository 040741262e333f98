"""Many servers and one client: ``haul fleet`` as a class, with the verbs of the paper that it is after.

::

    with haul.fleet.Fleet("store[01-12]:/data") as fleet:
        got = fleet.download("run-42", "/scratch", recursive=True).check()
        print(got.files, [f"{server.name}: {server.bytes}" for server in got.servers])

=================  ===========================================================
the paper's verb   here
=================  ===========================================================
Initiate           :class:`Fleet` with its hosts
SetDir             :meth:`Fleet.set_dir`
SetParameter       the arguments of :class:`Fleet`: ``mode``, ``memory``, ..; ``limit`` of a job
Start              :meth:`Fleet.start`, or ``with``
MultiDownload      :meth:`Fleet.download`; several at once: :meth:`Fleet.begin_download`
MultiUpload        :meth:`Fleet.upload`, :meth:`Fleet.begin_upload`
Status             :meth:`Fleet.status`
Stop               :meth:`Fleet.stop`, or the end of ``with``
=================  ===========================================================
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Callable, Optional, Union

from . import _haul, _logging
from ._copy import FAREWELL, INTERVAL, Copied, Rate, copied_of, encoded, listed
from .errors import PartialCopy, UsageError

__all__ = ["Done", "Fleet", "Job", "Progress", "Server", "ServerStatus", "Share", "Status"]

_Name = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
_Names = Union[_Name, Sequence[_Name]]


@dataclass(frozen=True)
class Server:
    """One server in a :class:`Progress`."""

    name: str
    #: ``"starting"``, ``"listing"``, ``"busy"``, ``"idle"``, ``"stalled"``, ``"done"`` or ``"down"``.
    state: str
    #: Bytes that came from it, or went to it, and the files in them that are complete.
    bytes: int
    files: int
    #: Bits a second, of late.
    rate: float
    #: Round-trip time in seconds; 0 while it is not known.
    rtt: float
    #: The file that it works on.
    current: Optional[str]


@dataclass(frozen=True)
class Progress:
    """How a job goes."""

    #: Seconds since it began.
    seconds: float
    #: Files that are done and bytes that are there, those that were there before included.
    files: int
    bytes: int
    #: What has been found so far; replicas count once.
    total_files: int
    total_bytes: int
    #: Bytes that were there before.
    kept_bytes: int
    problems: int
    servers: tuple[Server, ...]

    @property
    def rate(self) -> float:
        """Bits a second of all servers together, of late."""
        return sum(server.rate for server in self.servers)


@dataclass(frozen=True)
class Share:
    """What one server did of a job."""

    name: str
    bytes: int
    files: int
    #: Seconds in which it had something to do.
    busy: float
    #: Why it was given up, if it was.
    down: Optional[str]


@dataclass(frozen=True)
class Done:
    """What a job did."""

    #: What became of the files, all servers together; its ``verdict`` is empty.
    copied: Copied
    seconds: float
    #: Bytes that came or went for nothing.
    wasted_bytes: int
    servers: tuple[Share, ...]
    #: Servers that were not there for it, and why.
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> int:
        """Regular files copied."""
        return self.copied.files

    @property
    def bytes(self) -> int:
        """Bytes of content that crossed the network."""
        return self.copied.bytes

    @property
    def rate(self) -> float:
        """Bits a second, on average."""
        return self.bytes * 8 / self.seconds if self.seconds > 0 else 0.0

    @property
    def ok(self) -> bool:
        """Whether everything was copied."""
        return self.copied.ok

    def check(self) -> Done:
        """Itself, if everything was copied; else raises :class:`haul.PartialCopy`."""
        if not self.ok:
            raise PartialCopy(self.copied)
        return self


@dataclass(frozen=True)
class ServerStatus:
    """How a server is."""

    name: str
    rtt: float
    #: What its machine calls itself; empty where it did not answer, and then ``error`` says why.
    host: str = ""
    version: str = ""
    processors: int = 0
    load: float = 0.0
    memory_total: int = 0
    memory_available: int = 0
    #: Room where its relative paths start, in bytes; none where that is not known.
    free_bytes: Optional[int] = None
    error: Optional[str] = None


@dataclass(frozen=True)
class Status:
    """How a fleet is."""

    servers: tuple[ServerStatus, ...]
    #: Servers that are not there, and why.
    absent: Mapping[str, str]
    #: Seconds since it was started, and the process that keeps it.
    up: float
    pid: int


class Job:
    """A job that runs. ``wait()`` for it, or ``await`` it; several may run at once."""

    def __init__(self, native: _haul.FleetJob) -> None:
        self._native = native

    def progress(self) -> Progress:
        """How it goes; any time."""
        told = self._native.progress()
        servers = tuple(Server(**{**one, "current": _text(one["current"])}) for one in told.pop("servers"))
        return Progress(**told, servers=servers)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._native.wait(0.0)

    def cancel(self) -> None:
        """Has it end; what has arrived is kept, and the same call goes on from there."""
        self._native.cancel()

    def wait(self, timeout: Optional[float] = None, *, progress: Optional[Callable[[Progress], object]] = None) -> Done:
        """Waits for its end and says what it did, or raises why it failed; ``TimeoutError`` when the time is over, and then it goes on.

        ``progress`` is called ten times a second at most, in this thread, and once at the end. What it raises, and Ctrl-C, end the job.
        """
        until = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._native.wait(INTERVAL if until is None else max(0.0, min(INTERVAL, until - time.monotonic()))):
                if progress is not None:
                    progress(self.progress())
                if until is not None and time.monotonic() >= until:
                    break
            else:
                if progress is not None:
                    progress(self.progress())
                return _done(self._native.result())
        except BaseException:
            if not self._native.wait(0.0):
                self._give_up()
            raise
        raise TimeoutError("the job is not over")

    def __await__(self) -> Generator[Any, None, Done]:
        return self._awaited().__await__()

    async def _awaited(self) -> Done:
        try:
            while not self._native.wait(0.0):
                await asyncio.sleep(INTERVAL / 2)
        except BaseException:
            await asyncio.get_running_loop().run_in_executor(None, self._give_up)
            raise
        return _done(self._native.result())

    def _give_up(self) -> None:
        self._native.cancel()
        try:
            deadline = time.monotonic() + FAREWELL
            while time.monotonic() < deadline and not self._native.wait(0.05):
                pass
        except BaseException:
            pass


class Fleet:
    """Storage servers that are used together.

    ``hosts`` are written as for ``haul fleet``: ``host``, ``me@host:/data``, ``store[01-12]:/data``, ``haul://host:7700/root/path``, with commas between them, ``@file``, or a list of such texts. Relative paths of a job
    start at a host's own path.

    - ``way``: how the servers are started: ``"ssh-direct"`` (this side logs in everywhere), ``"ssh"`` (the first host logs in to the others), ``"mpirun"``, ``"srun"``, ``"daemon"`` (they run already).
    - ``timeout``: seconds that the start may take; who has not come by then is left out, and tried again before a later job.
    - ``logs``: each job writes its log into a new directory in this one.
    - ``dial_out``: servers listen and this side dials, where it cannot be reached from outside.
    - ``mode``, ``memory``, ``paths``, ``idle_timeout``, ``udp_port``, ``relay``, ``state``, ``ssh``: as for :func:`haul.copy`.
    """

    def __init__(
        self,
        hosts: Union[str, Iterable[str]],
        *,
        way: str = "ssh-direct",
        timeout: float = 30.0,
        logs: Optional[_Name] = None,
        dial_out: bool = False,
        mode: Optional[str] = None,
        memory: Optional[Union[int, str]] = None,
        paths: Optional[int] = None,
        idle_timeout: Optional[float] = None,
        udp_port: Optional[Union[int, str]] = None,
        relay: Optional[str] = None,
        state: Optional[Union[str, "os.PathLike[str]"]] = None,
        ssh: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self._hosts = [hosts] if isinstance(hosts, str) else list(hosts)
        self._kwargs: dict[str, Any] = {
            "way": way,
            "timeout": timeout,
            "logs": None if logs is None else os.fsdecode(logs),
            "dial_out": dial_out,
            "connection": {"mode": mode, "memory": memory, "paths": paths, "idle_timeout": idle_timeout},
            "udp_port": None if udp_port is None else str(udp_port),
            "relay": relay,
            "state": None if state is None else os.fspath(state),
            "ssh": None if ssh is None else dict(ssh),
        }
        self._native: Optional[_haul.Fleet] = None
        self._is_ours = True
        #: Servers that did not come at the start, and why.
        self.absent: Mapping[str, str] = {}

    @classmethod
    def attach(cls, name: str) -> Fleet:
        """The fleet that ``haul fleet up --name NAME`` keeps. The end of a ``with`` leaves it up; :meth:`stop` ends it."""
        _logging.start()
        fleet = cls([])
        fleet._native, fleet._is_ours = _haul.attach_fleet(name), False
        return fleet

    def start(self) -> Fleet:
        """Starts the servers; gives itself. ``absent`` has those that did not come."""
        if self._native is not None:
            raise UsageError("the fleet is up already")
        _logging.start()
        self._native, absent = _haul.start_fleet(self._hosts, self._kwargs)
        self.absent = dict(absent)
        return self

    def set_dir(self, logs: Optional[_Name]) -> None:
        """From now on each job writes its log into a new directory in this one; none, if there is none."""
        self._kwargs["logs"] = None if logs is None else os.fsdecode(logs)
        if self._native is not None:
            self._native.set_dir(self._kwargs["logs"])

    def download(self, sources: _Names, destination: _Name, *, progress: Optional[Callable[[Progress], object]] = None, **kwargs: Any) -> Done:
        """Fetches files of which servers have parts or replicas; each sends what it can send best, and one that dies is replaced by others that have the same.

        The other arguments are those of :meth:`begin_download`. ``progress`` is called with a :class:`Progress`; see :meth:`Job.wait`.
        """
        return self.begin_download(sources, destination, **kwargs).wait(progress=progress)

    def upload(self, sources: _Names, destination: _Name, *, progress: Optional[Callable[[Progress], object]] = None, **kwargs: Any) -> Done:
        """Sends files to the servers, each to ``replicas`` of them. The other arguments are those of :meth:`begin_upload`."""
        return self.begin_upload(sources, destination, **kwargs).wait(progress=progress)

    def begin_download(
        self,
        sources: _Names,
        destination: _Name,
        *,
        recursive: bool = False,
        preserve: bool = False,
        update: bool = False,
        skip_same: bool = False,
        exclude: Iterable[str] = (),
        include: Iterable[str] = (),
        verify: str = "arrival",
        resume: bool = True,
        limit: Optional[Rate] = None,
        wait_for_all: bool = False,
        replicas_by: str = "time",
    ) -> Job:
        """Begins to fetch, and returns at once.

        ``wait_for_all``: nothing moves before all have said what they have. ``replicas_by``: files are the same where their size and ``"time"`` are, or by ``"hash"`` their content. The others are those of :func:`haul.copy`.
        """
        kwargs = _arguments(dict(locals()))
        return Job(self._up().download(_paths(sources), os.fsdecode(destination), kwargs))

    def begin_upload(
        self,
        sources: _Names,
        destination: _Name,
        *,
        recursive: bool = False,
        preserve: bool = False,
        update: bool = False,
        skip_same: bool = False,
        exclude: Iterable[str] = (),
        include: Iterable[str] = (),
        verify: str = "arrival",
        resume: bool = True,
        limit: Optional[Rate] = None,
        replicas: int = 1,
    ) -> Job:
        """Begins to send, and returns at once. ``replicas``: on so many different servers each file is to be."""
        kwargs = _arguments(dict(locals()))
        return Job(self._up().upload(_paths(sources), os.fsdecode(destination), kwargs))

    def status(self) -> Status:
        """How the servers are. Nobody is started for it."""
        told = self._up().status()
        servers = tuple(ServerStatus(**one) for one in told["members"])
        return Status(servers, dict(told["absent"]), told["up"], told["pid"])

    def stop(self) -> None:
        """Ends the servers that were started, also where another process keeps them. Jobs that are under way find them gone."""
        if self._native is not None:
            native, self._native = self._native, None
            native.stop()

    def __enter__(self) -> Fleet:
        return self if self._native is not None else self.start()

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if self._is_ours:
            self.stop()

    def _up(self) -> _haul.Fleet:
        if self._native is None:
            raise UsageError("the fleet is not up", hint="start(), or with haul.fleet.Fleet(..) as fleet:")
        return self._native


def _paths(names: _Names) -> list[str]:
    if isinstance(names, (str, bytes, os.PathLike)):
        return [os.fsdecode(names)]
    return [os.fsdecode(encoded("sources", name)) for name in listed("sources", names, "a name, or a list of names,")]


def _arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
    for name in ("self", "sources", "destination"):
        kwargs.pop(name)
    for name in ("exclude", "include"):
        if isinstance(kwargs[name], str):
            raise UsageError(f"{name}: a list of patterns is wanted, not one text", hint=f"{name}=[{kwargs[name]!r}]")
        kwargs[name] = [str(pattern) for pattern in listed(name, kwargs[name], "a list of patterns")]
    return kwargs


def _text(path: Any) -> Optional[str]:
    return None if path is None else os.fsdecode(path)


def _done(told: dict[str, Any]) -> Done:
    servers = tuple(Share(**one) for one in told["servers"])
    return Done(copied_of(told["files"]), told["seconds"], told["wasted_bytes"], servers, dict(told["absent"]))
