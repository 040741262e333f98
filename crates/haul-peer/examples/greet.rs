//! A service of one's own: who connects with an authorised key says a line, and hears who it is for the other side. Both ends are in this program.
//!
//!     greet [LINE]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::{env, thread};

use haul::{Endpoint, ServerConfig};
use haul_peer::keys::{self, AuthorizedKeys};
use haul_peer::{Connector, DaemonHost, Host, StateDir};

const PROTOCOL: &[u8] = b"greet/1";

fn main() -> Result<(), Box<dyn Error>> {
    let line = env::args().nth(1).unwrap_or_else(|| "good morning".to_owned());
    println!("{}", greet(&line)?);
    Ok(())
}

fn greet(line: &str) -> Result<String, Box<dyn Error>> {
    // A directory of keys for each end; without one it is the user's own, as that of `haul key`.
    let (near, far) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let (state, (client, _)) = (StateDir::find(Some(far.path()))?, keys::load_or_make(&StateDir::find(Some(near.path()))?)?);
    AuthorizedKeys::load(state.authorized_keys())?.authorize(client.public_key().fingerprint(), Some("alice"), None)?;

    let (identity, _) = keys::load_or_make(&state)?;
    let key = identity.public_key().fingerprint();
    let may = keys::may_handshake(Some(&state));
    let config = ServerConfig { protocols: vec![PROTOCOL.to_vec()], ..ServerConfig::new(identity, may) };
    let listener = Endpoint::listen("127.0.0.1:0".parse()?, config)?;
    let host = DaemonHost { host: "127.0.0.1".to_owned(), port: listener.local_addr().port() };
    let serving = thread::spawn(move || serve(&listener, &state).map_err(|error| error.to_string()));

    let connector = Connector { state: Some(near.path().to_owned()), ..Connector::new(PROTOCOL) };
    let connected = connector.connect(&Host::Pinned(host, key))?;
    let (mut send, mut receive) = connected.connection.open_bi()?;
    send.write_all(line.as_bytes())?;
    send.finish()?;
    let mut answer = String::new();
    receive.read_to_string(&mut answer)?;
    connected.connection.close(0, "greeted");
    connected.end();
    serving.join().map_err(|_| "the service panicked")??;
    Ok(answer)
}

/// Serves one client.
fn serve(listener: &Endpoint, state: &StateDir) -> Result<(), Box<dyn Error>> {
    let connection = listener.accept()?;
    let admitted = keys::admit(state, &connection).map_err(|refusal| refusal.error.to_string())?;
    let (mut send, receive) = connection.accept_bi()?;
    let mut line = String::new();
    // A peer says no more than was asked for.
    receive.take(1000).read_to_string(&mut line)?;
    send.write_all(format!("{}: {line}", admitted.name).as_bytes())?;
    send.finish()?;
    connection.closed();
    Ok(())
}

#[test]
fn a_client_is_known_by_its_key() {
    assert_eq!(greet("good morning").expect("an answer"), "alice: good morning");
}
