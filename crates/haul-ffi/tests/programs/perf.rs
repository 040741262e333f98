//! Measurements, with a server of `haul perf` in this process.

use std::sync::Arc;

use haul_perf::{Server, ServerSettings};
use haul_units::Cancel;

use crate::support::{Workshop, builds_with_servers, run};

#[test]
fn a_path_is_measured() {
    let settings = ServerSettings { bind: Some([127, 0, 0, 1].into()), ..ServerSettings::default() };
    let server = Server::listen(&settings).expect("a socket");
    let (port, key, stop) = (server.address().port().to_string(), server.key().to_string(), Cancel::new());
    let stopped = stop.clone();
    let serving = std::thread::spawn(move || server.run(&stopped, Arc::new(())));
    let place = Workshop::open();
    for build in builds_with_servers() {
        let mut command = place.program("tests/c/perf.c", build);
        command.args([&port, &key]);
        run(command);
    }
    stop.cancel();
    assert!(serving.join().expect("no panic").is_ok());
}
