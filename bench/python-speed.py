#!/usr/bin/env python3
"""haul for Python beside Rust and beside aioquic, over loopback: blocks of 1 MiB from memory to memory, and the echo of many connections.

    bench/python-speed.py [--rounds 5] [--seconds 2] [--connections 1000] [--messages 20] [--rust PROGRAM] [--out DIR]

Blocks: Python and Rust take turns, each with both ends in one process; Rust is the example `speed` of haul-ffi, built with `cargo build --release -p haul-ffi --example speed`
(it is left out with --rust ""). The goal is 85 % of Rust's rate. Echo: a server in a process of its own; all connections are made, then each sends a message, waits until it is
back, and sends the next, all at once. haul is imported from where it is installed: a release wheel (`maturin build --release`), or what is measured is the debug build.
aioquic is left out where it is not installed.
"""

import argparse
import asyncio
import datetime
import json
import multiprocessing
import os
import resource
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parent.parent
PIECE = 1 << 20
MESSAGE = bytes(range(256)) * 4
AT_ONCE = 100
PATIENCE_S = 300


# ---------------------------------------------------------------- blocks

def blocks(seconds):
    """Bits a second of one turn."""
    import haul

    identity, data = haul.Identity(), b"\7" * PIECE
    with haul.listen(("127.0.0.1", 0), identity=identity) as server:
        near = haul.connect(server.address, trust=identity.fingerprint)
        far = server.accept(timeout=10)
        begun = time.monotonic()

        def send():
            with near.open_blocks() as sender:
                while time.monotonic() - begun < seconds:
                    sender.send(data)

        sending = threading.Thread(target=send)
        sending.start()
        total = 0
        for block in far.accept_blocks(timeout=10):
            total += len(block.data)
            block.release()
        took = time.monotonic() - begun
        sending.join()
        near.close()
    return total * 8 / took


def own_turn(seconds):
    done = subprocess.run([sys.executable, __file__, "--turn", str(seconds)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def turn_of_rust(program, seconds):
    done = subprocess.run([program, "turn", "blocks", str(seconds)], check=True, capture_output=True, text=True)
    moved, nanoseconds = done.stdout.split()
    return int(moved) * 8e9 / int(nanoseconds)


def measure_blocks(options, made):
    rates = {"Python": [], "Rust": []}
    for _ in range(options.rounds):
        if options.rust:
            rates["Rust"].append(turn_of_rust(options.rust, options.seconds))
        rates["Python"].append(own_turn(options.seconds))
    rows = [[who, "{:.2f}".format(statistics.median(turns) / 1e9), " ".join("{:.2f}".format(turn / 1e9) for turn in turns)] for who, turns in rates.items() if turns]
    made.table("Blocks of 1 MiB, memory to memory over loopback, both ends in one process, in turns", ["from", "median, Gbit/s", "turns, Gbit/s"], rows)
    if rates["Rust"]:
        part = statistics.median(rates["Python"]) / statistics.median(rates["Rust"])
        made.verdict("Python", "blocks of 1 MiB at least at 85 % of Rust's rate", "{:.1f} %".format(part * 100), part >= 0.85)


# ---------------------------------------------------------------- echo, by haul

async def serve_haul(told):
    import haul
    import haul.aio

    identity = haul.Identity()
    server = await haul.aio.listen(("127.0.0.1", 0), identity=identity)

    async def one(connection):
        try:
            stream = await connection.accept_stream()
            while True:
                await stream.write(await stream.readexactly(len(MESSAGE)))
        except (haul.HaulError, asyncio.IncompleteReadError):
            pass

    told.send((server.address[1], identity.fingerprint))
    running = set()
    while True:
        task = asyncio.ensure_future(one(await server.accept()))
        running.add(task)
        task.add_done_callback(running.discard)


async def client_haul(where, options):
    import haul
    import haul.aio

    port, key = where
    endpoint = haul.aio.Endpoint(haul.Endpoint(("127.0.0.1", 0)))

    async def opened():
        connection = await endpoint.connect(("127.0.0.1", port), trust=key, timeout=60.0)
        return connection, await connection.open_stream()

    async def speak(stream):
        await stream[1].write(MESSAGE)
        return await stream[1].readexactly(len(MESSAGE))

    return await echo(opened, speak, options)


# ---------------------------------------------------------------- echo, by aioquic

def certificate(place):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1)).sign(key, hashes.SHA256())
    (place / "cert").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (place / "key").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


