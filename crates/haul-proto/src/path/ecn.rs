//! Whether a path carries ECN marks truthfully.
//!
//! Packets leave with ECT(0). The peer reports how many came with which mark; once enough packets are acknowledged, a report that counts none of them
//! means that the path erases marks, one that goes backwards that it lies: marking stops. Sources: RFC 9000 13.4.2, RFC 3168.

use crate::receive::Ecn;
use crate::wire::ack::Ack;

/// Packets acknowledged before an absence of marks is judged.
const TEST_PACKETS: u64 = 32;

/// ECN state of one path.
#[derive(Debug, Default)]
pub struct EcnState {
    /// As the peer says: any number.
    ect0: u64,
    ce: u64,
    marked_pkts: u64,
    acked_pkts: u64,
    failed: bool,
}

impl EcnState {
    /// The mark for packets that leave now.
    pub const fn mark(&self) -> Ecn {
        if self.failed { Ecn::NotEct } else { Ecn::Ect0 }
    }

    /// A report has newly acknowledged `pkts`. Returns packets newly reported with CE.
    pub fn on_ack(&mut self, ack: &Ack, pkts: u64) -> u64 {
        self.acked_pkts += pkts;
        if self.failed || ack.ce < self.ce || ack.ect0 < self.ect0 {
            // Reports that overtook one another go backwards too: they say nothing new.
            return 0;
        }
        let marked = (ack.ce - self.ce).min(pkts);
        self.marked_pkts += marked;
        (self.ce, self.ect0) = (ack.ce, ack.ect0);
        if self.acked_pkts >= TEST_PACKETS && (self.ce, self.ect0) == (0, 0) {
            self.failed = true;
        }
        marked
    }

    /// Packets reported with CE in all, no more than have arrived.
    pub const fn marked_pkts(&self) -> u64 {
        self.marked_pkts
    }

    /// A new path: its marks must be tested.
    pub fn restart(&mut self) {
        *self = Self { ce: self.ce, ect0: self.ect0, marked_pkts: self.marked_pkts, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(ect0: u64, ce: u64) -> Ack {
        Ack { ect0, ce, ..Ack::default() }
    }

    #[test]
    fn marks_are_counted_once_and_never_beyond_what_is_acknowledged() {
        let mut ecn = EcnState::default();
        assert_eq!(ecn.on_ack(&ack(10, 2), 12), 2);
        assert_eq!(ecn.on_ack(&ack(10, 2), 0), 0);
        assert_eq!(ecn.on_ack(&ack(5, 1), 3), 0, "an old report");
        assert_eq!(ecn.on_ack(&ack(10, 900), 3), 3);
        assert_eq!(ecn.on_ack(&ack(u64::MAX, u64::MAX), TEST_PACKETS), TEST_PACKETS, "a peer may say anything");
        assert_eq!(ecn.marked_pkts(), 2 + 3 + TEST_PACKETS);
        assert_eq!(ecn.mark(), Ecn::Ect0);
    }

    #[test]
    fn a_path_that_erases_marks_gets_none() {
        let mut ecn = EcnState::default();
        ecn.on_ack(&ack(0, 0), TEST_PACKETS);
        assert_eq!(ecn.mark(), Ecn::NotEct);
    }
}
