//! When nothing comes from the other side any more: said once when it begins, once when it ends, with the time left.

use haul_peer::Outage;

use super::text::short_duration;

/// In a sentence.
pub fn outage_words(outage: Outage) -> String {
    match outage {
        Outage::Begun { silence, left } => format!(
            "nothing has come from the other side for {}: the network may be down; waiting for {} more",
            short_duration(silence),
            short_duration(left)
        ),
        Outage::Ended { lasted } => format!("the other side is heard again, after {}", short_duration(lasted)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_outage_is_told_with_the_time_left() {
        let begun = Outage::Begun { silence: Duration::from_secs(6), left: Duration::from_secs(84) };
        assert!(outage_words(begun).contains("for 6 s") && outage_words(begun).contains("1:24 more"), "{}", outage_words(begun));
    }
}