async def serve_aioquic(told):
    import aioquic.asyncio
    from aioquic.quic.configuration import QuicConfiguration

    with tempfile.TemporaryDirectory() as name:
        certificate(Path(name))
        configuration = QuicConfiguration(is_client=False, alpn_protocols=["echo"], idle_timeout=PATIENCE_S)
        configuration.load_cert_chain(Path(name) / "cert", Path(name) / "key")

    async def one(reader, writer):
        try:
            while True:
                writer.write(await reader.readexactly(len(MESSAGE)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    running = set()

    def stream(reader, writer):
        task = asyncio.ensure_future(one(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await aioquic.asyncio.serve("127.0.0.1", 0, configuration=configuration, stream_handler=stream)
    told.send(server._transport.get_extra_info("sockname")[1])
    await asyncio.Event().wait()


async def client_aioquic(port, options):
    import contextlib

    import aioquic.asyncio
    from aioquic.quic.configuration import QuicConfiguration

    configuration = QuicConfiguration(alpn_protocols=["echo"], verify_mode=ssl.CERT_NONE, idle_timeout=PATIENCE_S)
    async with contextlib.AsyncExitStack() as open_ones:

        async def opened():
            protocol = await open_ones.enter_async_context(aioquic.asyncio.connect("127.0.0.1", port, configuration=configuration))
            return await protocol.create_stream()

        async def speak(stream):
            reader, writer = stream
            writer.write(MESSAGE)
            return await reader.readexactly(len(MESSAGE))

        found = await echo(opened, speak, options)
        # Each would wait for its own farewell.
        open_ones.pop_all()
        return found


# ---------------------------------------------------------------- echo

async def echo(opened, speak, options):
    begun, streams = time.monotonic(), []
    for first in range(0, options.connections, AT_ONCE):
        streams += await asyncio.gather(*(opened() for _ in range(min(AT_ONCE, options.connections - first))))
    connected = time.monotonic() - begun
    waits = []

    async def all_of(stream):
        for _ in range(options.messages):
            sent = time.monotonic()
            if await speak(stream) != MESSAGE:
                raise ValueError("other bytes came back")
            waits.append(time.monotonic() - sent)

    begun = time.monotonic()
    await asyncio.wait_for(asyncio.gather(*(all_of(stream) for stream in streams)), PATIENCE_S)
    took = time.monotonic() - begun
    waits.sort()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "connect_s": connected,
        "messages_per_s": len(waits) / took,
        "median_ms": waits[len(waits) // 2] * 1e3,
        "p99_ms": waits[len(waits) * 99 // 100] * 1e3,
        "processor_s": usage.ru_utime + usage.ru_stime,
        "memory_mib": usage.ru_maxrss / 1024,
    }


def let_files_be_open():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def serve(name, told):
    let_files_be_open()
    asyncio.run({"haul": serve_haul, "aioquic": serve_aioquic}[name](told))


def client(name, where, options, told):
    let_files_be_open()
    told.send(asyncio.run({"haul": client_haul, "aioquic": client_aioquic}[name](where, options)))
    # The threads and transports of a thousand connections need no farewell.
    told.close()
    os._exit(0)


def measure_echo(options, made):
    rows = []
    fresh = multiprocessing.get_context("spawn")
    for name in ["haul", "aioquic"]:
        try:
            __import__(name)
        except ImportError:
            made.note(f"{name} is not installed here")
            continue
        for turn in range(options.rounds_of_echo):
            heard, told = fresh.Pipe(False)
            server = fresh.Process(target=serve, args=(name, told), daemon=True)
            server.start()
            where = heard.recv()
            answer, answering = fresh.Pipe(False)
            one = fresh.Process(target=client, args=(name, where, options, answering), daemon=True)
            one.start()
            answering.close()
            found = answer.recv()
            one.join()
            server.kill()
            server.join()
            print(json.dumps({"echo": name, "turn": turn, **found}), flush=True)
            rows.append([name, "{connect_s:.2f}".format(**found), "{messages_per_s:.0f}".format(**found), "{median_ms:.1f}".format(**found), "{p99_ms:.1f}".format(**found), "{processor_s:.1f}".format(**found), "{memory_mib:.0f}".format(**found)])
    columns = ["by", "connecting, s", "messages/s", "median, ms", "99th of 100, ms", "processor of the client, s", "memory of the client, MiB"]
    made.table(f"asyncio: {options.connections} connections at once over loopback, {options.messages} messages of {len(MESSAGE)} bytes there and back on each", columns, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rounds-of-echo", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--rust", default=str(ROOT / "target/release/examples/speed"))
    parser.add_argument("--out")
    parser.add_argument("--turn", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turn is not None:
        print(blocks(options.turn))
        return
    made = report.Report("python", "haul for Python, beside Rust and aioquic")
    measure_blocks(options, made)
    measure_echo(options, made)
    made.write(options.out)


if __name__ == "__main__":
    main()
