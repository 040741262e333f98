"""haul as a file system for fsspec: ``haul://host[:port]/root/path`` of a daemon, and by ssh ``haul+ssh://[user@]host[:port]/path``.

::

    import fsspec
    with fsspec.open("haul://host/data/table.parquet") as file: ...
    fs = fsspec.filesystem("haul", host="host")            # a daemon; its roots are in "/"
    fs = fsspec.filesystem("haul+ssh", host="me@host")     # by ssh: what the account may reach

Single files are read and written over one connection per file system; trees, and what ``get`` and ``put`` copy, by ``haul.copy``, verified and resumed. What is written appears under its name when it is closed.
"""

from __future__ import annotations

import os
import posixpath
import stat
import threading
import weakref
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, Optional, Union

from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from fsspec.utils import infer_storage_options, stringify_path

from . import _haul, _logging
from ._copy import Progress, copy

__all__ = ["HaulFile", "HaulFileSystem", "HaulSshFileSystem"]

#: Read ahead so much, in bytes: what 1 Gbit/s brings in 130 ms.
BLOCK = 16 << 20
#: Errands under way at once: as many as a server does for one client.
AT_ONCE = 8
#: Words that are told to whoever connects.
_CONNECTING = ("trust", "state", "ssh", "udp_port", "relay")
_SETTINGS = ("limit", "mode", "paths", "idle_timeout")
#: Words of fsspec's own, which it may tell any file system.
_FSSPEC = frozenset(
    ("use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache", "asynchronous", "loop", "batch_size", "auto_mkdir", "add_docs", "add_aliases")
)


class HaulFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Files of one host. See the arguments ``trust``, ``state``, ``ssh``, ``udp_port``, ``relay``, ``limit``, ``mode``, ``paths`` and ``idle_timeout`` of :func:`haul.copy`.

    ``host`` is a daemon, ``name`` or ``name:port``; with ``ssh`` (a mapping, may be empty) it is a host that ssh reaches, ``[user@]name``.
    """

    protocol: tuple[str, ...] = ("haul", "haul+ssh")
    root_marker = "/"

    def __init__(
        self,
        host: Optional[str] = None,
        port: Optional[int] = None,
        username: Optional[str] = None,
        *,
        trust: Optional[str] = None,
        state: Optional[Union[str, os.PathLike[str]]] = None,
        ssh: Optional[Mapping[str, Any]] = None,
        udp_port: Optional[Union[int, str]] = None,
        relay: Optional[str] = None,
        limit: Optional[Union[int, str]] = None,
        mode: Optional[str] = None,
        paths: int = 1,
        idle_timeout: Optional[float] = None,
        block_size: int = BLOCK,
        **kwargs: Any,
    ) -> None:
        unknown = sorted(set(kwargs) - _FSSPEC)
        if unknown:
            raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {unknown[0]!r}")
        super().__init__(**kwargs)
        if not host:
            raise ValueError("which host? haul://host/root/path, or host=")
        self.host = f"{username}@{host}" if username else host
        self.port = port
        self.ssh = None if ssh is None else dict(ssh)
        if self.ssh is not None and port is not None:
            self.ssh.setdefault("port", port)
        self.block_size = block_size
        self._kwargs: dict[str, Any] = {
            "trust": trust,
            "state": None if state is None else os.fspath(state),
            "ssh": self.ssh,
            "udp_port": None if udp_port is None else str(udp_port),
            "relay": relay,
        }
        self._settings: dict[str, Any] = {"limit": limit, "mode": mode, "paths": paths, "idle_timeout": idle_timeout}
        self._lock = threading.Lock()
        self._errands: Optional[_haul.Errands] = None
        self._finalizer: Optional[weakref.finalize[..., Any]] = None
        _all[id(self)] = self

    # The connection.

    @property
    def _remote(self) -> str:
        """The host as an operand of a copy, up to its path."""
        if self.ssh is not None:
            return f"{self.host}:"
        bracketed = f"[{self.host}]" if self.host.count(":") > 1 and not self.host.startswith("[") else self.host
        return f"haul://{bracketed}:{self.port}/" if self.port else f"haul://{bracketed}/"

    @property
    def errands(self) -> _haul.Errands:
        """The connection; made when it is needed first, and again when it was lost or the process forked."""
        with self._lock:
            if self._errands is None or self._errands.is_closed:
                self._let_go()
                _logging.start()
                kwargs = {**self._kwargs, "connection": self._settings}
                operand = self._remote if self.ssh is not None else self._remote + "."
                self._errands = _haul.Errands(os.fsencode(operand), kwargs)
                self._finalizer = weakref.finalize(self, _close, self._errands, os.getpid())
            return self._errands

    def close(self) -> None:
        """Ends the connection; the next call makes another one."""
        with self._lock:
            if self._errands is not None:
                self._errands.close()
            self._let_go()

    def _let_go(self) -> None:
        """Of a connection that is over, or another process's."""
        if self._finalizer is not None:
            self._finalizer.detach()
        self._errands = self._finalizer = None

    def _spelled(self, path: str) -> bytes:
        """A path as the server takes it: of a daemon from its roots on, of an account absolute."""
        return os.fsencode(self._strip_protocol(path))

    def _operand(self, path: str) -> str:
        path = self._strip_protocol(path)
        return self._remote + (path if self.ssh is not None else _escaped(path.lstrip("/")))

    def _copy(self, src: Any, dst: Any, callback: Any, **kwargs: Any) -> None:
        told = 0

        def show(progress: Progress) -> None:
            nonlocal told
            callback.set_size(progress.total_bytes)
            callback.relative_update(progress.bytes - told)
            told = progress.bytes

        kwargs = {**self._kwargs, **self._settings, **kwargs}
        copied = copy(src, dst, progress=None if callback is DEFAULT_CALLBACK else show, **kwargs)
        for problem in copied.problems:
            raise OSError(problem.errno or 5, problem.why, problem.path)

    # Addresses.

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = stringify_path(path)
        for protocol in cls.protocol:
            if path.startswith(f"{protocol}://"):
                path = path[len(protocol) + 3 :]
                path = "/" + path.partition("/")[2]
                break
        path = "/" + path.lstrip("/")
        return path.rstrip("/") or cls.root_marker

    def unstrip_protocol(self, name: str) -> str:
        scheme = "haul+ssh" if self.ssh is not None else "haul"
        authority = f"{self.host}:{self.port}" if self.port else self.host
        return f"{scheme}://{authority}{self._strip_protocol(name)}"

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        found = infer_storage_options(path)
        kwargs = {name: found[name] for name in ("host", "port", "username") if found.get(name)}
        if found.get("protocol") == "haul+ssh":
            kwargs["ssh"] = {}
        return kwargs

    @property
    def fsid(self) -> str:
        return f"haul-{self._remote}"

    # Looking.

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        return self._info_of(path, self.errands.look(self._spelled(path)))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path)
        spelled = self._spelled(path)
        try:
            found = self.errands.list(spelled)
        except NotADirectoryError:
            info = self.info(path)
            return [info] if detail else [path]
        infos = [self._info_of(posixpath.join(path, os.fsdecode(one[0])), one) for one in found]
        infos.sort(key=lambda info: str(info["name"]))
        return infos if detail else [info["name"] for info in infos]

    def _info_of(self, path: str, found: tuple[Any, ...]) -> dict[str, Any]:
        _, kind, size, mode, uid, gid, modified, inode, target = found
        bits = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "link": stat.S_IFLNK}.get(kind, 0)
        info = {
            "name": path,
            "size": size if kind == "file" else 0,
            "type": kind,
            "mode": bits | mode,
            "uid": uid,
            "gid": gid,
            "mtime": modified,
            "ino": inode,
            "islink": kind == "link",
        }
        if target is not None:
            info["destination"] = os.fsdecode(target)
        return info

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=timezone.utc)

    def created(self, path: str) -> datetime:
        raise NotImplementedError("a server of haul's does not tell when a file was made; modified() tells when it was changed")

    def ukey(self, path: str) -> str:
        info = self.info(path)
        return f"{info['ino']}-{info['size']}-{info['mtime']!r}"

    def checksum(self, path: str) -> int:
        return hash(self.ukey(path))

    # Reading.

    def cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **kwargs: Any) -> bytes:
        spelled = self._spelled(path)
        if (start is not None and start < 0) or (end is not None and end < 0):
            size = self.errands.look(spelled)[2]
            start = max(size + start, 0) if start is not None and start < 0 else start
            end = size + end if end is not None and end < 0 else end
        start = start or 0
        length = (1 << 63) - 1 if end is None else max(end - start, 0)
        if length <= 0:
            self.info(path)
            return b""
        return self.errands.read(spelled, start, length)

    def cat_ranges(self, paths: list[str], starts: Any, ends: Any, max_gap: Optional[int] = None, on_error: str = "return", **kwargs: Any) -> list[Any]:
        """Ranges, several at once."""
        count = len(paths)
        starts = list(starts) if isinstance(starts, Iterable) else [starts] * count
        ends = list(ends) if isinstance(ends, Iterable) else [ends] * count
        if not len(starts) == len(ends) == count:
            raise ValueError("as many starts and ends as paths are wanted")
        return self._at_once(lambda one: self.cat_file(*one), list(zip(paths, starts, ends)), on_error)

    def cat(self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any) -> Any:
        paths = self.expand_path(path, recursive=recursive)
        if len(paths) == 1 and not isinstance(path, list) and paths[0] == self._strip_protocol(path):
            return self.cat_file(paths[0], **kwargs)
        contents = self._at_once(lambda one: self.cat_file(one, **kwargs), paths, on_error)
        return {one: content for one, content in zip(paths, contents) if on_error != "omit" or not isinstance(content, Exception)}

    def _at_once(self, work: Any, items: list[Any], on_error: str) -> list[Any]:
        def tried(item: Any) -> Any:
            try:
                return work(item)
            except Exception as error:
                if on_error == "raise":
                    raise
                return error

        if len(items) < 2:
            return [tried(item) for item in items]
        with ThreadPoolExecutor(min(AT_ONCE, len(items))) as pool:
            return list(pool.map(tried, items))

    def _open(self, path: str, mode: str = "rb", block_size: Optional[int] = None, autocommit: bool = True, cache_options: Optional[dict[str, Any]] = None, **kwargs: Any) -> Any:
        if mode == "ab":
            raise NotImplementedError("a file at a server of haul's is written anew, not appended to")
        if mode == "r+b":
            raise NotImplementedError("a file at a server of haul's is written anew, not changed in its middle")
        if mode == "xb" and self.exists(path):
            raise FileExistsError(17, "File exists", path)
        return HaulFile(self, path, "wb" if mode == "xb" else mode, block_size or self.block_size, autocommit, cache_options=cache_options, **kwargs)

    # Writing.

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        if mode == "create" and self.exists(path):
            raise FileExistsError(17, "File exists", path)
        writing = self._writing(path)
        try:
            writing.write(value)
            writing.finish()
        except BaseException:
            writing.discard()
            raise
        self.invalidate_cache(path)

    def _writing(self, path: str) -> _haul.Writing:
        """Begins a file; directories that are missing on its way are made, as fsspec has it."""
        spelled = self._spelled(path)
        try:
            return self.errands.write(spelled)
        except FileNotFoundError:
            parent = self._parent(path)
            if parent in ("", self.root_marker) or self.exists(parent):
                raise
            self.makedirs(parent, exist_ok=True)
            return self.errands.write(spelled)

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        if not truncate and self.exists(path):
            raise NotImplementedError("a server of haul's does not set times by themselves")
        self.pipe_file(path, b"")

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        path = self._strip_protocol(path)
        try:
            self.errands.make(self._spelled(path))
        except FileNotFoundError:
            if not create_parents or self._parent(path) in ("", self.root_marker):
                raise
            self.makedirs(self._parent(path), exist_ok=True)
            self.errands.make(self._spelled(path))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        path = self._strip_protocol(path)
        if self.exists(path):
            if exist_ok and self.isdir(path):
                return
            raise FileExistsError(17, "File exists", path)
        parent = self._parent(path)
        if parent not in ("", self.root_marker, path) and not self.exists(parent):
            self.makedirs(parent, exist_ok=True)
        try:
            self.errands.make(self._spelled(path))
        except FileExistsError:
            if not exist_ok:
                raise

    def rmdir(self, path: str) -> None:
        self.errands.remove_directory(self._spelled(path))

    def _rm(self, path: str) -> None:
        if self.info(path)["type"] == "directory":
            self.rmdir(path)
        else:
            self.errands.remove(self._spelled(path))

    rm_file = _rm

    def rm(self, path: Any, recursive: bool = False, maxdepth: Optional[int] = None) -> None:
        paths = self.expand_path(path, recursive=recursive, maxdepth=maxdepth)
        for one in reversed(sorted(paths, key=lambda one: one.count("/"))):
            if not recursive and self.isdir(one):
                raise IsADirectoryError(21, "Is a directory: recursive=True removes it with all that is in it", one)
            self._rm(one)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        self._with_parent(path2, lambda: self.errands.copy(self._spelled(path1), self._spelled(path2)))

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: Optional[int] = None, **kwargs: Any) -> None:
        """Renames, on the same file system; else copies and removes."""
        if self._strip_protocol(path1) == self._strip_protocol(path2):
            return
        try:
            self.errands.rename(self._spelled(path1), self._spelled(path2))
        except OSError as error:
            if error.errno != 18:  # EXDEV
                raise
            self.copy(path1, path2, recursive=recursive or self.isdir(path1))
            self.rm(path1, recursive=recursive or self.isdir(path1))

    mv_file = mv

    def _with_parent(self, path: str, work: Any) -> None:
        try:
            work()
        except FileNotFoundError:
            parent = self._parent(path)
            if self.exists(parent):
                raise
            self.makedirs(parent, exist_ok=True)
            work()

    # Copying between here and there.

    def get_file(self, rpath: str, lpath: Any, callback: Any = DEFAULT_CALLBACK, outfile: Any = None, **kwargs: Any) -> None:
        """Copies a file here: verified, resumed if it was interrupted, under its name when it is whole."""
        if outfile is None and hasattr(lpath, "write"):
            outfile = lpath
        info = self.info(rpath)
        if outfile is not None:
            outfile.write(self.cat_file(rpath))
            return
        lpath = os.fspath(lpath)
        if info["type"] == "directory":
            os.makedirs(lpath, exist_ok=True)
            return
        os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
        self._copy([self._operand(rpath)], _local(lpath), callback, **kwargs)

    def put_file(self, lpath: Any, rpath: str, callback: Any = DEFAULT_CALLBACK, mode: str = "overwrite", **kwargs: Any) -> None:
        """Copies a file there: verified, resumed if it was interrupted, under its name when it is whole."""
        if mode == "create" and self.exists(rpath):
            raise FileExistsError(17, "File exists", rpath)
        lpath = os.fspath(lpath)
        if os.path.isdir(lpath):
            self.makedirs(rpath, exist_ok=True)
            return
        if self.isdir(rpath):
            raise IsADirectoryError(21, "Is a directory", rpath)
        parent = self._parent(rpath)
        if parent not in ("", self.root_marker) and not self.exists(parent):
            self.makedirs(parent, exist_ok=True)
        self._copy([_local(lpath)], self._operand(rpath), callback, **kwargs)


