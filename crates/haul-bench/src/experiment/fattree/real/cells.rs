//! The part of the grid that is played on real sockets: every kind of long flows that hosts can have, beside TCP's short flows, and some others.

use std::time::Duration;

use haul_scenarios::Kind;
use haul_scenarios::fattree::{Contender, Load, Study, Tree};
use haul_sim::{TcpConfig, Ways};
use haul_units::Bytes;

use crate::experiment::Scale;
use crate::experiment::fattree::cells::{CROWDS, Cell, HAUL, HAUL_4, TCP};

/// Its subflows are what the kernel makes of them: each has TCP's congestion control for itself.
const MPTCP: Contender = Contender {
    title: "MPTCP, uncoupled",
    // Each packet says where its bytes belong in the connection: 20 bytes (RFC 8684 3.3).
    kind: Kind::Tcp(TcpConfig { payload: Bytes(1428), ..TcpConfig::MPTCP }),
    ways: Ways::Hashed(4),
};

pub fn grid(scale: Scale) -> Vec<Cell> {
    let cell =
        |load, foreground, background| Cell { tree: Tree::Study, load, crowd: CROWDS[0], foreground, background, marked: false };
    let short = |foreground, background| cell(Load::REPRODUCTION, foreground, background);
    let backgrounds = [None, Some(TCP), Some(MPTCP), Some(HAUL), Some(HAUL_4)];
    if scale == Scale::Quick {
        let others = [Some(TCP), Some(MPTCP), Some(HAUL_4)].map(|background| short(TCP, background));
        return [vec![short(MPTCP, None)], others.to_vec(), vec![short(HAUL, Some(TCP)), cell(Load::Queries, TCP, Some(TCP))]]
            .concat();
    }
    let among = |load| backgrounds.map(|background| cell(load, TCP, background));
    let others = [short(HAUL, None), short(HAUL, Some(TCP)), short(HAUL, Some(HAUL_4)), short(MPTCP, Some(TCP))];
    [&among(Load::REPRODUCTION)[..], &among(Load::Queries), &others].concat()
}

/// A cell's traffic by a seed. The same seed has the same long flows in all cells, and the same short ones beside the same number of them.
pub fn study(cell: &Cell, seed: u64, scale: Scale) -> Study {
    let length = scale.pick(Duration::from_millis(800), Duration::from_secs(4));
    Study { length, ..cell.study(seed, scale) }
}

pub fn seeds(scale: Scale) -> u64 {
    scale.pick(1, 3)
}

#[cfg(test)]
mod tests {
    use super::super::way::Way;
    use super::*;

    #[test]
    fn every_goal_has_its_cells() {
        let cells = grid(Scale::Full);
        for load in [Load::REPRODUCTION, Load::Queries] {
            for among in ["nobody", "TCP", "MPTCP, uncoupled", "haul, fair", "haul, fair, 4 paths"] {
                let of = |cell: &&Cell| cell.load == load && cell.foreground.title == "TCP" && cell.background_title() == among;
                assert_eq!(cells.iter().filter(of).count(), 1, "{among}");
            }
        }
    }

    #[test]
    fn contenders_are_sent_by_what_they_are() {
        let ways = [TCP, MPTCP, HAUL, HAUL_4].map(|contender| Way::of(&contender));
        let fair = haul_cc::ControllerChoice::Fair;
        assert_eq!(ways, [Way::Tcp, Way::Mptcp, Way::Haul(fair, 1), Way::Haul(fair, 4)]);
    }
}
