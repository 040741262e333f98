"""The file system for fsspec, against a real daemon."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import fsspec
import pytest
from conftest import HAUL, Daemon, no_ssh, run, wanted

import haul
from haul.fs import HaulFileSystem, HaulSshFileSystem


@pytest.fixture
def fs(daemon: Daemon) -> HaulFileSystem:
    return HaulFileSystem("127.0.0.1", daemon.port, state=daemon.state, skip_instance_cache=True)


def test_addresses() -> None:
    strip, kwargs = HaulFileSystem._strip_protocol, HaulFileSystem._get_kwargs_from_urls
    assert strip("haul://h:1/data/a/") == strip("/data/a") == strip("data/a") == "/data/a"
    assert strip("haul://h") == strip("haul://h/") == strip("") == "/"
    assert kwargs("haul://h:77/data/a") == {"host": "h", "port": 77}
    assert kwargs("haul+ssh://me@h/home/me/a") == {"host": "h", "username": "me", "ssh": {}}
    fs = HaulFileSystem("h", 77)
    assert fs.unstrip_protocol("/data/a") == "haul://h:77/data/a" and fs._operand("/data/a b%") == "haul://h:77/data/a b%25"
    assert HaulFileSystem("h", username="me", ssh={})._operand("/x") == "me@h:/x"
    assert pickle.loads(pickle.dumps(fs)) == fs, "by its arguments: no connection travels"
    with pytest.raises(ValueError, match="which host"):
        HaulFileSystem()


def test_words_that_nobody_knows_are_refused() -> None:
    for make in (HaulFileSystem, HaulSshFileSystem):
        with pytest.raises(TypeError, match=f"{make.__name__}.* 'stat'"):
            make("h", stat="x")
    with pytest.raises(TypeError, match="'stat'"):
        fsspec.filesystem("haul", host="h", stat="x")
    own = {"use_listings_cache": False, "listings_expiry_time": 1, "max_paths": 9, "skip_instance_cache": True, "asynchronous": False, "loop": None, "auto_mkdir": True}
    assert HaulFileSystem("h", **own).host == "h", "fsspec's own"


def test_what_trusts_a_server_names_its_directory(daemon: Daemon, tmp_path: Path) -> None:
    fs = HaulFileSystem("127.0.0.1", daemon.port, state=tmp_path, skip_instance_cache=True)
    with pytest.raises(haul.NotTrusted) as unknown:
        fs.ls("/")
    hint = unknown.value.hint or ""
    assert f"haul key trust --state {tmp_path} " in hint and f', state="{tmp_path}")' in hint


def test_why_ssh_leads_nowhere_is_in_the_message(tmp_path: Path) -> None:
    says = no_ssh(tmp_path, before="echo 'ssh: no such host' >&2; exit 255")
    with pytest.raises(haul.LoginFailed, match="could not log in: ssh: no such host"):
        HaulSshFileSystem("nowhere", ssh={"program": str(says)}, skip_instance_cache=True).ls("/")


def test_it_is_registered(daemon: Daemon, room: Path) -> None:
    (room / "a").write_text("content")
    with fsspec.open(daemon.url(f"data/{room.name}/a"), "rt", state=daemon.state) as file:
        assert file.read() == "content"


def test_roots_and_names(fs: HaulFileSystem, room: Path) -> None:
    top = f"/data/{room.name}"
    (room / "a").write_text("content")
    (room / "d").mkdir()
    (room / "link").symlink_to("a")
    os.mkfifo(room / "pipe")
    name = os.fsdecode(b"not utf-8 \xff *")
    (room / name).write_text("x")
    assert [info["name"] for info in fs.ls("/")] == ["/data", "/pub"] and fs.isdir("/")
    infos = {info["name"]: info for info in fs.ls(top)}
    assert {name: info["type"] for name, info in infos.items()} == {
        f"{top}/a": "file",
        f"{top}/d": "directory",
        f"{top}/link": "link",
        f"{top}/pipe": "other",
        f"{top}/{name}": "file",
    }
    assert infos[f"{top}/a"]["size"] == 7 and infos[f"{top}/link"]["destination"] == "a"
    assert fs.cat(f"{top}/{name}") == b"x"
    assert abs(fs.modified(f"{top}/a").timestamp() - (room / "a").stat().st_mtime) < 0.01
    assert fs.ukey(f"{top}/a") != fs.ukey(f"{top}/{name}")
    assert fs.du(top) == 8 and fs.find(top) == sorted([f"{top}/a", f"{top}/link", f"{top}/pipe", f"{top}/{name}"])
    with pytest.raises(NotImplementedError, match="when a file was made"):
        fs.created(f"{top}/a")


def test_many_names(fs: HaulFileSystem, room: Path) -> None:
    for number in range(2000):
        (room / f"file with a longer name, number {number:06}").touch()
    assert len(fs.ls(f"/data/{room.name}", detail=False)) == 2000


def test_ranges(fs: HaulFileSystem, room: Path) -> None:
    content, path = os.urandom(3_000_000), f"/data/{room.name}/a"
    (room / "a").write_bytes(content)
    for start, end in ((None, None), (0, 10), (5, 5), (2_999_990, 5_000_000), (4_000_000, None), (-10, None), (-10, -2), (100, 2_000_000)):
        assert fs.cat_file(path, start, end) == content[start:end], (start, end)
    assert fs.cat_ranges([path] * 20, list(range(20)), list(range(100, 120))) == [content[at : at + 100] for at in range(20)]
    missing = fs.cat_ranges([path, path + "x"], [0, 0], [1, 1])
    assert missing[0] == content[:1] and isinstance(missing[1], FileNotFoundError)
    with fs.open(path, block_size=1000) as file:
        file.seek(-5, 2)
        assert file.read() == content[-5:]
        file.seek(1_000_000)
        assert file.read(10) == content[1_000_000:1_000_010]
    room_for_it = bytearray(100)
    assert fs.errands.readinto(path.encode(), 2_999_950, room_for_it) == 50 and bytes(room_for_it[:50]) == content[-50:]


def test_what_is_written_appears_when_it_is_closed(fs: HaulFileSystem, room: Path) -> None:
    path, content = f"/data/{room.name}/sub/new", os.urandom(5_000_000)
    with fs.open(path, "wb", block_size=1 << 20) as file:
        for at in range(0, len(content), 700_000):
            file.write(content[at : at + 700_000])
        assert not (room / "sub" / "new").exists()
    assert (room / "sub" / "new").read_bytes() == content
    with pytest.raises(RuntimeError), fs.open(path, "wb", block_size=1 << 20) as file:
        file.write(b"x" * 3_000_000)
        raise RuntimeError
    assert (room / "sub" / "new").read_bytes() == content, "the old content stays"
    with fs.transaction:
        with fs.open(f"{path}-2", "wb") as file:
            file.write(b"in a transaction")
        assert not fs.exists(f"{path}-2")
    assert fs.cat(f"{path}-2") == b"in a transaction"
    assert sorted(os.listdir(room / "sub")) == ["new", "new-2"], "nothing else is left"
    with pytest.raises(FileExistsError):
        fs.open(path, "xb")
    for mode in ("ab", "r+b"):
        with pytest.raises(NotImplementedError, match="written anew"):
            fs.open(path, mode)


def test_many_files_are_written_at_once(fs: HaulFileSystem, room: Path) -> None:
    top, done = f"/data/{room.name}", threading.Event()

    def write() -> None:
        with fs.transaction:
            for number in range(20):
                with fs.open(f"{top}/{number:02}", "wb") as file:
                    file.write(b"%d" % number)
            assert fs.ls(top) == []
        files = [fs.open(f"{top}/again-{number:02}", "wb", block_size=1 << 20) for number in range(20)]
        for file in files:
            file.write(b"x" * (1 << 20))
        assert len(fs.ls(top)) == 20, "what is not closed is not there"
        for file in files:
            file.close()
        done.set()

    threading.Thread(target=write, daemon=True).start()
    assert done.wait(60)
    assert [(room / f"{number:02}").read_text() for number in range(20)] == [str(number) for number in range(20)]
    assert len(os.listdir(room)) == 40


def test_what_was_written_or_read_into_can_be_resized(fs: HaulFileSystem, room: Path) -> None:
    path = f"/data/{room.name}/a".encode()
    writing, content = fs.errands.write(path), bytearray(b"content")
    writing.write(content)
    content.clear()
    writing.finish()
    into = bytearray(100)
    del into[fs.errands.readinto(path, 0, into) :]
    assert into == b"content"
    with pytest.raises(FileNotFoundError):
        fs.errands.readinto(path + b"-other", 0, into)
    into.clear()
    content[:] = b"more"
    with pytest.raises(haul.Closed):
        writing.write(content)
    content.clear()


def test_names_are_made_moved_and_removed(fs: HaulFileSystem, room: Path) -> None:
    top = f"/data/{room.name}"
    fs.makedirs(f"{top}/a/b/c")
    with pytest.raises(FileExistsError):
        fs.makedirs(f"{top}/a/b/c")
    fs.makedirs(f"{top}/a/b/c", exist_ok=True)
    fs.pipe(f"{top}/a/b/c/file", b"content")
    fs.mv(f"{top}/a/b/c/file", f"{top}/moved")
    fs.cp_file(f"{top}/moved", f"{top}/copied")
    assert (room / "moved").read_text() == (room / "copied").read_text() == "content"
    with pytest.raises(OSError):
        fs.rmdir(f"{top}/a")
    with pytest.raises(IsADirectoryError):
        fs.rm(f"{top}/a")
    fs.rm(f"{top}/a", recursive=True)
    assert sorted(os.listdir(room)) == ["copied", "moved"]
    fs.touch(f"{top}/moved")
    assert fs.size(f"{top}/moved") == 0
    with pytest.raises(FileNotFoundError):
        fs.info(f"{top}/a")
    with pytest.raises(FileNotFoundError):
        fs.rm_file(f"{top}/a")


def test_get_and_put_tell_how_they_go(fs: HaulFileSystem, room: Path, tmp_path: Path) -> None:
    class Callback(fsspec.Callback):
        pass

    content = os.urandom(4_000_000)
    (tmp_path / "here").write_bytes(content)
    putting, getting = Callback(), Callback()
    fs.put_file(tmp_path / "here", f"/data/{room.name}/there", callback=putting)
    fs.get_file(f"/data/{room.name}/there", tmp_path / "back", callback=getting)
    assert (tmp_path / "back").read_bytes() == content
    assert (putting.size, putting.value, getting.size, getting.value) == (4_000_000,) * 4
    (tmp_path / "tree" / "d").mkdir(parents=True)
    (tmp_path / "tree" / "d" / "f").write_text("x")
    fs.put(f"{tmp_path}/tree", f"/data/{room.name}/", recursive=True)
    fs.get(f"/data/{room.name}/tree/", f"{tmp_path}/again/", recursive=True)
    assert (tmp_path / "again" / "d" / "f").read_text() == "x"


def test_rights_are_those_of_the_key(fs: HaulFileSystem, daemon: Daemon, room: Path, tmp_path: Path) -> None:
    assert fs.cat("/pub/read-me") == b"only to be read"
    refused = [
        lambda: fs.pipe("/pub/x", b"x"),
        lambda: fs.rm_file("/pub/read-me"),
        lambda: fs.mkdir("/pub/d"),
        lambda: fs.mv("/pub/read-me", "/data/x"),
        lambda: fs.rmdir("/data"),
    ]
    for attempt in refused:
        with pytest.raises(OSError) as error:
            attempt()
        assert error.value.errno in (13, 30), error.value
    assert (daemon.pub / "read-me").exists()
    with pytest.raises(FileNotFoundError):
        fs.ls("/other")
    (room / "up").symlink_to("../..")
    for path in ("../../server", "up/server"):
        with pytest.raises(PermissionError):
            fs.info(f"/data/{room.name}/{path}")
    reader, confined = tmp_path / "reader", tmp_path / "confined"
    daemon.authorize(haul.own_key(reader).fingerprint, "--read-only")
    reading = HaulFileSystem("127.0.0.1", daemon.port, state=reader, trust=daemon.key, skip_instance_cache=True)
    assert reading.ls("/data", detail=False) and reading.cat("/pub/read-me")
    with pytest.raises(OSError, match="read-only"):
        reading.pipe(f"/data/{room.name}/x", b"x")
    daemon.authorize(haul.own_key(confined).fingerprint, "--root", "pub")
    one = HaulFileSystem("127.0.0.1", daemon.port, state=confined, trust=daemon.key, skip_instance_cache=True)
    assert one.ls("/", detail=False) == ["/pub"]
    with pytest.raises(FileNotFoundError):
        one.ls("/data")
    stranger = HaulFileSystem("127.0.0.1", daemon.port, state=tmp_path / "stranger", trust=daemon.key, skip_instance_cache=True)
    with pytest.raises(haul.Refused):
        stranger.ls("/")
    # A key that is revoked ends what its holder has open.
    run(HAUL, "key", "revoke", "--state", str(daemon.server_state), haul.own_key(reader).fingerprint)
    for _ in range(100):
        if reading._errands is None or reading._errands.is_closed:
            break
        time.sleep(0.1)
    with pytest.raises(haul.HaulError):
        reading.ls("/")


def test_the_audit_log_has_what_was_asked_for(fs: HaulFileSystem, daemon: Daemon, room: Path) -> None:
    top = f"/data/{room.name}"
    fs.pipe(f"{top}/a", b"content")
    fs.pipe(f"{top}/b", b"content")
    fs.rm_file(f"{top}/a")
    fs.close()
    wanted = [f"{top[1:]}/a", f"{top[1:]}/b"]
    for _ in range(100):
        entries = [json.loads(line) for line in daemon.audit.read_text().splitlines()]
        if any(entry["event"] == "copied" and entry.get("paths") == wanted for entry in entries):
            break
        time.sleep(0.1)
    else:
        pytest.fail(f"not in it: {entries}")
    entry = next(entry for entry in entries if entry.get("paths") == wanted)
    assert (entry["files"], entry["bytes"], entry["result"], entry["direction"]) == (2, 14, "done", "received")


def test_a_connection_that_was_lost_is_made_again(fs: HaulFileSystem, room: Path) -> None:
    (room / "a").write_text("1")
    assert fs.cat(f"/data/{room.name}/a") == b"1"
    fs.errands.close()
    assert fs.cat(f"/data/{room.name}/a") == b"1"
    fs.close()
    assert fs.cat(f"/data/{room.name}/a") == b"1"


def test_a_connection_that_was_lost_leaves_nothing_behind(fs: HaulFileSystem, room: Path) -> None:
    (room / "a").write_text("1")

    def sockets() -> int:
        links = []
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                links.append(os.readlink(f"/proc/self/fd/{name}"))
        return sum(link.startswith("socket:") for link in links)

    assert fs.cat(f"/data/{room.name}/a") == b"1"
    before = sockets()
    for end in (lambda: fs.errands.close(), fs.close) * 5:
        end()
        assert fs.cat(f"/data/{room.name}/a") == b"1"
    for _ in range(100):
        if sockets() <= before:
            break
        time.sleep(0.1)
    assert sockets() <= before


def test_a_process_that_was_forked_leaves_its_parents_connection(daemon: Daemon, room: Path) -> None:
    program = """
        import os, sys, threading
        from haul.fs import HaulFileSystem
        fs = HaulFileSystem("127.0.0.1", int(sys.argv[1]), state=sys.argv[2], skip_instance_cache=True)
        fs.pipe(f"{sys.argv[3]}/a", b"of the parent")
        errands, file = fs.errands, fs.open(f"{sys.argv[3]}/b", "wb", block_size=1 << 16)
        file.write(b"x" * (1 << 20))
        file.flush()
        with fs._lock:  # as if another thread was connecting
            child = os.fork()
            if child == 0:
                if sys.argv[4] == "uses it":
                    assert fs.cat(f"{sys.argv[3]}/a") == b"of the parent"
                sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert not errands.is_closed and fs.errands is errands and fs.cat(f"{sys.argv[3]}/a") == b"of the parent"
        file.close()
    """
    for what in ("ends at once", "uses it"):
        words = [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(program), str(daemon.port), str(daemon.state), f"/data/{room.name}", what]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), what
        assert (room / "b").read_bytes() == b"x" * (1 << 20)


def test_other_processes_have_their_own(fs: HaulFileSystem, daemon: Daemon, room: Path) -> None:
    (room / "a").write_text("content")
    assert fs.cat(f"/data/{room.name}/a") == b"content"
    program = "import pickle, sys; fs = pickle.loads(sys.stdin.buffer.read()); sys.stdout.buffer.write(fs.cat(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", program, f"/data/{room.name}/a"], input=pickle.dumps(fs), capture_output=True, timeout=60)
    assert done.stdout == b"content", done.stderr


def test_what_is_interrupted_leaves_nothing(fs: HaulFileSystem, room: Path) -> None:
    file = fs.open(f"/data/{room.name}/a", "wb", block_size=1 << 20)
    file.write(b"x" * 3_000_000)
    fs.errands.close()
    with pytest.raises(haul.HaulError):
        for _ in range(10):
            file.write(b"x" * 3_000_000)
    file.discard()
    file.closed = True
    for _ in range(100):
        if not os.listdir(room):
            break
        time.sleep(0.1)
    assert not os.listdir(room)


def test_pandas_reads_it(fs: HaulFileSystem, daemon: Daemon, room: Path) -> None:
    wanted("pyarrow")
    pandas = wanted("pandas")
    frame = pandas.DataFrame({"a": range(1000), "b": [f"row {number}" for number in range(1000)]})
    options = {"state": daemon.state}
    csv, parquet = daemon.url(f"data/{room.name}/t.csv"), daemon.url(f"data/{room.name}/t.parquet")
    frame.to_csv(csv, index=False, storage_options=options)
    assert pandas.read_csv(csv, storage_options=options).equals(frame)
    frame.to_parquet(room / "t.parquet", engine="pyarrow")
    assert pandas.read_parquet(parquet, engine="pyarrow", storage_options=options).equals(frame)
    assert pandas.read_parquet(parquet, engine="pyarrow", columns=["b"], storage_options=options).equals(frame[["b"]])


def test_by_ssh(room: Path, tmp_path: Path) -> None:
    fake = no_ssh(tmp_path)
    fs = HaulFileSystem("localhost", ssh={"program": str(fake)}, skip_instance_cache=True)
    fs.pipe(f"{room}/by-ssh", b"content")
    assert (room / "by-ssh").read_bytes() == b"content" and fs.cat(f"{room}/by-ssh") == b"content"
    fs.get_file(f"{room}/by-ssh", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"


def test_the_address_by_ssh_is_registered(room: Path, tmp_path: Path) -> None:
    told: dict[str, Any] = {"ssh": {"program": str(no_ssh(tmp_path))}}
    with fsspec.open(f"haul+ssh://me@localhost{room}/by-address", "wb", **told) as file:
        file.write(b"content")
    assert (room / "by-address").read_bytes() == b"content"
    fs = fsspec.filesystem("haul+ssh", host="me@localhost", **told)
    assert isinstance(fs, HaulSshFileSystem) and fs.ls(str(room), detail=False) == [f"{room}/by-address"]
    assert fs.unstrip_protocol(f"{room}/x") == f"haul+ssh://me@localhost{room}/x"
    assert pickle.loads(pickle.dumps(fs)).cat(f"{room}/by-address") == b"content"
    assert fsspec.filesystem("haul+ssh", host="h").ssh == {}, "without a word for ssh it is by ssh all the same"
