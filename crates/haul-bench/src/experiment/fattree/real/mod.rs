//! The study on real sockets: the same traffic in a tree of network namespaces, by the kernel's TCP and MPTCP and by haul's transport.
//!
//! All hosts, switches and flows are in this process and the kernel below it: a flow is a thread in its host's namespace.
//!
//! | module | idea |
//! |---|---|
//! | `cells` | what is played |
//! | `play` | a run: the tree, who sends when, what came of it |
//! | `listeners` | what hosts listen on |
//! | `tcp`, `transport` | a flow of the kernel's, and of haul's |
//! | `way`, `subflows` | which of them; what MPTCP is told |
//! | `ledger` | what has arrived |
//! | `show` | tables and goals |

mod cells;
mod ledger;
mod listeners;
mod play;
mod show;
mod subflows;
mod tcp;
mod transport;
mod way;

use self::play::{Came, PlayError, play};
use self::show::Gathered;
use super::show::load_title;
use crate::experiment::{Ground, Report, Scale};

pub fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let mut gathered: Vec<Gathered> = cells::grid(scale).into_iter().map(Gathered::nothing_of).collect();
    let (mut notes, count) = (Vec::new(), gathered.len());
    // Seed by seed: what drifts on the machine drifts for all.
    'all: for seed in 1..=cells::seeds(scale) {
        for (of, number) in gathered.iter_mut().zip(1..) {
            let name = name(of);
            ground.tell(&format!("seed {seed}, {number}/{count}: {name}"));
            match play(&cells::study(&of.cell, seed, scale), ground) {
                Ok(came) => {
                    notes.extend(failures(&came).map(|failed| format!("{name}, seed {seed}: {failed}")));
                    of.came.push((seed, came));
                }
                Err(PlayError::Interrupted) => break 'all,
                Err(error) => notes.push(format!("{name}, seed {seed}: failed, {error}")),
            }
        }
    }
    gathered.retain(|of| !of.came.is_empty());
    show::report(&gathered, notes, scale)
}

fn name(of: &Gathered) -> String {
    let cell = &of.cell;
    format!("{} by {} among {}", load_title(cell.load), cell.foreground.title, cell.background_title())
}

fn failures(came: &Came) -> Option<String> {
    came.failed.as_ref().map(|(count, first)| format!("{count} flows broke off, the first: {first}"))
}
