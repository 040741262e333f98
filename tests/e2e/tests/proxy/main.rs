//! `haul proxy`: TCP connections across an emulated WAN, with real programs and with sockets of the test's own.

mod rig;
mod transparent;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use e2e::{Running, Stopwatch, eventually, pause};
use haul_lab::LinkOptions;
use haul_units::Ratio;
use rustix::process::{Pid, Signal};

use crate::rig::*;

#[test]
fn curl_gets_the_same_files_as_without() {
    let Some(sites) = two() else { return };
    let (big, small) = place_files(&sites, 200);
    let Some(_web) = web(&sites, 2, "127.0.0.1", 8000) else { return };
    let serving = serve(&sites, "--to localhost:8000");
    let connected = connect(&sites, "--listen 8080", 8080);
    let got = curl(&sites, "http://127.0.0.1:8080/big").expect(0);
    assert_eq!(blake3::hash(&got.stdout), big);
    // python's server closes after each answer: 200 connections.
    let got = curl(&sites, "http://127.0.0.1:8080/small[1-200]").expect(0);
    assert!(got.stdout == small, "{} bytes of {}", got.stdout.len(), small.len());
    let many = curl(&sites, "-Z --parallel-max 50 http://127.0.0.1:8080/small[1-200]").expect(0);
    assert_eq!(many.stdout.len(), small.len());
    let (here, there) = (stop(connected), stop(serving));
    for finished in [&here, &there] {
        let closed = events(finished, "close");
        assert_eq!(closed.len(), 401);
        // The last one may still wait for its acknowledgement when the proxy is ended.
        assert!(closed.iter().filter(|event| event["end"] == "done").count() >= 400, "{closed:?}");
    }
    assert!(events(&there, "close").iter().any(|event| event["up_bytes"].as_u64() >= Some(40 << 20)));
}

#[test]
fn an_end_goes_one_way_and_the_other_way_goes_on() {
    let Some(sites) = two() else { return };
    let port = server(sites.site(2), "127.0.0.1:0", |mut client| {
        let mut all = Vec::new();
        client.read_to_end(&mut all)?;
        // Only now, when the other side has said all, does this one begin.
        client.write_all(&(all.len() as u64).to_be_bytes())?;
        client.write_all(&all)
    });
    let _serving = serve(&sites, &format!("--to 127.0.0.1:{port}"));
    let _connected = connect(&sites, "--listen 8080", 8080);
    let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut client = client(sites.site(1), 8080);
    client.write_all(&sent).expect("writing");
    client.shutdown(Shutdown::Write).expect("half of it is closed");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("the other half");
    assert_eq!(answer[..8], (sent.len() as u64).to_be_bytes());
    assert!(answer[8..] == sent);
}

#[test]
fn a_reset_arrives_as_a_reset() {
    let Some(sites) = two() else { return };
    let seen = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&seen);
    let port = server(sites.site(2), "127.0.0.1:0", move |mut client| {
        let mut word = [0; 4];
        client.read_exact(&mut word)?;
        client.write_all(b"some")?;
        match &word {
            b"kill" => reset(client),
            b"wait" => {
                // The client resets while nobody reads or writes.
                let error = client.read(&mut word).err().map(|error| error.kind());
                counted.fetch_add(u64::from(error == Some(ErrorKind::ConnectionReset)), Ordering::Relaxed);
            }
            _ => {
                client.shutdown(Shutdown::Write)?;
                // The client resets when it has our end, and has not told its own.
                let error = client.read(&mut word).err().map(|error| error.kind());
                counted.fetch_add(u64::from(error == Some(ErrorKind::ConnectionReset)), Ordering::Relaxed);
            }
        }
        Ok(())
    });
    let _serving = serve(&sites, &format!("--to 127.0.0.1:{port}"));
    let _connected = connect(&sites, "--listen 8080", 8080);
    let mut killed = client(sites.site(1), 8080);
    killed.write_all(b"kill").expect("writing");
    assert_reset(&mut killed);
    for word in [b"wait", b"half"] {
        let mut waiting = client(sites.site(1), 8080);
        assert_eq!(ask(&mut waiting, word), b"some");
        if word == b"half" {
            assert_eq!(waiting.read(&mut [0]).expect("the end"), 0);
        }
        reset(waiting);
    }
    assert!(eventually(PATIENCE, || seen.load(Ordering::Relaxed) == 2), "{} resets arrived", seen.load(Ordering::Relaxed));
}

