//! Clients that were let in by their keys, and stay as long as those would let them in again.
//!
//! A client's line in the file of authorised keys can go, or change; its time can run out; and it can move to where it may not come from. All three are looked at while somebody is there, and the
//! connection of whoever may not stay is closed.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul::Connection;
use tracing::{error, warn};

use super::AuthorizedKeys;
use super::admission::{Admitted, admit};
use super::stamp::Stamp;
use crate::greeting::Refusal;
use crate::moment::Moment;
use crate::state::StateDir;

/// How often it looks: rights end at a second.
const LOOK: Duration = Duration::from_secs(1);

/// Lets the clients of one listener in by their keys, and ends those that may not stay.
pub struct KeyWatch {
    shared: Arc<Shared>,
}

struct Shared {
    state: StateDir,
    /// What connections are closed with.
    code: u64,
    present: Mutex<Present>,
    changed: Condvar,
}

#[derive(Default)]
struct Present {
    next: u64,
    clients: HashMap<u64, Client>,
    /// The file as it was when it was last compared with the clients; none where its next change might not show.
    file: Option<Stamp>,
    /// The same when it could not be used, and that was told.
    failed: Option<Stamp>,
    over: bool,
}

struct Client {
    admitted: Admitted,
    connection: Connection,
    /// Ends it; none once it was.
    end: Option<Ends>,
}

/// Ends a client, for a reason in words.
type Ends = Box<dyn FnOnce(&str) + Send>;

/// A client that is watched, until this is dropped.
#[must_use = "a client that is not kept is not watched"]
pub struct Stay {
    shared: Arc<Shared>,
    number: u64,
}

impl KeyWatch {
    /// By the file of authorised keys in `state`. Connections that are ended are closed with `code`, and with the reason in words.
    pub fn new(state: StateDir, code: u64) -> Self {
        let shared = Arc::new(Shared { state, code, present: Mutex::default(), changed: Condvar::new() });
        let watching = Arc::clone(&shared);
        thread::spawn(move || watching.watch());
        Self { shared }
    }

    /// Lets a client in, or says why not. Its connection is closed when it may not stay.
    pub fn admit(&self, connection: &Connection) -> Result<(Admitted, Stay), Refusal> {
        let (closing, code) = (connection.clone(), self.shared.code);
        self.admit_until(connection, move |reason| closing.close(code, reason))
    }

    /// The same; when it may not stay, `end` is called once with the reason, from another thread. It must not wait.
    pub fn admit_until(
        &self,
        connection: &Connection,
        end: impl FnOnce(&str) + Send + 'static,
    ) -> Result<(Admitted, Stay), Refusal> {
        // Locked, so that nobody comes in by what the file has said before it was last looked at.
        let mut present = self.shared.lock();
        let admitted = admit(&self.shared.state, connection)?;
        let client = Client { admitted: admitted.clone(), connection: connection.clone(), end: Some(Box::new(end)) };
        let (number, is_alone) = present.take_in(client);
        // Where others are watched it comes along; looking at all of them for each that comes would take the square of their number.
        if is_alone {
            self.shared.changed.notify_all();
        }
        Ok((admitted, Stay { shared: Arc::clone(&self.shared), number }))
    }
}

impl Present {
    /// Takes in a client: its number, and whether nobody else is there.
    fn take_in(&mut self, client: Client) -> (u64, bool) {
        let is_alone = self.clients.is_empty();
        self.next += 1;
        self.clients.insert(self.next, client);
        (self.next, is_alone)
    }
}

impl Drop for KeyWatch {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let gone = self.shared.lock().clients.remove(&self.number);
        // Perhaps the last handle, whose end takes the connection's lock.
        drop(gone);
    }
}

impl Shared {
    /// Looks now and then while somebody is there, until it is over.
    fn watch(&self) {
        let mut present = self.lock();
        while !present.over {
            present = if present.clients.is_empty() {
                self.changed.wait(present).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.look(&mut present, Moment::now());
                self.changed.wait_timeout(present, LOOK).unwrap_or_else(PoisonError::into_inner).0
            };
        }
    }

