//! One server of a fleet, as a job sees it, and all of them, those that are still to come included.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use haul::Connection;
use haul_copy::MachineReport;
use haul_files::store::Scheme;
use haul_peer::Connected;
use haul_plan::Load;
use haul_units::BitRate;

/// A server that is connected and waits for a job. At the other end is what serves copies: `haul remote`, `haul serve`, or a member that was started and has called back.
pub struct Member {
    /// What its user calls it.
    pub name: String,
    /// Carries one job.
    pub connection: Connection,
    /// Where relative paths of a job start there; where its copies usually start, unless it is said.
    pub path: Option<PathBuf>,
    /// No more than this is asked of it.
    pub limit: Option<BitRate>,
    /// What must live as long, such as its ssh.
    pub(crate) keep: Option<Connected>,
}

impl Member {
    /// A server that a [`Connector`](haul_peer::Connector) has reached.
    pub fn reached(name: impl Into<String>, connected: Connected) -> Self {
        Self { name: name.into(), connection: connected.connection.clone(), path: None, limit: None, keep: Some(connected) }
    }

    /// A server that has called back.
    pub fn called_back(name: impl Into<String>, connection: Connection) -> Self {
        Self { name: name.into(), connection, path: None, limit: None, keep: None }
    }

    /// A path of a job, as it is there: what is in a store of its own (`gfarm:`, `ram:`) starts nowhere else.
    pub(crate) fn place(&self, path: &Path) -> PathBuf {
        match &self.path {
            Some(base) if Scheme::split(path.as_os_str().as_encoded_bytes()).0 == Scheme::Local => base.join(path),
            _ => path.to_owned(),
        }
    }

    /// Lets it end, once its work is done. It is not waited for.
    pub fn part(self) {
        if let Some(connected) = self.keep {
            connected.part(false);
        }
    }
}

/// How busy a machine says that it is.
pub(crate) fn load_of(machine: MachineReport) -> Load {
    Load { running: machine.load1, processors: machine.processors }
}

/// The members of one job: a job begins with those that are there, and takes the others as they come.
#[derive(Debug)]
pub struct Members {
    pub(crate) names: Vec<String>,
    /// Those that have been waited for.
    pub(crate) first: Vec<(usize, Option<Member>)>,
    /// By their places among the names; nothing for one that will not come.
    pub(crate) coming: Receiver<(usize, Option<Member>)>,
}

/// Brings members to a job. When it is dropped, whoever has not come will not.
#[derive(Debug, Clone)]
pub struct Bringing(Sender<(usize, Option<Member>)>);

impl Members {
    /// Members of these names, none of which is there.
    pub fn to_come(names: Vec<String>) -> (Self, Bringing) {
        let (bring, coming) = channel();
        (Self { names, first: Vec::new(), coming }, Bringing(bring))
    }

    /// Waits for the first of them. False where nobody comes.
    pub fn wait_for_one(&mut self) -> bool {
        while !self.first.iter().any(|(_, member)| member.is_some()) {
            let Ok(next) = self.coming.recv() else { return false };
            self.first.push(next);
        }
        true
    }
}

impl Bringing {
    /// This one is there, as the name of this place. It ends at once where the job is over.
    pub fn came(&self, index: usize, member: Member) {
        if let Err(unwanted) = self.0.send((index, Some(member)))
            && let (_, Some(member)) = unwanted.0
        {
            member.part();
        }
    }

    /// The one of this place will not come.
    pub fn is_absent(&self, index: usize) {
        let _ = self.0.send((index, None));
    }
}

impl From<Vec<Member>> for Members {
    fn from(members: Vec<Member>) -> Self {
        let (all, bring) = Self::to_come(members.iter().map(|member| member.name.clone()).collect());
        members.into_iter().enumerate().for_each(|(index, member)| bring.came(index, member));
        all
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.name).field("limit", &self.limit).finish_non_exhaustive()
    }
}
