//! The side of the target: takes streams that the other side opens, and connects each to where it wants to go.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haul::{Connection, ConnectionError};
use haul_peer::Target;
use tokio::net::TcpStream;
use tokio::select;
use tokio::time::timeout;

use super::dial::dial;
use super::hub::Hub;
use super::observer::Event;
use super::policy::Policy;
use super::relay::{Cut, Moved, Reply, Streams, relay};
use super::wire::{Aim, CODE_RESET, FAILED, NOT_ALLOWED, Refused};
use crate::visits::Record;

/// How long a stream may take to say where it wants to go.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose streams are served.
pub struct Guest {
    from: SocketAddr,
    hub: Arc<Hub>,
    /// What it may reach, of what the hub lets everybody.
    pub confined: Policy,
    /// What is kept of it, at a listener.
    pub record: Option<Record>,
}

impl Guest {
    /// The other side of a connection, which may reach what the hub lets everybody.
    pub fn of(connection: &Connection, hub: &Arc<Hub>) -> Self {
        Self { from: connection.remote_addr(), hub: Arc::clone(hub), confined: Policy::Everything, record: None }
    }

    fn opened(&self, to: &Target) {
        self.hub.tell(Event::Opened { from: self.from, to });
    }

    fn closed(&self, to: &Target, moved: Moved, result: &Result<(), Cut>) {
        self.hub.tell(Event::Closed { from: self.from, to, moved, result });
        if let Some(record) = &self.record {
            let cut = result.as_ref().err().map(|cut| cut as &dyn Display);
            // What came from the target went to the client.
            record.carried(to, moved.up, moved.down, cut);
        }
    }

    fn refused(&self, to: &dyn Display, refused: &Refused) {
        self.hub.tell(Event::Refused { from: self.from, to, refused });
        if let Some(record) = &self.record {
            record.carried(to, 0, 0, Some(&refused.why));
        }
    }
}

/// Serves streams until the connection is over; says why it is.
pub async fn serve(connection: Connection, guest: Guest) -> ConnectionError {
    let guest = Arc::new(guest);
    loop {
        match connection.accept_bi_async().await {
            Ok(streams) => drop(tokio::spawn(one(streams, Arc::clone(&guest)))),
            Err(error) => return error,
        }
    }
}

async fn one(mut streams: Streams, guest: Arc<Guest>) {
    let hub = &guest.hub;
    let slot = hub.slot_now();
    let Ok(Ok(aim)) = timeout(PATIENCE, Aim::read(&mut streams.1)).await else {
        streams.0.reset(CODE_RESET);
        return;
    };
    let (target, policed) = match find(&aim, hub) {
        Ok(found) => found,
        Err(refused) => return refuse(streams, &guest, "nowhere".to_owned(), &refused).await,
    };
    if slot.is_none() {
        let refused = Refused::new(FAILED, format!("{} connections are open here, and no more may be", hub.most()));
        return refuse(streams, &guest, target.to_string(), &refused).await;
    }
    let everybody = if policed { &hub.policy } else { &Policy::Everything };
    match connect(&mut streams, &target, &[everybody, &guest.confined]).await {
        None => {}
        Some(Err(refused)) => refuse(streams, &guest, target.to_string(), &refused).await,
        Some(Ok(tcp)) => {
            guest.opened(&target);
            let (moved, result) = relay(tcp, streams, Reply::Had).await;
            guest.closed(&target, moved, &result);
        }
    }
    drop(slot);
}

/// The target, and whether this side's policy has yet to be asked: its own ones are allowed.
fn find(aim: &Aim, hub: &Hub) -> Result<(Target, bool), Refused> {
    match aim {
        Aim::Named(target) => Ok((target.clone(), true)),
        Aim::Numbered(number) => match hub.numbered.get(usize::from(*number)) {
            Some(target) => Ok((target.clone(), false)),
            None => Err(Refused::new(NOT_ALLOWED, "the other side has no target of its own (--to): name one")),
        },
    }
}

/// Connects and says so; `None` if the other side has given up meanwhile.
async fn connect(streams: &mut Streams, target: &Target, policies: &[&Policy]) -> Option<Result<TcpStream, Refused>> {
    let dialled = select! {
        dialled = dial(policies, target) => dialled,
        _ = streams.0.wait_acknowledged_async() => return None,
    };
    match dialled {
        Ok(tcp) => {
            streams.0.write_all_async(&[0]).await.ok()?;
            Some(Ok(tcp))
        }
        Err(refused) => Some(Err(refused)),
    }
}

/// Says why not. The other side's bytes are declined only when it has the reason: it would else take the connection for reset.
async fn refuse(mut streams: Streams, guest: &Guest, to: String, refused: &Refused) {
    guest.refused(&to, refused);
    if streams.0.write_all_async(&refused.to_answer()).await.is_ok() && streams.0.finish().is_ok() {
        let _ = streams.0.wait_acknowledged_async().await;
    }
    streams.1.stop(CODE_RESET);
}
