//! The hosts of a mesh: how ssh reaches each, what it is called, and at which address the others reach it.
//!
//! ```text
//!   [NAME=][USER@]HOST[,ADDRESS]       as an argument, or a line of a file; # begins a comment there
//! ```

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use haul_peer::SshHost;

/// One site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What it is called in the matrix.
    pub name: String,
    /// How ssh reaches it.
    pub ssh: SshHost,
    /// Where the others reach it; without it, the host's name as ssh resolves it here.
    pub address: Option<String>,
}

/// Why a list makes no mesh.
#[derive(Debug, thiserror::Error)]
pub enum SitesError {
    /// A file of hosts cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There are no pairs.
    #[error("a mesh needs two hosts or more")]
    TooFew,
    /// There are no pairs: the only operand may have been meant for a file of hosts.
    #[error("a mesh needs two hosts or more, and there is no file `{0}`")]
    NoFile(String),
    /// The file of hosts has fewer than two.
    #[error("{}: a mesh needs two hosts or more", .0.display())]
    FewInFile(PathBuf),
    /// Two have the same name.
    #[error("two hosts are called `{0}`")]
    SameName(String),
    /// This names no host.
    #[error(transparent)]
    Host(#[from] NotAHost),
    /// The name or the address of this one is none.
    #[error("{0}: not a host")]
    Site(String),
}

/// This is not how a host of ssh is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}: not a host")]
pub struct NotAHost(pub String);

/// The sites that are named, or listed in files that are, each with a name of its own.
pub fn sites(operands: &[impl AsRef<OsStr>]) -> Result<Vec<Site>, SitesError> {
    let mut sites: Vec<Site> = Vec::new();
    for operand in operands {
        let path = Path::new(operand.as_ref());
        // No host has a slash.
        if path.is_file() || path.components().count() > 1 {
            let text = fs::read_to_string(path).map_err(|source| SitesError::File { path: path.to_owned(), source })?;
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            for line in lines.filter(|line| !line.is_empty()) {
                sites.push(site(line)?);
            }
        } else {
            sites.push(site(&operand.as_ref().to_string_lossy())?);
        }
    }
    if sites.len() < 2 {
        return Err(match operands {
            [only] if Path::new(only.as_ref()).is_file() => SitesError::FewInFile(only.as_ref().into()),
            [only] => SitesError::NoFile(only.as_ref().to_string_lossy().into_owned()),
            _ => SitesError::TooFew,
        });
    }
    for (index, site) in sites.iter().enumerate() {
        if sites.iter().take(index).any(|other| other.name == site.name) {
            return Err(SitesError::SameName(site.name.clone()));
        }
    }
    Ok(sites)
}

/// `[user@]host` of ssh: what ssh itself would take for an option or a path is none.
pub fn ssh_host(text: &str) -> Result<SshHost, NotAHost> {
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, text),
    };
    if host.is_empty() || host.starts_with('-') || user.is_some_and(str::is_empty) || host.contains('/') {
        return Err(NotAHost(text.to_owned()));
    }
    Ok(SshHost { user: user.map(Into::into), host: host.into(), port: None })
}

fn site(text: &str) -> Result<Site, SitesError> {
    let (name, rest) = match text.split_once('=') {
        Some((name, rest)) => (Some(name.trim()), rest.trim()),
        None => (None, text),
    };
    let (destination, address) = match rest.split_once(',') {
        Some((destination, address)) => (destination.trim(), Some(address.trim().to_owned())),
        None => (rest, None),
    };
    let ssh = ssh_host(destination)?;
    let wrong = |address: &String| address.is_empty() || address.starts_with('-') || address.contains(['/', ' ', '@']);
    if address.as_ref().is_some_and(wrong) || name.is_some_and(|name| name.is_empty() || name.starts_with('-')) {
        return Err(SitesError::Site(text.to_owned()));
    }
    let name = name.map_or_else(|| ssh.host.to_string_lossy().into_owned(), str::to_owned);
    Ok(Site { name, ssh, address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_users_and_addresses() {
        let sites = sites(&["nict=me@10.0.0.1,192.0.2.1", "kyushu"]).expect("two sites");
        assert_eq!((sites[0].name.as_str(), sites[0].address.as_deref()), ("nict", Some("192.0.2.1")));
        assert_eq!((sites[0].ssh.user.as_deref(), sites[0].ssh.host.to_str()), (Some(OsStr::new("me")), Some("10.0.0.1")));
        assert_eq!((sites[1].name.as_str(), sites[1].address.as_deref()), ("kyushu", None));
    }

    #[test]
    fn a_file_has_a_host_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("hosts");
        fs::write(&file, "# six sites\nnict = a.example\n\nkyushu=b.example , 192.0.2.2 # far\n").unwrap();
        let sites = sites(&[&file]).expect("two sites");
        assert_eq!(sites.iter().map(|site| site.name.as_str()).collect::<Vec<_>>(), ["nict", "kyushu"]);
        assert_eq!(sites[1].address.as_deref(), Some("192.0.2.2"));
    }

    #[test]
    fn what_makes_no_mesh_is_refused() {
        for operands in [&["a"][..], &["a", "a"], &["a", "-oProxyCommand=x"], &["a", "b,"], &["a", "=b"], &["a", "x=-y"]] {
            assert!(sites(operands).is_err(), "{operands:?}");
        }
    }

    #[test]
    fn hosts_of_ssh() {
        let host = ssh_host("me@far").expect("a host");
        assert_eq!((host.user, host.host), (Some("me".into()), "far".into()));
        for wrong in ["", "@far", "me@", "-oProxyCommand=x", "a/b"] {
            assert!(ssh_host(wrong).is_err(), "{wrong}");
        }
    }
}
