//! A program with a law of its own, for as long as it runs.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::Tcp;
use super::ways::attach;
use crate::error::TcpError;
use crate::journal::{Change, Journal};
use crate::kernel::cgroup;
use crate::kernel::netns::Namespace;
use crate::law::Choice;
use crate::laws;
use crate::network::EVERYTHING;

impl Tcp {
    /// A cgroup whose programs have a law, for as long as the value lives. The kernel takes the program back whenever this process ends.
    pub fn run(&self, choice: &Choice) -> Result<Run, TcpError> {
        let mut journal = Journal::open(&self.place.state)?;
        self.repair(&mut journal)?;
        let law = choice.kernel_name();
        let process = std::process::id();
        let dir = cgroup::root()?.join(format!("haul-tcp-{process}"));
        journal.add(Change::Run { dir: dir.clone(), process, law: law.clone() })?;
        let entered = self.make_available(&mut journal, choice, &Namespace::own()?).and_then(|()| {
            fs::create_dir_all(&dir).map_err(TcpError::doing("making a cgroup"))?;
            let pins = self.place.bpf.join(format!("run-{process}"));
            laws::mount(&self.place.bpf)?;
            let link = attach(&dir, &pins, &law, &[([0; 8], EVERYTHING)]);
            let removed = laws::unload_chooser(&pins);
            let link = link?;
            let before = cgroup::own()?;
            cgroup::join(&dir).map_err(TcpError::doing("joining a cgroup"))?;
            removed?;
            Ok((link, before))
        });
        match entered {
            Ok((link, before)) => Ok(Run { tcp: self.clone(), before, _link: link }),
            Err(error) => {
                self.end_run(&mut journal, process)?;
                Err(error)
            }
        }
    }

    fn end_run(&self, journal: &mut Journal, process: u32) -> Result<(), TcpError> {
        let mine = |change: &Change| matches!(change, Change::Run { process: of, .. } if *of == process);
        if let Some(change) = journal.changes.iter().find(|change| mine(change)).cloned() {
            self.undo(&change)?;
            journal.changes.retain(|change| !mine(change));
            journal.write()?;
        }
        self.tidy(journal)
    }
}

/// What `haul tcp run` holds: dropped, everything is as before.
#[derive(Debug)]
pub struct Run {
    tcp: Tcp,
    before: PathBuf,
    _link: OwnedFd,
}

impl Run {
    /// Leaves the cgroup, once the program was started in it.
    pub fn leave(&self) -> Result<(), TcpError> {
        cgroup::join(&self.before).map_err(TcpError::doing("leaving a cgroup"))
    }

    /// The program has ended.
    pub fn end(self) -> Result<(), TcpError> {
        let mut journal = Journal::open(&self.tcp.place.state)?;
        self.tcp.end_run(&mut journal, std::process::id())
    }
}
