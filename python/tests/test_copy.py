"""`haul.copy` against a real daemon."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Daemon

import haul
import haul.aio


#: Bytes: more than a sender has on its way at the rate below, so that a copy which is ended early is not over.
BIG = 40_000_000


def tree(at: Path) -> Path:
    (at / "sub").mkdir(parents=True)
    (at / "a").write_bytes(b"a" * 100_000)
    (at / "sub" / "b").write_bytes(os.urandom(3_000_000))
    (at / "sub" / "skip.o").write_bytes(b"no")
    return at


def test_a_tree_goes_there_and_comes_back(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source")
    sent = haul.copy(source, daemon.url(f"data/{room.name}/"), recursive=True, exclude=["*.o"], state=daemon.state).check()
    assert (sent.files, sent.left_out, sent.verified, sent.ok) == (2, 1, "arrival", True)
    assert sent.bytes == 3_100_000 and sent.seconds > 0 and sent.rate > 0
    there = room / "source"
    assert (there / "sub" / "b").read_bytes() == (source / "sub" / "b").read_bytes() and not (there / "sub" / "skip.o").exists()

    back = haul.copy(daemon.url(f"data/{room.name}/source/*"), tmp_path, recursive=True, preserve=True, trust=daemon.key, state=str(daemon.state))
    assert back.files == 2 and (tmp_path / "sub" / "b").read_bytes() == (source / "sub" / "b").read_bytes()
    again = haul.copy([daemon.url(f"data/{room.name}/source/a")], tmp_path, skip_same=True, preserve=True, state=daemon.state)
    assert (again.files, again.skipped_files) == (0, 1)
    assert str(sent).startswith("copied 2 files, 2 directories: 3100000 bytes in ") and "; 1 name excluded" in str(sent)
    assert str(again).startswith("nothing copied; 1 file skipped, there already")


def test_progress_ends_at_all_of_it(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source")
    seen: list[haul.Progress] = []
    haul.copy(source, daemon.url(f"data/{room.name}/"), recursive=True, progress=seen.append, state=daemon.state, limit="20M")
    last = seen[-1]
    assert len(seen) > 3, "it took a second at 20 Mbit/s"
    assert (last.files, last.total_files, last.bytes, last.total_bytes, last.complete) == (3, 3, 3_100_002, 3_100_002, True)
    assert [progress.bytes for progress in seen] == sorted(progress.bytes for progress in seen)
    assert any(0 < progress.bytes < last.bytes and progress.rate > 0 for progress in seen)


def test_tqdm_shows_it(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    tqdm = pytest.importorskip("tqdm")
    shown = io.StringIO()
    bar = tqdm.tqdm(file=shown, unit="B", unit_scale=True)
    haul.copy(tree(tmp_path / "source"), daemon.url(f"data/{room.name}/"), recursive=True, progress=haul.tqdm_progress(bar), state=daemon.state)
    assert bar.n == bar.total == 3_100_002 and "Mbit/s" in shown.getvalue()


def test_a_file_object_is_a_source(daemon: Daemon, room: Path) -> None:
    content = os.urandom(2_500_000)
    sent = haul.copy(io.BytesIO(content), daemon.url(f"data/{room.name}/stream"), state=daemon.state)
    assert sent.files == 1 and (room / "stream").read_bytes() == content

    class Broken(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            raise RuntimeError("the disk is on fire")

    with pytest.raises(RuntimeError, match="on fire"):
        haul.copy(Broken(), daemon.url(f"data/{room.name}/broken"), state=daemon.state)
    assert not (room / "broken").exists(), "half a stream is no file"


def test_single_files_are_problems(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source")
    copied = haul.copy([source / "a", source / "missing", source / "sub"], daemon.url(f"data/{room.name}/"), state=daemon.state)
    assert copied.files == 1 and copied.problem_count == 2 and not copied.ok
    missing = next(problem for problem in copied.problems if problem.path.endswith("missing"))
    assert (missing.fault, missing.errno) == ("source", 2) and "No such file" in str(missing)
    line = str(copied)
    assert line.startswith(f"copied 1 file: {copied.bytes} bytes in ") and f"; verified on arrival; 2 not copied, the first: {copied.problems[0].path}: " in line
    (directory,) = [problem for problem in copied.problems if problem.path.endswith("sub")]
    assert directory.why == "is a directory: not copied without recursive=True"
    with pytest.raises(haul.PartialCopy, match="2 not copied") as failure:
        copied.check()
    assert failure.value.copied is copied and pickle.loads(pickle.dumps(failure.value)).copied == copied


def test_errors_by_fault(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source") / "a"
    url, state = daemon.url, daemon.state
    with pytest.raises(haul.Refused, match="read-only") as refused:
        haul.copy(source, url("pub/x"), state=state)
    assert isinstance(refused.value, PermissionError)
    with pytest.raises(haul.NotFound, match="no such root"):
        haul.copy(url("nothing/x"), tmp_path, state=state)
    with pytest.raises(haul.DestinationError) as nowhere:
        haul.copy(source, url(f"data/{room.name}/no/such/x"), state=state)
    assert nowhere.value.errno == 2
    stranger = tmp_path / "stranger"
    with pytest.raises(haul.NotTrusted, match="not known") as unknown:
        haul.copy(source, url("data/x"), state=stranger)
    assert f"haul key trust --state {stranger} 127.0.0.1:{daemon.port} {daemon.key}, " in (unknown.value.hint or "")
    assert f'haul.trust("127.0.0.1:{daemon.port}", "{daemon.key}", state="{stranger}")' in (unknown.value.hint or "")
    other = haul.Identity().fingerprint
    haul.trust(f"127.0.0.1:{daemon.port}", other, str(stranger))
    with pytest.raises(haul.NotTrusted, match="HAS CHANGED") as changed:
        haul.copy(source, url("data/x"), state=stranger)
    assert f"haul key trust --state {stranger} 127.0.0.1:{daemon.port} {daemon.key} --replace" in (changed.value.hint or "")
    with pytest.raises(haul.Refused, match="not authorised"):
        haul.copy(source, url("data/x"), state=stranger, trust=daemon.key)
    with pytest.raises(haul.NotTrusted):
        haul.copy(source, url("data/x"), state=state, trust=haul.Identity().fingerprint)
    with pytest.raises(haul.UsageError, match="both on this machine"):
        haul.copy(source, tmp_path / "b")
    with pytest.raises(ValueError, match="both on other hosts"):
        haul.copy("one:a", "two:b")
    for words in ({"verify": "never"}, {"changed": "x"}, {"mode": "slow"}, {"limit": "fast"}, {"paths": 9}, {"exclude": "*.o"}, {"ssh": {"prot": 1}}):
        with pytest.raises(haul.UsageError):
            haul.copy(source, url("data/x"), state=state, **words)
    with pytest.raises(haul.Unreachable):
        haul.copy(source, "haul://no.such.host.invalid/data/x", state=state)
    with pytest.raises(haul.LoginFailed) as login:
        haul.copy(source, "host.invalid:x", ssh={"program": "/bin/false"})
    assert isinstance(login.value, ConnectionError)


def test_threads_may_ask_at_once_why_it_failed(daemon: Daemon, tmp_path: Path) -> None:
    program = """
        import sys, threading, time
        import haul, haul._copy, haul.errors
        began, begin = [], haul._copy._start
        haul._copy._start = lambda *words: began.append(begin(*words)) or began[-1]
        try:
            haul.copy(sys.argv[1], sys.argv[2], state=sys.argv[3])
        except haul.NotTrusted:
            pass
        make, words = haul.errors.HaulError.__init__, []
        def slowly(*given, **named):
            time.sleep(0.2)  # lets the other thread run
            make(*given, **named)
        haul.errors.HaulError.__init__ = slowly
        def ask():
            try:
                began[0].result()
            except haul.NotTrusted as error:
                words.append(error.message)
        asking = [threading.Thread(target=ask) for _ in range(3)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        assert len(words) == 3 and len(set(words)) == 1, words
    """
    words = [sys.executable, "-c", textwrap.dedent(program), str(tree(tmp_path / "source")), daemon.url("data/x"), str(tmp_path / "stranger")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_an_argument_that_cannot_be_used_is_named(daemon: Daemon, tmp_path: Path) -> None:
    source = tree(tmp_path / "source") / "a"
    usage: list[tuple[dict[str, Any], str]] = [
        ({"limit": 0}, "limit: nothing would ever be sent"),
        ({"limit": "0"}, "limit: nothing would ever be sent"),
        ({"limit": "0.0 Mbit/s"}, "limit: nothing would ever be sent"),
        ({"limit": -1}, "limit: -1 is less than 0"),
        ({"limit": "fast"}, "limit: "),
        ({"retries": -1}, "retries: -1 is less than 0"),
        ({"retries": 1 << 70}, "retries: .* is too large"),
        ({"reconnect": -1}, "reconnect: -1: not a time in seconds"),
    ]
    for words, message in usage:
        with pytest.raises(haul.UsageError, match=message):
            haul.copy(source, daemon.url("data/x"), state=daemon.state, **words)
    types: list[tuple[dict[str, Any], str]] = [
        ({"trust": haul.own_key(daemon.state)}, "trust: the fingerprint of the other side's key is wanted, .*not Identity"),
        ({"limit": 1.5}, "limit: a rate.* is wanted, not float"),
        ({"retries": "often"}, "retries: "),
        ({"exclude": 3}, "exclude: a list of patterns is wanted, not int"),
        ({"files_from": [3]}, "files_from: a name is wanted.* not int"),
        ({"filter_from": 3}, "filter_from: .* is wanted, not int"),
    ]
    for words, message in types:
        with pytest.raises(TypeError, match=message):
            haul.copy(source, daemon.url("data/x"), state=daemon.state, **words)
    for sources in (3, [3]):
        with pytest.raises(TypeError, match="src: a name.* is wanted.* not int"):
            haul.copy(sources, daemon.url("data/x"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dst: a name is wanted.* not int"):
        haul.copy(source, 3)  # type: ignore[arg-type]


def test_a_key_that_may_only_read(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    reader = tmp_path / "reader"
    daemon.authorize(haul.own_key(reader).fingerprint, "--read-only")
    (room / "a").write_text("content")
    assert haul.copy(daemon.url(f"data/{room.name}/a"), tmp_path, trust=daemon.key, state=reader).files == 1
    with pytest.raises(haul.Refused):
        haul.copy(tmp_path / "a", daemon.url(f"data/{room.name}/b"), trust=daemon.key, state=reader)


def test_what_a_callback_raises_ends_it_and_the_next_goes_on(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(os.urandom(BIG))

    def stop(progress: haul.Progress) -> None:
        if progress.bytes > 6_000_000:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        haul.copy(big, daemon.url(f"data/{room.name}/"), limit="100M", progress=stop, state=daemon.state)
    assert not (room / "big").exists()
    rest = haul.copy(big, daemon.url(f"data/{room.name}/"), state=daemon.state)
    assert rest.resumed_bytes >= 1_000_000 and (room / "big").read_bytes() == big.read_bytes()
    assert f"; {rest.resumed_bytes} bytes were there from an interrupted copy" in str(rest)


def test_ctrl_c_ends_at_once_and_leaves_it_resumable(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(os.urandom(BIG))
    program = f"""
        import haul, signal, sys, time
        # What a shell runs behind has it ignored, and Python leaves that so.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def show(progress):
            if progress.bytes > 6_000_000:
                print("under way", flush=True)
        try:
            haul.copy({str(big)!r}, {daemon.url(f'data/{room.name}/')!r}, limit="100M", progress=show, state={str(daemon.state)!r})
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            sys.exit(7)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "under way\n"
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=20)[0]
    assert process.returncode == 7 and rest.endswith("interrupted\n")
    copied = haul.copy(big, daemon.url(f"data/{room.name}/"), state=daemon.state)
    assert copied.resumed_bytes >= 1_000_000 and (room / "big").read_bytes() == big.read_bytes()


