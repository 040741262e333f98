//! Measurements over loopback as a program makes them: a server in a thread, results, refusals, cancellation.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul::{ClientConfig, Connection, Endpoint, Fingerprint, Identity, PeerTrust, SendStream, ServerConfig};
use haul_perf::{
    Amount, Ask, Both, Client, Direction, Document, Listener, MeasureError, Outcome, PROTOCOL, Plan, Role, Server, ServerError,
    ServerSettings, TcpPlan, Told, Visit, Visits, Ways, measure,
};
use haul_units::Cancel;

/// A server of this test, which ends with it.
struct Serving {
    address: SocketAddr,
    key: Fingerprint,
    stop: Cancel,
    told: Arc<Log>,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

/// What a server tells of its clients.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Visits for Log {
    fn visit(&self, number: u64, _from: SocketAddr, visit: &Visit<'_>) {
        let word = match visit {
            Visit::Asked(ask) => {
                ask.plan.rate_bps.map_or_else(|| "asked".to_owned(), |bps| format!("asked, {bps} bit/s a stream"))
            }
            Visit::TurnedAway(refusal) => format!("turned away: {refusal}"),
            Visit::Measured(measured) => format!("measured {} totals", measured.totals.len()),
            Visit::Failed(error) => format!("failed: {error}"),
        };
        self.0.lock().unwrap().push(format!("{number} {word}"));
    }
}

impl Serving {
    fn start(settings: &ServerSettings) -> Self {
        let server = Server::listen(&ServerSettings { bind: Some([127, 0, 0, 1].into()), ..settings.clone() }).unwrap();
        let (address, key, stop, told) = (server.address(), server.key(), Cancel::new(), Arc::<Log>::default());
        let (end, visits) = (stop.clone(), Arc::clone(&told));
        Self { address, key, stop, told, thread: Some(thread::spawn(move || server.run(&end, visits))) }
    }

    fn connect(&self) -> Connection {
        let trust = PeerTrust::Pinned(vec![self.key]);
        let config = ClientConfig { protocols: vec![PROTOCOL.to_vec()], ..ClientConfig::new(trust) };
        Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap().connect(self.address, config).unwrap()
    }

    /// Ends it, and returns what it has told.
    fn end(self) -> Vec<String> {
        self.stop.cancel();
        self.ended()
    }

    /// Waits until it has ended by itself, and returns what it has told.
    fn ended(mut self) -> Vec<String> {
        self.thread.take().unwrap().join().unwrap().unwrap();
        std::mem::take(&mut *self.told.0.lock().unwrap())
    }
}

fn nothing(_: &Both) {}

#[test]
fn bytes_are_counted_at_both_ends_and_the_document_has_them() {
    let serving = Serving::start(&ServerSettings { one_off: true, ..ServerSettings::default() });
    let plan = Plan { ways: Ways::Both, streams: 2, amount: Amount::Bytes(300_001), ..Plan::default() };
    let outcome = measure(&serving.connect(), &plan, &Cancel::new(), &mut nothing).unwrap();
    for &direction in plan.ways.directions() {
        for role in [Role::Sender, Role::Receiver] {
            let total = outcome.total(direction, role).unwrap();
            assert_eq!((total.bytes.len(), total.bytes.iter().sum::<u64>()), (2, 300_001), "{direction:?} {role:?}");
        }
    }
    assert!(!outcome.interrupted && outcome.first_error().is_none() && outcome.pings.idle.len() <= 10);
    let about = haul_perf::About {
        host: "here".into(),
        addresses: [serving.address; 2],
        cookie: String::new(),
        server_version: "0".into(),
        systems: ["here".into(), "there".into()],
        server_key: Some(serving.key.to_string()),
        title: None,
        paths: 1,
        timestamp: 0,
    };
    let document = Document::new(&plan, &about, &outcome);
    assert_eq!(document.end.sum_received.unwrap().rates.bytes, 300_001);
    assert_eq!(document.end.sum_sent_bidir_reverse.unwrap().rates.bytes, 300_001);
    // One client was all that it was to serve.
    let told = serving.end();
    assert_eq!(told, ["1 asked", "1 measured 2 totals"]);
}

#[test]
fn tcp_is_measured_beside_the_connection() {
    let serving = Serving::start(&ServerSettings::default());
    let plan = Plan { ways: Ways::Down, amount: Amount::Bytes(200_000), tcp: Some(TcpPlan::default()), ..Plan::default() };
    let outcome = measure(&serving.connect(), &plan, &Cancel::new(), &mut nothing).unwrap();
    assert_eq!(outcome.total(Direction::Down, Role::Receiver).unwrap().bytes, [200_000]);
    assert!(outcome.total(Direction::Down, Role::Sender).unwrap().spreads.is_none(), "TCP tells no distributions");
    serving.end();
}

