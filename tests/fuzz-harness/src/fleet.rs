//! What is said over the socket of a fleet that is kept.

use haul_fleet::messages::{MAX_REPLY, Reply, Request, read};
use haul_peer::{MAX_LINE, to_line};

/// A line from whoever has opened the socket, and one from whoever keeps it: what is understood is said again in the same words, and nothing is read beyond its line.
pub fn fleet_messages(data: &[u8]) {
    let line = data.iter().position(|&byte| byte == b'\n').map_or(data.len(), |at| at + 1);
    let mut rest = data;
    let request = Request::read(&mut rest);
    assert!(data.len() - rest.len() <= line.min(MAX_LINE as usize));
    if let Ok(Some(request)) = request {
        let said = to_line(&request);
        // A word that was left out is said, which may be too much for a line.
        if said.len() as u64 <= MAX_LINE {
            assert_eq!(Request::read(&mut &said[..]).expect("what was said").expect("a line"), request);
        }
    }
    if let Ok(Some(reply)) = read::<Reply>(&mut &data[..], MAX_REPLY) {
        let said = to_line(&reply);
        if said.len() as u64 <= MAX_REPLY {
            assert_eq!(read::<Reply>(&mut &said[..], MAX_REPLY).expect("what was said").expect("a line"), reply);
        }
        if let Reply::Terms(terms) = reply {
            let _ = (terms.anybody_calls(), terms.state());
        }
    }
}