    /// Ends those that may not stay.
    fn look(&self, present: &mut Present, now: Moment) {
        let path = self.state.authorized_keys();
        // Before it is read: what changes meanwhile makes this an old stamp. None if there is no file.
        let file = fs::metadata(&path).ok().as_ref().map(Stamp::of);
        let keys = (present.file.is_none() || present.file != file).then(|| AuthorizedKeys::load(path));
        let keys = match keys {
            // It is looked at again: what is wrong may pass without a change of the file, as where no descriptor is left.
            Some(Err(failure)) => {
                if present.failed != file {
                    error!(%failure, "the file of authorised keys cannot be used: clients that are here stay");
                }
                present.failed = file;
                None
            }
            Some(Ok(keys)) => {
                (present.file, present.failed) = (file.filter(|file| file.is_settled(now)), None);
                Some(keys.by_key())
            }
            None => None,
        };
        for Client { admitted, connection, end } in present.clients.values_mut() {
            if end.is_none() || connection.end().is_some() {
                continue;
            }
            let entry = keys.as_ref().map(|keys| keys.get(&admitted.key).and_then(|found| found.as_ref().ok()));
            let is_as_before = entry.is_none_or(|entry| entry.is_some_and(|entry| entry.rights == admitted.rights));
            let revoked = (!is_as_before).then(|| "its key was revoked, or may do something else now".to_owned());
            let address = connection.remote_addr();
            if let Some(reason) = revoked.or_else(|| admitted.rights.turns_away(address.ip(), now)) {
                warn!(client = admitted.name, %address, "ended: {reason}");
                if let Some(end) = end.take() {
                    end(&reason);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use haul::{ClientConfig, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig};

    use super::super::Rights;
    use super::super::authorized::LOOKED_AT;
    use super::*;

    /// A listener's side of a connection of a key, and the client's.
    fn connect(server: &Endpoint, identity: Identity) -> (Connection, Connection) {
        let here = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let config = ClientConfig { identity: Some(identity), ..ClientConfig::new(PeerTrust::Anyone) };
        let client = here.connect(server.local_addr(), config).unwrap();
        (server.accept().unwrap(), client)
    }

    fn authorize(state: &StateDir, key: Fingerprint, rights: Option<&str>) {
        let mut keys = AuthorizedKeys::load(state.authorized_keys()).unwrap();
        keys.authorize(key, None, rights.map(|rights| rights.parse::<Rights>().unwrap())).unwrap();
    }

    #[test]
    fn a_client_stays_as_long_as_its_key_would_let_it_in() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::find(Some(dir.path())).unwrap();
        let server = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
        let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), server).unwrap();
        let watch = KeyWatch::new(state.clone(), 7);
        let identities = [(); 4].map(|()| Identity::generate());
        let keys = identities.each_ref().map(|identity| identity.public_key().fingerprint());
        authorize(&state, keys[0], None);
        authorize(&state, keys[1], None);
        authorize(&state, keys[2], Some("proxy"));
        authorize(&state, keys[3], Some("expires=2999-01-01"));
        let there = identities.map(|identity| connect(&server, identity));
        let _stays = there.each_ref().map(|(connection, _)| watch.admit(connection).map(|(_, stay)| stay).unwrap());
        let ended = || there.each_ref().map(|(connection, _)| connection.end().is_some());
        let look = |now| watch.shared.look(&mut watch.shared.lock(), now);
        look(Moment::now());
        assert_eq!(ended(), [false; 4]);

        AuthorizedKeys::load(state.authorized_keys()).unwrap().revoke(keys[0]).unwrap();
        authorize(&state, keys[2], Some("pipe"));
        look(Moment::now());
        assert_eq!(ended(), [true, false, true, false]);
        let told = there[0].1.closed().to_string();
        assert!(told.contains("its key was revoked"), "{told}");

        look("3000-01-01".parse().unwrap());
        assert_eq!(ended(), [true, false, true, true], "its time has run out");
        fs::write(state.authorized_keys(), [0xff, b'\n', 0xfe]).unwrap();
        look(Moment::now());
        assert_eq!(ended(), [true, false, true, true], "a file that cannot be read says nothing");

        // At a time at which the file counts as read where it was.
        let look = || look("2998-01-01".parse().unwrap());
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(&state.authorized_keys(), 0o666);
        fs::write(state.authorized_keys(), "").unwrap();
        look();
        assert_eq!(ended(), [true, false, true, true], "nor one that others may write to");
        set(dir.path(), 0o777);
        set(&state.authorized_keys(), 0o600);
        look();
        assert_eq!(ended(), [true, false, true, true], "nor one that others may replace");
        // Nothing about the file itself is another.
        set(dir.path(), 0o700);
        look();
        assert_eq!(ended(), [true; 4], "until that is mended");
    }

    #[test]
    fn a_look_takes_each_line_once_and_the_first_client_alone_wakes_the_watch() {
        const CLIENTS: usize = 8;
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::find(Some(dir.path())).unwrap();
        let server = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
        let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), server).unwrap();
        let connections = [(); CLIENTS].map(|()| {
            let identity = Identity::generate();
            authorize(&state, identity.public_key().fingerprint(), None);
            connect(&server, identity)
        });
        // Nobody watches: each look is one of these.
        let shared = Shared { state, code: 7, present: Mutex::default(), changed: Condvar::new() };
        let mut present = shared.lock();
        for (at, (connection, _)) in connections.iter().enumerate() {
            let admitted = admit(&shared.state, connection).unwrap();
            let client = Client { admitted, connection: connection.clone(), end: Some(Box::new(|_: &str| {})) };
            assert_eq!(present.take_in(client).1, at == 0);
        }
        LOOKED_AT.set(0);
        shared.look(&mut present, Moment::now());
        assert_eq!(LOOKED_AT.get(), CLIENTS);
        assert!(present.clients.values().all(|client| client.end.is_some()), "all may stay");
        present.clients.clear();
        let (connection, _) = &connections[0];
        let admitted = admit(&shared.state, connection).unwrap();
        assert!(present.take_in(Client { admitted, connection: connection.clone(), end: None }).1, "the watch waits again");
    }
}
