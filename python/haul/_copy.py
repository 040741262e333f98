"""``haul.copy``: what ``haul cp`` does, as a function."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Callable, Optional, Union

from . import _haul, _logging
from .errors import HaulError, PartialCopy, UsageError

__all__ = ["Change", "Copied", "Problem", "Progress", "copy", "tqdm_progress"]

#: A name: ``host:path``, ``haul://host[:port]/root/path``, or a local path; or an open binary file, to be read to its end.
Operand = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]", IO[bytes]]
#: A local file or directory.
Name = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
#: Bits a second, or text with a unit: ``"250M"``, ``"1.5 Gbit/s"``.
Rate = Union[int, str]

#: A callback hears of a copy so often at most, in seconds.
INTERVAL = 0.1
#: So long a copy that is given up may take to save its state, in seconds.
FAREWELL = 10.0


@dataclass(frozen=True)
class Problem:
    """One file, link or directory that was not copied; the others went on."""

    path: str
    #: ``"source"``, ``"destination"``, ``"peer"``, ``"connection"`` or ``"local"``.
    fault: str
    why: str
    #: The system's error number, where there is one.
    errno: Optional[int] = None

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


@dataclass(frozen=True)
class Change:
    """What a dry run would do at the destination, or what differs there."""

    #: ``"copy"`` (nothing is there), ``"replace"``, ``"make"`` (a directory), ``"link"``, ``"delete"``.
    what: str
    path: str
    #: Bytes of the file that is to be copied; none where no file is.
    size: Optional[int] = None


@dataclass(frozen=True)
class Progress:
    """How a copy goes: counted is what has arrived, written at the destination."""

    #: Files under their final name, those that needed nothing included.
    files: int
    #: Bytes that are there, those that were there before included.
    bytes: int
    #: What has been found so far, and whether that is all.
    total_files: int
    total_bytes: int
    complete: bool
    #: Bytes that came in this run.
    arrived: int
    #: Bits a second, over the last seconds.
    rate: float
    #: Seconds since the call.
    seconds: float
    #: Round-trip time in seconds; 0 while it is not known.
    rtt: float
    #: Part of the packets lost of late, as the sender sees it; none while that is not known.
    loss: Optional[float]
    #: Seconds since anything was heard from the other side.
    silence: float
    problems: int
    #: The file that was begun last.
    current: Optional[str]


@dataclass(frozen=True)
class Copied:
    """What a copy did, both sides together."""

    #: Regular files copied.
    files: int
    directories: int
    symlinks: int
    hard_links: int
    #: Bytes of content that crossed the network and were written.
    bytes: int
    #: Bytes of partly copied files that an earlier run had left.
    resumed_bytes: int
    #: Files that needed nothing.
    skipped_files: int
    #: Those of them that are newer at the destination.
    newer_files: int
    skipped_bytes: int
    #: Files that were written to while they were copied.
    changed_files: int
    #: Names that a pattern left out.
    left_out: int
    #: Names that ``delete`` removed at the destination, or in a dry run would.
    removed: int
    #: Bytes that were written and dropped again.
    discarded_bytes: int
    problem_count: int
    #: The first 1000 of them.
    problems: tuple[Problem, ...] = field(repr=False)
    #: What ``dry_run`` would do, or what differs with ``compare``; the first 100 000 of them.
    would: tuple[Change, ...] = field(repr=False)
    #: How much that is.
    would_count: int
    notes: tuple[str, ...] = field(repr=False)
    #: How far content was verified: ``"off"``, ``"arrival"``, ``"read-back"``; none where none came.
    verified: Optional[str]
    #: From the request to the last acknowledgement.
    seconds: float
    #: What limited the speed, in words with their numbers; empty where too little was copied to tell.
    verdict: str
    #: Round-trip time in seconds; 0 where it is not known.
    rtt: float
    sent_packets: int
    lost_packets: int
    retransmitted_bytes: int
    #: Nothing was done, only looked at: by ``dry_run`` or ``compare``.
    dry_run: bool = False

    @property
    def rate(self) -> float:
        """Bits a second, on average."""
        return self.bytes * 8 / self.seconds if self.seconds > 0 else 0.0

    @property
    def ok(self) -> bool:
        """Whether everything was copied."""
        return self.problem_count == 0

    def __str__(self) -> str:
        """A line for people, as the command's summary: how much in which time, what needed nothing, what was removed, what could not be copied, what limited the speed."""
        links = self.symlinks + self.hard_links
        done = [_counted(self.files, "file")]
        done += [_counted(self.directories, "directory", "directories")] * bool(self.directories) + [_counted(links, "link")] * bool(links)
        if self.files + self.directories + links == 0:
            words = ["nothing to copy" if self.dry_run else "nothing copied"]
        elif self.dry_run:
            words = [f"would copy {', '.join(done)}: {self.bytes} bytes"]
        else:
            words = [f"copied {', '.join(done)}: {self.bytes} bytes in {self.seconds:.2f} s"]
            words += [_VERIFIED[self.verified]] * (self.verified in _VERIFIED)
        same = self.skipped_files - self.newer_files
        words += [f"{self.resumed_bytes} bytes were there from an interrupted copy"] * bool(self.resumed_bytes)
        words += [f"{_counted(self.changed_files, 'file')} changed meanwhile"] * bool(self.changed_files)
        words += [f"{_counted(same, 'file')} skipped, there already"] * (same > 0)
        words += [f"{_counted(self.newer_files, 'file')} skipped, newer there"] * bool(self.newer_files)
        words += [f"{_counted(self.left_out, 'name')} excluded"] * bool(self.left_out)
        words += [f"{_counted(self.removed, 'name')} {'would be deleted' if self.dry_run else 'deleted'}"] * bool(self.removed)
        if self.problems:
            words.append(f"{self.problem_count} not copied, the first: {self.problems[0]}")
        return "; ".join(words + [self.verdict] * bool(self.verdict))

    def check(self) -> Copied:
        """Itself, if everything was copied; else raises :class:`haul.PartialCopy`."""
        if not self.ok:
            raise PartialCopy(self)
        return self


