//! How to reach a host: a connector made of what Python was told.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul::Fingerprint;
use haul_peer::{Bootstrap, Carriage, Connector, DaemonHost, Family, Host, PortRange, Program, SshOptions, Stay, Tell};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Failure, OrRaise};
use crate::keys::fingerprint;
use crate::settings::{self, given};

/// What ssh can be told, as `haul cp` can.
const SSH: [&str; 9] = ["program", "config", "port", "identity", "jump", "options", "ipv4", "ipv6", "remote_haul"];
/// Of a line that ssh says, so many bytes are logged.
const MAX_LINE: usize = 1000;

/// What connects, for a service; the key of the daemon, where that was said; and what ssh says meanwhile.
pub fn connector(kwargs: &Bound<'_, PyDict>, service: &'static [u8]) -> PyResult<(Connector, Option<Fingerprint>, LastWords)> {
    let py = kwargs.py();
    let connection = kwargs.get_item("connection")?.map(Bound::cast_into::<PyDict>).transpose()?;
    let transport = settings::transport(connection.as_ref())?;
    let key = kwargs.get_item("trust")?.filter(|key| !key.is_none()).map(|key| fingerprint(&key)).transpose()?;
    let udp_port: Option<String> = given(kwargs, "udp_port")?;
    let udp_port = udp_port.map(|ports| ports.parse::<PortRange>().map_err(Failure::usage)).transpose().or_raise(py)?;
    let (mut ssh, state) = (ssh(kwargs)?, given(kwargs, "state")?);
    ssh.bootstrap = bootstrap(kwargs)?;
    if let Some(way) = given::<String>(kwargs, "transport")? {
        ssh.carriage = way.parse::<Carriage>().map_err(|error| Failure::usage(format_args!("{way}: {error}"))).or_raise(py)?;
    }
    let relay: Option<String> = given(kwargs, "relay")?;
    let parsed = |name: &String| DaemonHost::parse(name).map_err(|error| Failure::usage(format_args!("relay: {name}: {error}")));
    ssh.relay = relay.as_ref().map(parsed).transpose().or_raise(py)?;
    if !transport.via.is_empty() {
        // What carries around UDP leaves as the routing table says.
        ssh.carriage = Carriage::Udp;
    }
    let said = LastWords::default();
    let tell: Arc<dyn Tell> = Arc::new(Logged(said.clone()));
    Ok((Connector { ssh, udp_port, state, transport, tell, ..Connector::new(service) }, key, said))
}

/// A daemon of which the key is said is known by it.
pub fn pinned(host: Host, key: Option<Fingerprint>) -> Host {
    match (host, key) {
        (Host::Daemon(daemon), Some(key)) => Host::Pinned(daemon, key),
        (host, _) => host,
    }
}

fn ssh(kwargs: &Bound<'_, PyDict>) -> PyResult<SshOptions> {
    let Some(kwargs) = kwargs.get_item("ssh")?.filter(|given| !given.is_none()) else { return Ok(SshOptions::default()) };
    let kwargs = kwargs.cast_into::<PyDict>()?;
    for name in kwargs.keys() {
        let name: String = name.extract()?;
        if !SSH.contains(&name.as_str()) {
            return Err(
                Failure::usage(format_args!("{name}: nothing that ssh is told: {}", SSH.join(", "))).into_py_err(kwargs.py())
            );
        }
    }
    Ok(SshOptions {
        program: given::<PathBuf>(&kwargs, "program")?.map(Into::into),
        config: given(&kwargs, "config")?,
        port: given(&kwargs, "port")?,
        identity: given(&kwargs, "identity")?.unwrap_or_default(),
        jump: given::<PathBuf>(&kwargs, "jump")?.map(Into::into),
        option: given::<Vec<PathBuf>>(&kwargs, "options")?.unwrap_or_default().into_iter().map(Into::into).collect(),
        family: Family::of(given(&kwargs, "ipv4")?.unwrap_or(false), given(&kwargs, "ipv6")?.unwrap_or(false)),
        remote_haul: given::<PathBuf>(&kwargs, "remote_haul")?.map(Into::into),
        bootstrap: None,
        quiet: false,
        verbose: false,
        carriage: Carriage::default(),
        relay: None,
    })
}

/// What a far side is given that has no haul of this version.
fn bootstrap(kwargs: &Bound<'_, PyDict>) -> PyResult<Option<Bootstrap>> {
    let Some(stay) = given::<String>(kwargs, "bootstrap")? else { return Ok(None) };
    let stay = match stay.as_str() {
        "keep" => Stay::Keep,
        "once" => Stay::Once,
        other => return Err(Failure::usage(format_args!("{other}: keep and once are possible")).into_py_err(kwargs.py())),
    };
    let from = given::<PathBuf>(kwargs, "bootstrap_from")?;
    let programs = match &from {
        Some(path) => Program::all_named(path)
            .map_err(|error| Failure::usage(format_args!("{}: {error}", path.display())))
            .or_raise(kwargs.py())?,
        None => Program::at_hand(),
    };
    if programs.is_empty() {
        let which = from.map_or_else(
            || "no static haul here".into(),
            |path| format!("{}: no program for Linux on x86_64 or aarch64", path.display()),
        );
        let hint = "bootstrap_from= names a static haul; `make static` builds it, packages and the tarball have it";
        return Err(Failure::usage(which).hint(hint).into_py_err(kwargs.py()));
    }
    Ok(Some(Bootstrap { programs, stay, afresh: false }))
}

/// The last line that ssh has said: where it leads nowhere, that is why.
#[derive(Debug, Default, Clone)]
pub struct LastWords(Arc<Mutex<String>>);

impl LastWords {
    /// A failure with them, if ssh's is what it is.
    pub fn explain(&self, failure: Failure) -> Failure {
        failure.said_by_ssh(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What ssh says goes into the log; nobody is asked.
#[derive(Default)]
pub struct Logged(LastWords);

impl Tell for Logged {
    fn ssh_says(&self) -> Box<dyn std::io::Write + Send> {
        // Another ssh: what the one before has said explains nothing.
        self.0.lock().clear();
        Box::new(Lines { rest: Vec::new(), last: self.0.clone() })
    }

    fn relay_fails(&self, relay: &DaemonHost, why: &str) {
        tracing::warn!("no help by relay {relay}: {why}");
    }

    fn outage(&self, outage: haul_peer::Outage) {
        tracing::warn!(?outage, "the other side has fallen silent, or is heard again");
    }
}

struct Lines {
    /// A line that has not ended.
    rest: Vec<u8>,
    last: LastWords,
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let mut shown = String::new();
            haul_units::push_printable(&mut shown, line.trim_ascii_end(), MAX_LINE);
            tracing::warn!(target: "haul::ssh", "{shown}");
            if !shown.is_empty() {
                *self.last.lock() = shown;
            }
        }
        // No line is so long.
        if self.rest.len() > 4 * MAX_LINE {
            self.rest.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
