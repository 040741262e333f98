"""Endpoints, connections, streams and blocks, both ends in this process."""

from __future__ import annotations

import array
import gc
import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest

import haul


@pytest.fixture
def pair() -> Iterator[tuple[haul.Connection, haul.Connection]]:
    """A client's connection, and the server's end of it."""
    identity = haul.Identity()
    with haul.listen(("127.0.0.1", 0), identity=identity) as server:
        near = haul.connect(server.address, trust=identity.fingerprint)
        yield near, server.accept(timeout=10)
        near.close()


def test_a_question_and_an_answer(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair

    def answer() -> None:
        with far.accept_stream() as stream:
            stream.write(stream.read().upper())

    answering = threading.Thread(target=answer)
    answering.start()
    with near.open_stream() as stream:
        assert stream.readable() and stream.writable() and not stream.seekable()
        stream.sendall(b"hello ")
        stream.write(memoryview(bytearray(b"world")))
        stream.finish()
        assert stream.recv(1) == b"H" and stream.recv_exactly(4) == b"ELLO"
        assert stream.read() == b" WORLD" and stream.recv(1) == b""
        with pytest.raises(haul.Closed):
            stream.write(b"more")
    answering.join()
    with pytest.raises(ValueError):
        stream.read()


def test_a_stream_is_a_file(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    sending = near.open_stream(one_way=True)
    with io.TextIOWrapper(io.BufferedWriter(sending), encoding="utf-8") as text:
        text.write("one\ntwo\nthree\n")
    lines = list(io.TextIOWrapper(io.BufferedReader(far.accept_stream(one_way=True)), encoding="utf-8"))
    assert lines == ["one\n", "two\n", "three\n"]
    receiving_only = near.open_stream(one_way=True)
    with pytest.raises(io.UnsupportedOperation):
        receiving_only.readinto(bytearray(1))


def test_bulk_through_a_stream(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    content = os.urandom(20_000_000)
    arrived = bytearray(len(content))

    def take() -> None:
        stream, view = far.accept_stream(one_way=True), memoryview(arrived)
        while view and (got := stream.readinto(view)):
            view = view[got:]
        # Who leaves a stream before its end tells the peer to stop.
        assert stream.recv(1) == b""

    taking = threading.Thread(target=take)
    taking.start()
    stream = near.open_stream(one_way=True)
    stream.write(content)
    stream.finish()
    stream.wait_acknowledged(timeout=30)
    taking.join(30)
    assert bytes(arrived) == content


@pytest.mark.parametrize("kind", [bytes, bytearray, lambda content: memoryview(content)[1:], lambda content: array.array("B", content)])
def test_blocks_of_every_kind(pair: tuple[haul.Connection, haul.Connection], kind) -> None:  # type: ignore[no-untyped-def]
    near, far = pair
    contents = [os.urandom(size) for size in (2, 1000, haul.MAX_BLOCK, 100_000)]

    def send() -> None:
        with near.open_blocks() as sender:
            for index, content in enumerate(contents):
                assert sender.send(kind(content)) == index

    sending = threading.Thread(target=send)
    sending.start()
    receiver = far.accept_blocks(timeout=10)
    arrived = {block.index: bytes(block.data) for block in receiver}
    sending.join()
    assert arrived == {index: bytes(kind(content)) for index, content in enumerate(contents)}
    assert receiver.recv() is None and receiver.received == sum(map(len, arrived.values()))


def test_a_block_is_not_copied_and_is_given_back(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    sender = near.open_blocks()
    sender.send(b"x" * 1000)
    block = far.accept_blocks(timeout=10).recv()
    assert block is not None
    view = block.data
    assert view.readonly and view.nbytes == len(block) == 1000 and view.c_contiguous
    with pytest.raises(TypeError):
        view[0] = 1
    part = view[10:20]
    del block, view
    gc.collect()
    assert bytes(part) == b"x" * 10, "a view keeps the block"
    sender.send(b"y")
    with haul.Block(0, b"z") as own:
        kept = own.data
    with pytest.raises(ValueError, match="released"):
        kept[0]


def test_a_buffer_can_be_resized_as_soon_as_its_call_has_returned(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    sending, content = near.open_stream(one_way=True), bytearray(b"some words")
    sending.write(content)
    with memoryview(content) as view:
        sending.write(view)
    content.clear()
    there, into = far.accept_stream(one_way=True), bytearray(1000)
    del into[there.readinto(into) :]
    assert b"some wordssome words".startswith(into)
    there.timeout, into = 0.05, bytearray(1000)
    with pytest.raises(TimeoutError):
        while there.readinto(into):
            pass
    into.clear()
    near.close()
    there.timeout = 10
    content[:] = b"more"
    for call in (sending.write, there.readinto):
        with pytest.raises(haul.HaulError):
            call(content)
        content.append(1)


def test_what_only_seems_constant_is_copied(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    sender = near.open_blocks()
    sender.send(b"first")
    receiver = far.accept_blocks(timeout=10)
    received = receiver.recv()
    assert received is not None
    changing, constant, names = bytearray(b"a" * 500_000), b"b" * 500_000, array.array("B", b"c" * 500_000)
    with memoryview(changing).toreadonly() as view, memoryview(constant)[1000:2000] as part, memoryview(names).toreadonly() as other:
        sender.send(view)
        sender.send(part)
        sender.send(other[100:])
        sender.send(part[:1])
    changing[:] = b"x" * len(changing)
    names[0:200_000] = array.array("B", b"x" * 200_000)
    changing.clear()
    with received:
        sender.send(received.data)
    arrived = {}
    while len(arrived) < 5:
        block = receiver.recv(timeout=10)
        assert block is not None
        arrived[block.index] = bytes(block)
    assert arrived == {1: b"a" * 500_000, 2: b"b" * 1000, 3: b"c" * 499_900, 4: b"b", 5: b"first"}


def test_what_is_sent_may_change_afterwards(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    changing = bytearray(b"a" * 500_000)
    sender = near.open_blocks()
    sender.send(changing)
    changing[:] = b"b" * len(changing)
    changing.clear()  # no view of it is left
    block = far.accept_blocks(timeout=10).recv()
    assert block is not None and bytes(block) == b"a" * 500_000


def test_memory_is_bounded_by_who_keeps_blocks() -> None:
    identity = haul.Identity()
    with haul.listen(("127.0.0.1", 0), identity=identity, memory="8MiB") as server:
        near = haul.connect(server.address, trust=identity.fingerprint, memory="8MiB")
        far = server.accept(timeout=10)
        sender = near.open_blocks()
        kept = []
        with pytest.raises(TimeoutError):
            for _ in range(64):
                sender.send(bytes(1 << 20), timeout=0.5)
        receiver = far.accept_blocks(timeout=10)
        while True:
            try:
                kept.append(receiver.recv(timeout=0.3))
            except TimeoutError:
                break
        before = len(kept)
        assert 1 <= before <= 24
        kept.clear()
        assert receiver.recv(timeout=10) is not None or before == 64


def test_timeouts_and_ends(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    with pytest.raises(TimeoutError):
        near.accept_stream(timeout=0.05)
    stream = near.open_stream()
    stream.write(b"x")
    there = far.accept_stream()
    stream.timeout = 0.05
    with pytest.raises(TimeoutError):
        stream.recv(1)
    there.reset(7)
    stream.timeout = 10
    with pytest.raises(haul.StreamReset, match="7"):
        stream.recv(1)
    assert not near.is_closed
    waiting = threading.Thread(target=far.close, args=(3, "enough"))
    waiting.start()
    assert "enough" in near.wait_closed(timeout=10) and near.is_closed
    with pytest.raises(haul.ClosedByPeer) as closed:
        near.open_stream()
    assert isinstance(closed.value, ConnectionResetError)
    waiting.join()


def test_an_exception_resets_what_it_leaves(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    with pytest.raises(RuntimeError), near.open_stream(one_way=True) as stream:
        stream.write(b"half of it")
        raise RuntimeError
    there = far.accept_stream(one_way=True)
    with pytest.raises(haul.StreamReset):
        there.read()
    with pytest.raises(RuntimeError), near.open_blocks() as sender:
        sender.send(b"block")
        raise RuntimeError
    receiver = far.accept_blocks(timeout=10)
    with pytest.raises(haul.StreamReset):
        list(receiver)


def test_trust_and_keys() -> None:
    mine, other = haul.Identity(), haul.Identity()
    assert haul.Identity(mine.to_pkcs8()).fingerprint == mine.fingerprint != other.fingerprint
    with haul.listen(("127.0.0.1", 0), identity=mine, trust=[other.fingerprint], protocols=[b"a/1", b"b/1"]) as server:
        with pytest.raises(haul.NotTrusted):
            haul.connect(server.address, trust=other.fingerprint, protocols=[b"a/1"])
        with pytest.raises(haul.PeerError, match="protocols"):
            haul.connect(server.address, trust=mine.fingerprint, identity=other, protocols=[b"c/1"])
        with pytest.raises(haul.HaulError):
            haul.connect(server.address, trust=mine.fingerprint, protocols=[b"a/1"]).accept_stream(timeout=5)
        near = haul.connect(server.address, trust=[mine.fingerprint], identity=other, protocols=[b"b/1"])
        far = server.accept(timeout=10)
        while far.peer_key != other.fingerprint:
            far = server.accept(timeout=10)
        assert near.protocol == b"b/1" and near.peer_key == mine.fingerprint and near.peer_address == server.address
        stats = near.stats()
        assert stats["rtt"] > 0 and stats["packet_size"] >= 1200 and stats["received"] >= 0
    for address, words in ((("127.0.0.1", 9), {"trust": "x"}), (("127.0.0.1", 9), {"trust": None, "speed": 1}), (("no.such.invalid", 9), {"trust": None})):
        with pytest.raises(haul.UsageError):
            haul.connect(address, **words)
    with pytest.raises(haul.Unreachable) as nobody:
        haul.connect(("127.0.0.1", 9), trust=None, timeout=0.2)
    assert isinstance(nobody.value, ConnectionError)


def test_what_is_no_address_rate_or_key_is_named() -> None:
    for address in ("127.0.0.1:0", ("127.0.0.1",), ("127.0.0.1", "80"), 80, ("127.0.0.1", 65536), ("", -1)):
        for call in (haul.listen, lambda address: haul.connect(address, trust=None)):
            with pytest.raises(haul.UsageError, match="address: "):
                call(address)  # type: ignore[operator]
    nobody = ("127.0.0.1", 9)
    for trust in (haul.Identity(), [haul.Identity()], 7):
        with pytest.raises(TypeError, match="trust: the fingerprint"):
            haul.connect(nobody, trust=trust)  # type: ignore[arg-type]
    for limit in (0, "0", "0 Mbit/s"):
        with pytest.raises(haul.UsageError, match="limit: nothing would ever be sent"):
            haul.connect(nobody, trust=None, limit=limit)
    for words, message in (({"limit": -1}, "limit: -1 "), ({"memory": -1}, "memory: -1 "), ({"paths": -1}, "paths: -1 "), ({"memory": 1 << 70}, "memory: .* too large")):
        with pytest.raises(haul.UsageError, match=message):
            haul.connect(nobody, trust=None, **words)
    for name in ("limit", "memory", "idle_timeout", "paths", "mode"):
        with pytest.raises(TypeError, match=f"{name}: .*wanted, not list"):
            haul.connect(nobody, trust=None, **{name: []})


def test_a_limit_of_zero_is_refused_later_too(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, _ = pair
    for limit in (0, "0", "0k", -1):
        with pytest.raises(haul.UsageError, match="limit: "):
            near.set_limit(limit)
    near.set_limit("10M")
    near.set_limit(None)


@pytest.mark.parametrize("collected", ["by the end of the program", "before"])
def test_a_stream_that_nobody_closes_ends_in_silence(collected: str) -> None:
    program = """
        import sys
        import haul
        identity = haul.Identity()
        server = haul.listen(("127.0.0.1", 0), identity=identity)
        client = haul.connect(server.address, trust=identity.fingerprint)
        stream = client.open_stream()
        stream.write(b"x")
        client.close()
        if sys.argv[1] == "before":
            del stream
        def main(): pass
    """
    # In development mode every Python says what a finalizer raises.
    done = subprocess.run([sys.executable, "-X", "dev", "-c", textwrap.dedent(program), collected], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stream_that_cannot_be_finished_says_so_where_it_is_closed(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, _ = pair
    stream = near.open_stream()
    stream.write(b"x")
    near.close()
    with pytest.raises(haul.Closed):
        stream.close()
    assert stream.closed


def test_accept_ends_when_the_endpoint_does() -> None:
    server = haul.listen(("127.0.0.1", 0))
    closing = threading.Timer(0.1, server.close)
    closing.start()
    with pytest.raises(haul.Closed):
        server.accept()
    with pytest.raises(haul.UsageError, match="does not accept"):
        haul.Endpoint(("127.0.0.1", 0)).accept()


def test_ctrl_c_ends_a_wait() -> None:
    program = """
        import haul, signal, sys
        # What a shell runs behind has it ignored, and Python leaves that so.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        server = haul.listen(("127.0.0.1", 0))
        try:
            print("waits", flush=True)
            server.accept()
        except KeyboardInterrupt:
            sys.exit(7)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "waits\n"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 7 and time.monotonic() - began < 10


def test_threads_share_a_connection(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair

    def serve() -> None:
        for _ in range(40):
            stream = far.accept_stream()
            threading.Thread(target=lambda stream=stream: (stream.write(stream.read()), stream.close())).start()

    threading.Thread(target=serve, daemon=True).start()
    wrong = []

    def ask(number: int) -> None:
        for turn in range(10):
            stream, words = near.open_stream(), b"%d %d" % (number, turn) * 1000
            stream.write(words)
            stream.finish()
            if stream.read() != words:
                wrong.append((number, turn))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong


def test_many_blocks_leak_nothing(pair: tuple[haul.Connection, haul.Connection]) -> None:
    near, far = pair
    content = os.urandom(100_000)
    references = sys.getrefcount(content)

    def send() -> None:
        with near.open_blocks() as sender:
            for _ in range(300):
                sender.send(content)

    sending = threading.Thread(target=send)
    sending.start()
    total = sum(len(block) for block in far.accept_blocks(timeout=10))
    sending.join()
    assert total == 300 * len(content)
    near.stats()
    near.open_stream(one_way=True).write(b"what was acknowledged is given back at the next call")
    assert sys.getrefcount(content) - references <= 1