#: How far content was verified, in words.
_VERIFIED: dict[Optional[str], str] = {"off": "not verified", "arrival": "verified on arrival", "read-back": "verified on arrival and read back"}


def _counted(count: int, noun: str, several: Optional[str] = None) -> str:
    return f"{count} {noun if count == 1 else several or noun + 's'}"


def copy(
    src: Union[Operand, Sequence[Operand]],
    dst: Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"],
    *,
    recursive: bool = False,
    preserve: bool = False,
    update: bool = False,
    skip_same: bool = False,
    exclude: Iterable[str] = (),
    include: Iterable[str] = (),
    filter_from: Union[Name, Iterable[Name]] = (),
    changed: str = "take",
    verify: str = "arrival",
    resume: bool = True,
    progress: Optional[Callable[[Progress], object]] = None,
    delete: bool = False,
    max_delete: Optional[int] = None,
    dry_run: bool = False,
    compare: bool = False,
    checksum: bool = False,
    size_only: bool = False,
    copy_links: bool = False,
    files_from: Optional[Iterable[Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]]] = None,
    manifest: Optional[Union[str, "os.PathLike[str]"]] = None,
    manifest_hash: str = "blake3",
    log_file: Optional[Union[str, "os.PathLike[str]"]] = None,
    limit: Optional[Rate] = None,
    mode: Optional[str] = None,
    paths: int = 1,
    via: Union[str, Iterable[str]] = (),
    transport: Optional[str] = None,
    relay: Optional[str] = None,
    idle_timeout: Optional[float] = None,
    reconnect: float = 90.0,
    retries: int = 0,
    compress: Optional[str] = None,
    udp_port: Optional[Union[int, str]] = None,
    trust: Optional[str] = None,
    state: Optional[Union[str, "os.PathLike[str]"]] = None,
    ssh: Optional[Mapping[str, Any]] = None,
    bootstrap: Optional[str] = None,
    bootstrap_from: Optional[Union[str, "os.PathLike[str]"]] = None,
) -> Copied:
    """Copies files and trees between this host and another, as ``haul cp`` does.

    One of ``src`` and ``dst`` is on another host: ``[user@]host:path`` or ``scp://[user@]host[:port]/path`` by ssh, which does the login, or
    ``haul://host[:port]/root/path`` of a daemon. Several sources go into a directory; a source may be an open binary file, whose content
    then goes to the file ``dst``.

    - ``recursive``: directories with all that is in them; ``preserve``: times, modes, and owners where root writes.
    - ``update``: what is newer at the destination stays; ``skip_same``: files of the same size and time are skipped.
    - ``exclude``, ``include``: patterns of a .gitignore. ``filter_from``: a file of rules, ``- PATTERN`` or ``+ PATTERN`` a line, as a merge file of rsync's, or several: the first rule that
      matches decides, and patterns given otherwise count more.
    - ``changed``: what becomes of a file that is written to meanwhile: ``"take"``, ``"fail"``, ``"retry"``.
    - ``verify``: ``"off"``, ``"arrival"`` (in memory, before it is written), ``"read-back"`` (from the disk).
    - ``resume``: go on from what an earlier call left.
    - ``delete``: remove in the copied directories of the destination what their source does not have, once all has arrived (needs ``recursive``); ``max_delete``: nothing, if more
      names than this would go. :attr:`Copied.removed` counts them.
    - ``dry_run``: nothing is written on either side; :attr:`Copied.would` has what would be done. ``compare``: the same of what differs in content (with ``size_only`` in size).
    - ``checksum``, ``size_only``: skip files that the destination has with the same content (both sides read and hash them), or of the same size, whatever their times.
    - ``copy_links``: what symbolic links below the sources lead to, not the links.
    - ``files_from``: names below the one source, a directory; nothing else is copied. Of a directory among them all that is in it comes only with ``recursive``.
    - ``manifest``: a file for the checksums of all that the copy brings or finds there already, for ``b3sum --check``, or with ``manifest_hash="sha256"`` for ``sha256sum --check``.
      Where it cannot be written, :class:`haul.LocalError` is raised after the copy. ``log_file``: what happens is appended to it, a line each with its time.
    - ``progress``: called with a :class:`Progress`, ten times a second at most and once at the end, in the caller's thread. What it raises ends the copy.
    - ``limit``: bits a second, or text such as ``"250M"``. ``mode``: how to share the path, see haul-cp(1). ``paths``: ports to send from, 1 to 8.
    - ``via``: leave by these interfaces or addresses, a path for each: ``"eth0"``, ``"192.0.2.7"``, ``"all"``, ``"eth1:backup"``, ``"wwan0:metered=BYTES"``.
    - ``transport``: what carries the data: ``"udp"``, ``"tcp"``, ``"ssh"``, or ``"auto"``, the first of these that passes (also ``None``).
    - ``relay``: ``"host[:port]"`` of a daemon (``haul serve --relay``) by which both sides of a copy by ssh meet where NATs let UDP in at neither, and which forwards what passes no
      other way. Where it is of no help, the logger ``haul`` is told why, and the copy goes without it.
    - ``retries``: so often a copy that lost its connection, or found none, is tried again, after 1 s, 2 s, 4 s and so on up to 60 s; each goes on where the last one was.
    - ``compress``: ``"auto"`` compresses (zstd) blocks on their way that become smaller by it, while the link is what is waited for and no processor. A far side that is too old for this
      takes and gives them as they are. :attr:`Copied.bytes` is content; what crossed the network shows in :attr:`Copied.sent_packets`.
    - ``idle_timeout``: seconds of silence that end the connection (90). ``reconnect``: seconds for which a daemon that was restarted is tried again.
    - ``trust``: the fingerprint of the daemon's key, in the place of the file of known hosts. ``state``: the directory of keys.
    - ``ssh``: what ssh is told: ``port``, ``identity`` (list), ``jump``, ``config``, ``options`` (list), ``program``, ``ipv4``, ``ipv6``, ``remote_haul``.
    - ``bootstrap``: ``"keep"`` or ``"once"``: a far side without haul of this version is sent one over ssh, to stay or to be gone at once; ``bootstrap_from`` is the static
      program, or a directory with one for each kind of machine.

    Files that could not be copied are no exception: :attr:`Copied.problems` has them, and :meth:`Copied.check` raises. A copy that fails as a whole
    raises a :class:`HaulError`; it, and Ctrl-C, leave what has arrived where the same call finds it.
    """
    job = Job(locals())
    try:
        meter = Meter()
        while not job.native.wait(INTERVAL):
            if progress is not None:
                progress(meter.look(job.native))
        if progress is not None:
            progress(meter.look(job.native))
    except BaseException:
        job.give_up()
        raise
    return job.result()


