"""haul's sockets: endpoints, connections, streams of bytes and of blocks. Calls wait; :mod:`haul.aio` has the same for asyncio.

Where a call takes ``timeout``, it is in seconds, ``None`` waits as long as it takes, and the end of it is a ``TimeoutError``. Objects may be used by several threads,
and not by a process that was forked.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _haul, _logging
from ._haul import MAX_BLOCK, Identity
from .errors import UsageError

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["MAX_BLOCK", "Block", "BlockReceiver", "BlockSender", "Connection", "Endpoint", "Identity", "Stream", "connect", "listen"]

#: A host, by name or address, and a UDP port.
Address = tuple[str, int]
#: One fingerprint (``SHA256:..``), several, or ``None`` for anyone.
Trust = Union[str, Sequence[str], None]


class Block:
    """A block that has arrived: ``data`` is a memoryview of where haul has put it together, without a copy.

    Its memory goes back to the connection, and the peer may send as much again, when the block is released: by ``release()``, at the end of a ``with``, or when it and all views of it are gone.
    """

    __slots__ = ("data", "index")

    def __init__(self, index: int, memory: Any) -> None:
        #: Which one it is, in the order of sending.
        self.index = index
        #: Its bytes, to be read.
        self.data = memoryview(memory)

    def __len__(self) -> int:
        return self.data.nbytes

    def __bytes__(self) -> bytes:
        return bytes(self.data)

    def release(self) -> None:
        """Gives the memory back now."""
        self.data.release()

    def __enter__(self) -> Block:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<haul.Block {self.index}>"


class BlockSender:
    """Sends blocks of 1 byte to ``MAX_BLOCK`` (2 MiB), each of which the peer can use as soon as it is there. Leaving a ``with`` finishes, by an exception it resets."""

    def __init__(self, native: _haul.BlockSender) -> None:
        self._native = native

    def send(self, data: Buffer, timeout: Optional[float] = None) -> int:
        """Sends a block and returns its index, counted from 0. Waits while as much is on its way as the connection can use.

        ``bytes``, blocks that have arrived and memoryviews of both are sent from where they lie; of all else, which somebody may change, a copy is made first.
        """
        return self._native.send(data, timeout)

    def finish(self, timeout: Optional[float] = None) -> None:
        """Ends the stream, and waits until the peer's transport has all blocks."""
        self._native.finish(timeout)

    def reset(self, code: int = 0) -> None:
        """Gives up: the peer's receiver gets a :class:`StreamReset`."""
        self._native.reset(code)

    def set_priority(self, priority: int) -> None:
        """Who goes first among streams with something to send: 0 to 255, the higher first; 128 from the start."""
        self._native.set_priority(priority)

    def __enter__(self) -> BlockSender:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if kind is None:
            self.finish()
        else:
            self.reset()


class BlockReceiver:
    """Takes blocks, whichever is complete next; iterate over it."""

    def __init__(self, native: _haul.BlockReceiver) -> None:
        self._native = native

    def recv(self, timeout: Optional[float] = None) -> Optional[Block]:
        """A block; ``None`` when the sender has finished and all were taken."""
        came = self._native.recv(timeout)
        return None if came is None else Block(*came)

    @property
    def received(self) -> int:
        """Bytes that have arrived, those of incomplete blocks included."""
        return self._native.received

    def __iter__(self) -> Iterator[Block]:
        while (block := self.recv()) is not None:
            yield block