def test_asyncio_copies_and_cancels(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(os.urandom(BIG))

    async def both() -> None:
        seen: list[haul.Progress] = []
        slow = asyncio.ensure_future(haul.aio.copy(big, daemon.url(f"data/{room.name}/"), limit="100M", state=daemon.state, progress=seen.append))
        while not any(progress.bytes > 6_000_000 for progress in seen):
            await asyncio.sleep(0.02)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        rest = await haul.aio.copy(big, daemon.url(f"data/{room.name}/"), state=daemon.state)
        assert rest.resumed_bytes >= 1_000_000
        with pytest.raises(TypeError, match="unexpected keyword"):
            await haul.aio.copy(big, "x:", speed=1)

    asyncio.run(both())


def test_other_threads_run_meanwhile(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source")
    counted, over = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1

    counter = threading.Thread(target=count)
    counter.start()
    try:
        haul.copy(source, daemon.url(f"data/{room.name}/"), recursive=True, limit="50M", state=daemon.state)
    finally:
        over.set()
        counter.join()
    assert counted > 10_000, "the interpreter was held"


def test_problems_are_logged(daemon: Daemon, room: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "haul"):
        haul.copy([tmp_path / "missing-one"], daemon.url(f"data/{room.name}/"), state=daemon.state)
        for _ in range(100):
            if any("missing-one" in record.getMessage() for record in caplog.records):
                break
            threading.Event().wait(0.05)
        else:
            pytest.fail(f"not logged: {caplog.records}")
    assert all(record.name.startswith("haul") for record in caplog.records)
