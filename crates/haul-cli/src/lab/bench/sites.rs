//! WANs for the bench: emulators that end with this process.

use std::cell::Cell;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use haul_bench::bench::{Site, Sites};
use haul_lab::{QueueSize, Side, WanSpec};
use haul_units::Bytes;

use crate::lab::control::{Request, ask};
use crate::lab::start::{Emulator, Life};
use crate::lab::status::number;

/// Starts one emulator after the other.
#[derive(Debug, Default)]
pub struct Emulators {
    started: Cell<u32>,
}

/// One that is up.
#[derive(Debug)]
struct Emulated {
    name: String,
    emulator: Option<Emulator>,
}

impl Sites for Emulators {
    fn up(&self, spec: &WanSpec) -> Result<Box<dyn Site>, String> {
        self.started.set(self.started.get() + 1);
        let name = format!("bench-{}-{}", std::process::id(), self.started.get());
        let emulator = Emulator::start(&name, options(spec), Life::WithThisProcess).map_err(|failure| failure.message)?;
        Ok(Box::new(Emulated { name, emulator: Some(emulator) }))
    }
}

impl Site for Emulated {
    fn command(&self, side: Side, program: &OsStr) -> Command {
        let mut command = Command::new("/proc/self/exe");
        let host = if side == Side::A { "a" } else { "b" };
        command.args(["lab", "wan", "exec", "--name", &self.name, host, "--"]).arg(program);
        command
    }

    fn address(&self, side: Side) -> IpAddr {
        let half = if side == Side::A { 0 } else { 128 };
        Ipv4Addr::new(10, 80, half, 1).into()
    }

    fn delivered(&self) -> Option<Bytes> {
        let (status, _) = ask(&self.name, &Request::Status).ok()?;
        Some(Bytes(number(&status["directions"][0], "delivered_bytes") as u64))
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        if let Some(emulator) = self.emulator.take() {
            emulator.end();
        }
    }
}

/// The options of `haul lab wan up` that mean the same.
fn options(spec: &WanSpec) -> Vec<String> {
    let link = &spec.link;
    let nanos = |time: std::time::Duration| format!("{}ns", time.as_nanos());
    let queue = |queue: QueueSize| match queue {
        QueueSize::Bdp(factor) => format!("{factor}bdp"),
        QueueSize::Bytes(bytes) => bytes.0.to_string(),
        QueueSize::Time(time) => nanos(time),
    };
    let mut options = vec![
        format!("--rate={}", link.rate.as_bps()),
        format!("--rtt={}", nanos(link.rtt)),
        format!("--jitter={}", nanos(link.jitter)),
        format!("--queue={}", queue(link.queue)),
        format!("--loss={}", link.loss.as_f64()),
        format!("--reorder={}", link.reorder.as_f64()),
        format!("--reorder-by={}", nanos(link.reorder_by)),
        format!("--duplicate={}", link.duplicate.as_f64()),
        format!("--corrupt={}", link.corrupt.as_f64()),
        format!("--seed={}", link.seed),
        format!("--hosts={}:{}", spec.hosts[0], spec.hosts[1]),
        format!("--links={}", spec.links),
        format!("--mtu={}", spec.mtu),
    ];
    options.extend(link.back_rate.map(|rate| format!("--asymmetric={}", rate.as_bps())));
    options.extend(link.burst_loss.map(|mean| format!("--burst-loss={mean}")));
    options.extend(link.ecn.map(|threshold| format!("--ecn={}", queue(threshold))));
    options.extend(spec.tcp.as_ref().map(|tcp| format!("--tcp={tcp}")));
    options
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};
    use haul_lab::LinkOptions;
    use haul_units::{BitRate, Ratio};

    use super::*;
    use crate::lab::args::{UpArgs, spec};

    #[test]
    fn options_mean_what_they_were_made_of() {
        let link = LinkOptions {
            rate: BitRate::mbps(1500),
            back_rate: Some(BitRate::mbps(100)),
            rtt: std::time::Duration::from_micros(12_345),
            queue: QueueSize::Time(std::time::Duration::from_millis(7)),
            loss: Ratio::percent(0.01),
            burst_loss: Some(8.0),
            ecn: Some(QueueSize::Bdp(0.2)),
            seed: 1001,
            ..LinkOptions::default()
        };
        for wanted in [WanSpec::default(), WanSpec { link, mtu: 9000, tcp: Some("bbr".into()), ..WanSpec::default() }] {
            let command = UpArgs::augment_args(clap::Command::new("up").no_binary_name(true));
            let matches = command.try_get_matches_from(options(&wanted)).expect("understood");
            let args = UpArgs::from_arg_matches(&matches).expect("understood");
            assert_eq!(spec(&args.link, &args.shape), Ok(wanted));
        }
    }
}
