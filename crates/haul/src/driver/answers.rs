//! From which of our addresses a peer is answered, by path.
//!
//! A server that is bound to no address of its own answers each path from the address that the path was last heard at: a client knows its server by it, and where a server has several
//! links it decides by which of them packets leave.

use std::net::IpAddr;

use haul_proto::{PATHS_MAX, data_path};

/// Our addresses, by path; none where the socket has one of its own, and of connections that we began, which leave it to the routing table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answers([Option<IpAddr>; PATHS_MAX as usize]);

impl Answers {
    /// The peer's handshake came to this address.
    pub(super) fn begun_at(address: Option<IpAddr>) -> Self {
        let mut new = Self::default();
        new.0[0] = address;
        new
    }

    /// A train came to this address.
    pub(super) fn on_train(&mut self, train: &[u8], address: Option<IpAddr>) {
        if let Some(known) = self.0.get_mut(usize::from(data_path(train).unwrap_or(0))) {
            *known = address;
        }
    }

    /// From where a path's packets leave.
    pub(super) fn of(&self, path: u8) -> Option<IpAddr> {
        self.0.get(usize::from(path)).copied().flatten()
    }

    /// Nothing can leave from there: any other will do until the peer is heard again.
    pub(super) fn forget(&mut self, path: u8) {
        if let Some(known) = self.0.get_mut(usize::from(path)) {
            *known = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_is_answered_from_where_it_was_heard() {
        let [first, second] = [1, 2].map(|last| Some(IpAddr::from([192, 0, 2, last])));
        let mut answers = Answers::begun_at(first);
        let train = |path| [0, path, 0, 0, 0, 0, 0, 9, 0, 0];
        answers.on_train(&train(1), second);
        assert_eq!([0, 1, 2].map(|path| answers.of(path)), [first, second, None]);
        answers.on_train(&train(0), second);
        answers.forget(1);
        answers.on_train(&train(200), first);
        assert_eq!([0, 1, 200].map(|path| answers.of(path)), [second, None, None]);
        answers.on_train(&[0xff; 40], first);
        assert_eq!(answers.of(0), first, "a handshake is the first path's");
    }
}
