//! Experiments: each reproduces a figure of the field, by itself, and says what came out.
//!
//! An [`Experiment`] is data: a name, what it shows, where it comes from, and two functions that make a [`Report`], one in simulation (where there is something to simulate) and one on
//! real sockets over the emulated WAN. `haul lab list` prints the [`registry`], `haul lab run` runs what it is asked for. To add one: a
//! module with a constant, and its name in [`registry`].
//!
//! | module | idea |
//! |---|---|
//! | `definition` | what an experiment is |
//! | `report` | tables, verdicts, charts, and how they are written |
//! | `ground` | what an experiment on real sockets runs on, and several flows at once on it |
//! | `simulated` | plans run side by side, and what they give |
//! | `comparison` | haul beside other tools on the same paths: what loss, rtt and startup share |
//! | `loss`, `rtt`, `startup` | throughput against loss and round-trip time, rate from the first packet on |
//! | `sharing` | who gets how much of a path that is shared: haul's transport, and the kernel's TCP with haul's laws |
//! | `fattree` | short flows among long ones in a data centre |
//! | `fleet` | one client and thirteen storage servers |
//! | `gaps` | how exactly packets are spaced: by gaps, by timers, by nobody |
//! | `kernel` | the kernel's TCP with haul's laws, against packet loss |
//! | `paths` | one connection over two unlike links |
//! | `company` | several paths of one connection beside one flow, on one bottleneck |
//! | `blocked` | what carries each command where UDP does not pass, beside ssh alone |
//! | `pacing` | one and two window-based flows with and without pacing, beside a constant flow |

mod blocked;
mod company;
mod comparison;
mod definition;
mod error;
mod fattree;
mod fleet;
mod gaps;
mod ground;
mod kernel;
mod loss;
mod pacing;
mod paths;
mod report;
mod rtt;
mod sharing;
mod simulated;
mod startup;

#[cfg(test)]
mod tests;

pub use definition::{Experiment, Scale};
pub use error::ExperimentError;
pub use fleet::over_transport;
pub use ground::Ground;
pub use report::{Judged, Report, Table};

/// All experiments, in the order in which they are listed.
pub const fn registry() -> &'static [Experiment] {
    &[
        loss::LOSS,
        rtt::RTT,
        startup::STARTUP,
        sharing::SHARING,
        pacing::PACING,
        gaps::GAPS,
        kernel::KERNEL,
        sharing::KERNEL_SHARING,
        fleet::FLEET,
        fattree::FATTREE,
        paths::PATHS,
        company::COMPANY,
        blocked::BLOCKED,
    ]
}

/// The experiment of a name.
pub fn find(name: &str) -> Result<&'static Experiment, ExperimentError> {
    let names = || registry().iter().map(|experiment| experiment.name);
    registry().iter().find(|experiment| experiment.name == name).ok_or_else(|| ExperimentError::Unknown {
        name: name.to_owned(),
        known: names().collect::<Vec<_>>().join(", "),
        nearest: nearest(name, names()),
    })
}

/// The most similar of some names, if it is similar at all.
fn nearest(name: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let similar = names.map(|known| (strsim::jaro_winkler(&name.to_lowercase(), known), known));
    similar.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(similarity, _)| *similarity > 0.8).map(|(_, known)| known)
}