class Job:
    """A copy under way, and what feeds it."""

    def __init__(self, kwargs: Mapping[str, Any]) -> None:
        self.failed: Optional[BaseException] = None
        self.is_dry = bool(kwargs["dry_run"] or kwargs["compare"])
        sources: list[Union[bytes, int]] = []
        pumps: list[tuple[IO[bytes], int]] = []
        try:
            self.native = _start(kwargs, sources, pumps)
        except BaseException:
            for _, end in pumps:
                os.close(end)
            raise
        for file, end in pumps:
            threading.Thread(target=_pump, args=(file, end, self), name="haul-pump", daemon=True).start()

    def give_up(self) -> None:
        """Ends it, and lets it save its state; another Ctrl-C ends the wait."""
        self.native.cancel()
        try:
            deadline = time.monotonic() + FAREWELL
            while time.monotonic() < deadline and not self.native.wait(0.05):
                pass
        except BaseException:
            pass

    def result(self) -> Copied:
        """What it did; raises why it failed."""
        try:
            return copied_of(self.native.result(), self.is_dry)
        except HaulError:
            if self.failed is not None:
                raise self.failed from None
            raise


def _start(kwargs: Mapping[str, Any], operands: list[Union[bytes, int]], pumps: list[tuple[IO[bytes], int]]) -> _haul.Copying:
    _logging.start()
    kwargs = dict(kwargs)
    src, dst = kwargs.pop("src"), kwargs.pop("dst")
    kwargs.pop("progress", None)
    sources = [src] if _is_name(src) or hasattr(src, "read") else listed("src", src, "a name, an open file, or a list of them")
    target = encoded("dst", dst)
    for name in ("exclude", "include"):
        if isinstance(kwargs[name], str):
            raise UsageError(f"{name}: a list of patterns is wanted, not one text", hint=f"{name}=[{kwargs[name]!r}]")
        kwargs[name] = [str(pattern) for pattern in listed(name, kwargs[name], "a list of patterns")]
    rules = kwargs["filter_from"]
    rules = [rules] if _is_name(rules) else listed("filter_from", rules, "a file, or a list of them,")
    kwargs["filter_from"] = [os.fsdecode(encoded("filter_from", path)) for path in rules]
    _excluding(kwargs)
    if kwargs["files_from"] is not None:
        if _is_name(kwargs["files_from"]):
            raise UsageError("files_from: a list of names is wanted, not one name", hint="of a file with a name a line: open(file).read().splitlines()")
        kwargs["files_from"] = [encoded("files_from", name) for name in listed("files_from", kwargs["files_from"], "a list of names")]
    via = kwargs.pop("via")
    kwargs["via"] = via.split(",") if isinstance(via, str) else [str(way) for way in listed("via", via, "text, or a list of it,")]
    kwargs["connection"] = {name: kwargs.pop(name) for name in ("limit", "mode", "paths", "idle_timeout", "via")}
    kwargs["udp_port"] = None if kwargs["udp_port"] is None else str(kwargs["udp_port"])
    for name in ("state", "manifest", "log_file", "bootstrap_from"):
        kwargs[name] = None if kwargs[name] is None else os.fspath(kwargs[name])
    kwargs["ssh"] = None if kwargs["ssh"] is None else dict(kwargs["ssh"])
    for source in sources:
        if hasattr(source, "read"):
            read_end, write_end = os.pipe()
            operands.append(read_end)
            pumps.append((source, write_end))
        else:
            operands.append(encoded("src", source))
    return _haul.copy(operands, target, kwargs)


