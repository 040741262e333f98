//! Time of one seal and one open of a full data packet, out of place, per suite: `cargo run --release -p haul-proto --example seal_speed`.

use std::hint::black_box;
use std::time::Instant;

use haul_proto::crypto::{CipherSuite, DataKeys, Role, TAG_LEN};

const PLAIN_BYTES: usize = 1428;
const PACKETS: u64 = 300_000;

fn main() {
    for suite in [CipherSuite::Aes128Gcm, CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305] {
        let (seal_ns, open_ns) = measure(suite);
        println!("{suite:?}: seal {seal_ns:.0} ns, open {open_ns:.0} ns a packet of {PLAIN_BYTES} bytes");
    }
}

#[expect(clippy::disallowed_methods, reason = "measures")]
fn measure(suite: CipherSuite) -> (f64, f64) {
    let mut client = DataKeys::new([7; 32], Role::Client, suite);
    let mut server = DataKeys::new([7; 32], Role::Server, suite);
    let (plain, header) = (vec![1; PLAIN_BYTES], [0; 24]);
    let (mut sealed, mut opened) = (vec![0; PLAIN_BYTES + TAG_LEN], vec![0; PLAIN_BYTES]);
    let start = Instant::now();
    for number in 0..PACKETS {
        client.sealer.seal_into(0, number, &header, black_box(&plain), &mut sealed).expect("buffers fit");
    }
    let seal = start.elapsed();
    let start = Instant::now();
    for _ in 0..PACKETS {
        server.opener.open_into(0, 0, PACKETS - 1, &header, black_box(&sealed), &mut opened).expect("it is authentic");
    }
    let per_packet = |time: std::time::Duration| time.as_nanos() as f64 / PACKETS as f64;
    (per_packet(seal), per_packet(start.elapsed()))
}
