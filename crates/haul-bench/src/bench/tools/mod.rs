//! How each tool is set up, run and read.
//!
//! Every tool gets windows and buffers of two bandwidth-delay products or more, where it takes any; the hosts allow TCP windows of 2 GiB. What a
//! tool was told is in its settings.

mod copy;
mod daemon;
mod disk;
mod driver;
mod gridftp;
mod haul;
mod iperf;
mod setup;
mod ssh;

use super::duel::MeasureError;
use super::tool::Tool;

pub use self::iperf::parse as parse_intervals;
pub use self::setup::{Bench, Measured, tcp};

/// Runs the cell's tool once.
pub fn measure(bench: &Bench<'_>) -> Result<Measured, MeasureError> {
    match bench.cell.tool {
        Tool::Cubic | Tool::Bbr | Tool::Reno => iperf::measure(bench),
        Tool::Udt | Tool::Srt | Tool::QuicCubic | Tool::QuicBbr => driver::measure(bench),
        Tool::Haul | Tool::HaulQuickstart | Tool::HaulModest | Tool::HaulAggressive => haul::measure(bench),
        Tool::HaulCp
        | Tool::HaulCpAgain
        | Tool::HaulCpDaemon
        | Tool::HaulCpTcp
        | Tool::HaulCpSsh
        | Tool::Mscp
        | Tool::Scp
        | Tool::Rsync
        | Tool::Tar
        | Tool::Sftp
        | Tool::Gridftp
        | Tool::GridftpBbr => copy::measure(bench),
    }
}

/// Why a tool cannot be measured on this kernel.
pub fn missing_tcp(tool: Tool) -> Option<String> {
    let name = tcp(tool)?;
    let available = haul_lab::setting("ipv4/tcp_available_congestion_control").unwrap_or_default();
    let there = available.split_whitespace().any(|known| known == name);
    (!there).then(|| format!("this kernel has no TCP {name} (it has {available}): modprobe tcp_{name}"))
}
