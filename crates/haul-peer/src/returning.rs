//! With what this user returns to listeners: the tokens that save the round trip of a cookie (RFC 9000 8.1.3).
//!
//! A [`Cache`] of the user's: where, and the token. A token is good once; one that has been used stays until the next is there, and costs no more than having none.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::clock;
use crate::state::StateDir;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    server: SocketAddr,
    token: Vec<u8>,
}

/// The file.
#[derive(Debug, Clone)]
pub struct ReturnTokens(Cache<Entry>);

impl ReturnTokens {
    /// Those of a user.
    pub fn of(state: &StateDir) -> Self {
        Self(Cache::new(state.tokens(), clock::unix_seconds()))
    }

    /// For the first of these servers that has given one.
    pub fn look_up(&self, servers: &[SocketAddr]) -> Option<Vec<u8>> {
        let entries: Vec<_> = self.0.entries().collect();
        let of = |server: &SocketAddr| entries.iter().rev().find(|entry| entry.server == *server);
        servers.iter().find_map(of).map(|entry| entry.token.clone())
    }

    /// In the place of what that server has given before. A way of less than [`SHORTEST_WAY`] is not worth a file.
    pub fn keep(&self, server: SocketAddr, token: &[u8], rtt: Duration) {
        if rtt >= SHORTEST_WAY {
            self.0.keep(Entry { server, token: token.to_vec() }, |entry| entry.server == server);
        }
    }
}

/// Writing a file to a disk takes as long.
const SHORTEST_WAY: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::MOST;
    use crate::keys::table;

    const FAR: Duration = Duration::from_millis(100);

    fn tokens(dir: &tempfile::TempDir, now: u64) -> ReturnTokens {
        ReturnTokens(Cache::new(StateDir::find(Some(dir.path())).unwrap().tokens(), now))
    }

    fn server(n: usize) -> SocketAddr {
        format!("192.0.2.1:{n}").parse().unwrap()
    }

    #[test]
    fn the_newest_of_each_server_is_kept_for_a_day() {
        let (dir, noon) = (tempfile::tempdir().unwrap(), 1_800_000_000);
        let today = tokens(&dir, noon);
        assert_eq!(today.look_up(&[server(1)]), None);
        today.keep(server(1), b"one", FAR);
        today.keep(server(1), b"two", FAR);
        today.keep(server(2), b"near", Duration::from_millis(1));
        assert_eq!(today.look_up(&[server(2), server(1)]).as_deref(), Some(&b"two"[..]));
        assert_eq!(today.look_up(&[server(2)]), None);
        assert!(tokens(&dir, noon + 86_399).look_up(&[server(1)]).is_some());
        assert!(
            tokens(&dir, noon + 86_400).look_up(&[server(1)]).is_none() && tokens(&dir, noon - 1).look_up(&[server(1)]).is_none()
        );
        (10..11 + MOST).for_each(|n| today.keep(server(n), b"x", FAR));
        assert_eq!((today.0.entries().count(), today.look_up(&[server(1), server(10)])), (MOST, None));
    }

    #[test]
    fn nonsense_is_as_good_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(&dir, 1_800_000_000);
        table::write(&tokens.0.file, &["{}".to_owned(), "192.0.2.1:1 token".to_owned()]).unwrap();
        assert_eq!(tokens.look_up(&[server(1)]), None);
        tokens.keep(server(1), b"one", FAR);
        assert_eq!(tokens.0.entries().count(), 1);
    }
}
