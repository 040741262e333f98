"""What `haul.copy` can be told besides: the options of `haul cp`, against a real daemon and by what stands in for ssh."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import HAUL, Daemon, no_ssh, run

import haul
import haul.perf


def tree(at: Path, *names: str) -> Path:
    for name in names:
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(os.fsencode(f"content of {name}"))
    return at


def names(at: Path) -> list[str]:
    return sorted(str(path.relative_to(at)) for path in at.rglob("*") if not path.is_dir())


def test_what_the_source_has_not_is_removed(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source", "a", "d/b")
    tree(room, "old", "d/old", "a")
    words: dict[str, Any] = {"recursive": True, "delete": True, "state": daemon.state}
    target = daemon.url(f"data/{room.name}")

    would = haul.copy(f"{source}/.", target, dry_run=True, **words)
    assert (would.would_count, would.removed) == (4, 2) and names(room) == ["a", "d/old", "old"], "nothing was done"
    assert would.dry_run and str(would) == "would copy 2 files: 26 bytes; 2 names would be deleted"
    found = sorted((change.what, change.path.rpartition(f"{room.name}/")[2], change.size) for change in would.would)
    assert found == [("copy", "d/b", 14), ("delete", "d/old", None), ("delete", "old", None), ("replace", "a", 12)]

    few = haul.copy(f"{source}/.", target, max_delete=1, **words)
    assert few.removed == 0 and not few.ok and names(room) == ["a", "d/b", "d/old", "old"]
    done = haul.copy(f"{source}/.", target, max_delete=2, **words).check()
    assert done.removed == 2 and not done.dry_run and "; 2 names deleted" in str(done)
    assert names(room) == ["a", "d/b"]


def test_what_differs_is_told_and_skipped_by_content_or_size(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source", "a", "b")
    target, state = daemon.url(f"data/{room.name}"), daemon.state
    haul.copy(f"{source}/.", target, recursive=True, state=state).check()
    same = haul.copy(f"{source}/.", target, recursive=True, compare=True, state=state)
    assert same.would_count == 0 and str(same) == "nothing to copy; 2 files skipped, there already"
    (room / "b").write_text("CONTENT OF B"[: len("content of b")])
    os.utime(room / "a", (1, 1))
    differing = haul.copy(f"{source}/.", target, recursive=True, compare=True, state=state)
    assert [(change.what, Path(change.path).name) for change in differing.would] == [("replace", "b")]
    assert haul.copy(f"{source}/.", target, recursive=True, compare=True, size_only=True, state=state).would_count == 0
    by_size = haul.copy(f"{source}/.", target, recursive=True, size_only=True, state=state)
    assert (by_size.files, by_size.skipped_files) == (0, 2)
    by_content = haul.copy(f"{source}/.", target, recursive=True, checksum=True, state=state)
    assert (by_content.files, by_content.skipped_files) == (1, 1) and (room / "b").read_text() == "content of b"


def test_a_list_says_what_is_copied(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"two\nlines \xff")
    source = tree(tmp_path / "source", "a", "d/b", "d/c", "e/f", name)
    state = daemon.state
    up = haul.copy(source, daemon.url(f"data/{room.name}"), files_from=["d/b", Path("a"), os.fsencode(name)], state=state).check()
    assert up.files == 3 and names(room) == sorted(["a", "d/b", name])
    back = tmp_path / "back"
    back.mkdir()
    down = haul.copy(daemon.url(f"data/{room.name}"), back, files_from=iter(["d"]), recursive=True, state=state).check()
    assert down.files == 1 and names(back) == ["d/b"]
    for wrong in ("d/b", ["../x"], [], b"a"):
        with pytest.raises(haul.UsageError, match="files_from"):
            haul.copy(source, daemon.url(f"data/{room.name}"), files_from=wrong, state=state)
    with pytest.raises(haul.UsageError, match="one source"):
        haul.copy([source, source], daemon.url(f"data/{room.name}"), files_from=["a"], state=state)


def test_files_of_rules_say_what_is_left_out(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source", "a.o", "b", "d/c.o", "keep.o")
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("# The first rule that matches decides.\n+ keep.o\n- *.o\n")
    second.write_text("- keep.o\n- b\n")
    words: dict[str, Any] = {"recursive": True, "state": daemon.state}
    target = daemon.url(f"data/{room.name}")
    haul.copy(f"{source}/.", target, filter_from=[first, second], **words).check()
    assert names(room) == ["keep.o"]
    (room / "more").mkdir()
    haul.copy(f"{source}/.", f"{target}/more", filter_from=str(second), include=["keep.o"], **words).check()
    assert names(room / "more") == ["a.o", "d/c.o", "keep.o"], "what is given otherwise counts more"
    for wrong in (b"x\n", b"- \xff\n"):
        first.write_bytes(wrong)
        with pytest.raises(ValueError, match="filter_from"):
            haul.copy(source, target, filter_from=first, **words)
    with pytest.raises(haul.LocalError, match="filter_from") as missing:
        haul.copy(source, target, filter_from=[tmp_path / "missing"], **words)
    assert missing.value.errno == 2


def test_what_becomes_smaller_is_compressed_on_its_way(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    up, back = tmp_path / "up", tmp_path / "back"
    content = b"".join(b"%08d the quick brown haul jumps over the lazy link\n" % at for at in range(800_000))[: 40 << 20]
    up.write_bytes(content)
    words: dict[str, Any] = {"limit": "100M", "state": daemon.state}
    plain = haul.copy(up, daemon.url(f"data/{room.name}/plain"), **words).check()
    packed = haul.copy(up, daemon.url(f"data/{room.name}/packed"), compress="auto", **words).check()
    down = haul.copy(daemon.url(f"data/{room.name}/packed"), back, compress="auto", **words).check()
    assert (room / "plain").read_bytes() == content and (room / "packed").read_bytes() == content and back.read_bytes() == content
    assert plain.bytes == packed.bytes == down.bytes == len(content), "content is counted, not what became of it"
    most = plain.sent_packets * 2 / 3
    assert packed.sent_packets < most and down.sent_packets < most, (plain.sent_packets, packed.sent_packets, down.sent_packets)
    with pytest.raises(ValueError, match="auto is possible"):
        haul.copy(up, daemon.url(f"data/{room.name}/always"), compress="always", **words)


def left(at: Path, *more: str) -> Path:
    """What a copy leaves in a directory that was killed before it had said what it was."""
    stage = at / ".haul-0123abcd"
    stage.mkdir(mode=0o700)
    for name in ("journal", *more):
        (stage / name).touch()
    (stage / "p1").write_bytes(b"x" * 9000)
    return stage


@pytest.mark.parametrize("way", ["here", "daemon", "ssh"])
def test_what_interrupted_copies_have_kept(way: str, daemon: Daemon, room: Path, tmp_path: Path) -> None:
    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "here": (room, {}),
        "daemon": (daemon.url(f"data/{room.name}"), {"state": daemon.state}),
        "ssh": (f"localhost:{room}", {"ssh": {"program": no_ssh(tmp_path / "bin")}}),
    }
    at, words = ways[way]
    (room / "precious").touch()
    stage = left(room)
    (one,) = haul.interrupted(at, **words)
    assert one.path == f"{at}/{stage.name}" and one.bytes >= 9000 and one.idle >= 0
    assert (one.names, one.running, one.stays) == ((), False, None)
    assert [same.path for same in haul.interrupted(one.path + "/", **words)] == [one.path], "of one copy, that one"
    assert haul.discard_interrupted(f"{at}/.haul-00000000", **words) == [] and stage.exists()
    (gone,) = haul.discard_interrupted(one.path, **words)
    assert (gone.path, gone.stays) == (one.path, None) and names(room) == ["precious"]
    assert haul.interrupted(at, **words) == [] == haul.discard_interrupted(at, **words)

    stage = left(room, "photos")
    (held,) = haul.discard_interrupted(at, **words)
    assert held.stays is not None and "did not put there" in held.stays and (stage / "photos").exists()
    with pytest.raises(haul.DestinationError) as nowhere:
        haul.interrupted(f"{at}/nowhere", **words)
    assert nowhere.value.errno == 2


def test_interrupted_copies_are_kept_from_who_may_only_read(daemon: Daemon) -> None:
    stage = left(daemon.pub)
    try:
        (one,) = haul.interrupted(daemon.url("pub"), state=daemon.state)
        with pytest.raises(haul.Refused, match="read-only"):
            haul.discard_interrupted(one.path, state=daemon.state)
        assert (stage / "p1").exists()
    finally:
        shutil.rmtree(stage)
    for wrong in ("-", "", "haul://127.0.0.1"):
        with pytest.raises(ValueError):
            haul.interrupted(wrong, state=daemon.state)


def test_links_are_followed_if_wanted(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source", "a")
    (source / "link").symlink_to("a")
    haul.copy(f"{source}/.", daemon.url(f"data/{room.name}"), recursive=True, copy_links=True, state=daemon.state).check()
    assert not (room / "link").is_symlink() and (room / "link").read_text() == "content of a"


def test_a_list_of_checksums_and_a_log(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source", "a", "d/b")
    sums, log = tmp_path / "sums", tmp_path / "log"
    told: dict[str, Any] = {"recursive": True, "state": daemon.state, "log_file": log}
    haul.copy(f"{source}/.", daemon.url(f"data/{room.name}"), manifest=sums, manifest_hash="sha256", **told).check()
    assert sums.read_text().count("\n") == 2
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", str(sums)], cwd=room, check=True, timeout=60)
    with pytest.raises(haul.LocalError):
        haul.copy(f"{source}/.", daemon.url(f"data/{room.name}"), manifest=tmp_path / "no" / "such", **told)
    with pytest.raises(haul.NotFound):
        haul.copy(f"{source}/.", daemon.url("nothing/x"), **told)
    lines = [line.split(" ", 1)[1] for line in log.read_text().splitlines()]
    assert lines[0].startswith(f"start: {source}/. haul://"), lines
    assert any("file: " in line and "(14 bytes)" in line for line in lines), lines
    assert lines.count("end: 2 files, 26 bytes, 0 skipped, 0 deleted, 0 problems") == 1 and "no such root" in lines[-1]


def test_what_carries_it(daemon: Daemon, room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source", "a") / "a"
    by_tcp = haul.copy(source, daemon.url(f"data/{room.name}/"), transport="tcp", state=daemon.state).check()
    assert "TCP" in by_tcp.verdict
    by_udp = haul.copy(source, daemon.url(f"data/{room.name}/"), via="127.0.0.1", state=daemon.state).check()
    assert "TCP" not in by_udp.verdict
    by_ssh = haul.copy(source, f"localhost:{room}/by-ssh", transport="ssh", ssh={"program": no_ssh(tmp_path / "bin")}).check()
    assert "ssh" in by_ssh.verdict and (room / "by-ssh").exists()
    with pytest.raises(haul.HaulError):
        haul.copy(source, daemon.url(f"data/{room.name}/"), via=["no-such-interface0"], state=daemon.state)


def test_two_sides_meet_by_a_relay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody reaches the far side's addresses (240.0.0.0/4 is no network's): over UDP both meet by the relay, or not at all."""
    far = no_ssh(
        tmp_path / "bin",
        before='for word; do [ "$word" = -G ] && echo "hostname 240.0.0.1" && exit 0; done\nexport SSH_CONNECTION="240.0.0.2 50000 240.0.0.1 22"',
    )
    source = tree(tmp_path / "source", "a") / "a"
    server, near, log = tmp_path / "server", tmp_path / "near", tmp_path / "log"
    run(HAUL, "key", "authorize", "--state", str(server), haul.own_key(near).fingerprint, "--only", "relay")
    with log.open("wb") as said:
        daemon = subprocess.Popen([HAUL, "serve", "--listen", "127.0.0.1:0", "--relay", "keys", "--state", str(server)], stderr=said)
    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"address=(127\.0\.0\.1:\d+)", log.read_text())):
            assert time.monotonic() < deadline and daemon.poll() is None, log.read_text()
            time.sleep(0.05)
        relay = found[1]
        words: dict[str, Any] = {"ssh": {"program": far}, "state": near}
        with caplog.at_level(logging.WARNING, "haul"):
            alone = haul.copy(source, f"far:{tmp_path}/untrusted", relay=relay, **words).check()
        assert "ssh" in alone.verdict and f"no help by relay {relay}" in caplog.text, "nobody trusts it yet"
        haul.trust(relay, run(HAUL, "key", "show", "--state", str(server)).split()[0], near)
        assert "pair of the relay" not in log.read_text()
        met = haul.copy(source, f"far:{tmp_path}/met", relay=relay, **words).check()
        assert (tmp_path / "met").read_bytes() == source.read_bytes() and "ssh" not in met.verdict
        assert "pair of the relay" in log.read_text()
        with pytest.raises(haul.UsageError, match="via and relay"):
            haul.copy(source, "far:", relay=relay, via="127.0.0.1", **words)
        with pytest.raises(haul.UsageError, match="relay: no relay at all"):
            haul.copy(source, "far:", relay="no relay at all", **words)
    finally:
        daemon.kill()
        daemon.wait()