def _is_name(value: object) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


def listed(name: str, value: Any, wanted: str) -> list[Any]:
    """What an argument lists."""
    if not isinstance(value, Iterable):
        raise TypeError(f"{name}: {wanted} is wanted, not {type(value).__name__}")
    return list(value)


def encoded(name: str, value: Any) -> bytes:
    """A name that an argument gives."""
    if not _is_name(value):
        raise TypeError(f"{name}: a name is wanted, text, bytes or a path, not {type(value).__name__}")
    return os.fsencode(value)


#: Words that make no sense together, and why.
_EITHER = (
    ("size_only", "checksum", "a file counts as the same by its size or by its content"),
    ("compare", "dry_run", "compare copies nothing either"),
    ("compare", "update", "content is compared, whichever is newer"),
    ("compare", "skip_same", "content is compared, whatever its time"),
    ("compare", "manifest", "nothing is copied that it could list"),
    ("dry_run", "manifest", "nothing is copied that it could list"),
    ("delete", "files_from", "a list says what is copied, not what the source has"),
    ("via", "transport", "paths that leave by interfaces are UDP's"),
    ("via", "relay", "paths that leave by interfaces meet by no relay"),
)
#: Words that mean nothing without another.
_NEEDS = (("delete", "recursive"), ("max_delete", "delete"), ("bootstrap_from", "bootstrap"))