#[test]
fn only_what_the_policy_allows_is_reached() {
    let Some(sites) = two() else { return };
    let [one, two] = [(); 2].map(|()| server(sites.site(2), "127.0.0.1:0", echo));
    let serving = serve(&sites, &format!("--to 127.0.0.1:{one} --allow 127.0.0.0/30:1"));
    let ports = format!(
        "--listen 8080 -L 8081:127.0.0.1:{two} -L 8082:localhost:1 -L 8083:10.0.0.1:{one} -L 8084:no-such-name.invalid:1"
    );
    let connected = connect(&sites, &ports, 8084);
    assert_eq!(ask(&mut client(sites.site(1), 8080), b"hello"), b"hello");
    for port in [8081, 8082, 8083, 8084] {
        assert_reset(&mut client(sites.site(1), port));
    }
    stop(serving);
    let refused = events(&stop(connected), "refused");
    let codes: Vec<_> = refused.iter().map(|event| event["code"].as_u64()).collect();
    // Not allowed; allowed by address, and nobody listens; not allowed; no such name.
    assert_eq!(codes, [Some(2), Some(5), Some(2), Some(4)], "{refused:?}");
    assert!(refused[0]["error"].as_str().is_some_and(|error| error.contains("not allowed") && error.contains("--allow")));
}

#[test]
fn who_is_not_authorised_is_refused() {
    let Some(sites) = two() else { return };
    let port = server(sites.site(2), "127.0.0.1:0", echo);
    let serving = Running::start(haul(&sites, 2, &format!("proxy serve --json --to 127.0.0.1:{port}")));
    assert!(eventually(PATIENCE, || listens(sites.site(2), "-lun", 7702)), "the proxy does not serve");
    let address = &sites.site(2).address;
    let try_it = || Running::start(haul(&sites, 1, &format!("proxy connect {address} --listen 8080"))).wait(PATIENCE).expect(2);
    let unknown = try_it();
    assert!(unknown.stderr.contains("its key is not known") && unknown.stderr.contains("haul key trust"), "{unknown}");
    key(&sites, 1, &format!("trust {address}:7702 {}", own_key(&sites, 2)));
    let refused = try_it();
    assert!(refused.stderr.contains("not authorised") && refused.stderr.contains("haul key authorize"), "{refused}");
    key(&sites, 2, &format!("authorize {} --name near", own_key(&sites, 1)));
    let connected = connect(&sites, "--listen 8080", 8080);
    assert_eq!(ask(&mut client(sites.site(1), 8080), b"hello"), b"hello");
    stop(connected);
    let there = stop(serving);
    assert!(events(&there, "connected")[0]["peer"].as_str().is_some_and(|peer| peer.contains("near")), "{there}");
}

#[test]
fn over_ssh_with_the_letters_of_ssh() {
    let Some(sites) = two() else { return };
    let (big, _) = place_files(&sites, 1);
    let Some(_web) = web(&sites, 2, "127.0.0.1", 8000) else { return };
    let here = server(sites.site(1), "127.0.0.1:0", echo);
    let proxy = over_ssh(&sites, &format!("-L 8080:localhost:8000 -D 1080 -R 9000:127.0.0.1:{here} -R 9001"));
    assert!(eventually(PATIENCE, || listens(sites.site(2), "-ltn", 9001)), "the far ports do not come");
    let got = curl(&sites, "http://127.0.0.1:8080/big").expect(0);
    assert_eq!(blake3::hash(&got.stdout), big);
    // The name means another host here: nobody listens on this port of this one.
    let got = curl(&sites, "--socks5-hostname 127.0.0.1:1080 http://localhost:8000/small1").expect(0);
    assert_eq!(got.stdout, b"this is file 1\n");
    let got = curl(&sites, "--socks5-hostname 127.0.0.1:1080 http://localhost:1/");
    assert_eq!(got.code, Some(97), "curl hears of a refusal: {got}");
    assert_eq!(ask(&mut client(sites.site(2), 9000), b"hello"), b"hello");
    let mut back = sites.site(2).command("curl");
    back.args(["-sS", "--max-time", "20", "--socks5-hostname", "127.0.0.1:9001", "telnet://localhost:1"]);
    assert_eq!(Running::start(back).wait(PATIENCE).code, Some(97), "the far SOCKS port goes out from here");
    stop(proxy);
    assert!(eventually(PATIENCE, || sites.site(2).processes(&["haul remote"]).is_empty()), "the far side stays");
}