class Stream(io.RawIOBase):
    """A stream of ordered bytes, as a file and as a socket: ``readinto``, ``read``, ``write``; ``recv``, ``sendall``, ``shutdown``.

    One that is open both ways has both, a one-way stream one of them. ``close`` ends what is written, so the peer reads its end, and reads no more; ``with`` does so, and where an exception leaves it, resets.
    For lines wrap it: ``io.TextIOWrapper(io.BufferedReader(stream))``.
    """

    def __init__(self, send: Optional[_haul.SendStream], receive: Optional[_haul.RecvStream]) -> None:
        super().__init__()
        self._send = send
        self._receive = receive
        self._finished = send is None
        #: Set by ``io`` when it closes what nobody has closed.
        self._finalizing = False
        #: Seconds that reading and writing wait; none: as long as it takes.
        self.timeout: Optional[float] = None

    @property
    def id(self) -> int:
        """The stream's number: the same on both sides."""
        half = self._send or self._receive
        assert half is not None
        return half.id

    def readable(self) -> bool:
        return self._receive is not None

    def writable(self) -> bool:
        return self._send is not None

    def readinto(self, buffer: Buffer) -> int:
        """Reads what there is, at least one byte, and returns how much; 0 is the end."""
        self._check_open()
        if self._receive is None:
            raise io.UnsupportedOperation("this stream is written to only")
        return self._receive.readinto(buffer, self.timeout)

    def write(self, data: Buffer) -> int:
        """Writes all of it; returns how much that was."""
        self._check_open()
        if self._send is None:
            raise io.UnsupportedOperation("this stream is read from only")
        return self._send.write(data, self.timeout)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed stream")

    def recv(self, size: int) -> bytes:
        """Reads up to so many bytes; ``b""`` is the end."""
        room = bytearray(size)
        got = self.readinto(room)
        return bytes(memoryview(room)[:got])

    def recv_exactly(self, size: int) -> bytes:
        """Reads so many bytes; an ``EOFError`` if the end comes before."""
        room = bytearray(size)
        view, got = memoryview(room), 0
        while got < size:
            more = self.readinto(view[got:])
            if more == 0:
                raise EOFError(f"the stream ended after {got} of {size} bytes")
            got += more
        return bytes(room)

    def sendall(self, data: Buffer) -> None:
        """Writes all of it."""
        self.write(data)

    def finish(self) -> None:
        """No more will be written: the peer reads the end after what was."""
        if self._send is not None and not self._finished:
            self._finished = True
            self._send.finish()

    def shutdown(self, how: int = socket.SHUT_WR) -> None:
        """As a socket's: ``SHUT_WR`` finishes, ``SHUT_RD`` reads no more, ``SHUT_RDWR`` does both."""
        if how in (socket.SHUT_WR, socket.SHUT_RDWR):
            self.finish()
        if how in (socket.SHUT_RD, socket.SHUT_RDWR) and self._receive is not None:
            self._receive.stop()

    def wait_acknowledged(self, timeout: Optional[float] = None) -> None:
        """Waits until the peer's transport has all that was written; call ``finish`` first."""
        if self._send is not None:
            self._send.wait_acknowledged(timeout)

    def reset(self, code: int = 0) -> None:
        """Gives up both ways: the peer gets a :class:`StreamReset`."""
        self._finished = True
        if self._send is not None:
            self._send.reset(code)
        if self._receive is not None:
            self._receive.stop(code)

    def set_priority(self, priority: int) -> None:
        """Who goes first among streams with something to send: 0 to 255, the higher first; 128 from the start."""
        if self._send is not None:
            self._send.set_priority(priority)

    def close(self) -> None:
        """Finishes writing, and reads no more."""
        if not self.closed:
            try:
                self.finish()
            except Exception:
                # Nobody hears it where a stream is collected, or the interpreter ends.
                if not self._finalizing:
                    raise
            finally:
                super().close()

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if kind is not None:
            self.reset()
        self.close()


class Connection:
    """An encrypted connection. Leaving a ``with`` closes it.

    Closing ends it at once, in both directions: who sent last waits first (``finish`` of a block sender, ``Stream.wait_acknowledged``).
    """

    def __init__(self, native: _haul.Connection, endpoint: Optional[Endpoint] = None) -> None:
        self._native = native
        self._endpoint = endpoint

    def open_stream(self, *, one_way: bool = False, timeout: Optional[float] = None) -> Stream:
        """Opens a stream; the peer hears of it with the first byte."""
        if one_way:
            return Stream(self._native.open_uni(timeout), None)
        return Stream(*self._native.open_bi(timeout))

    def accept_stream(self, *, one_way: bool = False, timeout: Optional[float] = None) -> Stream:
        """Waits for a stream that the peer opens."""
        if one_way:
            return Stream(None, self._native.accept_uni(timeout))
        return Stream(*self._native.accept_bi(timeout))

    def open_blocks(self, timeout: Optional[float] = None) -> BlockSender:
        """Opens a stream of blocks: the way for bulk data."""
        return BlockSender(self._native.open_blocks(timeout))

    def accept_blocks(self, timeout: Optional[float] = None) -> BlockReceiver:
        """Waits for a stream of blocks that the peer opens."""
        return BlockReceiver(self._native.accept_blocks(timeout))

    @property
    def peer_address(self) -> Address:
        """Where the peer is at present."""
        return self._native.peer_address

    @property
    def peer_key(self) -> Optional[str]:
        """The fingerprint of the peer's key; ``None`` for an anonymous client."""
        return self._native.peer_key

    @property
    def protocol(self) -> Optional[bytes]:
        """The application protocol agreed on, if one was."""
        return self._native.protocol

    @property
    def is_closed(self) -> bool:
        """Whether it is over."""
        return self._native.is_closed

    def stats(self) -> dict[str, Any]:
        """What was measured and counted: ``rtt``, ``min_rtt``, ``queue_delay``, ``silence`` in seconds, ``delivery_rate`` and ``pacing_rate`` in bit/s, ``window``, ``in_flight``, ``sent``,
        ``received``, .. in bytes, ``sent_packets``, ``lost_packets``, .., ``loss`` as a part of 1."""
        return self._native.stats()

    def set_limit(self, limit: Union[int, str, None]) -> None:
        """Limits the rate at which this side sends, in bit/s; ``None`` lifts the limit."""
        self._native.set_limit(limit)

    def wait_closed(self, timeout: Optional[float] = None) -> str:
        """Waits until it is over and says why."""
        return self._native.closed(timeout)

    def close(self, code: int = 0, reason: str = "") -> None:
        """Closes it at once, with a code and a reason for the peer."""
        self._native.close(code, reason)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        host, port = self.peer_address
        return f"<haul.Connection to {host} port {port}>"


