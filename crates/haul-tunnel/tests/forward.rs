//! The example forwards a port, over a real connection on loopback.

#[path = "../examples/forward.rs"]
#[allow(dead_code, reason = "its main is for those who run it by hand")]
mod example;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use haul::Identity;
use haul_peer::{Connector, DaemonHost, Host};
use haul_tunnel::proxy::{Client, Event, LocalForward, Observer, PROTOCOL, Server, ServerSettings};
use haul_units::Cancel;

/// Says where the example listens.
struct Tell(Mutex<mpsc::Sender<String>>);

impl Observer for Tell {
    fn event(&self, event: Event<'_>) {
        if let Event::Listening { address, .. } = event {
            let _ = self.0.lock().expect("nobody panics").send(address.to_string());
        }
    }
}

/// A server that says everything back in another case, once it has all of it.
fn shouting_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.expect("a client");
            let mut said = Vec::new();
            client.read_to_end(&mut said).expect("its end");
            client.write_all(&said.to_ascii_uppercase()).expect("heard");
        }
    });
    address
}

/// The other end: for everybody on this host, to wherever they ask.
fn serve_here() -> Host {
    let identity = Identity::generate();
    let key = identity.public_key().fingerprint();
    let allow = vec!["*:*".parse().expect("any target")];
    let address = Some(Ipv4Addr::LOCALHOST.into());
    let settings = ServerSettings { address, allow, ..ServerSettings::new(identity, None, Vec::new()) };
    let server = Server::bind(settings).expect("a server");
    let here = DaemonHost { host: Ipv4Addr::LOCALHOST.to_string(), port: server.local_addr().port() };
    thread::spawn(move || server.run(&Cancel::new()));
    Host::Open(here, Some(key))
}

#[test]
fn bytes_cross_both_ways_and_so_do_their_ends() {
    let target = shouting_server();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let tell = Arc::new(Tell(Mutex::new(tell)));
        example::forward(["127.0.0.1:0", &target.to_string()], serve_here(), tell).map_err(|error| error.to_string())
    });
    let address: SocketAddr = told.recv().expect("it listens").parse().expect("an address");
    let long = "a line of some length\n".repeat(100_000);
    for text in ["", "hello", &long] {
        let mut client = TcpStream::connect(address).expect("the port is open");
        client.write_all(text.as_bytes()).expect("taken");
        client.shutdown(Shutdown::Write).expect("still there");
        let mut heard = String::new();
        client.read_to_string(&mut heard).expect("an answer and its end");
        assert_eq!(heard, text.to_ascii_uppercase());
    }
}

/// Whoever has ended a client may take its port at once, or find it closed.
#[test]
fn a_client_that_has_ended_listens_no_longer() {
    for _ in 0..30 {
        let (tell, told) = mpsc::channel();
        let connector = Connector::new(PROTOCOL);
        let cancel = connector.cancel.clone();
        // Nobody is there: it listens, and tries again.
        let nobody = Host::Open(DaemonHost { host: "127.0.0.1".into(), port: 9 }, None);
        let forward = LocalForward::to("127.0.0.1:0".parse().expect("a port"), "127.0.0.1:1".parse().expect("a target"));
        let client = Client { observer: Arc::new(Tell(Mutex::new(tell))), ..Client::new(connector, nobody, vec![forward]) };
        let runs = thread::spawn(move || client.run().is_ok());
        let address: SocketAddr = told.recv().expect("it listens").parse().expect("an address");
        cancel.cancel();
        runs.join().expect("no panic");
        assert!(TcpStream::connect(address).is_err(), "{address} is open");
    }
}
