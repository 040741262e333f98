//! Half of something is not taken for all of it, and who has gone is not served, over real connections on loopback.
#![cfg(unix)]

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use haul::{ClientConfig, Connection, Endpoint, Identity, PeerTrust, RecvStream, SendStream, ServerConfig};
use haul_tunnel::program::{PROTOCOL, serve_account};
use haul_units::Cancel;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client's connection to one who is served as this user, and what tells when that is over.
fn account() -> (Connection, mpsc::Receiver<()>) {
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let protocols = vec![PROTOCOL.to_vec()];
    let config = ServerConfig { protocols: protocols.clone(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let anywhere = "127.0.0.1:0".parse().expect("an address");
    let server = Endpoint::listen(anywhere, config).expect("it listens");
    let to = server.local_addr();
    let (over, is_over) = mpsc::channel();
    thread::spawn(move || {
        let served = serve_account(server.accept().expect("a client"), None, &Cancel::new());
        println!("served: {served:?}");
        let _ = over.send(());
    });
    let client = Endpoint::bind(anywhere).expect("a port");
    let connection = client.connect(to, ClientConfig { protocols, ..ClientConfig::new(trust) }).expect("connected");
    (connection, is_over)
}

/// Asks for this on the first pair of streams, and sends on the other `some` of what it is to have.
fn ask(connection: &Connection, what: &str, some: &[u8]) -> [(SendStream, RecvStream); 2] {
    let (mut control, replies) = connection.open_bi().expect("a stream");
    control.write_all(format!("{{\"version\":\"0\",\"ask\":{{{what}}}}}\n").as_bytes()).expect("asked");
    let (mut send, receive) = connection.open_bi().expect("a stream");
    // A byte goes before the data.
    send.write_all(&[&[0], some].concat()).expect("sent");
    [(control, replies), (send, receive)]
}

fn command(line: &str) -> String {
    format!("\"command\":\"{}\"", data_encoding::BASE64.encode(line.as_bytes()))
}

#[test]
fn a_command_whose_input_breaks_off_does_not_see_an_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let (begun, mark) = (dir.path().join("begun"), dir.path().join("mark"));
    let line = format!("head -c 4 > {}; cat > {}/rest && : > {}", begun.display(), dir.path().display(), mark.display());
    let (connection, is_over) = account();
    let [(_control, mut replies), (mut send, _receive)] = ask(&connection, &command(&line), b"half");
    while fs::read(&begun).ok().as_deref() != Some(b"half") {
        thread::park_timeout(Duration::from_millis(5));
    }
    send.reset(1);
    // It has ended, and only then is the client told.
    replies.read_to_end(&mut Vec::new()).expect("how it ended");
    connection.close(0, "done");
    is_over.recv_timeout(PATIENCE).expect("over");
    assert!(!mark.exists(), "half was taken for all");
}

#[test]
fn a_command_that_has_closed_its_output_hears_that_its_client_has_gone() {
    let (connection, is_over) = account();
    let [_control, (_send, mut receive)] = ask(&connection, &command("exec sleep 1000 > /dev/null 2>&1"), b"");
    receive.read_to_end(&mut Vec::new()).expect("nothing, and its end");
    connection.close(0, "gone");
    is_over.recv_timeout(PATIENCE).expect("the command has ended");
}

#[test]
fn a_tcp_connection_whose_stream_breaks_off_is_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = listener.local_addr().expect("an address").to_string();
    for is_whole in [true, false] {
        let (connection, is_over) = account();
        let [_control, (mut send, mut receive)] = ask(&connection, &format!("\"connect\":\"{to}\""), b"half");
        let (mut accepted, _) = listener.accept().expect("a connection");
        accepted.read_exact(&mut [0; 4]).expect("half");
        if is_whole {
            send.finish().expect("ended");
        } else {
            send.reset(1);
        }
        let end = accepted.read(&mut [0; 1]).map_err(|error| error.kind());
        assert_eq!(end, if is_whole { Ok(0) } else { Err(io::ErrorKind::ConnectionReset) });
        // The other direction goes on behind an end.
        if is_whole {
            accepted.write_all(b"said").expect("taken");
            drop(accepted);
            let mut said = String::new();
            receive.read_to_string(&mut said).expect("readable");
            assert_eq!(said, "said");
        }
        connection.close(0, "done");
        is_over.recv_timeout(PATIENCE).expect("over");
    }
}
