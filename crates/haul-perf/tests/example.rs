//! The example measures, over a real connection on loopback.

#[path = "../examples/measure.rs"]
#[allow(dead_code, reason = "its main is for those who run it by hand")]
mod example;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;

use haul_peer::{DaemonHost, Host};
use haul_perf::{Server, ServerSettings};
use haul_units::Cancel;

#[test]
fn it_measures_to_a_server_here() {
    let here = Ipv4Addr::LOCALHOST;
    let server = Server::listen(&ServerSettings { bind: Some(here.into()), ..ServerSettings::default() }).expect("a server");
    let host = DaemonHost { host: here.to_string(), port: server.address().port() };
    let host = Host::Open(host, Some(server.key()));
    let stop = Cancel::new();
    let stopped = stop.clone();
    let serving = thread::spawn(move || server.run(&stopped, Arc::new(())));
    example::run(&host).expect("a measurement");
    stop.cancel();
    serving.join().expect("no panic").expect("it ended well");
}
