"""The same for asyncio."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import haul
import haul.aio


def paired(test: Callable[[haul.aio.Connection, haul.aio.Connection], Awaitable[None]]) -> None:
    async def run() -> None:
        identity = haul.Identity()
        async with await haul.aio.listen(("127.0.0.1", 0), identity=identity) as server:
            near, far = await asyncio.gather(haul.aio.connect(server.address, trust=identity.fingerprint), server.accept())
            async with near:
                await asyncio.wait_for(test(near, far), 60)

    asyncio.run(run())


def test_streams() -> None:
    async def test(near: haul.aio.Connection, far: haul.aio.Connection) -> None:
        async def answer() -> None:
            async with await far.accept_stream() as stream:
                await stream.write((await stream.readall()).upper())

        answering = asyncio.ensure_future(answer())
        async with await near.open_stream() as stream:
            await stream.write(b"hello")
            stream.finish()
            await stream.wait_acknowledged()
            assert await stream.readexactly(2) == b"HE" and await stream.readall() == b"LLO"
            with pytest.raises(asyncio.IncompleteReadError):
                await stream.readexactly(1)
        await answering

    paired(test)


def test_the_echo_of_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    guide = Path(__file__).parents[2] / "docs" / "reference" / "python.md"
    (echo,) = [block for block in re.findall(r"```python\n(.*?)```", guide.read_text(), re.S) if "haul.aio.listen" in block]
    exec(echo, {})
    assert capsys.readouterr().out == "b'hello'\n"


def test_a_buffer_can_be_resized_as_soon_as_its_call_was_awaited() -> None:
    async def test(near: haul.aio.Connection, far: haul.aio.Connection) -> None:
        stream, content = await near.open_stream(), bytearray(b"some words")
        await stream.write(content)
        content.clear()
        there, into = await far.accept_stream(), bytearray(100)
        del into[await there.readinto(into) :]
        assert into == b"some words"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(there.readinto(into), 0.02)
        into.clear()
        near.close()
        for call in (stream.write, there.readinto):
            content[:] = b"more"
            with pytest.raises(haul.HaulError):
                await call(content)
            content.clear()

    paired(test)


def test_blocks() -> None:
    async def test(near: haul.aio.Connection, far: haul.aio.Connection) -> None:
        contents = [os.urandom(200_000) for _ in range(50)]

        async def send() -> None:
            async with await near.open_blocks() as sender:
                for content in contents:
                    await sender.send(content)

        sending = asyncio.ensure_future(send())
        arrived = {block.index: bytes(block) async for block in await far.accept_blocks()}
        await sending
        assert arrived == dict(enumerate(contents))

    paired(test)


def test_a_read_that_is_cancelled_has_read_nothing() -> None:
    async def test(near: haul.aio.Connection, far: haul.aio.Connection) -> None:
        stream = await near.open_stream()
        await stream.write(b"x")
        there = await far.accept_stream()
        assert await there.read() == b"x"
        for _ in range(3):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(there.read(), 0.02)
        await stream.write(b"y")
        assert await there.read() == b"y"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(near.accept_stream(), 0.02)
        other = await far.open_stream()
        await other.write(b"z")
        assert await (await near.accept_stream()).read() == b"z"

    paired(test)


def test_many_streams_at_once() -> None:
    async def test(near: haul.aio.Connection, far: haul.aio.Connection) -> None:
        async def echo(stream: haul.aio.Stream) -> None:
            async with stream:
                await stream.write(await stream.readall())

        async def serve() -> None:
            tasks = [asyncio.ensure_future(echo(await far.accept_stream())) for _ in range(200)]
            await asyncio.gather(*tasks)

        async def ask(number: int) -> None:
            stream, words = await near.open_stream(), b"%d." % number * 500
            await stream.write(words)
            stream.finish()
            assert await stream.readall() == words

        await asyncio.gather(serve(), *(ask(number) for number in range(200)))

    paired(test)


def test_many_connections_at_once() -> None:
    async def run() -> None:
        identity = haul.Identity()
        async with await haul.aio.listen(("127.0.0.1", 0), identity=identity) as server:
            endpoint = haul.aio.Endpoint(haul.Endpoint(("127.0.0.1", 0)))

            async def echo(connection: haul.aio.Connection) -> None:
                stream = await connection.accept_stream()
                await stream.write(await stream.readall())
                stream.finish()
                await connection.wait_closed()

            async def ask(number: int) -> None:
                connection = await endpoint.connect(server.address, trust=identity.fingerprint, timeout=30)
                stream = await connection.open_stream()
                await stream.write(b"%d" % number)
                stream.finish()
                assert await stream.readall() == b"%d" % number
                connection.close()

            async def serve() -> None:
                await asyncio.gather(*[asyncio.ensure_future(echo(await server.accept())) for _ in range(50)])

            await asyncio.wait_for(asyncio.gather(serve(), *(ask(number) for number in range(50))), 60)

    asyncio.run(run())


def test_errors_are_raised_where_they_are_awaited() -> None:
    async def test(near: haul.aio.Connection, far: haul.aio.Connection) -> None:
        waiting = asyncio.ensure_future(near.accept_blocks())
        await asyncio.sleep(0)
        far.close(3, "enough")
        with pytest.raises(haul.ClosedByPeer, match="enough"):
            await waiting
        assert near.is_closed and "enough" in await near.wait_closed()

    paired(test)


def test_two_loops_one_after_the_other() -> None:
    for _ in range(2):
        test_streams()
