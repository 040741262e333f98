//! A client of a proxy stays as long as its key lets it in.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use haul_peer::keys::{AuthorizedKeys, load_or_make};
use haul_peer::{Connector, DaemonHost, Host, StateDir};
use haul_tunnel::proxy::{Client, ClientError, Event, LocalForward, Observer, PROTOCOL, Server, ServerSettings};
use haul_units::Cancel;

/// Says that somebody has come, and why he has gone.
struct Tell(Mutex<mpsc::Sender<String>>);

impl Observer for Tell {
    fn event(&self, event: Event<'_>) {
        let said = match event {
            Event::Connected { .. } => "connected".to_owned(),
            Event::Lost { error, .. } => error.to_string(),
            _ => return,
        };
        let _ = self.0.lock().expect("nobody panics").send(said);
    }
}

fn state(dir: &Path) -> StateDir {
    StateDir::find(Some(dir)).expect("it is named")
}

#[test]
fn a_key_that_is_revoked_ends_its_client() {
    let (near, far) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let (client, _) = load_or_make(&state(near.path())).expect("a key");
    let (server, _) = load_or_make(&state(far.path())).expect("a key");
    let key = client.public_key().fingerprint();
    let keys = || AuthorizedKeys::load(state(far.path()).authorized_keys()).expect("readable");
    keys().authorize(key, Some("alice"), None).expect("written");

    let (tell, told) = mpsc::channel();
    let server_key = server.public_key().fingerprint();
    let server = Server::bind(ServerSettings {
        address: Some(Ipv4Addr::LOCALHOST.into()),
        observer: Arc::new(Tell(Mutex::new(tell))),
        ..ServerSettings::new(server, Some(state(far.path())), vec!["localhost:1".parse().expect("a target")])
    })
    .expect("a free port");
    let host = DaemonHost { host: Ipv4Addr::LOCALHOST.to_string(), port: server.local_addr().port() };
    let cancel = Cancel::new();
    let serving = thread::spawn({
        let cancel = cancel.clone();
        move || server.run(&cancel)
    });
    let connector = Connector { state: Some(near.path().to_owned()), ..Connector::new(PROTOCOL) };
    let forward = LocalForward::to("127.0.0.1:0".parse().expect("a port"), "localhost:1".parse().expect("a target"));
    let client = thread::spawn(move || Client::new(connector, Host::Pinned(host, server_key), vec![forward]).run());

    assert_eq!(told.recv().expect("told"), "connected");
    assert!(keys().revoke(key).expect("written"));
    told.recv().expect("told of the end");
    let result = client.join().expect("no panic");
    let Err(ClientError::Broke { source, .. }) = result else { panic!("{result:?}") };
    assert!(source.to_string().contains("its key was revoked"), "{source}");
    cancel.cancel();
    serving.join().expect("no panic").expect("ended in order");
}
