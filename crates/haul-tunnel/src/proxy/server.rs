//! The side that is asked: for clients whose keys are authorised, and the far side of ssh.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use haul::{BitRate, Connection, ControllerChoice, Endpoint, Identity, ServerConfig, TransportConfig};
use haul_peer::keys::{self, KeyWatch, Rights, Service, Stay};
use haul_peer::{Family, GuestMemory, Guests, Limits, Refusal, Rule, StateDir, Target, TargetError};
use haul_units::Cancel;
use tokio::select;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::error::{ServeError, TcpListenError, ThreadsError};
use super::far;
use super::hub::{self, Hub, MOST_CONNECTIONS};
use super::listeners::{self, Kind};
use super::near::{Duty, attend};
use super::observer::{Event, Observer, Silent};
use super::policy::Policy;
use super::session::{self, CLOSE_DONE, CLOSE_REFUSED};
use super::wire::{Aim, Opening, PROTOCOL};
use crate::visits::{Record, Visits, overheard};

/// Whom to serve, and with what.
pub struct ServerSettings {
    /// The key that clients see.
    pub identity: Identity,
    /// Whose keys are let in, and stay in: those of this directory's file, which is looked at for each client and while clients are there; without one everybody's.
    pub authorized: Option<StateDir>,
    /// The address to listen on; every one if there is none.
    pub address: Option<IpAddr>,
    /// The UDP port; 0 is any free one.
    pub port: u16,
    /// Targets of this side's own: clients may connect to them, and need not know where they are. Who names none gets the first.
    pub targets: Vec<Target>,
    /// More that clients may name.
    pub allow: Vec<Rule>,
    /// TCP connections that may be open at once, over all clients; further ones are refused. The file limit of the process bounds it too.
    pub most_connections: u32,
    /// How the connections behave ([`transport`](super::transport)); what this side sends is limited for each client by its key, too.
    pub transport: TransportConfig,
    /// Places for clients, and what memory they share.
    pub guests: Guests,
    /// Who hears what happens.
    pub observer: Arc<dyn Observer>,
    /// Who hears of those who come.
    pub visits: Arc<dyn Visits>,
}

impl ServerSettings {
    /// For those whose keys are authorised, or for everybody: these targets of its own and no others, on any free port, with half of this machine's memory for clients. Nobody hears what happens.
    pub fn new(identity: Identity, authorized: Option<StateDir>, targets: Vec<Target>) -> Self {
        Self {
            identity,
            authorized,
            targets,
            address: None,
            port: 0,
            allow: Vec::new(),
            most_connections: MOST_CONNECTIONS,
            transport: super::transport(ControllerChoice::Quickstart, None, TransportConfig::default().idle_timeout),
            guests: Guests::new(MOST_GUESTS, GuestMemory::part_of_machine(2)),
            observer: Arc::new(Silent),
            visits: Arc::new(()),
        }
    }
}

/// Clients at once, with one key, and from one address: each takes 14 MiB at the least, and many may share a key or stand behind one address.
const MOST_GUESTS: Limits = Limits { clients: 1024, of_key: 128, of_address: 256 };

/// The side that is asked.
pub struct Server {
    endpoint: Endpoint,
    house: Arc<House>,
}

impl Server {
    /// Listens.
    pub fn bind(settings: ServerSettings) -> Result<Self, ServeError> {
        let ServerSettings { identity, authorized, address, port, targets, allow, most_connections, .. } = settings;
        let (transport, guests, observer, visits) = (settings.transport, settings.guests, settings.observer, settings.visits);
        let most = transport.rate_limit;
        let key = identity.public_key().fingerprint();
        let config = ServerConfig {
            protocols: vec![PROTOCOL.to_vec()],
            transport,
            reset_key: keys::reset_key(&identity, "proxy", address, port),
            admission: keys::admission(authorized.is_none()),
            ..ServerConfig::new(identity, overheard(keys::may_handshake(authorized.as_ref()), &visits))
        };
        let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, port), config.clone());
        let bound = address.map_or_else(|| Family::Any.listen(on), on);
        let endpoint = bound.map_err(|source| ServeError::Bind { port, source })?;
        let shown: Vec<String> = targets.iter().map(Target::to_string).chain(allow.iter().map(Rule::to_string)).collect();
        let policy = Policy::Rules(targets.iter().cloned().map(Into::into).chain(allow).collect());
        let hub = Hub::new(policy, targets, observer, most_connections);
        tracing::info!("its key is {key}");
        hub.tell(Event::Listening { address: &format!("UDP {}", endpoint.local_addr()), to: &shown.join(", ") });
        if let Some(advice) = endpoint.buffer_warning() {
            tracing::warn!("{advice}");
        }
        let house = House { keys: authorized.map(|state| KeyWatch::new(state, CLOSE_REFUSED)), most, guests, hub, visits };
        Ok(Self { endpoint, house: Arc::new(house) })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Serves clients until it is cancelled.
    pub fn run(self, cancel: &Cancel) -> Result<(), ServeError> {
        let runtime = hub::runtime()?;
        let result = runtime.block_on(async {
            let result = accept(&self.endpoint, &self.house, cancel).await;
            self.endpoint.close();
            self.house.hub.emptied().await;
            result
        });
        runtime.shutdown_background();
        result
    }
}

/// What every client finds.
struct House {
    /// None: everybody is let in.
    keys: Option<KeyWatch>,
    most: Option<BitRate>,
    guests: Guests,
    hub: Arc<Hub>,
    visits: Arc<dyn Visits>,
}