def test_what_was_lost_is_tried_again(room: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = tree(tmp_path / "source", "a") / "a"
    tried = tmp_path / "tried"
    fails_once = no_ssh(tmp_path / "bin", before=f'case "${{@: -1}}" in *remote*) echo x >> "{tried}"; [ "$(wc -l < "{tried}")" -gt 1 ] || exit 255 ;; esac')
    with pytest.raises(haul.LoginFailed):
        haul.copy(source, f"localhost:{room}/", ssh={"program": fails_once})
    tried.unlink()
    with caplog.at_level(logging.WARNING, "haul"):
        copied = haul.copy(source, f"localhost:{room}/", ssh={"program": fails_once}, retries=1)
    assert copied.files == 1 and tried.read_text() == "x\n" * 2


@pytest.mark.parametrize("call", [lambda at, ssh: haul.copy("x", at, ssh=ssh), lambda at, ssh: haul.interrupted(at, ssh=ssh), lambda at, ssh: haul.perf.measure("localhost", ssh=ssh)])
def test_why_ssh_leads_nowhere_is_in_the_message(call: Any, tmp_path: Path) -> None:
    silent = no_ssh(tmp_path / "silent", before="exit 255")
    with pytest.raises(haul.LoginFailed) as login:
        call("localhost:x", {"program": silent})
    assert login.value.message == "localhost: ssh could not log in"
    says = no_ssh(tmp_path / "says", before=r"printf 'a banner\r\nssh: no such \033[1mhost\r\n' >&2; exit 255")
    with pytest.raises(haul.LoginFailed) as login:
        call("localhost:x", {"program": says})
    assert login.value.message == r"localhost: ssh could not log in: ssh: no such \u{1b}[1mhost", "its last line, clean"


def test_a_far_side_without_haul_is_given_one(room: Path, tmp_path: Path) -> None:
    source = tree(tmp_path / "source", "a") / "a"
    home = tmp_path / "home"
    home.mkdir()
    # The PATH of a machine without haul.
    bare = no_ssh(tmp_path / "bin", before=f'export PATH=/usr/bin:/bin HOME="{home}"; unset XDG_CACHE_HOME')
    with pytest.raises(haul.LoginFailed, match="haul not found there") as missing:
        haul.copy(source, f"localhost:{room}/", ssh={"program": bare})
    hint = missing.value.hint or ""
    assert 'ssh={"remote_haul": PATH}' in hint and 'bootstrap="keep"' in hint and "--" not in hint
    with pytest.raises(haul.UsageError, match="no program"):
        haul.copy(source, f"localhost:{room}/", ssh={"program": bare}, bootstrap="keep", bootstrap_from=source)
    copied = haul.copy(source, f"localhost:{room}/", ssh={"program": bare}, bootstrap="keep", bootstrap_from=HAUL)
    assert copied.files == 1 and len(list(home.glob(".cache/haul/*/haul"))) == 1


def test_what_makes_no_sense_together(tmp_path: Path) -> None:
    for words in (
        {"size_only": True, "checksum": True},
        {"compare": True, "dry_run": True},
        {"compare": True, "update": True},
        {"dry_run": True, "manifest": "x"},
        {"delete": True},
        {"recursive": True, "delete": True, "files_from": ["a"]},
        {"max_delete": 0},
        {"via": "eth0", "transport": "tcp"},
        {"via": "eth0", "paths": 2},
        {"bootstrap_from": "x"},
        {"bootstrap": "always"},
        {"transport": "pigeon"},
        {"compress": "always"},
        {"manifest": tmp_path / "sums", "manifest_hash": "md5"},
        {"via": "eth0:sometimes"},
    ):
        with pytest.raises(haul.UsageError):
            haul.copy(tmp_path, "haul://127.0.0.1/data", **words)
    assert not (tmp_path / "sums").exists()
    with pytest.raises(haul.UsageError, match="one host"):
        haul.copy(["a:x", "b:y"], tmp_path, recursive=True, delete=True)
