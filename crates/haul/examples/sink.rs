//! A sink of the application's own: packets are decrypted straight into the place where their bytes belong, here an image of 8 MiB in memory.

use std::error::Error;
use std::ops::Range;
use std::sync::mpsc;

use haul::{ClientConfig, Endpoint, Identity, MAX_BLOCK, PeerTrust, ServerConfig, Sink, SinkFactory};

/// Both ends in one process.
pub fn main() -> Result<(), Box<dyn Error>> {
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let mut config = ServerConfig::new(identity, PeerTrust::Anyone);
    let (done, images) = mpsc::channel();
    config.transport.sinks = Some(SinkFactory::new(move |_| Box::new(Image::new(done.clone()))));
    // The peer opens streams as it likes: this is how many images it can make us hold.
    config.transport.max_streams = 1;
    let server = Endpoint::listen("127.0.0.1:0".parse()?, config)?;
    let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
    let near = endpoint.connect(server.local_addr(), ClientConfig::new(trust))?;
    let far = server.accept()?;

    // Block i lies at offset i * MAX_BLOCK, so whole blocks make an image without gaps.
    let sent: Vec<u8> = (0..IMAGE).map(|i| (i / 1000) as u8).collect();
    let sender = near.open_blocks()?;
    for block in sent.chunks(MAX_BLOCK) {
        sender.send(block.to_vec())?;
    }
    sender.finish()?;

    let image = images.recv()?;
    // The sink's `consumed` has grown meanwhile: that is worth credit.
    far.sinks_consumed();
    assert!(image == sent);
    println!("an image of {} MiB", image.len() >> 20);
    Ok(())
}

struct Image {
    memory: Vec<u8>,
    /// Which of its bytes are there.
    have: Vec<bool>,
    have_bytes: usize,
    done: mpsc::Sender<Vec<u8>>,
}

impl Image {
    fn new(done: mpsc::Sender<Vec<u8>>) -> Self {
        Self { memory: vec![0; IMAGE], have: vec![false; IMAGE], have_bytes: 0, done }
    }

    /// Where in the memory the bytes go: the peer chooses the offset, so it is checked.
    fn place(&self, offset: u64, len: usize) -> Option<Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(len)?;
        (end <= self.memory.len()).then_some(start..end)
    }

    /// Notes bytes that are there now; hands the image on with the last of them.
    fn note(&mut self, place: Range<usize>) -> usize {
        let flags = self.have.get_mut(place).unwrap_or_default();
        let new = flags.iter().filter(|have| !**have).count();
        flags.fill(true);
        self.have_bytes += new;
        if new > 0 && self.have_bytes == IMAGE {
            // Nobody may want it any more; then it is dropped.
            let _ = self.done.send(std::mem::take(&mut self.memory));
        }
        new
    }
}

/// Called while the connection is locked: quick, and never back into the connection.
impl Sink for Image {
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        let place = self.place(offset, len)?;
        // A forged packet may scribble on a slot: none is given where good bytes are.
        let is_vacant = self.have.get(place.clone())?.iter().all(|have| !have);
        if is_vacant { self.memory.get_mut(place) } else { None }
    }

    fn commit(&mut self, offset: u64, len: usize, _end: bool) {
        if let Some(place) = self.place(offset, len) {
            self.note(place);
        }
    }

    fn deliver(&mut self, offset: u64, bytes: &[u8], _end: bool) -> usize {
        let Some(place) = self.place(offset, bytes.len()) else { return 0 };
        for (at, byte) in place.clone().zip(bytes) {
            if !self.have[at] {
                self.memory[at] = *byte;
            }
        }
        self.note(place)
    }

    fn finish(&mut self, _total: u64) {}

    fn reset(&mut self, _code: u64) {}

    fn consumed(&self) -> u64 {
        self.have_bytes as u64
    }
}

const IMAGE: usize = 4 * MAX_BLOCK;