#[test]
fn over_ssh_the_far_side_keeps_to_what_was_named() {
    let Some(sites) = two() else { return };
    let nothing = Running::start(haul(&sites, 1, "proxy site2")).wait(PATIENCE).expect(2);
    assert!(nothing.stderr.contains("nothing to forward") && nothing.stderr.contains("-L"), "{nothing}");
    let taken = server(sites.site(2), "127.0.0.1:0", echo);
    let proxy = over_ssh(&sites, &format!("-R {taken}:localhost:1")).wait(PATIENCE).expect(2);
    assert!(proxy.stderr.contains(&format!("cannot listen on localhost:{taken}")), "{proxy}");
}

#[test]
fn kills_of_either_end_leave_nothing_hanging() {
    let Some(sites) = two() else { return };
    let ended = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ended);
    let port = server(sites.site(2), "127.0.0.1:0", move |client| {
        let result = echo(client);
        counted.fetch_add(u64::from(result.is_err()), Ordering::Relaxed);
        result
    });
    let serving = serve(&sites, &format!("--to 127.0.0.1:{port}"));
    let connected = connect(&sites, "--listen 8080", 8080);
    let mut clients: Vec<TcpStream> = (0..20).map(|_| client(sites.site(1), 8080)).collect();
    for client in &mut clients {
        assert_eq!(ask(client, b"hello"), b"hello");
    }

    // The serving end is gone: its clients hear of it, by a reset, and new connections work once it is back.
    serving.signal(Signal::KILL);
    serving.wait(PATIENCE);
    clients.iter_mut().for_each(assert_reset);
    let serving = serve(&sites, &format!("--to 127.0.0.1:{port}"));
    let works = || {
        let mut client = client(sites.site(1), 8080);
        let mut answer = [0; 5];
        client.write_all(b"hello").and_then(|()| client.read_exact(&mut answer)).is_ok() && &answer == b"hello"
    };
    assert!(eventually(PATIENCE, works), "it does not connect again");

    // The other end is gone: the servers hear of it, by a reset, and so do its clients, though nobody is left to tell them.
    let mut clients: Vec<TcpStream> = (0..20).map(|_| client(sites.site(1), 8080)).collect();
    for client in &mut clients {
        assert_eq!(ask(client, b"hello"), b"hello");
    }
    let before = ended.load(Ordering::Relaxed);
    connected.signal(Signal::KILL);
    connected.wait(PATIENCE);
    clients.iter_mut().for_each(assert_reset);
    assert!(eventually(PATIENCE, || ended.load(Ordering::Relaxed) >= before + 20), "the servers hear of nothing");
    stop(serving);
}

#[test]
fn an_outage_is_outlived_up_to_dead_after_and_told() {
    /// Longer than what is taken for an outage (6 s).
    const SHORT: Duration = Duration::from_secs(8);
    const DEAD_AFTER: Duration = Duration::from_secs(16);
    let Some(mut sites) = two() else { return };
    let port = server(sites.site(2), "127.0.0.1:0", echo);
    let silence = format!("--dead-after {}", DEAD_AFTER.as_secs());
    let serving = serve(&sites, &format!("--to 127.0.0.1:{port} {silence}"));
    let connected = connect(&sites, &format!("--listen 8080 {silence}"), 8080);
    let nothing_passes = || LinkOptions { loss: Ratio::ONE, ..link(3) };
    let mut near = client(sites.site(1), 8080);
    assert_eq!(ask(&mut near, b"before"), b"before");

    sites.relink(2, nothing_passes());
    near.write_all(b"meanwhile").expect("writing");
    pause(SHORT);
    sites.relink(2, link(3));
    let mut answer = [0; 9];
    near.read_exact(&mut answer).expect("the connection goes on");
    assert_eq!(&answer, b"meanwhile");
    assert_eq!(ask(&mut near, b"after"), b"after");

    sites.relink(2, nothing_passes());
    let watch = Stopwatch::start();
    near.write_all(b"lost").expect("writing");
    assert_reset(&mut near);
    let took = watch.elapsed();
    sites.relink(2, link(3));
    // What came last from there came a moment before.
    assert!(took + Duration::from_secs(2) > DEAD_AFTER && took < DEAD_AFTER + Duration::from_secs(8), "given up after {took:?}");
    let works = || {
        let mut again = client(sites.site(1), 8080);
        let mut answer = [0; 5];
        again.write_all(b"again").and_then(|()| again.read_exact(&mut answer)).is_ok() && &answer == b"again"
    };
    assert!(eventually(PATIENCE, works), "it does not connect again");
    let (here, there) = (stop(connected), stop(serving));
    let said = |text: &str| here.stderr.matches(text).count();
    assert_eq!((said("nothing has come from the other side for"), said("the other side is heard again")), (2, 1), "{here}");
    for finished in [&here, &there] {
        let lost = events(finished, "lost");
        let error = format!("nothing heard from the peer for {} s", DEAD_AFTER.as_secs());
        // Once: the serving side also hears of the end of the second one, which was closed.
        let told = lost.iter().filter(|event| event["error"].as_str().is_some_and(|told| told.contains(&error)));
        assert_eq!(told.count(), 1, "{finished}");
    }
}

