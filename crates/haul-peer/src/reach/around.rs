//! What stands for UDP where it does not pass: TCP connections to a listener of the far side, and the channel of ssh.

use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use haul::carrier::{Carrier, Lane, tcp};
use haul::{Endpoint, Identity};

use crate::ssh::SshSession;

/// How long a way may take to open: TCP asks again after a second.
pub(super) const OPEN: Duration = Duration::from_millis(2500);

/// The way over TCP.
pub(super) struct TcpWay {
    pub(super) carrier: Carrier,
    /// The address that stands for it.
    pub(super) at: SocketAddr,
    /// Where the far side may listen, the likeliest first.
    pub(super) to: Vec<SocketAddr>,
    pub(super) name: tcp::Name,
    pub(super) bind: Option<IpAddr>,
    /// The far side takes a name from one address alone: where ours changes, it is another one.
    pub(super) renames: Option<Endpoint>,
    /// What stood for the way before, where it was renamed: the connection may still be there.
    pub(super) former: Option<SocketAddr>,
}

/// The way through ssh's channel.
pub(super) struct SshWay {
    pub(super) carrier: Carrier,
    pub(super) at: SocketAddr,
    /// From which this side sends over UDP.
    pub(super) port: u16,
}

impl TcpWay {
    /// One to a listener at these addresses, by a name that nobody else knows.
    pub(super) fn to(endpoint: &Endpoint, to: Vec<SocketAddr>, bind: Option<IpAddr>) -> Self {
        let (at, carrier) = endpoint.carry(to.first().copied());
        // The fingerprint of a key that nobody has is as good a secret as any.
        let secret = Identity::generate().public_key().fingerprint();
        let name = secret.as_bytes().first_chunk().copied().unwrap_or_default();
        Self { carrier, at, to, name, bind, renames: Some(endpoint.clone()), former: None }
    }

    /// A lane to the first of the addresses that gives one.
    pub(super) fn open(&self, patience: Duration) -> std::io::Result<()> {
        self.carrier.add(self.connect(patience)?)
    }

    /// The same in a thread of its own, which tells what came of it.
    pub(super) fn begin(&self, patience: Duration) -> mpsc::Receiver<std::io::Result<()>> {
        let (tell, told) = mpsc::channel();
        let way = self.alike();
        thread::spawn(move || tell.send(way.open(patience)));
        told
    }

    /// A lane in the place of all that there are, which bring nothing more.
    pub(super) fn renew(&mut self, patience: Duration) -> std::io::Result<()> {
        if let Some(endpoint) = self.renames.clone() {
            let new = Self::to(&endpoint, self.to.clone(), self.bind);
            if let Err(error) = new.open(patience) {
                endpoint.drop_carrier(new.at);
                return Err(error);
            }
            self.carrier.leave_lanes();
            if let Some(former) = self.former.take() {
                endpoint.drop_carrier(former);
            }
            *self = Self { former: Some(self.at), ..new };
            return Ok(());
        }
        let lane = self.connect(patience)?;
        self.carrier.leave_lanes();
        self.carrier.add(lane)
    }

    fn connect(&self, patience: Duration) -> std::io::Result<Lane> {
        let (tell, told) = mpsc::channel();
        for &to in &self.to {
            let (tell, name, bind) = (tell.clone(), self.name, self.bind);
            thread::spawn(move || tell.send((to, tcp::connect(to, bind, &name, patience))));
        }
        drop(tell);
        let mut failure = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        for (to, opened) in told {
            match opened {
                Ok(lane) => {
                    tracing::debug!(%to, "a lane over TCP");
                    return Ok(lane);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// More lanes beside those there are, all at once; whoever waits does not wait for them.
    pub(super) fn grow(&self, to: usize) {
        for _ in self.carrier.lanes()..to {
            drop(self.begin(OPEN));
        }
    }

    fn alike(&self) -> Self {
        Self { carrier: self.carrier.clone(), to: self.to.clone(), renames: None, ..*self }
    }
}

impl SshWay {
    /// Makes ssh's channel a lane, once.
    pub(super) fn open(&self, ssh: &Mutex<SshSession>) -> std::io::Result<()> {
        if self.carrier.lanes() > 0 {
            return Ok(());
        }
        let mut ssh = ssh.lock().unwrap_or_else(PoisonError::into_inner);
        let (write, read) = ssh.channel(self.carrier.clone()).ok_or(std::io::ErrorKind::NotConnected)?;
        // Dropping its writing half ends it.
        self.carrier.add(Lane { read: Box::new(read), write: Box::new(write), finish: Box::new(|| {}) })
    }
}
