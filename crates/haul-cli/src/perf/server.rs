//! `haul perf -s`: a server that lets anyone measure, many at once.
//!
//! Its key is made at the start and printed; clients may pin it. Whoever comes may only measure, within bounds of time, clients and memory.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use haul::{Connection, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig, TransportConfig};
use haul_peer::{GuestMemory, Guests, Limits, keys};
use haul_units::{BitRate, Bytes};
use serde_json::json;

use super::door::Door;
use super::plan::{MAX_STREAMS, Role};
use super::session::{Bounds, Measured, serve};
use super::wire::{Ask, PROTOCOL};
use crate::args::PerfArgs;
use crate::exit::{Exit, Failure, chain};
use crate::{interrupt, output};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the server.
pub fn run(args: &PerfArgs) -> Result<Exit, Failure> {
    let identity = Identity::generate();
    let key = identity.public_key().fingerprint();
    let config = ServerConfig {
        protocols: vec![PROTOCOL.to_vec()],
        admission: keys::admission(true),
        transport: TransportConfig {
            // A stream is all that most clients have: it may use all that its client gets.
            stream_window: args.serve.max_memory.unwrap_or(Bytes::gib(1)),
            max_streams: u32::from(MAX_STREAMS) + 2,
            ..TransportConfig::default()
        },
        ..ServerConfig::new(identity, PeerTrust::Anyone)
    };
    let endpoint = listen(args, &config)?;
    let address = endpoint.local_addr();
    let door = Door::open(address, address.port()..=address.port());
    let voice = Voice { json: args.show.json || args.show.json_stream };
    voice.listening(address, key, door.as_ref().err());
    if let Some(advice) = endpoint.buffer_warning() {
        output::print_hint(&advice);
    }
    let bounds =
        Bounds { longest: args.serve.max_time, rate: args.serve.max_bitrate, strangers: true, door: door.ok(), tcp_ports: 0..=0 };
    let visitors = Visitors {
        bounds: Arc::new(bounds),
        served: Arc::default(),
        guests: Guests::new(
            Limits { clients: args.serve.max_clients.into(), of_key: usize::MAX, of_address: args.serve.max_per_address.into() },
            args.serve.max_memory.map_or_else(|| GuestMemory::part_of_machine(4), GuestMemory::Each),
        ),
        voice,
    };
    let mut number = 0;
    let input_ended = Arc::new(AtomicBool::new(false));
    if args.serve.until_input_ends {
        let ended = Arc::clone(&input_ended);
        thread::spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            ended.store(true, Ordering::Release);
        });
    }
    let enough = || args.serve.one_off && visitors.served.load(Ordering::Acquire) > 0;
    while !interrupt::requested() && !enough() && !input_ended.load(Ordering::Acquire) {
        match endpoint.accept_stranger_timeout(LOOK) {
            Ok(Some(connection)) => {
                number += 1;
                visitors.welcome(number, connection);
            }
            Ok(None) => {}
            Err(error) => return Err(Failure::new(format!("the socket failed: {error}"))),
        }
    }
    endpoint.close();
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}

fn listen(args: &PerfArgs, config: &ServerConfig) -> Result<Endpoint, Failure> {
    let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, args.port), config.clone());
    let bound = args.bind.map_or_else(|| args.ssh.usual.family().listen(on), on);
    bound.map_err(|error| {
        Failure::new(chain(&error))
            .hint("is another server running? Name another port with -p PORT, or an address of this machine with -B")
    })
}

/// Those who are there.
struct Visitors {
    bounds: Arc<Bounds>,
    served: Arc<AtomicUsize>,
    guests: Guests,
    voice: Voice,
}

impl Visitors {
    /// Serves a client in a thread of its own.
    fn welcome(&self, number: u64, connection: Connection) {
        let (served, bounds) = (Arc::clone(&self.served), Arc::clone(&self.bounds));
        let (voice, guests) = (self.voice, self.guests.clone());
        thread::spawn(move || {
            let from = connection.remote_addr();
            let mut place = None;
            let measured = serve(&connection, &bounds, interrupt::requested, |ask| {
                place = Some(guests.admit(&connection).inspect_err(|refusal| {
                    voice.say(&format!("[{number}] {from}: turned away: {refusal}"));
                })?);
                voice.say(&format!("[{number}] {from}: {}", asked(ask)));
                Ok(())
            });
            match measured {
                Ok(measured) => result_lines(&measured).iter().for_each(|line| voice.say(&format!("[{number}] {line}"))),
                Err(error) => voice.say(&format!("[{number}] {from}: {error}")),
            }
            if place.is_some() {
                served.fetch_add(1, Ordering::AcqRel);
            }
        });
    }
}

/// What a client wants, in a line.
fn asked(ask: &Ask) -> String {
    let plan = &ask.plan;
    let what = if plan.tcp.is_some() { "TCP".to_owned() } else { format!("haul {}", plan.mode) };
    let amount = match (plan.time(), plan.bytes()) {
        (Some(time), _) => format!("{} s", time.as_secs_f64()),
        (None, bytes) => Bytes(bytes.unwrap_or_default()).to_string(),
    };
    let streams = if plan.streams == 1 { String::new() } else { format!(", {} streams", plan.streams) };
    format!("{what}, {:?}, {amount}{streams}", plan.ways).to_lowercase()
}

/// What was measured, a line a role.
pub fn result_lines(measured: &Measured) -> Vec<String> {
    let line = |total: &super::results::Total| {
        let bytes = Bytes(total.bytes.iter().sum());
        let verb = if total.role == Role::Sender { "sent" } else { "received" };
        let error = total.error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        let time = Duration::from_micros(total.time_us);
        format!("{verb} {bytes} in {:.2} s, {}{error}", time.as_secs_f64(), BitRate::of(bytes, time))
    };
    measured.totals.iter().map(line).collect()
}

/// How the server talks to whoever looks after it: lines for people or for programs.
#[derive(Debug, Clone, Copy)]
struct Voice {
    json: bool,
}

impl Voice {
    fn listening(self, address: SocketAddr, key: Fingerprint, no_tcp: Option<&io::Error>) {
        if self.json {
            return super::event(
                "listening",
                &json!({ "address": address.ip().to_string(), "port": address.port(), "key": key.to_string(), "tcp": no_tcp.is_none() }),
            );
        }
        output::print_out(&format!(
            "Server listening on {address}, UDP{}",
            if no_tcp.is_none() { ", and TCP for --tcp" } else { "" }
        ));
        if let Some(error) = no_tcp {
            output::print_out(&format!("TCP port {}: {error}; --tcp will use ports of its own", address.port()));
        }
        output::print_out(&format!("Its key is {key}"));
    }

    fn say(self, text: &str) {
        if self.json { super::event("client", &json!(text)) } else { output::print_out(text) }
    }
}