def _excluding(kwargs: Mapping[str, Any]) -> None:
    """Refuses what makes no sense together."""
    for one, other, why in _EITHER:
        if kwargs[one] and kwargs[other]:
            raise UsageError(f"{one} and {other}: {why}")
    for one, needed in _NEEDS:
        if kwargs[one] is not None and kwargs[one] is not False and not kwargs[needed]:
            raise UsageError(f"{one} needs {needed}")
    if kwargs["via"] and kwargs["paths"] != 1:
        raise UsageError("via and paths: there is a path for each way that is named")


class Meter:
    """Makes a :class:`Progress` of each look at a copy."""

    #: Seconds that the rate is averaged over.
    OVER = 3.0

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.looks: list[tuple[float, int]] = [(self.began, 0)]

    def look(self, job: _haul.Copying) -> Progress:
        told = job.progress()
        now = time.monotonic()
        self.looks.append((now, told["arrived"]))
        while len(self.looks) > 2 and self.looks[0][0] < now - self.OVER:
            self.looks.pop(0)
        (since, before) = self.looks[0]
        rate = (told["arrived"] - before) * 8 / (now - since) if now > since else 0.0
        current = told.pop("current")
        return Progress(
            **told,
            current=None if current is None else os.fsdecode(current),
            rate=max(rate, 0.0),
            seconds=now - self.began,
        )


def tqdm_progress(bar: Any = None, **kwargs: Any) -> Callable[[Progress], None]:
    """A ``progress`` that moves a bar of tqdm's: one that is given, or a new one with these arguments, which is closed when the copy is complete."""
    if bar is None:
        from tqdm.auto import tqdm

        bar = tqdm(**{"unit": "B", "unit_scale": True, "unit_divisor": 1024, "desc": "haul", **kwargs})

    def show(progress: Progress) -> None:
        bar.total = progress.total_bytes
        bar.n = progress.bytes
        bar.set_postfix_str(f"{progress.rate / 1e6:.1f} Mbit/s" + (f", RTT {progress.rtt * 1e3:.1f} ms" if progress.rtt else ""), refresh=False)
        bar.refresh()
        if progress.complete and progress.bytes >= progress.total_bytes and progress.files >= progress.total_files:
            bar.close()

    return show


def copied_of(told: Mapping[str, Any], dry_run: bool = False) -> Copied:
    """What the native half tells of a copy, as it is shown."""
    problems = tuple(Problem(**{**problem, "path": os.fsdecode(problem["path"])}) for problem in told["problems"])
    would = tuple(Change(**{**change, "path": os.fsdecode(change["path"])}) for change in told["would"])
    return Copied(**{**told, "problems": problems, "would": would, "notes": tuple(told["notes"]), "dry_run": dry_run})


def _pump(file: IO[bytes], end: int, job: Job) -> None:
    """Passes a file object's content on. Where that fails the copy is given up before its end is seen, so that half of a file never looks like all of it."""
    with os.fdopen(end, "wb", buffering=0) as pipe:
        try:
            while chunk := file.read(1 << 20):
                view = memoryview(chunk)
                while view:
                    view = view[pipe.write(view) or 0 :]
        except BrokenPipeError:
            pass
        except BaseException as error:
            job.failed = error
            job.native.cancel()