#[test]
fn the_server_s_bound_holds_for_its_tcp_too() {
    let serving = Serving::start(&ServerSettings { rate: Some(haul::BitRate::mbps(10)), ..ServerSettings::default() });
    let tcp = Some(TcpPlan::default());
    for (ways, streams) in [(Ways::Down, 1), (Ways::Both, 2)] {
        let plan = Plan { ways, streams, amount: Amount::Bytes(2000), tcp: tcp.clone(), ..Plan::default() };
        measure(&serving.connect(), &plan, &Cancel::new(), &mut nothing).unwrap();
    }
    let told = serving.end();
    let asked: Vec<_> = told.iter().filter(|told| told.contains("asked")).collect();
    assert_eq!(asked, ["1 asked, 10000000 bit/s a stream", "2 asked, 5000000 bit/s a stream"]);
}

#[test]
fn a_plan_out_of_bounds_is_refused_in_words() {
    let serving = Serving::start(&ServerSettings { longest: Duration::from_secs(5), ..ServerSettings::default() });
    let refused = |plan: Plan| match measure(&serving.connect(), &plan, &Cancel::new(), &mut nothing) {
        Err(MeasureError::Refused(refusal)) => (refusal.error.to_string(), refusal.hint.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Plan::default()), ("a measurement of 10s: 5s are possible at most".to_owned(), false));
    let time = Amount::Time(1_000_000);
    let fixed = Plan { ways: Ways::Down, amount: time, mode: "fixed:1M".into(), ..Plan::default() };
    let (error, hint) = refused(fixed);
    assert!(error.starts_with("the server sends at a fixed rate to nobody") && hint, "{error}");
    assert_eq!(
        refused(Plan { amount: time, mode: "turbo".into(), ..Plan::default() }).0.split(':').next(),
        Some("on the server")
    );
    assert!(serving.end().iter().all(|told| told.contains(" failed: ")));
}

#[test]
fn a_measurement_that_is_cancelled_has_the_results_so_far() {
    let serving = Serving::start(&ServerSettings::default());
    let plan = Plan { amount: Amount::Time(600_000_000), interval_us: 20_000, ..Plan::default() };
    let cancel = Cancel::new();
    let mut seen = 0;
    let outcome = measure(&serving.connect(), &plan, &cancel, &mut |both: &Both| {
        assert_eq!(both.receiver.index, seen, "intervals come in order");
        seen += 1;
        if seen == 3 {
            cancel.cancel();
        }
    });
    let outcome = outcome.unwrap();
    assert!(outcome.interrupted && outcome.intervals.len() >= 3);
    let total = outcome.total(Direction::Up, Role::Receiver).unwrap();
    assert!(total.time_us >= 60_000 && total.bytes[0] > 0, "{total:?}");
    serving.end();
}

#[test]
fn a_measurement_ends_with_what_it_depends_on() {
    struct Lifeless;
    impl Listener for Lifeless {
        fn interval(&mut self, _both: &Both) {}
        fn is_alive(&mut self) -> bool {
            false
        }
    }
    let serving = Serving::start(&ServerSettings::default());
    let outcome = measure(&serving.connect(), &Plan::default(), &Cancel::new(), &mut Lifeless);
    assert!(matches!(outcome, Err(MeasureError::FarSideEnded)), "{outcome:?}");
    serving.end();
}

#[test]
fn a_server_that_ends_ends_its_measurements() {
    let serving = Serving::start(&ServerSettings::default());
    let connection = serving.connect();
    let mut client = Client::ask(&connection, &Ask::new(Plan::default())).unwrap();
    client.ping_idle(&Cancel::new()).unwrap();
    assert_eq!(serving.end()[0], "1 asked");
    let outcome = client.run(&Cancel::new(), &mut nothing);
    assert!(matches!(outcome, Err(MeasureError::Connection(_) | MeasureError::Ended(_))), "{outcome:?}");
}

#[test]
fn the_server_s_own_output_comes_to_whoever_asks_for_it() {
    fn describe(told: &Told) -> String {
        match told {
            Told::Interval(_) => "an interval\n".to_owned(),
            Told::Total(_) => "a total\n".to_owned(),
        }
    }
    let serving = Serving::start(&ServerSettings { describe: Some(describe), ..ServerSettings::default() });
    let plan = Plan { amount: Amount::Bytes(1000), ..Plan::default() };
    for wanted in [true, false] {
        let ask = Ask { server_output: wanted, ..Ask::new(plan.clone()) };
        let client = Client::ask(&serving.connect(), &ask).unwrap();
        let output = client.run(&Cancel::new(), &mut nothing).unwrap().done.unwrap().output;
        assert_eq!(output.map(|lines| lines.last().unwrap().to_string()), wanted.then(|| "a total".to_owned()));
    }
    serving.end();
}

