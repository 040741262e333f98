//! The side that is asked: `haul proxy serve`, and the far side of a proxy over ssh.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use haul::{BitRate, Connection, Endpoint, ServerConfig, TransportConfig};
use haul_files::Cancel;
use haul_peer::keys::{self, Rights, Service};
use haul_peer::{Family, Guests, Refusal, StateDir, Target, TargetError};
use tokio::select;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::doors::{self, Kind};
use super::far;
use super::hub::{self, Hub};
use super::near::{Duty, attend};
use super::policy::Policy;
use super::report::Report;
use super::session::{self, CLOSE_DONE};
use super::wire::{Aim, Opening, PROTOCOL};
use crate::args::ProxyServeArgs;
use crate::exit::{Exit, Failure, chain};

/// Connections at once of somebody who has logged in by ssh.
const MOST_OF_ACCOUNT: u32 = 16_000;
/// How often it looks whether ssh has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Serves clients until it is interrupted.
pub fn run(args: &ProxyServeArgs, transport: TransportConfig) -> Result<Exit, Failure> {
    let state = StateDir::find(args.carriage.state.as_deref())?;
    let (identity, _) = keys::load_or_make(&state)?;
    let key = identity.public_key().fingerprint();
    let config = ServerConfig {
        protocols: vec![PROTOCOL.to_vec()],
        transport,
        reset_key: keys::reset_key(&identity, "proxy", args.bind, args.port),
        admission: keys::admission(args.anyone),
        ..ServerConfig::new(identity, keys::may_knock((!args.anyone).then_some(&state)))
    };
    let endpoint = listen(args, &config)?;
    let report = Report { json: args.carriage.json };
    let policy = Policy::Rules(args.to.iter().cloned().map(Into::into).chain(args.allow.iter().cloned()).collect());
    let hub = Hub::new(policy, args.to.clone(), report, args.carriage.max_connections);
    tracing::info!("its key is {key}");
    let targets: Vec<String> = args.to.iter().map(Target::to_string).chain(args.allow.iter().map(ToString::to_string)).collect();
    report.listening(&format!("UDP {}", endpoint.local_addr()), &targets.join(", "));
    if let Some(advice) = endpoint.buffer_warning() {
        tracing::warn!("{advice}");
    }
    let runtime = hub::runtime()?;
    let state = (!args.anyone).then_some(state);
    let guests = args.guests.places(args.max_clients);
    let result = runtime.block_on(async {
        let house = House { state, most: args.carriage.limit.map(|limit| limit.0), guests, hub: Arc::clone(&hub) };
        let result = accept(&endpoint, &Arc::new(house)).await;
        endpoint.close();
        hub.emptied().await;
        result
    });
    runtime.shutdown_background();
    result
}

/// What every client finds.
struct House {
    state: Option<StateDir>,
    most: Option<BitRate>,
    guests: Guests,
    hub: Arc<Hub>,
}

async fn accept(endpoint: &Endpoint, house: &Arc<House>) -> Result<Exit, Failure> {
    loop {
        let connection = select! {
            accepted = endpoint.accept_stranger_async() => accepted.map_err(|error| Failure::new(format!("the socket failed: {error}")))?,
            () = hub::interrupted() => return Ok(Exit::Done),
        };
        let house = Arc::clone(house);
        tokio::spawn(async move { serve_client(connection, &house).await });
    }
}

/// Lets one client in, and serves it until it goes.
async fn serve_client(connection: Connection, house: &House) {
    let House { state, most, guests, hub } = house;
    let from = connection.remote_addr();
    let (control, opening) = match session::hear(&connection).await {
        Ok(heard) => heard,
        Err(error) => {
            tracing::info!("{from}: it asks for nothing: {}", chain(&error));
            return;
        }
    };
    let admitted = admit(state.as_ref(), &connection).and_then(|admitted| refuse_ports(&opening).map(|()| admitted));
    let ((name, rights), _place) = match admitted.and_then(|admitted| Ok((admitted, guests.admit(&connection)?))) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            tracing::warn!("{from}: turned away: {refusal}");
            return session::refuse(&connection, control, refusal).await;
        }
    };
    if let Some(lower) = [*most, rights.max_rate].into_iter().flatten().min() {
        connection.set_rate_limit(Some(lower));
    }
    let Ok(_session) = session::serve(control, Vec::new()).await else { return };
    hub.report.connected(&format!("{from} ({name})"));
    let error = far::serve(connection, Arc::clone(hub), Policy::of(&rights)).await;
    hub.report.lost(&format!("{from} ({name})"), &error);
}

/// The client's name and what it may do, or why it may not come in.
fn admit(state: Option<&StateDir>, connection: &Connection) -> Result<(String, Rights), Refusal> {
    let Some(state) = state else { return Ok(("anyone".to_owned(), Rights::default())) };
    let admitted = keys::admit(state, connection)?;
    match admitted.refuses(Service::Proxy) {
        Some(refusal) => Err(refusal),
        None => Ok((admitted.name, admitted.rights)),
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
pub fn serve_account(connection: &Connection, refusal: Option<Refusal>, cancel: &Cancel) -> Result<bool, Failure> {
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
        let hub = Hub::new(policy, Vec::new(), Report { json: false }, MOST_OF_ACCOUNT);
        let (_publish, link) = watch::channel(Some(connection.clone()));
        let (ports, attending) = match attend_all(&opening, &link, &hub).await {
            Ok(opened) => opened,
            Err(Failure { message, hint }) => {
                session::refuse(connection, control, Refusal { error: message.into(), hint: hint.map(Into::into) }).await;
                return true;
            }
        };
        if let Ok(_session) = session::serve(control, ports).await {
            select! {
                _ = far::serve(connection.clone(), Arc::clone(&hub), Policy::Everything) => {}
                () = cancelled(cancel) => connection.close(CLOSE_DONE, "ssh has ended"),
            }
        }
        attending.iter().for_each(JoinHandle::abort);
        hub.emptied().await;
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
) -> Result<(Vec<u16>, Vec<JoinHandle<()>>), Failure> {
    let (mut ports, mut attending, mut number) = (Vec::new(), Vec::new(), 0);
    for asked in &opening.listen {
        let duty = if asked.socks {
            Duty::Socks
        } else {
            number += 1;
            Duty::To(Aim::Numbered(number - 1))
        };
        let listeners = doors::open(&asked.listen, Kind::Plain).await?;
        ports.push(listeners.first().and_then(|listener| listener.local_addr().ok()).map_or(0, |address| address.port()));
        attending.extend(listeners.into_iter().map(|listener| attend(listener, duty.clone(), link.clone(), Arc::clone(hub))));
    }
    Ok((ports, attending))
}

async fn cancelled(cancel: &Cancel) {
    while !cancel.is_cancelled() {
        sleep(LOOK).await;
    }
}

fn listen(args: &ProxyServeArgs, config: &ServerConfig) -> Result<Endpoint, Failure> {
    let port = args.port;
    let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, port), config.clone());
    let bound = args.bind.map_or_else(|| Family::Any.listen(on), on);
    bound.map_err(|error| {
        Failure::new(format!("UDP port {port}: {}", chain(&error)))
            .hint("is another proxy running? Name another port with -p, or an address of this machine with -B")
    })
}
