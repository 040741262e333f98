//! The side that asks: listens, connects, and makes the connection again when it breaks.

use std::sync::Arc;
use std::time::Duration;

use haul::{Connection, ConnectionError};
use haul_peer::{Connected, Connector, Host, Lifeline, Target};
use haul_units::Cancel;
use tokio::runtime::Runtime;
use tokio::select;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::error::{ClientError, TcpListenError};
use super::far;
use super::forward::{Listen, RemoteForward};
use super::hub::{self, Hub, MOST_CONNECTIONS};
use super::listeners::{self, Kind};
use super::near::{Duty, attend};
use super::observer::{Event, Observer, Silent};
use super::policy::Policy;
use super::session::{self, CLOSE_DONE, Session};
use super::wire::{Aim, Opening, RemoteListen};

/// Time before a broken connection is made again; twice as long after each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// How often to look whether the other side can still be there.
const LOOK: Duration = Duration::from_secs(1);

/// A port of this host that is forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalForward {
    /// Where to listen.
    pub listen: Listen,
    /// How.
    pub kind: Kind,
    /// What for.
    pub duty: Duty,
}

impl LocalForward {
    /// A port that programs connect to, for one target over there.
    pub const fn to(listen: Listen, target: Target) -> Self {
        Self { listen, kind: Kind::Plain, duty: Duty::To(Aim::Named(target)) }
    }
}

/// The asking side.
pub struct Client {
    /// How to reach the other side: for [`PROTOCOL`](super::PROTOCOL), with [`transport`](super::transport). What it is cancelled by also ends what runs here.
    pub connector: Connector,
    /// The other side.
    pub host: Host,
    /// Ports of this host, ssh's `-L`, `-D` and the transparent one.
    pub local: Vec<LocalForward>,
    /// Ports of the other host, where that is reached through ssh: a `haul proxy serve` has none for its clients.
    pub remote: Vec<RemoteForward>,
    /// TCP connections that may be open at once; further ones wait. 16,000 unless it is said; the file limit of the process bounds it too.
    pub most_connections: u32,
    /// The connection is made again when it breaks.
    pub stays: bool,
    /// Who hears what happens.
    pub observer: Arc<dyn Observer>,
}

impl Client {
    /// Ports of this host, and no more: the connection is made once, and nobody hears what happens.
    pub fn new(connector: Connector, host: Host, local: Vec<LocalForward>) -> Self {
        let observer = Arc::new(Silent);
        Self { connector, host, local, remote: Vec::new(), most_connections: MOST_CONNECTIONS, stays: false, observer }
    }

    /// Runs until it is cancelled, or the connection fails and is not to be made again.
    pub fn run(&self) -> Result<(), ClientError> {
        let hub = self.hub();
        let runtime = hub::runtime()?;
        let (publish, link) = watch::channel(None);
        let attending = runtime.block_on(async {
            let mut attending = Vec::new();
            for forward in &self.local {
                attending.append(&mut open(forward, &link, &hub).await?);
            }
            Ok::<_, TcpListenError>(attending)
        })?;
        let result = self.stay_connected(&runtime, &publish, &hub);
        runtime.block_on(hub.left_by(attending));
        runtime.shutdown_background();
        result
    }

    fn hub(&self) -> Arc<Hub> {
        // Whoever may use a SOCKS port over there goes where it likes from here: that was asked for.
        let any = self.remote.iter().any(|remote| remote.target.is_none());
        let policy = if any { Policy::Everything } else { Policy::only([]) };
        let numbered = self.remote.iter().filter_map(|remote| remote.target.clone()).collect();
        Hub::new(policy, numbered, Arc::clone(&self.observer), self.most_connections)
    }

    fn opening(&self) -> Opening {
        let asked = |remote: &RemoteForward| RemoteListen { listen: remote.listen.clone(), socks: remote.target.is_none() };
        let only = targets_of(&self.local).map(|targets| targets.iter().map(|target| target.to_string().into()).collect());
        Opening { version: env!("CARGO_PKG_VERSION").into(), listen: self.remote.iter().map(asked).collect(), only }
    }

