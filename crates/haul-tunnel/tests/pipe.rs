//! Streams of two programs, joined over a real connection on loopback.
#![cfg(unix)]

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use haul::{ClientConfig, Connection, ControllerChoice, Endpoint, Identity, PeerTrust, RecvStream, SendStream, TransportConfig};
use haul_peer::{Connector, DaemonHost, Family, Host};
use haul_tunnel::program::{Far, ListenSettings, Listener, Local, PROTOCOL, TunnelError, guests, transport};
use haul_units::Cancel;

/// One that lets anybody in, and how to get there.
fn listener() -> (Listener, Far) {
    let identity = Identity::generate();
    let key = identity.public_key().fingerprint();
    let listener = Listener::bind(ListenSettings {
        identity,
        authorized: None,
        address: Some(Ipv4Addr::LOCALHOST.into()),
        family: Family::Any,
        port: 0,
        transport: transport(ControllerChoice::default(), TransportConfig::default().idle_timeout),
        guests: guests(),
        visits: Arc::new(()),
    })
    .expect("a free port");
    let host = DaemonHost { host: Ipv4Addr::LOCALHOST.to_string(), port: listener.local_addr().port() };
    (listener, Far { connector: Connector::new(PROTOCOL), host: Host::Open(host, Some(key)) })
}

