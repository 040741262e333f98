//! Clients that return: a server's token from an earlier connection saves the round trip of a cookie.
//!
//! The token is good for one connection (an observer has seen it pass), for a day, and for the newest of those that were given out. Where it is not, the server asks for a cookie, which costs no more
//! than having none. Source: RFC 9000 8.1.3 and 8.1.4.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use crate::cookie::RETURN_BYTES;

/// With this token a client returns to a server.
pub type ReturnToken = [u8; RETURN_BYTES];

/// How long a token is good for: a day is how long what else is learned of a path is kept.
pub const RETURN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Which of the tokens of one kind that a server has given out have been used: a bit each, 8 KiB.
#[derive(Debug)]
pub struct GivenTokens {
    /// Of the newest.
    newest: u64,
    /// Of the token of number n bit n modulo [`NEWEST`].
    used: Box<[u64; NEWEST / 64]>,
}

impl Default for GivenTokens {
    /// None has been given.
    fn default() -> Self {
        Self { newest: 0, used: Box::new([0; NEWEST / 64]) }
    }
}

impl GivenTokens {
    /// The number of a fresh one. It takes the place of an old one, which is no good from now on.
    pub fn give(&mut self) -> u64 {
        self.newest += 1;
        let (word, bit) = place(self.newest);
        self.used[word] &= !bit;
        self.newest
    }

    /// Whether that one is good; then it has been used.
    pub fn spend(&mut self, id: u64) -> bool {
        let is_known = (1..=self.newest).contains(&id) && self.newest - id < NEWEST as u64;
        let (word, bit) = place(id);
        let is_good = is_known && self.used[word] & bit == 0;
        if is_good {
            self.used[word] |= bit;
        }
        is_good
    }
}

fn place(id: u64) -> (usize, u64) {
    let index = (id % NEWEST as u64) as usize;
    (index / 64, 1 << (index % 64))
}

/// What a client's servers have given it, the newest last.
#[derive(Debug, Default)]
pub struct KeptTokens(VecDeque<(SocketAddr, ReturnToken)>);

impl KeptTokens {
    /// In the place of what that server has given before.
    pub fn keep(&mut self, server: SocketAddr, token: ReturnToken) {
        self.0.retain(|(known, _)| *known != server);
        if self.0.len() >= SERVERS {
            self.0.pop_front();
        }
        self.0.push_back((server, token));
    }

    /// For one connection.
    pub fn take(&mut self, server: SocketAddr) -> Option<ReturnToken> {
        let index = self.0.iter().position(|(known, _)| *known == server)?;
        self.0.remove(index).map(|(_, token)| token)
    }
}

/// Tokens of a kind that a server knows of: who has had 65,536 clients since gives another one.
const NEWEST: usize = 1 << 16;
/// Servers that a client returns to: 4 KB.
const SERVERS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_once_and_as_long_as_it_is_among_the_newest() {
        let mut given = GivenTokens::default();
        let (first, second) = (given.give(), given.give());
        assert!(!given.spend(0) && !given.spend(second + 1), "never given");
        assert!(given.spend(first) && !given.spend(first), "once");
        for _ in 0..NEWEST - 2 {
            given.give();
        }
        assert!(!given.spend(first));
        let last = given.give();
        assert!(given.spend(last), "its place was used");
        assert!(given.spend(second), "the oldest of those that are known");
        given.give();
        given.give();
        assert!(!given.spend(second) && !given.spend(first));
    }

    #[test]
    fn a_client_keeps_the_newest_of_each_server_and_uses_it_once() {
        let mut kept = KeptTokens::default();
        let server = |n: usize| SocketAddr::from(([10, 0, 0, n as u8], 7701));
        kept.keep(server(1), [1; RETURN_BYTES]);
        kept.keep(server(1), [2; RETURN_BYTES]);
        assert_eq!((kept.take(server(2)), kept.take(server(1)), kept.take(server(1))), (None, Some([2; RETURN_BYTES]), None));
        (0..=SERVERS).for_each(|n| kept.keep(server(n), [3; RETURN_BYTES]));
        assert_eq!((kept.0.len(), kept.take(server(0)).is_some(), kept.take(server(1)).is_some()), (SERVERS, false, true));
    }
}