async fn accept(endpoint: &Endpoint, house: &Arc<House>, cancel: &Cancel) -> Result<(), ServeError> {
    let mut stop = pin!(hub::cancelled(cancel));
    loop {
        let connection = select! {
            accepted = endpoint.accept_stranger_async() => accepted.map_err(ServeError::Socket)?,
            () = &mut stop => return Ok(()),
        };
        let house = Arc::clone(house);
        tokio::spawn(async move { serve_client(connection, &house).await });
    }
}

/// Lets one client in, and serves it until it goes.
async fn serve_client(connection: Connection, house: &House) {
    let House { keys, most, guests, hub, visits } = house;
    let record = Record::begin(visits, &connection);
    let from = connection.remote_addr();
    let (control, opening) = match session::hear(&connection).await {
        Ok(heard) => heard,
        Err(error) => {
            hub.tell(Event::AsksNothing { peer: &from, error: &error });
            record.asked_nothing(&error);
            return;
        }
    };
    let admitted = admit(keys.as_ref(), &connection).and_then(|admitted| refuse_ports(&opening).map(|()| admitted));
    let ((name, rights, stay), _place) = match admitted.and_then(|admitted| Ok((admitted, guests.admit(&connection)?))) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            hub.tell(Event::TurnedAway { peer: &from, refusal: &refusal });
            record.refused(&refusal);
            return session::refuse(&connection, control, refusal).await;
        }
    };
    if let Some(lower) = [*most, rights.max_rate].into_iter().flatten().min() {
        connection.set_rate_limit(Some(lower));
    }
    let Ok(_session) = session::serve(control, Vec::new()).await else { return };
    let peer = format!("{from} ({name})");
    hub.tell(Event::Connected { peer: &peer });
    record.admitted(stay.is_some().then_some(&*name), &opening.version);
    let mut guest = far::Guest::of(&connection, hub);
    (guest.confined, guest.record) = (Policy::of(&rights), Some(record));
    let error = far::serve(connection, guest).await;
    hub.tell(Event::Lost { peer: &peer, error: &error });
}

/// The client's name and what it may do, or why it may not come in.
fn admit(keys: Option<&KeyWatch>, connection: &Connection) -> Result<(String, Rights, Option<Stay>), Refusal> {
    let Some(keys) = keys else { return Ok(("anyone".to_owned(), Rights::default(), None)) };
    let (admitted, stay) = keys.admit(connection)?;
    match admitted.refuses(Service::Proxy) {
        Some(refusal) => Err(refusal),
        None => Ok((admitted.name, admitted.rights, Some(stay))),
    }
}

fn refuse_ports(opening: &Opening) -> Result<(), Refusal> {
    if opening.listen.is_empty() {
        return Ok(());
    }
    let error = "this proxy listens on no ports for its clients".to_owned();
    Err(Refusal { error: error.into(), hint: Some("over ssh, `haul proxy user@host -R` does".into()) })
}

/// Serves somebody who has logged in as this user: whatever the client does not rule out itself, unless it is to be refused. False if it asked for nothing: it has lost the
/// race against itself over another address.
pub fn serve_account(
    connection: &Connection,
    refusal: Option<Refusal>,
    observer: Arc<dyn Observer>,
    cancel: &Cancel,
) -> Result<bool, ThreadsError> {
    let runtime = hub::runtime()?;
    let asked = runtime.block_on(async {
        let Ok((control, opening)) = session::hear(connection).await else { return false };
        if let Some(refusal) = refusal {
            session::refuse(connection, control, refusal).await;
            return true;
        }
        let policy = match confine(&opening) {
            Ok(policy) => policy,
            Err(error) => {
                session::refuse(connection, control, Refusal { error: error.to_string().into(), hint: None }).await;
                return true;
            }
        };
        let hub = Hub::new(policy, Vec::new(), observer, MOST_CONNECTIONS);
        let (_publish, link) = watch::channel(Some(connection.clone()));
        let (ports, attending) = match attend_all(&opening, &link, &hub).await {
            Ok(opened) => opened,
            Err(error) => {
                session::refuse(connection, control, Refusal::from(&error)).await;
                return true;
            }
        };
        if let Ok(_session) = session::serve(control, ports).await {
            select! {
                _ = far::serve(connection.clone(), far::Guest::of(connection, &hub)) => {}
                () = hub::cancelled(cancel) => connection.close(CLOSE_DONE, "ssh has ended"),
            }
        }
        hub.left_by(attending).await;
        true
    });
    runtime.shutdown_background();
    Ok(asked)
}

/// What the client confines itself to.
fn confine(opening: &Opening) -> Result<Policy, TargetError> {
    let Some(only) = &opening.only else { return Ok(Policy::Everything) };
    let targets = only.iter().map(|target| target.parse::<Target>()).collect::<Result<Vec<_>, _>>()?;
    Ok(Policy::only(targets))
}

/// Opens the ports that the client wants here.
async fn attend_all(
    opening: &Opening,
    link: &watch::Receiver<Option<Connection>>,
    hub: &Arc<Hub>,
) -> Result<(Vec<u16>, Vec<JoinHandle<()>>), TcpListenError> {
    let (mut ports, mut attending, mut number) = (Vec::new(), Vec::new(), 0);
    for asked in &opening.listen {
        let duty = if asked.socks {
            Duty::Socks
        } else {
            number += 1;
            Duty::To(Aim::Numbered(number - 1))
        };
        let listeners = listeners::open(&asked.listen, Kind::Plain).await?;
        ports.push(listeners.first().and_then(|listener| listener.local_addr().ok()).map_or(0, |address| address.port()));
        attending.extend(listeners.into_iter().map(|listener| attend(listener, duty.clone(), link.clone(), Arc::clone(hub))));
    }
    Ok((ports, attending))
}
