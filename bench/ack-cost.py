#!/usr/bin/env python3
"""What each law of `haul tcp` takes of a processor for an acknowledgement, beside the kernel's CUBIC and BBR behind the same kind of program.

    sudo bench/ack-cost.py [--keep DIR] [HAUL] [SECONDS]

An iperf3 flow over an emulated link of 1 Gbit/s, 20 ms and 0.1 % of loss for each law; the kernel counts time and calls of its programs (kernel.bpf_stats_enabled, put back
afterwards; the count itself takes some 20 ns a call). An acknowledgement is a call of `cong_control` or `pkts_acked`: what all programs of a law took, by those.
Needs clang, libbpf and iperf3. HAUL is target/release/haul without a word.
With --keep the rows are left in DIR too, in the form of bench/results (DATE-kernel-ack-cost), of which `cargo xtask docs` makes docs/results.md.
"""
import argparse
import ctypes
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BELOW = "HAUL_ACK_COST"  # Set for the one that runs below `haul tcp run`.
STATS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
OWN = ["haul_fair", "haul_quickstart", "haul_modest", "haul_aggressive", "haul_fast", "haul_highspeed", "haul_scalable", "haul_bic", "haul_westwood", "haul_lia", "haul_olia", "haul_balia"]
YARDSTICKS = {"ycubic": "the kernel's CUBIC", "ybbr": "the kernel's BBR"}
COUNTED = ("mode_control", "window_acked", "coupled_acked", "ycubic_acked", "ybbr_main")
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, argument):
    """The system call; its result, or none."""
    buffer = ctypes.create_string_buffer(argument, max(len(argument), 64))
    result = libc.syscall(321 if os.uname().machine == "x86_64" else 280, command, buffer, len(buffer))
    return (result, buffer.raw) if result >= 0 else None


def programs():
    """Time in ns and calls of each struct_ops program, by name."""
    found, number = {}, 0
    while (answer := bpf(11, struct.pack("II", number, 0))) is not None:  # PROG_GET_NEXT_ID
        number = struct.unpack_from("I", answer[1], 4)[0]
        opened = bpf(13, struct.pack("I", number))  # PROG_GET_FD_BY_ID
        if opened is None:
            continue
        info = ctypes.create_string_buffer(232)
        if bpf(15, struct.pack("IIQ", opened[0], len(info), ctypes.addressof(info))) is not None:  # OBJ_GET_INFO_BY_FD
            kind = struct.unpack_from("I", info, 0)[0]
            name = info[64:80].split(b"\0")[0].decode()
            nanoseconds, calls = struct.unpack_from("QQ", info, 192)
            if kind == 27:  # STRUCT_OPS
                before = found.get(name, (0, 0))
                found[name] = (before[0] + nanoseconds, before[1] + calls)
        os.close(opened[0])
    return found


def load_yardsticks():
    """Registers them until this program ends."""
    object_file = tempfile.NamedTemporaryFile(suffix=".o")
    source = ROOT / "crates/haul-tcp/bpf/yardstick.bpf.c"
    subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-c", source, "-o", object_file.name], check=True)
    library = ctypes.CDLL("libbpf.so.1")
    for function in ("bpf_object__open_file", "bpf_object__find_map_by_name", "bpf_map__attach_struct_ops"):
        getattr(library, function).restype = ctypes.c_void_p
    opened = ctypes.c_void_p(library.bpf_object__open_file(object_file.name.encode(), None))
    if not opened or library.bpf_object__load(opened) != 0:
        sys.exit("error: the yardsticks do not load")
    links = []
    for name in YARDSTICKS:
        link = library.bpf_map__attach_struct_ops(ctypes.c_void_p(library.bpf_object__find_map_by_name(opened, name.encode())))
        if not link:
            sys.exit(f"error: {name} is not registered")
        links.append(ctypes.c_void_p(link))
    return library, links


def flow(haul, seconds, law):
    """One iperf3 flow with this law, and what its programs took: ns and acknowledgements."""
    before = programs()
    script = f"""
        {haul} lab wan exec b -- iperf3 -s -1 >/dev/null &
        until {haul} lab wan exec b -- ss -Hlnt 'sport = :5201' | grep -q .; do sleep 0.1; done
        {haul} lab wan exec a -- iperf3 -c $HAUL_LAB_B_ADDRESS -C {law} -t {seconds} -J
        wait
    """
    wan = [haul, "lab", "wan", "run", "--rate", "1G", "--rtt", "20ms", "--loss", "0.1%", "--tcp", law, "--", "bash", "-c", script]
    subprocess.run(wan, check=True, stdout=subprocess.DEVNULL)
    after = programs()
    taken = {name: (after[name][0] - before.get(name, (0, 0))[0], after[name][1] - before.get(name, (0, 0))[1]) for name in after}
    acknowledgements = sum(calls for name, (_, calls) in taken.items() if name.startswith(COUNTED))
    return sum(nanoseconds for nanoseconds, _ in taken.values()), acknowledgements


def about(haul, seconds):
    """The machine, and what was measured on it."""
    version, commit = (subprocess.run(words, capture_output=True, text=True).stdout.strip() for words in ([haul, "--version"], ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]))
    when, load = time.strftime("%F %H:%M UTC", time.gmtime()), " ".join(f"{part:.2f}" for part in os.getloadavg())
    return f"{version}, {os.uname().release}, {os.cpu_count()} processors, {when}, load {load}; bench/ack-cost.py at {commit}; {seconds} s each"


def measure(haul, seconds, keep):
    """All laws, one after the other."""
    before, machine, rows = STATS.read_text(), about(haul, seconds), ["congestion control,ns for an acknowledgement,acknowledgements"]
    library, links = load_yardsticks()
    STATS.write_text("1")
    try:
        for law in [*YARDSTICKS, *OWN]:
            nanoseconds, acknowledgements = flow(haul, seconds, law)
            name, cost = YARDSTICKS.get(law, law), nanoseconds / max(acknowledgements, 1)
            rows.append(f"{name},{cost:.0f},{acknowledgements}")
            print(f"{name:<22}{cost:8.0f} ns   {acknowledgements:8} acknowledgements", flush=True)
    finally:
        STATS.write_text(before)
        for link in links:
            library.bpf_link__destroy(link)
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / "machine.txt").write_text(machine + "\n")
        (keep / "ack-cost.csv").write_text("\n".join(rows) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).absolute())
    parser.add_argument("haul", nargs="?", default=str(ROOT / "target/release/haul"))
    parser.add_argument("seconds", nargs="?", default="5")
    words = parser.parse_args()
    if BELOW in os.environ:
        measure(words.haul, words.seconds, words.keep)
        return
    # The laws are in the kernel as long as this runs below `haul tcp run`. The first of a cgroup's programs decides for connections that name no law: these all name one by their route.
    os.environ[BELOW] = "1"
    os.execvp(words.haul, [words.haul, "tcp", "run", "--mode", "fair", "--", sys.executable, __file__, *sys.argv[1:]])


main()
