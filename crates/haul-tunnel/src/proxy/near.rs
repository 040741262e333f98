//! The side of the clients: takes TCP connections, and opens a stream for each.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haul::Connection;
use haul_peer::Target;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::dial::prepare;
use super::hub::{Hub, Slot};
use super::observer::Event;
use super::relay::{Reply, Streams, cut, relay, reset};
use super::socks;
use super::wire::{Aim, FAILED, Refused};
use crate::reset::resets_when_dropped;

/// How long a connection may wait for the other side to be there, for the first time or again: as long as that side tries to reach a target. A login by ssh over a line that
/// drops long packets without a word takes more than 5 s.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a SOCKS client may take to say what it wants.
const REQUEST: Duration = Duration::from_secs(60);
/// Time between attempts to accept where the system has no room.
const PAUSE: Duration = Duration::from_millis(100);

/// The haul connection in use; none while there is none. The side that connects puts each new one into it ([`Client`](super::Client)); the side that is asked has one for good.
pub type Link = watch::Receiver<Option<Connection>>;

/// Where connections to a port go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Duty {
    /// To this.
    To(Aim),
    /// To where the client says, by SOCKS5.
    Socks,
    /// To where it was going before this host took it.
    Onwards,
}

/// Accepts connections and carries them, until aborted.
pub fn attend(listener: TcpListener, duty: Duty, link: Link, hub: Arc<Hub>) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((client, from)) => {
                    // Who finds no place waits, and those behind it in the system's queue, as with any server that is busy. A port that nobody uses
                    // takes no place.
                    resets_when_dropped(&client, true);
                    let slot = hub.slot().await;
                    let visit = Visit { from, duty: duty.clone(), link: link.clone(), hub: Arc::clone(&hub), _slot: slot };
                    tokio::spawn(visit.serve(client));
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    })
}

/// One TCP connection.
struct Visit {
    from: SocketAddr,
    duty: Duty,
    link: Link,
    hub: Arc<Hub>,
    _slot: Slot,
}

impl Visit {
    async fn serve(self, client: TcpStream) {
        let served = match &self.duty {
            Duty::To(aim) => self.go(client, aim).await,
            Duty::Socks => self.go_by_socks(client).await,
            Duty::Onwards => match original_target(&client) {
                Ok(target) => self.go(client, &Aim::Named(target)).await,
                Err(error) => Err(error),
            },
        };
        if let Err(error) = served {
            tracing::warn!("{}: {error}", self.from);
        }
    }

    /// Carries a connection whose target is known; the first bytes do not wait for the answer.
    async fn go(&self, client: TcpStream, aim: &Aim) -> io::Result<()> {
        prepare(&client)?;
        let streams = match self.open(aim).await {
            Ok(streams) => streams,
            Err(refused) => {
                reset(client);
                self.hub.tell(Event::Refused { from: self.from, to: aim, refused: &refused });
                return Ok(());
            }
        };
        self.carry(client, streams, aim, Reply::Awaited).await;
        Ok(())
    }

    /// Carries a connection once its client has said where to, and has heard that it is there.
    async fn go_by_socks(&self, mut client: TcpStream) -> io::Result<()> {
        prepare(&client)?;
        // A refusal is said; a reset would overtake it.
        resets_when_dropped(&client, false);
        let target = timeout(REQUEST, socks::read_request(&mut client)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let aim = Aim::Named(target);
        let mut streams = match self.open_and_hear(&aim).await {
            Ok(streams) => streams,
            Err(refused) => {
                self.hub.tell(Event::Refused { from: self.from, to: &aim, refused: &refused });
                return socks::reply(&mut client, refused.code).await;
            }
        };
        if let Err(error) = socks::reply(&mut client, 0).await {
            cut(client, &mut streams);
            return Err(error);
        }
        self.carry(client, streams, &aim, Reply::Had).await;
        Ok(())
    }

    /// Opens a stream, and waits for the answer.
    async fn open_and_hear(&self, aim: &Aim) -> Result<Streams, Refused> {
        let mut streams = self.open(aim).await?;
        match Refused::read(&mut streams.1).await {
            Ok(None) => Ok(streams),
            Ok(Some(refused)) => Err(refused),
            Err(error) => Err(Refused::new(FAILED, error.to_string())),
        }
    }

    async fn carry(&self, client: TcpStream, streams: Streams, aim: &Aim, reply: Reply) {
        self.hub.tell(Event::Opened { from: self.from, to: aim });
        let (moved, result) = relay(client, streams, reply).await;
        self.hub.tell(Event::Closed { from: self.from, to: aim, moved, result: &result });
    }

    /// Opens a stream to a target; the other side's answer is still to come.
    async fn open(&self, aim: &Aim) -> Result<Streams, Refused> {
        let mut link = self.link.clone();
        let there = timeout(PATIENCE, link.wait_for(Option::is_some)).await;
        let connection = there.ok().and_then(Result::ok).and_then(|connection| connection.clone());
        let Some(connection) = connection else {
            return Err(Refused::new(FAILED, "the other side is not connected"));
        };
        let lost = |error: &dyn fmt::Display| Refused::new(FAILED, error.to_string());
        let mut streams = connection.open_bi_async().await.map_err(|error| lost(&error))?;
        streams.0.write_all_async(&aim.to_header()).await.map_err(|error| lost(&error))?;
        Ok(streams)
    }
}

/// Where a connection was going that TPROXY has handed over: its local address.
fn original_target(client: &TcpStream) -> io::Result<Target> {
    let to = client.local_addr()?;
    // Only an address of this host can be bound to. Carried on, the connection might come back here, again and again.
    if std::net::UdpSocket::bind(SocketAddr::new(to.ip(), 0)).is_ok() {
        return Err(io::Error::other("it was for this host itself, not handed over by TPROXY"));
    }
    Ok(Target::at(to.ip(), to.port()))
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(aim) => aim.fmt(f),
            Self::Socks => f.write_str("SOCKS5 clients"),
            Self::Onwards => f.write_str("what TPROXY hands over"),
        }
    }
}
