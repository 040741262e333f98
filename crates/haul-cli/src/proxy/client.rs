//! The side that asks: listens, connects, and makes the connection again when it breaks.

use std::sync::Arc;
use std::time::Duration;

use haul::{Connection, ConnectionError};
use haul_peer::{Connected, Connector, Host, Target};
use tokio::runtime::Runtime;
use tokio::select;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::doors::{self, Kind};
use super::far;
use super::forward::Listen;
use super::hub::{self, Hub};
use super::near::{Duty, attend};
use super::policy::Policy;
use super::session::{self, CLOSE_DONE, Session};
use super::wire::Opening;
use crate::exit::{Exit, Failure, chain, explained};
use crate::interrupt;

/// Time before a broken connection is made again; twice as long after each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A port of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Door {
    /// Where to listen.
    pub listen: Listen,
    /// How.
    pub kind: Kind,
    /// What for.
    pub duty: Duty,
}

/// The asking side.
pub struct Client {
    /// How to reach the other side.
    pub connector: Connector,
    /// The other side.
    pub host: Host,
    /// Ports of this host.
    pub doors: Vec<Door>,
    /// What the other side is asked for.
    pub opening: Opening,
    /// What connections share.
    pub hub: Arc<Hub>,
    /// The connection is made again when it breaks.
    pub stays: bool,
}

impl Client {
    /// Runs until it is interrupted, or the connection fails and is not to be made again.
    pub fn run(&self) -> Result<Exit, Failure> {
        let runtime = hub::runtime()?;
        let (publish, link) = watch::channel(None);
        let attending = runtime.block_on(async {
            let mut attending = Vec::new();
            for door in &self.doors {
                attending.append(&mut self.open(door, &link).await?);
            }
            Ok::<_, Failure>(attending)
        })?;
        let result = self.stay_connected(&runtime, &publish);
        attending.iter().for_each(JoinHandle::abort);
        runtime.block_on(self.hub.emptied());
        runtime.shutdown_background();
        result
    }

    async fn open(&self, door: &Door, link: &watch::Receiver<Option<Connection>>) -> Result<Vec<JoinHandle<()>>, Failure> {
        let listeners = doors::open(&door.listen, door.kind).await?;
        let attend_one = |listener: tokio::net::TcpListener| {
            if let Ok(address) = listener.local_addr() {
                self.hub.report.listening(&address, &door.duty);
            }
            attend(listener, door.duty.clone(), link.clone(), Arc::clone(&self.hub))
        };
        Ok(listeners.into_iter().map(attend_one).collect())
    }

    fn stay_connected(&self, runtime: &Runtime, publish: &watch::Sender<Option<Connection>>) -> Result<Exit, Failure> {
        let (mut pause, mut first) = (FIRST_PAUSE, true);
        loop {
            match self.connect(runtime) {
                // Dropped, the session would end its stream.
                Ok((connected, _session)) => {
                    (pause, first) = (FIRST_PAUSE, false);
                    let connection = connected.connection.clone();
                    publish.send_replace(Some(connection.clone()));
                    let ended = runtime.block_on(self.serve(&connection));
                    publish.send_replace(None);
                    let Some(error) = ended else {
                        connection.close(CLOSE_DONE, "ended");
                        connected.end();
                        return Ok(Exit::Done);
                    };
                    self.hub.report.lost(&self.host, &error);
                    if !self.stays {
                        return Err(Failure::new(format!("{}: the connection broke: {}", self.host, chain(&error))));
                    }
                }
                Err(failure) if first || !self.stays => return Err(failure),
                Err(failure) => tracing::warn!("{}: {failure}", self.host),
            }
            runtime.block_on(async {
                select! {
                    () = sleep(pause) => {}
                    () = hub::interrupted() => {}
                }
            });
            if interrupt::requested() {
                return Ok(Exit::Done);
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn connect(&self, runtime: &Runtime) -> Result<(Connected, Session), Failure> {
        let connected = self.connector.connect(&self.host)?;
        for advice in &connected.advice {
            tracing::info!("{advice}");
        }
        let session = runtime.block_on(session::greet(&connected.connection, &self.opening, &self.host.to_string()));
        let session = session.map_err(|failure| explained(&connected, failure))?;
        interrupt::under_way();
        self.hub.report.connected(&self.host);
        for (asked, port) in self.opening.listen.iter().zip(&session.listening) {
            let to: &dyn std::fmt::Display = if asked.socks { &"SOCKS5 clients there" } else { &"a target here" };
            self.hub.report.listening(&format!("port {port} of {}", self.host), to);
        }
        Ok((connected, session))
    }

    /// Waits for the connection's end, and serves what the other side opens meanwhile; nothing if this program was asked to end.
    async fn serve(&self, connection: &Connection) -> Option<ConnectionError> {
        select! {
            error = far::serve(connection.clone(), Arc::clone(&self.hub), Policy::Everything) => Some(error),
            () = hub::interrupted() => None,
        }
    }
}

/// What a client says first.
pub fn opening(listen: Vec<super::wire::RemoteListen>, only: Option<Vec<Target>>) -> Opening {
    let only = only.map(|targets| targets.iter().map(|target| target.to_string().into()).collect());
    Opening { version: env!("CARGO_PKG_VERSION").into(), listen, only }
}
