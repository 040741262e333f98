//! `haul perf -s`: a server that lets anyone measure, and what it tells whoever looks after it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use haul::Fingerprint;
use haul_perf::text::{asked, server_line};
use haul_perf::{Server, ServerSettings, Visit, Visits};
use haul_serve::{Audit, Measurements};
use haul_units::Cancel;
use serde_json::json;

use super::json::event;
use crate::args::PerfArgs;
use crate::exit::{Exit, Failure, chain};
use crate::{interrupt, output};

/// Runs the server.
pub fn run(args: &PerfArgs) -> Result<Exit, Failure> {
    let server = Server::listen(&settings(args)).map_err(|error| {
        Failure::new(chain(&error))
            .hint("is another server running, or is the port below 1024, which takes root? Name another port with -p PORT, or an address of this machine with -B")
    })?;
    let audit = Arc::new(Audit::open(args.serve.audit.to().as_ref(), None)?);
    let _running = audit.started(server.address(), server.key());
    let voice = Voice { json: args.show.json || args.show.json_stream };
    voice.listening(server.address(), server.key(), server.no_tcp());
    if let Some(advice) = server.buffer_warning() {
        output::print_hint(&advice);
    }
    let end = Cancel::new();
    let ended = end.clone();
    let _interrupted = interrupt::cancel().on_cancel(move || ended.cancel());
    if args.serve.until_input_ends {
        let ended = end.clone();
        thread::spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            ended.cancel();
        });
    }
    server.run(&end, Arc::new(Measurements::before(voice, &audit)))?;
    Ok(if interrupt::requested() { Exit::Interrupted } else { Exit::Done })
}

fn settings(args: &PerfArgs) -> ServerSettings {
    let serve = &args.serve;
    ServerSettings {
        bind: args.bind,
        family: args.ssh.usual.family(),
        port: args.port(),
        longest: serve.max_time,
        rate: serve.max_bitrate,
        clients: serve.max_clients.into(),
        clients_of_address: serve.max_per_address.into(),
        memory: serve.max_memory,
        one_off: serve.one_off,
        describe: Some(server_line),
    }
}

/// How the server talks to whoever looks after it: lines for people or for programs.
#[derive(Debug, Clone, Copy)]
struct Voice {
    json: bool,
}

impl Visits for Voice {
    fn visit(&self, number: u64, from: SocketAddr, visit: &Visit<'_>) {
        match visit {
            Visit::Asked(ask) => self.say(&format!("[{number}] {from}: {}", asked(ask))),
            Visit::TurnedAway(refusal) => self.say(&format!("[{number}] {from}: turned away: {refusal}")),
            Visit::Measured(measured) => {
                for total in &measured.totals {
                    self.say(&format!("[{number}] {total}"));
                }
            }
            Visit::Failed(error) => self.say(&format!("[{number}] {from}: {error}")),
        }
    }
}

impl Voice {
    fn listening(self, address: SocketAddr, key: Fingerprint, no_tcp: Option<&io::Error>) {
        if self.json {
            return event(
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
        if self.json { event("client", &json!(text)) } else { output::print_out(text) }
    }
}
