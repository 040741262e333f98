//! What is in the kernel's hands, read and set while it is in use: counters, connections, settings, and another law for connections that are open.

use std::os::fd::AsFd as _;

use haul_units::Network;

use super::Tcp;
use super::ways::name_field;
use crate::connection::{self, Connection};
use crate::error::TcpError;
use crate::journal::Journal;
use crate::kernel::bpf;
use crate::kernel::netns::Namespace;
use crate::knobs::{self, KNOBS, Knob, Values};
use crate::law::{Choice, Law};
use crate::network::{EVERYTHING, mapped, mask};

/// What a law has done since it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Which.
    pub law: Law,
    /// Connections that got it.
    pub begun: u64,
    /// Those of them that are closed.
    pub ended: u64,
    /// Their reductions.
    pub reductions: u64,
    /// Quickstart: those that began with what was remembered.
    pub jumps: u64,
}

impl Tcp {
    /// What the laws have done; without any that was used, none.
    pub fn totals(&self) -> Result<Vec<Totals>, TcpError> {
        let Ok(map) = self.pins().open("totals") else { return Ok(Vec::new()) };
        let mut totals = Vec::new();
        for (index, law) in (0_u32..).zip(Law::ALL) {
            let mut value = [0; 32];
            bpf::lookup(map.as_fd(), &index.to_ne_bytes(), &mut value).map_err(TcpError::doing("reading the counters"))?;
            let word = |at: usize| value[at * 8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
            totals.push(Totals { law, begun: word(0), ended: word(1), reductions: word(2), jumps: word(3) });
        }
        Ok(totals)
    }

    /// The connections of a namespace.
    pub fn connections(&self, namespace: &Namespace) -> Result<Vec<Connection>, TcpError> {
        let program = self.pins().open("show").map_err(|_| TcpError::NothingOn)?;
        let written = namespace.inside(|| bpf::walk(program.as_fd()))?;
        written.map(|bytes| connection::decode(&bytes)).map_err(TcpError::doing("reading the connections"))
    }

    /// Gives connections that are open another law; how many got it, and how many could not.
    pub fn switch(&self, choice: &Choice, namespace: &Namespace, networks: &[Network]) -> Result<(usize, usize), TcpError> {
        let mut journal = Journal::open(&self.place.state)?;
        self.repair(&mut journal)?;
        // Also for a law of the kernel's: it is a program that switches.
        self.load(&mut journal)?;
        let switched =
            self.make_available(&mut journal, choice, namespace).and_then(|()| self.walk_over(choice, namespace, networks));
        let tidied = self.tidy(&mut journal);
        let switched = switched?;
        tidied.map(|()| switched)
    }

    fn walk_over(&self, choice: &Choice, namespace: &Namespace, networks: &[Network]) -> Result<(usize, usize), TcpError> {
        let doing = "switching connections";
        let change = self.pins().open("change").map_err(TcpError::doing(doing))?;
        let program = self.pins().open("alter").map_err(TcpError::doing(doing))?;
        let (mut switched, mut refused) = (0, 0);
        for network in if networks.is_empty() { &[EVERYTHING] } else { networks } {
            let (address, bits) = mapped(*network);
            let value = [&address[..], &mask(bits), &name_field(&choice.kernel_name())].concat();
            bpf::update(change.as_fd(), &0_u32.to_ne_bytes(), &value).map_err(TcpError::doing(doing))?;
            let written = namespace.inside(|| bpf::walk(program.as_fd()))?.map_err(TcpError::doing(doing))?;
            let done = written.chunks_exact(4).filter(|word| **word != [0; 4]).count();
            switched += done;
            refused += written.len() / 4 - done;
        }
        Ok((switched, refused))
    }

    /// All settings with their values.
    pub fn settings(&self) -> Result<Vec<(Knob, u32)>, TcpError> {
        let values = self.values()?.unwrap_or_else(knobs::usual);
        Ok(KNOBS.into_iter().zip(values).collect())
    }

    /// Sets one, by `KEY=VALUE`.
    pub fn set(&self, setting: &str) -> Result<(), TcpError> {
        let (index, value) = knobs::parse(setting)?;
        let mut values = self.values()?.filter(|_| self.is_loaded()).ok_or(TcpError::NothingOn)?;
        values[index] = value;
        let map = self.pins().open("knobs").map_err(|_| TcpError::NothingOn)?;
        bpf::update(map.as_fd(), &0_u32.to_ne_bytes(), &knobs::encode(&values)).map_err(TcpError::doing("setting"))
    }

    fn values(&self) -> Result<Option<Values>, TcpError> {
        let Ok(map) = self.pins().open("knobs") else { return Ok(None) };
        let mut values = [0; size_of::<Values>()];
        bpf::lookup(map.as_fd(), &0_u32.to_ne_bytes(), &mut values).map_err(TcpError::doing("reading the settings"))?;
        Ok(Some(knobs::decode(&values)))
    }
}