/// Resident memory of a process, in bytes.
fn memory(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("kB") << 10
}

#[test]
fn a_thousand_connections_that_rest_cost_little() {
    const COUNT: u64 = 1000;
    let Some(sites) = two() else { return };
    let port = server(sites.site(2), "127.0.0.1:0", echo);
    let serving = serve(&sites, &format!("--to 127.0.0.1:{port}"));
    let connected = connect(&sites, "--listen 8080", 8080);
    let mut first = client(sites.site(1), 8080);
    assert_eq!(ask(&mut first, b"hello"), b"hello");
    let before = [memory(serving.pid()), memory(connected.pid())];
    let mut clients: Vec<TcpStream> = (0..COUNT).map(|_| client(sites.site(1), 8080)).collect();
    for round in [b"one", b"two"] {
        for client in &mut clients {
            client.write_all(round).expect("writing");
        }
        for client in &mut clients {
            let mut answer = [0; 3];
            client.read_exact(&mut answer).expect("an answer");
            assert_eq!(&answer, round);
        }
    }
    let after = [memory(serving.pid()), memory(connected.pid())];
    for (before, after) in before.into_iter().zip(after) {
        let each = after.saturating_sub(before) / COUNT;
        eprintln!("{each} bytes for each connection that rests");
        // Less than one buffer (64 KiB), with those that the allocator keeps from when all spoke at once.
        assert!(each < 48 << 10, "{each} bytes for each connection that rests");
    }
    drop(clients);
    // Kept until here: the proxy knows one from the other.
    assert_eq!(ask(&mut first, b"hello"), b"hello");
    stop(connected);
    stop(serving);
}

#[test]
fn a_connecting_side_with_few_files_lets_connections_wait() {
    let Some(sites) = two() else { return };
    let port = server(sites.site(2), "127.0.0.1:0", echo);
    let serving = serve(&sites, &format!("--to 127.0.0.1:{port}"));
    // 64 of them are not for connections.
    let connected = connect_by(&sites, "--listen 8080", 8080, with_files(80));
    let mut clients: Vec<TcpStream> = (0..40).map(|_| client(sites.site(1), 8080)).collect();
    for client in clients.iter_mut().take(16) {
        assert_eq!(ask(client, b"first"), b"first");
    }
    // Nobody has taken the next one: it has no answer while others have theirs.
    clients[16].write_all(b"early").expect("writing");
    clients[16].set_nonblocking(true).expect("not to wait");
    for client in clients.iter_mut().take(16) {
        assert_eq!(ask(client, b"again"), b"again");
    }
    assert_eq!(clients[16].read(&mut [0]).expect_err("nobody has taken it").kind(), ErrorKind::WouldBlock);
    clients[16].set_nonblocking(false).expect("to wait");
    // Those that go make room for those that wait.
    for (at, mut waiting) in clients.split_off(16).into_iter().enumerate() {
        clients.remove(0);
        let mut early = vec![0; if at == 0 { 5 } else { 0 }];
        waiting.read_exact(&mut early).expect("an answer");
        assert_eq!(ask(&mut waiting, b"later"), b"later");
        clients.push(waiting);
    }
    let here = stop(connected);
    assert!(here.stderr.contains("16 connections at once instead of 16000") && here.stderr.contains("ulimit -Hn"), "{here}");
    stop(serving);
}

