//! From which of our addresses a peer is answered, by path.
//!
//! A server that is bound to no address of its own answers each path from the address that the path was last heard at: a client knows its server by it, and where a server has several
//! links it decides by which of them packets leave. Only what is authentic counts: anybody can send to another of them what names a path.

use std::net::IpAddr;

use haul_proto::PATHS_MAX;

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

    /// Something authentic of a path came to this address; the handshake is the first path's.
    pub(super) fn on_heard(&mut self, path: u8, address: Option<IpAddr>) {
        if let Some(known) = self.0.get_mut(usize::from(path)) {
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
        answers.on_heard(1, second);
        assert_eq!([0, 1, 2].map(|path| answers.of(path)), [first, second, None]);
        answers.on_heard(0, second);
        answers.forget(1);
        answers.on_heard(200, first);
        assert_eq!([0, 1, 200].map(|path| answers.of(path)), [second, None, None]);
    }
}
