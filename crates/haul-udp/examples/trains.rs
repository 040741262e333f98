//! A hundred trains over loopback: how many system calls the same datagrams take with the offloads and without.

use haul_udp::{Batch, Options, Outgoing, Sent, Socket};

/// Says it on standard output.
pub fn main() -> std::io::Result<()> {
    for (offload, name) in [(true, "with offloads"), (false, "without")] {
        let options = Options { segment_offload: offload, receive_offload: offload };
        let (from, to) = (Socket::bind(([127, 0, 0, 1], 0).into(), options)?, Socket::bind(([127, 0, 0, 1], 0).into(), options)?);
        let train = vec![7; 40 * SEGMENT_BYTES + 5];
        let mut batch = Batch::new(8);
        let (mut datagrams, mut trains) = (0, 0);
        for round in 1..=100 {
            let outgoing = Outgoing { to: to.local_addr(), from: None, ecn: 0, train: &train, segment_bytes: SEGMENT_BYTES };
            assert!(matches!(from.send(&outgoing)?, Sent::Taken));
            while datagrams < 41 * round {
                to.receive(&mut batch)?;
                for received in batch.trains() {
                    trains += 1;
                    datagrams += received.train.chunks(received.segment_bytes).count();
                }
            }
        }
        println!("{name}: {datagrams} datagrams came in {trains} trains");
    }
    Ok(())
}

const SEGMENT_BYTES: usize = 1200;