#[test]
fn a_serving_side_with_few_files_refuses_connections_and_keeps_those_that_it_has() {
    let Some(sites) = two() else { return };
    let port = server(sites.site(2), "127.0.0.1:0", echo);
    let serving = serve_by(&sites, &format!("--to 127.0.0.1:{port}"), with_files(72));
    let connected = connect(&sites, "--listen 8080", 8080);
    let mut clients: Vec<TcpStream> = (0..8).map(|_| client(sites.site(1), 8080)).collect();
    for client in &mut clients {
        assert_eq!(ask(client, b"first"), b"first");
    }
    assert_reset(&mut client(sites.site(1), 8080));
    for client in &mut clients {
        assert_eq!(ask(client, b"again"), b"again");
    }
    let (here, there) = (stop(connected), stop(serving));
    assert!(there.stderr.contains("8 connections at once instead of 16000"), "{there}");
    let refused = events(&here, "refused");
    let reason = refused.first().and_then(|event| event["error"].as_str()).expect("a refusal");
    assert!(reason.contains("8 connections are open here"), "{reason}");
}

#[test]
fn readers_that_stand_still_stop_their_writers_and_nobody_else() {
    let Some(sites) = two() else { return };
    let port = server(sites.site(2), "127.0.0.1:0", |mut client| {
        let mut word = [0; 4];
        client.read_exact(&mut word)?;
        if &word == b"echo" {
            client.write_all(&word)?;
            return echo(client);
        }
        let part: Vec<u8> = (0..1_000_003_u32).map(|at| (at % 253) as u8).collect();
        (0..60).try_for_each(|_| client.write_all(&part))
    });
    let serving = serve(&sites, &format!("--to 127.0.0.1:{port}"));
    let connected = connect(&sites, "--listen 8080", 8080);
    let before = memory(connected.pid());
    let mut still: Vec<TcpStream> = (0..40).map(|_| client(sites.site(1), 8080)).collect();
    for client in &mut still {
        client.write_all(b"bulk").expect("writing");
    }
    // Sixty megabytes each want to come; what comes is bounded, and who does read is served meanwhile.
    let mut living = client(sites.site(1), 8080);
    assert_eq!(ask(&mut living, b"echo"), b"echo");
    for round in 0..100_u32 {
        assert_eq!(ask(&mut living, &round.to_be_bytes()), round.to_be_bytes());
    }
    let held = memory(connected.pid()).saturating_sub(before);
    assert!(held < 1 << 30, "{held} bytes for readers that stand still");
    let expected: Vec<u8> = (0..1_000_003_u32).map(|at| (at % 253) as u8).collect();
    for client in still.iter_mut().take(3) {
        for _ in 0..60 {
            let mut part = vec![0; expected.len()];
            client.read_exact(&mut part).expect("all that was written");
            assert!(part == expected, "a wrong byte");
        }
        assert_eq!(client.read(&mut [0]).expect("the end"), 0);
    }
    drop(still);
    assert_eq!(ask(&mut living, b"more"), b"more");
    stop(connected);
    stop(serving);
}

#[test]
fn a_port_that_is_taken_and_a_host_that_is_not_there_are_named() {
    let Some(sites) = two() else { return };
    let taken = server(sites.site(1), "127.0.0.1:0", echo);
    let address = &sites.site(2).address;
    let run = |args: &str| Running::start(haul(&sites, 1, &format!("proxy {args}"))).wait(PATIENCE).expect(2);
    let listening = run(&format!("connect {address} --listen {taken}"));
    assert!(listening.stderr.contains(&format!("cannot listen on localhost:{taken}")), "{listening}");
    let nobody = run(&format!("connect {address} --listen 8080"));
    assert!(nobody.stderr.contains("no answer over UDP") && nobody.stderr.contains("is `haul proxy serve` running"), "{nobody}");
    let nobody = run(&format!("connect {address} --listen 8080 --key {}", own_key(&sites, 2)));
    assert!(nobody.stderr.contains("no answer over UDP") && nobody.stderr.contains("is `haul proxy serve` running"), "{nobody}");
    let unclear = run("connect site2@ --listen 8080");
    assert!(unclear.stderr.contains("not a host") && unclear.stderr.contains("hint:"), "{unclear}");
    let no_target = run("connect root@site2 --listen 8080");
    assert!(no_target.stderr.contains("--to HOST:PORT"), "{no_target}");
    let wrong: SocketAddr = "127.0.0.1:1".parse().expect("an address");
    let wrong = run(&format!("connect {address} -L {wrong}"));
    assert!(wrong.stderr.contains("[BIND:]PORT:HOST:HOSTPORT"), "{wrong}");
}