/// `Go` may be lost on its way, and come again after the data.
#[test]
fn the_first_byte_starts_a_receiver_s_clock_where_go_comes_late() {
    let serving = Serving::start(&ServerSettings::default());
    let connection = serving.connect();
    let (mut control, answers) = connection.open_bi().unwrap();
    let plan = Plan { amount: Amount::Time(20_000), interval_us: 10_000, ..Plan::default() };
    writeln!(control, "{}", serde_json::to_string(&Ask::new(plan)).unwrap()).unwrap();
    let mut answers = BufReader::new(answers).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap() };
    assert!(next()["welcome"].is_object());
    let blocks = connection.open_blocks().unwrap();
    blocks.send(haul::SharedBytes::from(vec![7; 1000])).unwrap();
    let (first, second, total) = (next(), next(), next());
    let times = [&first, &second].map(|told| told["interval"]["end_us"].as_u64());
    assert_eq!((times, &total["total"]["time_us"]), ([Some(10_000), Some(20_000)], &20_000.into()));
    assert_eq!(total["total"]["bytes"], serde_json::json!([1000]));
    writeln!(control, "\"go\"").unwrap();
    assert!(next()["done"].is_object());
    connection.close(haul_perf::CLOSE_DONE, "done");
    serving.end();
}

/// What comes of a measurement of 20 ms from a server that follows `script` once it has been told to go.
fn measure_from(script: impl FnOnce(&Connection, &mut SendStream) + Send + 'static) -> Result<Outcome, MeasureError> {
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let settings = ServerConfig { protocols: vec![PROTOCOL.to_vec()], ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let endpoint = Endpoint::listen("127.0.0.1:0".parse().unwrap(), settings).unwrap();
    let address = endpoint.local_addr();
    let server = thread::spawn(move || {
        let connection = endpoint.accept().unwrap();
        let (mut control, asked) = connection.accept_bi().unwrap();
        writeln!(control, "{{\"welcome\":{{\"version\":\"0\"}}}}").unwrap();
        let mut asked = BufReader::new(asked).lines().map(Result::unwrap);
        asked.find(|line| line == "\"go\"").unwrap();
        script(&connection, &mut control);
        connection.closed();
    });
    let config = ClientConfig { protocols: vec![PROTOCOL.to_vec()], ..ClientConfig::new(trust) };
    let connection = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap().connect(address, config).unwrap();
    let plan = Plan { ways: Ways::Down, amount: Amount::Time(20_000), ..Plan::default() };
    let client = Client::ask(&connection, &Ask::new(plan)).unwrap();
    let outcome = client.run(&Cancel::new(), &mut nothing);
    connection.close(haul_perf::CLOSE_DONE, "done");
    server.join().unwrap();
    outcome
}

#[test]
fn a_server_that_starts_to_send_twice_is_to_blame() {
    let outcome = measure_from(|_, control| writeln!(control, "\"started\"\n\"started\"").unwrap());
    assert!(matches!(outcome, Err(MeasureError::Misbehaved(_))), "{outcome:?}");
}

#[test]
fn the_first_byte_starts_a_client_s_clock_where_the_word_comes_late() {
    let outcome = measure_from(|connection, control| {
        let blocks = connection.open_blocks().unwrap();
        blocks.send(haul::SharedBytes::from(vec![7; 1000])).unwrap();
        let total = r#"{"total":{"direction":"down","role":"sender","time_us":20000,"bytes":[1000]}}"#;
        let cpu = serde_json::to_string(&haul_perf::CpuUse::default()).unwrap();
        writeln!(control, "{total}\n{{\"done\":{{\"cpu\":{cpu}}}}}").unwrap();
        connection.closed();
    });
    let outcome = outcome.unwrap();
    let received = outcome.total(Direction::Down, Role::Receiver).unwrap();
    assert_eq!((received.time_us, &received.bytes[..]), (20_000, &[1000][..]));
}

#[test]
fn a_client_that_leaves_with_pings_unanswered_has_measured() {
    let serving = Serving::start(&ServerSettings { one_off: true, ..ServerSettings::default() });
    let connection = serving.connect();
    let (mut control, _answers) = connection.open_bi().unwrap();
    let mut words = serde_json::to_string(&Ask::new(Plan::default())).unwrap();
    words.extend((0..20_000).map(|number| format!("\n{{\"ping\":{number}}}")));
    words.push_str("\n{\"results\":[]}\n");
    control.write_all(words.as_bytes()).unwrap();
    control.finish().unwrap();
    control.wait_acknowledged().unwrap();
    connection.close(haul_perf::CLOSE_DONE, "done");
    assert_eq!(serving.ended(), ["1 asked", "1 measured 0 totals"]);
}
