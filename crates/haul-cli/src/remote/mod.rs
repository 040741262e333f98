//! `haul remote`: the far side of a copy, a measurement, a tunnel or a proxy, started through ssh.
//!
//! It takes a greeting, a word of its command line or a line of standard input, listens on a UDP port, says so on standard output, and serves one copy to the one key that the
//! greeting names. When standard input ends, so does it: the near side has gone, or the copy is over. Where ssh's connection was lost and the near side is heard all the same, it
//! goes on: an address can change under both, and only one of them follows. What it may serve, its own options say (`confined`).

mod confined;

use std::env;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use data_encoding::BASE64;
use haul::{BindError, Bytes, Connection, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig, TransportConfig};
use haul_cc::ControllerChoice;
use haul_copy::{PROTOCOL, ServerSession};
use haul_files::{Access, Cancel, Silent};
use haul_peer::{BOOTSTRAP, ClientHello, KEEP_ALIVE, MAX_LINE, Refusal, RemoteAnswer, RemoteHello, is_heard};
use haul_tunnel::{program, proxy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::confined::Confined;
use crate::args::{Errand, PortRange, RemoteArgs};
use crate::exit::{Exit, Failure};
use crate::output::ProxyReport;
use crate::{clock, logging, perf};

/// How long it waits for a connection before it gives up.
const NOBODY: Duration = Duration::from_secs(30);
/// How often it looks at the time.
const LOOK: Duration = Duration::from_secs(1);
/// How long a copy may take to save its state once ssh has gone.
const FAREWELL: Duration = Duration::from_secs(10);

/// sshd closes what it shares with a session one after the other.
const CLOSING: Duration = Duration::from_millis(200);

/// Runs the command.
pub fn run(args: &RemoteArgs) -> Result<Exit, Failure> {
    if io::stdin().is_terminal() {
        return Err(
            Failure::new("`haul remote` is the far side of a copy").hint("`haul cp` starts it through ssh; nobody else needs to")
        );
    }
    // Silent unless RUST_LOG is set there: what it prints comes out at the user's side.
    logging::start(logging::Audience::Person, 0, true);
    let confined = Confined::new(args);
    let prepared = match &confined {
        Ok(confined) => {
            confined.lock_in();
            prepare(args)
        }
        Err(failure) => Err(failure.clone()),
    };
    let (endpoint, answer) = match prepared {
        Ok((endpoint, hello, ports)) => (Some((endpoint, ports)), RemoteAnswer::Ready(hello)),
        Err(Failure { message, hint }) => {
            // A person who has logged in reads this.
            let _ = writeln!(io::stderr(), "haul remote: {message}");
            (None, RemoteAnswer::Failed { error: message.into(), hint: hint.map(Into::into) })
        }
    };
    let mut stdout = io::stdout().lock();
    let said = stdout.write_all(answer.to_line().as_bytes()).and_then(|()| stdout.flush());
    drop(stdout);
    match (endpoint, confined) {
        (Some((endpoint, ports)), Ok(confined)) if said.is_ok() => Ok(serve(&endpoint, &ports, &Arc::new(confined))),
        _ => Ok(Exit::Failed),
    }
}

/// Everything up to the answer.
fn prepare(args: &RemoteArgs) -> Result<(Endpoint, RemoteHello, RangeInclusive<u16>), Failure> {
    let hello = greeting(args)?;
    if hello.bootstrap != BOOTSTRAP {
        return Err(other_version(&format!("it is version {}, this one {}", hello.version, env!("CARGO_PKG_VERSION"))));
    }
    let client: Fingerprint = hello.client.parse().map_err(|_| other_version("its key cannot be understood"))?;
    let controller = hello.controller.as_deref().map(str::parse::<ControllerChoice>).transpose();
    let controller = controller.map_err(|error| Failure::new(format!("its congestion control is not known here: {error}")))?;
    let identity = Identity::generate();
    let server = identity.public_key().fingerprint();
    let config = ServerConfig {
        protocols: vec![PROTOCOL.to_vec(), haul_perf::PROTOCOL.to_vec(), program::PROTOCOL.to_vec(), proxy::PROTOCOL.to_vec()],
        transport: TransportConfig {
            keep_alive: Some(KEEP_ALIVE),
            controller: controller.unwrap_or_default(),
            remembered: hello.remembered.and_then(|saved| saved.learned()),
            filler: hello.filler,
            idle_timeout: hello.dead_after_s.map_or(TransportConfig::default().idle_timeout, |seconds| {
                Duration::from_secs(u64::from(seconds).clamp(8, 3600))
            }),
            stream_window: hello.stream_window.map_or(TransportConfig::default().stream_window, Bytes),
            ..TransportConfig::default()
        },
        ..ServerConfig::new(identity, PeerTrust::Pinned(vec![client]))
    };
    let endpoint = listen(&hello, &config)?;
    let opening = hello.opening.as_ref().and_then(|opening| BASE64.decode(opening.as_bytes()).ok());
    let (client, here) = ssh_addresses(env::var("SSH_CONNECTION").ok().as_deref());
    let remote = RemoteHello {
        version: env!("CARGO_PKG_VERSION").into(),
        port: endpoint.local_addr().port(),
        server: server.to_string().into(),
        token: BASE64.encode(&endpoint.admission_token()).into(),
        addresses: here.into_iter().collect(),
        advice: endpoint.buffer_warning().map(Into::into),
        answer: opening.and_then(|opening| answer(&endpoint, &opening, client)),
    };
    Ok((endpoint, remote, ports(&hello)?))
}

/// What the near side says first.
fn greeting(args: &RemoteArgs) -> Result<ClientHello, Failure> {
    let unclear = || other_version("its greeting cannot be understood");
    if let Some(word) = &args.greeting {
        return ClientHello::from_word(word).ok_or_else(unclear);
    }
    if let Some(command) = env::var_os("SSH_ORIGINAL_COMMAND") {
        return confined::greeting_in(&command.to_string_lossy()).ok_or_else(confined::for_haul_only);
    }
    let line = read_line()?;
    if line.is_empty() {
        return Err(confined::for_haul_only());
    }
    ClientHello::from_line(&line).map_err(|_| unclear())
}

/// The handshake's answer for the client. Without one it asks over UDP, and is told there what is wrong.
fn answer(endpoint: &Endpoint, opening: &[u8], client: Option<IpAddr>) -> Option<String> {
    let answer = endpoint.answer(opening, client).inspect_err(|error| tracing::debug!(%error, "the handshake goes over UDP"));
    Some(BASE64.encode(&answer.ok()?))
}

fn read_line() -> Result<Vec<u8>, Failure> {
    let mut line = Vec::new();
    let read = io::stdin().lock().take(MAX_LINE).read_until(b'\n', &mut line);
    read.map_err(|error| Failure::new(format!("reading the greeting: {error}")))?;
    Ok(line)
}

/// The ports that may be listened on; 0 is any.
fn ports(hello: &ClientHello) -> Result<RangeInclusive<u16>, Failure> {
    let ports =
        hello.udp_ports.map(|(first, last)| PortRange::new(first, last).ok_or_else(|| Failure::new("no such range of ports")));
    Ok(ports.transpose()?.map_or(0..=0, PortRange::range))
}

/// Listens on whatever the greeting allows.
fn listen(hello: &ClientHello, config: &ServerConfig) -> Result<Endpoint, Failure> {
    let ports = ports(hello)?;
    let bound = hello.family.listen(|ip| Endpoint::listen_in(ip, ports.clone(), config.clone()));
    bound.map_err(|error: BindError| {
        let failure = Failure::new(format!("no UDP port to listen on: {error}"));
        if hello.udp_ports.is_some() { failure.hint("the ports of --udp-port are taken; name more of them") } else { failure }
    })
}

/// `SSH_CONNECTION`: the first word is the address that ssh was called from (TCP has proved it), the third the one that it reached.
fn ssh_addresses(connection: Option<&str>) -> (Option<IpAddr>, Option<IpAddr>) {
    let word = |nth| connection?.split_whitespace().nth(nth)?.parse().ok();
    (word(0), word(2))
}

fn serve(endpoint: &Endpoint, ports: &RangeInclusive<u16>, confined: &Arc<Confined>) -> Exit {
    let cancel = Cancel::new();
    let served = Arc::new(AtomicBool::new(false));
    let busy = Arc::new(AtomicUsize::new(0));
    let connections = Arc::new(Served::default());
    end_with_stdin(endpoint.clone(), cancel.clone(), Arc::clone(&busy), Arc::clone(&connections));
    let started = clock::now();
    while let Ok(accepted) = endpoint.accept_timeout(LOOK) {
        if let Some(connection) = accepted {
            connections.add(&connection);
            busy.fetch_add(1, Ordering::SeqCst);
            let (endpoint, cancel, served, busy) = (endpoint.clone(), cancel.clone(), Arc::clone(&served), Arc::clone(&busy));
            let (ports, confined) = (ports.clone(), Arc::clone(confined));
            thread::spawn(move || {
                if serve_one(connection, ports, &confined, &cancel) {
                    served.store(true, Ordering::SeqCst);
                    // There is only one copy to serve: this ends the loop.
                    endpoint.close();
                }
                busy.fetch_sub(1, Ordering::SeqCst);
            });
        } else if busy.load(Ordering::SeqCst) == 0 && clock::now() - started > NOBODY {
            return Exit::Failed;
        }
    }
    if served.load(Ordering::SeqCst) { Exit::Done } else { Exit::Failed }
}

/// True if this was what the client had come for, however it went; the client tells its user.
fn serve_one(connection: Connection, tcp_ports: RangeInclusive<u16>, confined: &Confined, cancel: &Cancel) -> bool {
    let errand = match connection.protocol().as_deref() {
        Some(haul_perf::PROTOCOL) => Errand::Perf,
        Some(proxy::PROTOCOL) => Errand::Proxy,
        Some(program::PROTOCOL) => Errand::Tunnel,
        _ => Errand::Cp,
    };
    let refusal = confined.refuses(errand);
    match errand {
        Errand::Perf => match refusal {
            Some(refusal) => haul_perf::refuse(&connection, &refusal),
            None => measure_one(&connection, tcp_ports, cancel),
        },
        Errand::Proxy => {
            let report = Arc::new(ProxyReport { json: false });
            proxy::serve_account(&connection, refusal, report, cancel).unwrap_or_else(|error| {
                connection.close(program::CLOSE_ABORTED, &error.to_string());
                true
            })
        }
        Errand::Tunnel => program::serve_account(connection, refusal, cancel).unwrap_or_else(|error| {
            tracing::debug!(%error, "the tunnel broke");
            true
        }),
        Errand::Cp => copy_one(connection, &confined.access(), refusal, cancel),
    }
}

/// As [`serve_one`], for a copy.
fn copy_one(connection: Connection, access: &Access, refusal: Option<Refusal>, cancel: &Cancel) -> bool {
    // A connection without an opening lost the race against one over another address.
    let Ok(session) = ServerSession::accept(connection) else { return false };
    if let Some(refusal) = refusal {
        session.refuse(&refusal);
        return true;
    }
    let (result, farewell) = session.serve(access, None, &Silent, cancel);
    if let Err(error) = result {
        tracing::debug!(%error, "the copy failed");
    }
    farewell.part(cancel);
    true
}

/// As [`serve_one`], for `haul perf`.
fn measure_one(connection: &Connection, tcp_ports: RangeInclusive<u16>, cancel: &Cancel) -> bool {
    let mut asked = false;
    let served = haul_perf::serve(connection, &perf::bounds(None, tcp_ports), cancel, |_| {
        asked = true;
        Ok(())
    });
    if let Err(error) = served {
        tracing::debug!(%error, "the measurement failed");
    }
    asked
}

/// The connections being served.
#[derive(Debug, Default)]
struct Served {
    connections: Mutex<Vec<Connection>>,
}

impl Served {
    fn add(&self, connection: &Connection) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).push(connection.clone());
    }

    /// Whether a client is there.
    fn is_heard(&self) -> bool {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).iter().any(is_heard)
    }
}

