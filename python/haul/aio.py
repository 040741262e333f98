"""haul for asyncio: the classes of :mod:`haul.net` whose calls are awaited, and ``copy``.

::

    async with await haul.aio.connect(("host", 4433), trust=key) as connection:
        stream = await connection.open_stream()
        await stream.write(b"hello")

A call that is cancelled is given up where it stands: nothing was read, no block taken; of a ``write`` a part may have gone. There is no thread behind this: what wakes a call writes to a descriptor that the loop watches.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional

from . import _haul, net
from ._copy import Copied, Job, Meter, Progress, INTERVAL
from ._haul import Identity
from .net import Address, Block, Trust

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["BlockReceiver", "BlockSender", "Connection", "Endpoint", "Stream", "connect", "copy", "listen"]


class _Waker:
    """What of one event loop waits for haul."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.reactor = _haul.Reactor()
        self.numbers = itertools.count()
        self.waiting: dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self.reactor.fileno(), self.wake)

    def wake(self) -> None:
        for number in self.reactor.woken():
            waiting = self.waiting.pop(number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(None)


_wakers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Waker] = weakref.WeakKeyDictionary()


async def _wait(pending: _haul.Pending) -> Any:
    """The value of an operation."""
    loop = asyncio.get_running_loop()
    waker = _wakers.get(loop)
    if waker is None:
        waker = _wakers[loop] = _Waker(loop)
    number = next(waker.numbers)
    try:
        while True:
            # Before it is polled: it may be woken at once.
            waiting = waker.waiting[number] = loop.create_future()
            if pending.poll(waker.reactor, number):
                return pending.result()
            await waiting
    except asyncio.CancelledError:
        pending.cancel()
        raise
    finally:
        waker.waiting.pop(number, None)


class BlockSender:
    """As :class:`haul.BlockSender`."""

    def __init__(self, native: _haul.BlockSender) -> None:
        self._native = native

    async def send(self, data: Buffer) -> int:
        """Sends a block of 1 byte to 2 MiB and returns its index; waits while as much is on its way as the connection can use."""
        return int(await _wait(self._native.send_pending(data)))

    async def finish(self) -> None:
        """Ends the stream, and waits until the peer's transport has all blocks."""
        await _wait(self._native.finish_pending())

    def reset(self, code: int = 0) -> None:
        """Gives up: the peer's receiver gets a :class:`haul.StreamReset`."""
        self._native.reset(code)

    async def __aenter__(self) -> BlockSender:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if kind is None:
            await self.finish()
        else:
            self.reset()


class BlockReceiver:
    """As :class:`haul.BlockReceiver`; iterate by ``async for``."""

    def __init__(self, native: _haul.BlockReceiver) -> None:
        self._native = native

    async def recv(self) -> Optional[Block]:
        """A block, whichever is complete next; ``None`` at the end."""
        came = await _wait(self._native.recv_pending())
        return None if came is None else Block(*came)

    async def __aiter__(self) -> AsyncIterator[Block]:
        while (block := await self.recv()) is not None:
            yield block


class Stream:
    """As :class:`haul.Stream`, with the calls of asyncio's own streams: no ``recv`` and no ``sendall``, and ``read`` gives what there is. ``finish`` and ``reset`` are not awaited."""

    def __init__(self, send: Optional[_haul.SendStream], receive: Optional[_haul.RecvStream]) -> None:
        self._send = send
        self._receive = receive
        self._finished = send is None

    async def read(self, size: int = 65536) -> bytes:
        """Reads what there is, up to so many bytes (1 MiB at most); ``b""`` is the end."""
        return bytes(await _wait(self._reading.read_pending(size)))

    async def readinto(self, buffer: Buffer) -> int:
        """Reads what there is into a buffer and returns how much; 0 is the end."""
        return int(await _wait(self._reading.readinto_pending(buffer)))

    async def readexactly(self, size: int) -> bytes:
        """Reads so many bytes; ``asyncio.IncompleteReadError`` if the end comes before."""
        room = bytearray(size)
        view, got = memoryview(room), 0
        while got < size:
            more = await self.readinto(view[got:])
            if more == 0:
                raise asyncio.IncompleteReadError(bytes(view[:got]), size)
            got += more
        return bytes(room)

    async def readall(self) -> bytes:
        """Reads to the end."""
        parts = []
        while part := await self.read(1 << 20):
            parts.append(part)
        return b"".join(parts)

    async def write(self, data: Buffer) -> int:
        """Writes all of it; waits while the path can take no more."""
        return int(await _wait(self._writing.write_pending(data)))

    def finish(self) -> None:
        """No more will be written: the peer reads the end after what was."""
        if self._send is not None and not self._finished:
            self._finished = True
            self._send.finish()

    async def wait_acknowledged(self) -> None:
        """Waits until the peer's transport has all that was written; call ``finish`` first."""
        await _wait(self._writing.wait_acknowledged_pending())

    def reset(self, code: int = 0) -> None:
        """Gives up both ways: the peer gets a :class:`haul.StreamReset`."""
        self._finished = True
        if self._send is not None:
            self._send.reset(code)
        if self._receive is not None:
            self._receive.stop(code)

    @property
    def _reading(self) -> _haul.RecvStream:
        if self._receive is None:
            raise TypeError("this stream is written to only")
        return self._receive

    @property
    def _writing(self) -> _haul.SendStream:
        if self._send is None:
            raise TypeError("this stream is read from only")
        return self._send

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if kind is None:
            self.finish()
        else:
            self.reset()


