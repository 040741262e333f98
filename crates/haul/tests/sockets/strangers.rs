//! What clients get that nobody has admitted, how long they stay, and whom they keep out.

use std::time::Duration;

use haul::udp::Options;
use haul::{Admission, AdmittedBy, Bytes, ClientConfig, Connection, Endpoint, ServerConfig};

use crate::support::{PATIENCE, bytes, configs, eventually};

fn loopback(ip: &str, server: Option<ServerConfig>) -> Endpoint {
    Endpoint::with_options(format!("{ip}:0").parse().expect("an address"), Options::default(), server).expect("binds")
}

/// A server whose application alone admits.
fn open_to_all(admission: Admission) -> (ClientConfig, Endpoint) {
    let (config, mut server) = configs();
    server.admission = Admission { by: AdmittedBy::Application, ..admission };
    (config, loopback("127.0.0.1", Some(server)))
}

fn next_stranger(server: &Endpoint) -> Connection {
    server.accept_stranger_timeout(PATIENCE).expect("listens").expect("in time")
}

#[test]
fn a_stranger_has_one_stream_and_little_credit_until_it_is_admitted() {
    let (config, server) = open_to_all(Admission::default());
    let near = loopback("127.0.0.1", None).connect(server.local_addr(), config).expect("connects");
    let silent = server.accept_stranger_timeout(Duration::from_millis(100)).expect("listens");
    assert!(silent.is_none(), "nobody hears of one that says nothing");
    let (mut send, _receive) = near.open_bi().expect("the first stream");
    let sending = std::thread::spawn(move || {
        use std::io::Write as _;
        send.write_all(&bytes(1, 1 << 20)).expect("in the end");
        send
    });
    let far = next_stranger(&server);
    assert!(!far.is_admitted());
    eventually("the credit is used up", || far.stats().received_stream >= Bytes::kib(32));
    std::thread::scope(|scope| {
        let blocks = scope.spawn(|| near.open_blocks().map(drop));
        crate::support::pause(Duration::from_millis(100));
        assert!(!blocks.is_finished(), "no stream but the first");
        assert!(far.stats().received_stream < Bytes::kib(64), "{:?}", far.stats().received_stream);
        far.admit(Some(Bytes::mib(8)));
        assert!(blocks.join().expect("no panic").is_ok(), "all streams once it is admitted");
    });
    let (_, mut receive) = far.accept_bi().expect("the first");
    let mut all = vec![0; 1 << 20];
    std::io::Read::read_exact(&mut receive, &mut all).expect("arrives");
    assert!(all == bytes(1, 1 << 20));
    assert_eq!(server.strangers(), 0);
    drop(sending.join().expect("no panic"));
}

#[test]
fn streams_that_begin_after_the_admission_carry_much_whoever_opens_them() {
    use std::io::{Read as _, Write as _};
    let (config, server) = open_to_all(Admission::default());
    let near = loopback("127.0.0.1", None).connect(server.local_addr(), config).expect("connects");
    let (mut first, _receive) = near.open_bi().expect("the first stream");
    first.write_all(b"let me in").expect("has credit");
    let far = next_stranger(&server);
    far.admit(None);
    far.accept_bi().expect("the first");
    for far_opens in [false, true] {
        let (send, mut receive) = if far_opens {
            let (mut word, receive) = far.open_bi().expect("a stream");
            word.write_all(b"x").expect("has credit");
            (near.accept_bi().expect("opened").0, receive)
        } else {
            let (mut send, _) = near.open_bi().expect("a stream");
            send.write_all(&bytes(2, 1000)).expect("has credit");
            let (_, mut receive) = far.accept_bi().expect("opened");
            receive.read_exact(&mut [0; 1000]).expect("arrives");
            (send, receive)
        };
        let sending = std::thread::spawn(move || {
            let mut send = send;
            send.write_all(&bytes(2, 1 << 20)).and_then(|()| Ok(send.finish()?)).expect("in the end");
            send
        });
        let mut all = Vec::new();
        receive.read_to_end(&mut all).expect("arrives");
        assert!(all == bytes(2, 1 << 20));
        drop(sending.join().expect("no panic"));
    }
}

#[test]
fn who_is_not_admitted_in_time_is_gone() {
    let deadline = Duration::from_millis(500);
    let (config, server) = open_to_all(Admission { deadline, ..Admission::default() });
    let client = loopback("127.0.0.1", None);
    let silent = client.connect(server.local_addr(), config.clone()).expect("connects");
    let talks = client.connect(server.local_addr(), config).expect("connects");
    let (mut send, _receive) = talks.open_bi().expect("a stream");
    std::io::Write::write_all(&mut send, b"x").expect("has credit");
    let far = next_stranger(&server);
    assert_eq!(server.strangers(), 2);
    for stranger in [&silent, &talks] {
        assert!(stranger.closed().to_string().contains("no request came in time"), "{}", stranger.closed());
    }
    far.closed();
    eventually("both places are free", || server.strangers() == 0);
}

#[test]
fn trusted_clients_that_nobody_accepts_do_not_stay_either() {
    let (config, mut server) = configs();
    server.admission.deadline = Duration::from_millis(500);
    let server = loopback("127.0.0.1", Some(server));
    let client = loopback("127.0.0.1", None);
    let first = client.connect(server.local_addr(), config.clone()).expect("connects");
    assert!(server.accept_timeout(PATIENCE).expect("listens").is_some_and(|far| far.is_admitted()));
    drop(first);
    let forgotten = client.connect(server.local_addr(), config).expect("connects");
    assert!(forgotten.closed().to_string().contains("in time"));
    assert!(server.accept_timeout(Duration::from_millis(50)).expect("listens").is_none());
}

#[test]
fn strangers_keep_nobody_out() {
    let (config, server) = open_to_all(Admission { places: 40, places_of_source: 30, ..Admission::default() });
    let crowd = loopback("127.9.9.9", None);
    let strangers: Vec<_> = (0..60).map(|_| crowd.connect(server.local_addr(), config.clone()).expect("connects")).collect();
    eventually("no more than their source may have", || server.strangers() == 30);
    let many: Vec<_> = (0..40)
        .map(|source| {
            let endpoint = loopback(&format!("127.8.{source}.1"), None);
            let connection = endpoint.connect(server.local_addr(), config.clone()).expect("connects");
            (endpoint, connection)
        })
        .collect();
    eventually("no more than there are places", || server.strangers() == 40);
    let honest = loopback("127.7.7.7", None).connect(server.local_addr(), config).expect("connects");
    let (mut send, _receive) = honest.open_bi().expect("a stream");
    std::io::Write::write_all(&mut send, b"hello").expect("has credit");
    let far = next_stranger(&server);
    far.admit(None);
    assert_eq!(far.remote_addr().ip().to_string(), "127.7.7.7");
    assert!(honest.end().is_none() && far.end().is_none());
    // Those who came first have had to go, told so or not.
    strangers.first().expect("sixty").closed();
    assert!(many.last().expect("forty").1.end().is_none(), "and those who came last stay");
}