class Endpoint:
    """A UDP socket that connections are made on; with an ``identity`` it accepts them too. Leaving a ``with`` closes it with all its connections."""

    def __init__(
        self,
        address: Address = ("", 0),
        *,
        identity: Optional[Identity] = None,
        trust: Trust = None,
        protocols: Iterable[bytes] = (),
        **settings: Any,
    ) -> None:
        _logging.start()
        host, port = parted(address)
        numeric = ("0.0.0.0" if host == "" else resolve(address)[0], port)
        self._native = _haul.Endpoint(numeric, identity, trust, [bytes(name) for name in protocols], settings)

    @property
    def address(self) -> Address:
        """The address bound to."""
        return self._native.address

    def connect(
        self,
        address: Address,
        *,
        trust: Trust,
        identity: Optional[Identity] = None,
        protocols: Iterable[bytes] = (),
        timeout: float = 5.0,
        **settings: Any,
    ) -> Connection:
        """Connects. ``trust`` is the fingerprint of the server's key, or several; ``None`` believes anyone, and somebody in the middle can then read everything."""
        arguments = (resolve(address), timeout, trust, identity, [bytes(name) for name in protocols], settings)
        return Connection(self._native.connect(*arguments), self)

    def accept(self, timeout: Optional[float] = None) -> Connection:
        """Waits for a client."""
        return Connection(self._native.accept(timeout), self)

    def close(self) -> None:
        """Closes all its connections and accepts no more; who waits in ``accept`` gets a :class:`haul.Closed`."""
        self._native.close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<haul.Endpoint at {self.address[0]} port {self.address[1]}>"


def listen(address: Address = ("", 0), *, identity: Optional[Identity] = None, trust: Trust = None, protocols: Iterable[bytes] = (), **settings: Any) -> Endpoint:
    """An endpoint that accepts connections; ``identity`` is its key, a new one if none is given; ``trust`` is whom it lets in, anyone if it does not say.

    ``settings`` are those of its connections: ``mode``, ``limit`` (bit/s), ``memory``, ``stream_window``, ``max_packet`` (bytes), ``paths``, ``idle_timeout`` (seconds).
    """
    return Endpoint(address, identity=identity or Identity(), trust=trust, protocols=protocols, **settings)


def connect(address: Address, *, trust: Trust, identity: Optional[Identity] = None, protocols: Iterable[bytes] = (), timeout: float = 5.0, **settings: Any) -> Connection:
    """A connection from an endpoint of its own; see :meth:`Endpoint.connect` and, for the settings, :func:`listen`."""
    numeric = resolve(address)
    endpoint = Endpoint(("::" if ":" in numeric[0] else "", 0))
    return endpoint.connect(numeric, trust=trust, identity=identity, protocols=protocols, timeout=timeout, **settings)


def parted(address: Address) -> Address:
    """The host and the port of an address; says what is wanted where it is none."""
    if not isinstance(address, (tuple, list)) or len(address) != 2 or not isinstance(address[0], (str, bytes)) or not hasattr(address[1], "__index__"):
        raise UsageError(f"address: a pair of a host and a port is wanted, not {address!r}", hint='for instance ("127.0.0.1", 4433)')
    host, port = address
    if not 0 <= port <= 65535:
        raise UsageError(f"address: {port}: ports are 0 to 65535")
    return host, port


def resolve(address: Address) -> Address:
    """The first numeric address of a host."""
    host, port = parted(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except socket.gaierror as error:
        raise UsageError(f"{host}: {error.strerror}") from error
    return str(found[0][4][0]), port
