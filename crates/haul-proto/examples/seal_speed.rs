//! Best time of one seal and one open of a full data packet, out of place, per suite: `cargo run --release -p haul-proto --example seal_speed`.

use std::hint::black_box;
use std::time::Instant;

use haul_proto::crypto::{CipherSuite, DataKeys, Role, TAG_LEN};

const PLAIN_BYTES: usize = 1428;
const ROUNDS: u32 = 300;
const CALLS: u32 = 1000;

fn main() {
    for suite in [CipherSuite::Aes128Gcm, CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305] {
        let (seal_ns, open_ns) = measure(suite);
        println!("{suite:?}: seal {seal_ns:.0} ns, open {open_ns:.0} ns a packet of {PLAIN_BYTES} bytes");
    }
}

fn measure(suite: CipherSuite) -> (f64, f64) {
    let mut client = DataKeys::new([7; 32], Role::Client, suite);
    let mut server = DataKeys::new([7; 32], Role::Server, suite);
    let (plain, header) = (vec![1; PLAIN_BYTES], [0; 24]);
    let (mut sealed, mut opened) = (vec![0; PLAIN_BYTES + TAG_LEN], vec![0; PLAIN_BYTES]);
    let mut number = 0;
    let seal = best(|| {
        number += 1;
        client.sealer.seal_into(0, number, &header, black_box(&plain), &mut sealed).expect("buffers fit");
    });
    let open = best(|| {
        server.opener.open_into(0, 0, number, &header, black_box(&sealed), &mut opened).expect("it is authentic");
    });
    (seal, open)
}

/// Nanoseconds of one call: the best of many short rounds, for whatever else runs on the machine only adds.
#[expect(clippy::disallowed_methods, reason = "measures")]
fn best(mut call: impl FnMut()) -> f64 {
    let round = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..ROUNDS).map(|_| round(&mut call)).fold(f64::INFINITY, f64::min)
}
