//! LIA, OLIA and BALIA: Reno's window over several paths, whose growth is that of the whole connection.
//!
//! The formulae are in `coupling/laws.rs`. Each path has its own slow start and recovery, as RFC 6356 3 has it; on one path all three are Reno.

use crate::coupling::laws;
use crate::reno::{BETA_LOSS, BETA_MARK};
use crate::window::{Acked, Cause, HyStart, Law};

/// "Linked Increases", RFC 6356.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lia;

/// "Opportunistic Linked Increases", draft-khalili-mptcp-congestion-control-05.
#[derive(Debug, Clone, Default)]
pub(crate) struct Olia;

/// "Balanced Linked Adaptation", draft-walid-mptcp-congestion-control-04.
#[derive(Debug, Clone)]
pub(crate) struct Balia {
    /// a_r when the window last grew.
    above: f64,
}

impl Default for Balia {
    fn default() -> Self {
        Self { above: 1.0 }
    }
}

/// Growth for what was acknowledged; as Reno while a path knows of no window of its own.
fn grown(window: f64, ack: &Acked<'_>, law: fn(&[crate::Share], f64) -> f64) -> f64 {
    let shares = ack.company.shares();
    let growth = if shares.is_empty() { 1.0 / window } else { law(shares, ack.packet.as_u64() as f64) };
    window + ack.packets * growth
}

fn halved(window: f64, cause: Cause) -> f64 {
    match cause {
        Cause::Loss => window * BETA_LOSS,
        Cause::Mark => window * BETA_MARK,
    }
}

impl Law for Lia {
    const NAME: &'static str = "lia";
    const COUPLED: bool = true;
    type Start = HyStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        grown(window, ack, laws::lia)
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        halved(window, cause)
    }
}

impl Law for Olia {
    const NAME: &'static str = "olia";
    const COUPLED: bool = true;
    type Start = HyStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        grown(window, ack, laws::olia)
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        halved(window, cause)
    }
}

impl Law for Balia {
    const NAME: &'static str = "balia";
    const COUPLED: bool = true;
    type Start = HyStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        self.above = laws::balia_alpha(ack.company.shares());
        grown(window, ack, laws::balia)
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        match cause {
            Cause::Loss => window * laws::balia_left(self.above),
            Cause::Mark => window * BETA_MARK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::mean_window;

    #[test]
    fn on_one_path_they_respond_as_reno() {
        for loss in [1e-2, 1e-3] {
            for window in [mean_window::<Lia>(loss), mean_window::<Olia>(loss), mean_window::<Balia>(loss)] {
                // RFC 3649 3: w = 1.2 / sqrt(p)
                let ratio = window / (1.22 / f64::sqrt(loss));
                assert!((0.9..1.1).contains(&ratio), "{ratio} at {loss}");
            }
        }
    }
}