    fn stay_connected(
        &self,
        runtime: &Runtime,
        publish: &watch::Sender<Option<Connection>>,
        hub: &Arc<Hub>,
    ) -> Result<(), ClientError> {
        let cancel = &self.connector.cancel;
        let opening = self.opening();
        let (mut pause, mut first) = (FIRST_PAUSE, true);
        loop {
            match self.connect(runtime, &opening) {
                // Dropped, the session would end its stream.
                Ok((connected, _session)) => {
                    (pause, first) = (FIRST_PAUSE, false);
                    let connection = connected.connection.clone();
                    self.observer.connection(&connection);
                    publish.send_replace(Some(connection.clone()));
                    let ended = runtime.block_on(serve(&connection, connected.lifeline(), hub, cancel));
                    publish.send_replace(None);
                    let Some(source) = ended else {
                        connection.close(CLOSE_DONE, "ended");
                        connected.end();
                        return Ok(());
                    };
                    self.observer.event(Event::Lost { peer: &self.host, error: &source });
                    if !self.stays {
                        return Err(ClientError::Broke { host: self.host.to_string(), source });
                    }
                }
                Err(error) if first || !self.stays => return Err(error),
                Err(error) => self.observer.event(Event::Unreached { peer: &self.host, error }),
            }
            runtime.block_on(async {
                select! {
                    () = sleep(pause) => {}
                    () = hub::cancelled(cancel) => {}
                }
            });
            if cancel.is_cancelled() {
                return Ok(());
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn connect(&self, runtime: &Runtime, opening: &Opening) -> Result<(Connected, Session), ClientError> {
        let connected = self.connector.connect(&self.host)?;
        for advice in &connected.advice {
            tracing::info!("{advice}");
        }
        let session = runtime.block_on(session::greet(&connected.connection, opening, &self.host.to_string()));
        let session = session.map_err(|error| connected.cause().map_or(error, ClientError::Unreached))?;
        self.observer.event(Event::Connected { peer: &self.host });
        for (asked, port) in opening.listen.iter().zip(&session.listening) {
            let to: &dyn std::fmt::Display = if asked.socks { &"SOCKS5 clients there" } else { &"a target here" };
            self.observer.event(Event::Listening { address: &format!("port {port} of {}", self.host), to });
        }
        Ok((connected, session))
    }
}

async fn open(
    forward: &LocalForward,
    link: &watch::Receiver<Option<Connection>>,
    hub: &Arc<Hub>,
) -> Result<Vec<JoinHandle<()>>, TcpListenError> {
    let listeners = listeners::open(&forward.listen, forward.kind).await?;
    let attend_one = |listener: tokio::net::TcpListener| {
        if let Ok(address) = listener.local_addr() {
            hub.tell(Event::Listening { address: &address, to: &forward.duty });
        }
        attend(listener, forward.duty.clone(), link.clone(), Arc::clone(hub))
    };
    Ok(listeners.into_iter().map(attend_one).collect())
}

/// Waits for the connection's end, and serves what the other side opens meanwhile; nothing if this was cancelled.
async fn serve(connection: &Connection, lifeline: Lifeline, hub: &Arc<Hub>, cancel: &Cancel) -> Option<ConnectionError> {
    select! {
        error = far::serve(connection.clone(), far::Guest::of(connection, hub)) => Some(error),
        () = orphaned(&lifeline) => {
            connection.close(CLOSE_DONE, "ssh has ended");
            Some(ConnectionError::ClosedHere)
        }
        () = hub::cancelled(cancel) => None,
    }
}

/// Waits until ssh has ended and nobody is heard.
async fn orphaned(lifeline: &Lifeline) {
    while lifeline.holds() {
        sleep(LOOK).await;
    }
}

/// The targets that these ports can lead to, if that is known beforehand.
fn targets_of(local: &[LocalForward]) -> Option<Vec<Target>> {
    let targets = local.iter().map(|forward| match &forward.duty {
        Duty::To(Aim::Named(target)) => Some(Some(target.clone())),
        Duty::To(Aim::Numbered(_)) => Some(None),
        Duty::Socks | Duty::Onwards => None,
    });
    Some(targets.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
}
