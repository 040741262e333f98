//! A server that sends back what it is told, and a client that asks it: ordered streams, both ways.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::thread;

use haul::{ClientConfig, Connection, ConnectionError, Endpoint, Identity, PeerTrust, ServerConfig};

/// Both ends in one process. Says what came back.
pub fn main() -> Result<(), Box<dyn Error>> {
    let identity = Identity::generate();
    // The client has the server's fingerprint from somewhere it trusts.
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, PeerTrust::Anyone))?;
    let addr = server.local_addr();
    let serving = thread::spawn(move || serve(&server.accept().map_err(io::Error::other)?));

    let answer = ask(addr, trust, "how far is it?")?;
    println!("{answer}");
    assert_eq!(answer, "how far is it?");
    Ok(serving.join().map_err(|_| "the server panicked")??)
}

/// Answers on every stream, until the client closes the connection.
fn serve(connection: &Connection) -> io::Result<()> {
    loop {
        let (mut send, mut receive) = match connection.accept_bi() {
            Ok(streams) => streams,
            Err(ConnectionError::Ended(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // A thread a stream: a client that says nothing more on one holds up no other.
        thread::spawn(move || -> io::Result<()> {
            io::copy(&mut receive, &mut send)?;
            send.finish()?;
            // Without waiting here, nothing is lost either: the client closes only after it has read the end.
            Ok(())
        });
    }
}

fn ask(addr: SocketAddr, trust: PeerTrust, question: &str) -> Result<String, Box<dyn Error>> {
    let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
    let connection = endpoint.connect(addr, ClientConfig::new(trust))?;
    let (mut send, mut receive) = connection.open_bi()?;
    send.write_all(question.as_bytes())?;
    send.finish()?;
    let mut answer = String::new();
    receive.read_to_string(&mut answer)?;
    // Who reads the last word closes.
    connection.close(0, "thank you");
    Ok(answer)
}