class Connection:
    """As :class:`haul.Connection`."""

    def __init__(self, native: _haul.Connection, endpoint: Optional[Endpoint] = None) -> None:
        self._native = native
        self._endpoint = endpoint
        self._same = net.Connection(native)

    async def open_stream(self, *, one_way: bool = False) -> Stream:
        """Opens a stream; the peer hears of it with the first byte."""
        if one_way:
            return Stream(await _wait(self._native.open_uni_pending()), None)
        return Stream(*await _wait(self._native.open_bi_pending()))

    async def accept_stream(self, *, one_way: bool = False) -> Stream:
        """Waits for a stream that the peer opens."""
        if one_way:
            return Stream(None, await _wait(self._native.accept_uni_pending()))
        return Stream(*await _wait(self._native.accept_bi_pending()))

    async def open_blocks(self) -> BlockSender:
        """Opens a stream of blocks."""
        return BlockSender(await _wait(self._native.open_blocks_pending()))

    async def accept_blocks(self) -> BlockReceiver:
        """Waits for a stream of blocks that the peer opens."""
        return BlockReceiver(await _wait(self._native.accept_blocks_pending()))

    async def wait_closed(self) -> str:
        """Waits until it is over and says why."""
        return str(await _wait(self._native.closed_pending()))

    @property
    def peer_address(self) -> Address:
        """Where the peer is at present."""
        return self._same.peer_address

    @property
    def peer_key(self) -> Optional[str]:
        """The fingerprint of the peer's key; ``None`` for an anonymous client."""
        return self._same.peer_key

    @property
    def is_closed(self) -> bool:
        """Whether it is over."""
        return self._same.is_closed

    def stats(self) -> dict[str, Any]:
        """As :meth:`haul.Connection.stats`."""
        return self._same.stats()

    def close(self, code: int = 0, reason: str = "") -> None:
        """Closes it at once, with a code and a reason for the peer."""
        self._same.close(code, reason)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()


class Endpoint:
    """As :class:`haul.Endpoint`."""

    def __init__(self, same: net.Endpoint) -> None:
        self._same = same

    @property
    def address(self) -> Address:
        """The address bound to."""
        return self._same.address

    async def accept(self) -> Connection:
        """Waits for a client."""
        return Connection(await _wait(self._same._native.accept_pending()), self)

    async def connect(
        self,
        address: Address,
        *,
        trust: Trust,
        identity: Optional[Identity] = None,
        protocols: Iterable[bytes] = (),
        timeout: float = 5.0,
        **settings: Any,
    ) -> Connection:
        """Connects; see :meth:`haul.Endpoint.connect`."""
        loop = asyncio.get_running_loop()
        numeric = await loop.run_in_executor(None, net.resolve, address)
        names = [bytes(name) for name in protocols]
        return Connection(await _wait(self._same._native.connect_pending(numeric, timeout, trust, identity, names, settings)), self)

    def close(self) -> None:
        """Closes all its connections and accepts no more."""
        self._same.close()

    async def __aenter__(self) -> Endpoint:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


async def listen(address: Address = ("", 0), *, identity: Optional[Identity] = None, trust: Trust = None, protocols: Iterable[bytes] = (), **settings: Any) -> Endpoint:
    """An endpoint that accepts connections; see :func:`haul.listen`."""
    return Endpoint(net.listen(address, identity=identity, trust=trust, protocols=protocols, **settings))


async def connect(address: Address, *, trust: Trust, identity: Optional[Identity] = None, protocols: Iterable[bytes] = (), timeout: float = 5.0, **settings: Any) -> Connection:
    """A connection from an endpoint of its own; see :func:`haul.connect`."""
    loop = asyncio.get_running_loop()
    numeric = await loop.run_in_executor(None, net.resolve, address)
    endpoint = Endpoint(net.Endpoint(("::" if ":" in numeric[0] else "", 0)))
    return await endpoint.connect(numeric, trust=trust, identity=identity, protocols=protocols, timeout=timeout, **settings)


async def copy(src: Any, dst: Any, *, progress: Optional[Callable[[Progress], object]] = None, **kwargs: Any) -> Copied:
    """As :func:`haul.copy`; cancelling it leaves what has arrived where the same call finds it."""
    from ._copy import copy as same

    defaults = dict(same.__kwdefaults__ or {})
    unknown = set(kwargs) - set(defaults)
    if unknown:
        raise TypeError(f"copy() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    job, meter = Job({**defaults, **kwargs, "src": src, "dst": dst}), Meter()
    try:
        while not job.native.wait(0.0):
            await asyncio.sleep(INTERVAL / 2)
            if progress is not None:
                progress(meter.look(job.native))
    except BaseException:
        await asyncio.get_running_loop().run_in_executor(None, job.give_up)
        raise
    return job.result()