/// Streams that a program at the other end of two pipes reads and writes.
fn local() -> (Local, File, File) {
    let ((input, writer), (reader, output)) = (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
    let local = Local { input: Some(input.into()), output: output.into() };
    (local, File::from(OwnedFd::from(writer)), File::from(OwnedFd::from(reader)))
}

#[test]
fn what_one_program_writes_the_other_reads() {
    let (listener, far) = listener();
    let serving = thread::spawn(move || {
        let (local, mut input, mut output) = local();
        let program = thread::spawn(move || {
            let mut heard = String::new();
            output.read_to_string(&mut heard).expect("readable");
            input.write_all(heard.to_uppercase().as_bytes()).expect("taken");
        });
        let cancel = Cancel::new();
        let mut session = listener.next(&cancel).expect("it accepts").expect("a client");
        let outcome = session.carry(local, &cancel).expect("carried");
        session.part(&cancel);
        program.join().expect("no panic");
        outcome.ends
    });
    let (local, mut input, mut output) = local();
    let text = "a line of some length\n".repeat(100_000);
    let said = text.clone();
    // The end of the input is what the other program waits for.
    let saying = thread::spawn(move || input.write_all(said.as_bytes()));
    let hearing = thread::spawn(move || {
        let mut heard = String::new();
        output.read_to_string(&mut heard).map(|_| heard)
    });
    let ends = far.pipe(local).expect("carried").ends;
    saying.join().expect("no panic").expect("taken");
    assert!(hearing.join().expect("no panic").expect("readable") == text.to_uppercase());
    let theirs = serving.join().expect("no panic");
    let bytes = text.len() as u64;
    assert_eq!((ends.sent, ends.received, ends.reader_gone), (bytes, bytes, false));
    assert_eq!((theirs.sent, theirs.received, theirs.reader_gone), (bytes, bytes, false));
}

#[test]
fn a_listener_runs_no_commands_and_says_so() {
    let (_listener, far) = listener();
    let (local, _input, _output) = local();
    match far.command(b"true".to_vec(), local, io::sink()) {
        Err(TunnelError::Refused { refusal, .. }) => assert_eq!(refusal.error, "this is a pipe: it runs no commands"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_waits_is_sent_home() {
    let (listener, _) = listener();
    let cancel = Cancel::new();
    let other = cancel.clone();
    let waiting = thread::spawn(move || listener.next(&cancel).expect("it accepts").is_none());
    other.cancel();
    assert!(waiting.join().expect("no panic"), "nobody came");
}

#[test]
fn a_cancelled_transfer_is_an_error_of_its_own() {
    let (listener, far) = listener();
    let cancel = far.connector.cancel.clone();
    let serving = thread::spawn(move || {
        let (local, _input, _output) = local();
        let mut session = listener.next(&Cancel::new()).expect("it accepts").expect("a client");
        // It is there: now nobody has anything to say.
        cancel.cancel();
        session.carry(local, &Cancel::new()).map(|outcome| outcome.ends)
    });
    let (local, _input, _output) = local();
    let result = far.pipe(local);
    assert!(matches!(result, Err(TunnelError::Cancelled)), "{result:?}");
    let theirs = serving.join().expect("no panic");
    assert!(matches!(theirs, Err(TunnelError::Broken { .. })), "half of something is not all of it: {theirs:?}");
}

#[test]
fn what_cannot_be_written_here_is_not_the_peer_s_doing() {
    let (listener, far) = listener();
    let serving = thread::spawn(move || {
        let (local, mut input, _output) = local();
        input.write_all(b"some").expect("taken");
        let mut session = listener.next(&Cancel::new()).expect("it accepts").expect("a client");
        session.carry(local, &Cancel::new()).map(|outcome| outcome.ends)
    });
    let full = File::options().write(true).open("/dev/full").expect("it is there");
    let error = far.pipe(Local { input: None, output: full.into() }).expect_err("it is full");
    assert_eq!(error.to_string(), "writing what has come: No space left on device (os error 28)");
    assert!(matches!(serving.join().expect("no panic"), Err(TunnelError::Broken { .. })));
}

/// A client that has asked to be connected, and says no more, and what it asked by.
fn asker(listener: &Listener, key: &Identity) -> (Connection, (SendStream, RecvStream)) {
    let config =
        ClientConfig { protocols: vec![PROTOCOL.to_vec()], identity: Some(key.clone()), ..ClientConfig::new(PeerTrust::Anyone) };
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let connection = endpoint.connect(listener.local_addr(), config).expect("connected");
    let (mut control, replies) = connection.open_bi().expect("a stream");
    control.write_all(b"{\"version\":\"0\",\"ask\":\"pipe\"}\n").expect("asked");
    (connection, (control, replies))
}

#[test]
fn a_client_without_a_stream_is_not_waited_for_once_that_is_cancelled() {
    let (listener, _) = listener();
    let client = asker(&listener, &Identity::generate());
    let mut session = listener.next(&Cancel::new()).expect("it accepts").expect("a client");
    let cancel = Cancel::new();
    let other = cancel.clone();
    let cancelling = thread::spawn(move || {
        thread::park_timeout(Duration::from_millis(50));
        other.cancel();
    });
    let (local, _input, _output) = local();
    let result = session.carry(local, &cancel);
    assert!(matches!(result, Err(TunnelError::Cancelled)), "{result:?}");
    cancelling.join().expect("no panic");
    drop(client);
}

#[test]
fn clients_that_gave_up_while_they_waited_take_no_place() {
    let (listener, _) = listener();
    let key = Identity::generate();
    // As many as one key may have.
    let waiting: Vec<_> = (0..8).map(|_| asker(&listener, &key)).collect();
    for (client, _asked_by) in waiting {
        client.close(0, "tired of it");
    }
    // One that is not refused waits now. That the others have gone is on its way.
    let mut refused = 0;
    let (_client, (_asked_by, replies)) = loop {
        let (client, (asked_by, mut replies)) = asker(&listener, &key);
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let answered = replies.read(&mut [0]).is_ok();
            let _ = tell.send(answered);
            replies
        });
        match told.recv_timeout(Duration::from_secs(1)) {
            Ok(_) => {
                refused += 1;
                assert!(refused < 1_000, "no place becomes free");
                thread::park_timeout(Duration::from_millis(20));
            }
            Err(_) => break (client, (asked_by, told)),
        }
    };
    let (local, input, _output) = local();
    drop(input);
    let mut session = listener.next(&Cancel::new()).expect("it accepts").expect("a client");
    let cancel = Cancel::new();
    let hurry = cancel.clone();
    let cancelling = thread::spawn(move || {
        assert!(replies.recv_timeout(Duration::from_secs(60)).expect("an answer"), "it is the one that waits who is served");
        hurry.cancel();
    });
    assert!(matches!(session.carry(local, &cancel), Err(TunnelError::Cancelled)));
    cancelling.join().expect("no panic");
}
