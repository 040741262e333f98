//! Bulk data in blocks: each arrives as soon as it is complete, in whatever order, so that a lost packet holds up its block alone.

use std::error::Error;
use std::thread;

use haul::{BlockSender, ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig, StreamError};

/// Both ends in one process: 16 MB in blocks of 1 MB, put together again by their index.
pub fn main() -> Result<(), Box<dyn Error>> {
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let server = Endpoint::listen("127.0.0.1:0".parse()?, ServerConfig::new(identity, PeerTrust::Anyone))?;
    let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
    let near = endpoint.connect(server.local_addr(), ClientConfig::new(trust))?;
    let far = server.accept()?;

    let data: Vec<u8> = (0..16 * BLOCK).map(|i| (i / 1000) as u8).collect();
    let sender = near.open_blocks()?;
    let sending = thread::spawn({
        let data = data.clone();
        move || send(&sender, &data)
    });

    let mut arrived = vec![0; data.len()];
    let receiver = far.accept_blocks()?;
    while let Some(block) = receiver.recv()? {
        let start = block.index() as usize * BLOCK;
        arrived.get_mut(start..start + block.len()).ok_or("a block that was not expected")?.copy_from_slice(&block);
        // The block is dropped here: its memory goes round, and the peer may send as much again.
    }
    sending.join().map_err(|_| "the sender panicked")??;
    assert!(arrived == data);
    println!("{} blocks of {BLOCK} bytes", data.len() / BLOCK);
    Ok(())
}

fn send(sender: &BlockSender, data: &[u8]) -> Result<(), StreamError> {
    for part in data.chunks(BLOCK) {
        // A buffer whose block has been acknowledged, if there is one.
        let mut block = sender.buffer();
        block.extend_from_slice(part);
        // Waits while as much is on its way as the connection can use.
        sender.send(block)?;
    }
    // Waits until the peer's transport has them all.
    sender.finish()
}

const BLOCK: usize = 1_000_000;
