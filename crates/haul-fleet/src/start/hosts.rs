//! Who the hosts of a fleet are: what users and schedulers write, as a list.
//!
//! An item is what haul takes for a host everywhere else, with its path if it has one: `host`, `me@host:/data`, `scp://me@host:2222/data`, `haul://host:7700/ROOT/path`. In the host's part brackets are
//! ranges, as schedulers write them: `node[01-13,20]`, several times in a name too, zeros kept. A bracket with a colon in it is an IPv6 address. A file has one item a line, and behind it `key=value`.
//!
//! The order is the user's, for the first host can be the representative; a host that was named before is left out. What a list may grow to is bounded before it grows.

mod error;
mod ranges;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haul_peer::{DaemonHost, Host, Limit, Operand, OperandError, SshHost, parse_port};
use haul_units::BitRate;

pub use self::error::{HostsError, MAX_HOSTS};

/// Bytes of a list: that many hosts, with room for a long line each.
const MAX_LIST: u64 = 1 << 20;

/// One host of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSpec {
    /// What its user calls it; no two of a list are called the same.
    pub name: String,
    /// Name or address, or an alias of ssh's configuration.
    pub host: String,
    /// Who logs in, unless ssh's configuration says.
    pub user: Option<String>,
    /// The port of its ssh server, or of its daemon.
    pub port: Option<u16>,
    /// Where its files are; relative paths of a job start there.
    pub path: Option<PathBuf>,
    /// Name or address to be used for data, where it is not the one for logging in.
    pub data: Option<String>,
    /// No more than this is asked of it.
    pub limit: Option<BitRate>,
    /// It runs a daemon (`haul://`), whatever way the others are started in.
    pub daemon: bool,
}

impl HostSpec {
    /// Hosts with commas between them, or `@FILE`.
    pub fn list(text: &str) -> Result<Vec<Self>, HostsError> {
        Self::lists([text])
    }