class HaulSshFileSystem(HaulFileSystem):
    """The same by ssh, ``haul+ssh://[user@]host[:port]/path``: ``ssh`` is what ssh is told besides, as for :func:`haul.copy`."""

    protocol = ("haul+ssh",)

    def __init__(
        self,
        host: Optional[str] = None,
        port: Optional[int] = None,
        username: Optional[str] = None,
        *,
        ssh: Optional[Mapping[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(host, port, username, ssh={} if ssh is None else ssh, **kwargs)

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        # Without `ssh`: what an address says must not stand beside what the caller says.
        return {name: value for name, value in HaulFileSystem._get_kwargs_from_urls(path).items() if name != "ssh"}


class HaulFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is read with read-ahead, or written; what is written has its name when it is closed, and never if an exception ends its ``with``."""

    DEFAULT_BLOCK_SIZE = BLOCK

    def __init__(self, fs: HaulFileSystem, path: str, mode: str = "rb", block_size: Union[int, str] = BLOCK, autocommit: bool = True, **kwargs: Any) -> None:
        self._writing: Optional[_haul.Writing] = None
        self._pid = os.getpid()
        super().__init__(fs, path, mode, block_size, autocommit, **kwargs)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.cat_file(self.path, start, end)  # type: ignore[no-any-return]

    def _initiate_upload(self) -> None:
        self._writing = self.fs._writing(self.path)

    def _upload_chunk(self, final: bool = False) -> bool:
        assert self._writing is not None and self.buffer is not None
        content = self.buffer.getvalue()
        if content:
            self._writing.write(content)
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Gives it its name; needed after a transaction only."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.finish()

    def discard(self) -> None:
        """Gives it up: there is no such file."""
        if self._writing is not None:
            writing, self._writing = self._writing, None
            writing.discard()

    def close(self) -> None:
        """Ends it. What a process that was forked has of one that is being written is its parent's to end."""
        if self.mode == "wb" and self._pid != os.getpid():
            self.closed = True
            return
        super().close()

    def __exit__(self, *error: Any) -> None:
        if error[0] is not None and self.mode == "wb":
            self.discard()
            self.buffer = None
            self.closed = True
            return
        super().__exit__(*error)


#: File systems by their ids: those that are equal are not the same.
_all: weakref.WeakValueDictionary[int, HaulFileSystem] = weakref.WeakValueDictionary()


def _close(errands: _haul.Errands, pid: int) -> None:
    # A process that was forked ends by itself: the connection is its parent's.
    if pid == os.getpid():
        errands.close()


def _forked() -> None:
    # The lock may be held by a thread that is not in here.
    for fs in list(_all.values()):
        fs._lock = threading.Lock()
        fs._let_go()


os.register_at_fork(after_in_child=_forked)


def _escaped(path: str) -> str:
    return "".join(f"%{byte:02X}" if byte in b"%" or byte < 0x20 else chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in os.fsencode(path))


def _local(path: str) -> str:
    """A local name that is taken for nothing else."""
    return path if os.path.isabs(path) else os.path.join(".", path)