/// Watches standard input: when it ends, the copy is stopped, in order if there is time.
fn end_with_stdin(endpoint: Endpoint, cancel: Cancel, busy: Arc<AtomicUsize>, connections: Arc<Served>) {
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        if is_stdout_gone() {
            while connections.is_heard() {
                thread::park_timeout(LOOK / 4);
            }
        }
        cancel.cancel();
        let deadline = clock::now() + FAREWELL;
        while busy.load(Ordering::SeqCst) > 0 && clock::now() < deadline {
            thread::park_timeout(Duration::from_millis(10));
        }
        endpoint.close();
        // If something still hangs, nobody is left to wait for it.
        thread::park_timeout(LOOK);
        std::process::exit(i32::from(Exit::Failed.code()));
    });
}

/// Whether nobody reads standard output any more. The near side ends this one by closing standard input alone; where both are closed, ssh itself is gone.
fn is_stdout_gone() -> bool {
    let stdout = io::stdout();
    // Errors and hang-ups are told unasked.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let patience = Timespec { tv_sec: 0, tv_nsec: CLOSING.subsec_nanos().into() };
    poll(&mut watched, Some(&patience)).is_ok_and(|ready| ready > 0)
}

fn other_version(why: &str) -> Failure {
    Failure::new(format!("the haul that called is of another version: {why}"))
        .hint("install the same version of haul on both hosts")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn the_addresses_that_ssh_was_called_from_and_reached() {
        let (near, far) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert_eq!(ssh_addresses(Some("192.0.2.1 50000 192.0.2.2 22")), (Some(near), Some(far)));
        let here = Some(IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!(ssh_addresses(Some("::1 50000 ::1 22")), (here, here));
        assert_eq!(ssh_addresses(Some("garbage")), (None, None));
        assert_eq!(ssh_addresses(None), (None, None));
    }
}