    /// Several such lists as one, in which a host counts once.
    pub fn lists(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Vec<Self>, HostsError> {
        let mut list = List::default();
        for text in texts {
            match text.as_ref().strip_prefix('@') {
                Some(file) => list.add_file(Path::new(file))?,
                None => ranges::items(text.as_ref()).try_for_each(|item| list.add(item, &[]))?,
            }
        }
        list.done()
    }

    /// A file with an item a line and `key=value` behind it; `#` begins a comment.
    pub fn file(path: &Path) -> Result<Vec<Self>, HostsError> {
        let mut list = List::default();
        list.add_file(path)?;
        list.done()
    }

    /// The hosts that a scheduler has given to this job: Slurm's `SLURM_JOB_NODELIST`, or the file that PBS names in `PBS_NODEFILE`, with one line a slot. Nothing outside of a job.
    /// `variable` looks in the environment.
    pub fn allocated(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Vec<Self>>, HostsError> {
        if let Some(list) = variable("SLURM_JOB_NODELIST").or_else(|| variable("SLURM_NODELIST")) {
            return Self::list(&list.to_string_lossy()).map(Some);
        }
        variable("PBS_NODEFILE").map(|file| Self::file(Path::new(&file))).transpose()
    }

    /// The host as a [`Connector`](haul_peer::Connector) takes it.
    pub fn reach(&self) -> Host {
        if self.daemon {
            return Host::Daemon(DaemonHost {
                host: self.host.to_ascii_lowercase(),
                port: self.port.unwrap_or(haul_peer::DAEMON_PORT),
            });
        }
        Host::Ssh(self.login())
    }

    /// The host as ssh takes it.
    pub fn login(&self) -> SshHost {
        SshHost { user: self.user.as_ref().map(OsString::from), host: OsString::from(&self.host), port: self.port }
    }

    /// One host, as an operand says it; one that has no path is named like its host.
    fn item(text: &str) -> Result<Self, HostsError> {
        // A daemon's address needs a root as an operand; here it can come later, with the job's paths.
        let rootless = text.strip_prefix("haul://").filter(|rest| !rest.trim_end_matches('/').contains('/'));
        if let Some(host) = rootless {
            return Ok(Self::of_daemon(DaemonHost::parse(host.trim_end_matches('/'))?, None));
        }
        match Operand::parse(OsStr::new(text))? {
            Operand::Daemon(host, path) => Ok(Self::of_daemon(host, Some(path))),
            Operand::Ssh(login, path) => Ok(Self::of_login(&login, Some(path))),
            Operand::Local(_) | Operand::Stdio if text.contains('/') => Err(OperandError::BadHost(text.to_owned()).into()),
            Operand::Local(_) | Operand::Stdio => Ok(Self::of_login(&SshHost::parse(OsStr::new(text))?, None)),
        }
    }

    fn of_login(login: &SshHost, path: Option<OsString>) -> Self {
        let host = login.host.to_string_lossy().into_owned();
        let user = login.user.as_ref().map(|user| user.to_string_lossy().into_owned());
        let path = path.filter(|path| !path.is_empty()).map(PathBuf::from);
        Self { name: host.clone(), host, user, port: login.port, path, data: None, limit: None, daemon: false }
    }

    fn of_daemon(host: DaemonHost, path: Option<OsString>) -> Self {
        let port = (host.port != haul_peer::DAEMON_PORT).then_some(host.port);
        let path = path.map(PathBuf::from);
        Self { name: host.host.clone(), host: host.host, user: None, port, path, data: None, limit: None, daemon: true }
    }

    /// What a word behind it in a file says.
    fn set(&mut self, word: &str) -> Result<(), HostsError> {
        let wrong = || HostsError::Word { word: word.to_owned() };
        let (key, value) = word.split_once('=').filter(|(_, value)| !value.is_empty()).ok_or_else(wrong)?;
        match key {
            "user" => {
                let login = SshHost::parse(OsStr::new(&format!("{value}@x")))?;
                self.user = login.user.map(|user| user.to_string_lossy().into_owned());
            }
            "port" => self.port = Some(parse_port(value).map_err(|_| OperandError::BadPort(value.to_owned()))?),
            "path" => self.path = Some(PathBuf::from(value)),
            "data" => self.data = Some(DaemonHost::parse(value).map(|_| value.to_owned())?),
            "name" => value.clone_into(&mut self.name),
            "limit" => self.limit = Some(value.parse::<Limit>().map_err(|_| wrong())?.0),
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

impl fmt::Display for HostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A list that grows.
#[derive(Default)]
struct List {
    hosts: Vec<HostSpec>,
    names: std::collections::HashSet<String>,
}

impl List {
    fn add(&mut self, item: &str, words: &[&str]) -> Result<(), HostsError> {
        let room = MAX_HOSTS - self.hosts.len();
        for text in ranges::expanded(item, room)? {
            let mut host = HostSpec::item(&text)?;
            words.iter().try_for_each(|word| host.set(word))?;
            self.keep(host)?;
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), HostsError> {
        let io = |source| HostsError::Io { path: path.to_owned(), source };
        let mut text = String::new();
        File::open(path).and_then(|file| file.take(MAX_LIST + 1).read_to_string(&mut text)).map_err(io)?;
        if text.len() as u64 > MAX_LIST {
            return Err(HostsError::TooLong { path: path.to_owned() });
        }
        for (number, line) in text.lines().enumerate() {
            let in_line = |source| HostsError::Line { path: path.to_owned(), line: number + 1, source: Box::new(source) };
            let line = line.split_once(" #").map_or(line, |(before, _)| before).trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let items = words.next().unwrap_or_default();
            let rest: Vec<&str> = words.collect();
            for item in ranges::items(items) {
                self.add(item, &rest).map_err(in_line)?;
            }
        }
        Ok(())
    }

    /// One that was named before is left out; another one of its name gets more of a name.
    fn keep(&mut self, mut host: HostSpec) -> Result<(), HostsError> {
        if self.names.contains(&host.name) {
            let name = host.name.clone();
            let same = |one: &HostSpec| HostSpec { name: String::new(), ..one.clone() };
            if self.hosts.iter().any(|before| same(before) == same(&host)) {
                return Ok(());
            }
            let user = host.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
            let port = host.port.map_or_else(String::new, |port| format!(":{port}"));
            let path = host.path.as_ref().map(|path| format!("{user}{name}{port}:{}", path.display()));
            let numbered = (2..).map(|number: usize| format!("{name}#{number}"));
            let mut names = [format!("{user}{name}{port}")].into_iter().chain(path).chain(numbered);
            host.name = names.find(|name| !self.names.contains(name)).unwrap_or(name);
        }
        if self.hosts.len() == MAX_HOSTS {
            return Err(HostsError::TooMany);
        }
        self.names.insert(host.name.clone());
        self.hosts.push(host);
        Ok(())
    }

    fn done(self) -> Result<Vec<HostSpec>, HostsError> {
        if self.hosts.is_empty() { Err(HostsError::None) } else { Ok(self.hosts) }
    }
}

#[cfg(test)]
mod tests;
