//! With what this user returns to listeners: the tokens that save the round trip of a cookie (RFC 9000 8.1.3).
//!
//! A file of one entry a line, in JSON: where, when, and the token. It is a hint and nothing more: whatever cannot be read, or is older than [`LIFETIME`], is as good as absent, and a file that
//! cannot be written is no reason to fail. A token is good once; one that has been used stays until the next is there, and costs no more than having none.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::keys::table;
use crate::memory::LIFETIME;
use crate::state::StateDir;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    server: SocketAddr,
    /// Seconds since 1970.
    at: u64,
    token: Vec<u8>,
}

/// The file.
#[derive(Debug, Clone)]
pub struct ReturnTokens {
    file: PathBuf,
    /// Seconds since 1970.
    now: u64,
}

impl ReturnTokens {
    /// Those of a user.
    pub fn of(state: &StateDir) -> Self {
        Self { file: state.tokens(), now: clock::unix_seconds() }
    }

    /// For the first of these servers that has given one.
    pub fn look_up(&self, servers: &[SocketAddr]) -> Option<Vec<u8>> {
        let entries: Vec<_> = self.entries().collect();
        let of = |server: &SocketAddr| entries.iter().rev().find(|entry| entry.server == *server);
        servers.iter().find_map(of).map(|entry| entry.token.clone())
    }

    /// In the place of what that server has given before. A way of less than [`SHORTEST_WAY`] is not worth a file.
    pub fn keep(&self, server: SocketAddr, token: &[u8], rtt: Duration) {
        if rtt < SHORTEST_WAY {
            return;
        }
        let mut entries: Vec<_> = self.entries().filter(|entry| entry.server != server).collect();
        entries.push(Entry { server, at: self.now, token: token.to_vec() });
        let excess = entries.len().saturating_sub(MOST);
        let lines: Vec<_> = entries[excess..].iter().filter_map(|entry| serde_json::to_string(entry).ok()).collect();
        if let Err(error) = table::write(&self.file, &lines) {
            tracing::debug!(file = %self.file.display(), %error, "with what to return to a server is not kept");
        }
    }

    /// Entries that are young enough, oldest first.
    fn entries(&self) -> impl Iterator<Item = Entry> + use<> {
        let lines = table::read(&self.file).unwrap_or_default();
        let now = self.now;
        let young = move |entry: &Entry| entry.at <= now && now - entry.at < LIFETIME.as_secs();
        lines.into_iter().filter_map(|line| serde_json::from_str::<Entry>(&line).ok()).filter(young)
    }
}

/// Servers that are returned to; the oldest go first.
const MOST: usize = 256;
/// Writing a file to a disk takes as long.
const SHORTEST_WAY: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Duration = Duration::from_millis(100);

    fn tokens(dir: &tempfile::TempDir, now: u64) -> ReturnTokens {
        ReturnTokens { now, ..ReturnTokens::of(&StateDir::find(Some(dir.path())).unwrap()) }
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
        assert_eq!((today.entries().count(), today.look_up(&[server(1), server(10)])), (MOST, None));
    }

    #[test]
    fn nonsense_is_as_good_as_absent() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(&dir, 1_800_000_000);
        table::write(&tokens.file, &["{}".to_owned(), "192.0.2.1:1 token".to_owned()]).unwrap();
        assert_eq!(tokens.look_up(&[server(1)]), None);
        tokens.keep(server(1), b"one", FAR);
        assert_eq!(tokens.entries().count(), 1);
    }
}
