//! The modes at a bottleneck: alone under random loss, with their like, beside CUBIC. Bounds, in virtual time: the same run each time.

use crate::path::{Outcome, Path, Sender, run};

const PATH: Path = Path { rate_mbps: 50, rtt_ms: 40, queue_percent: 100, loss_ppm: 0, seconds: 30, seed: 1 };

fn alone(path: Path, sender: Sender) -> Outcome {
    let outcome = run(path, &[sender]).remove(0);
    println!("{sender:?} {path:?}: {outcome:.1?}");
    outcome
}

fn together(path: Path, senders: &[Sender]) -> Vec<Outcome> {
    let outcomes = run(path, senders);
    for (sender, outcome) in senders.iter().zip(&outcomes) {
        println!("{sender:?} of {} {path:?}: {outcome:.1?}", senders.len());
    }
    outcomes
}

#[test]
fn random_loss_is_not_congestion() {
    for (loss_ppm, least) in [(1_000, 95.0), (10_000, 93.0), (50_000, 85.0)] {
        for sender in [Sender::Fair, Sender::Aggressive] {
            let outcome = alone(Path { loss_ppm, ..PATH }, sender);
            assert!(outcome.share > least, "{sender:?} at {loss_ppm} ppm: {outcome:?}");
        }
    }
    let cubic = alone(Path { loss_ppm: 10_000, ..PATH }, Sender::Cubic);
    assert!(cubic.share < 10.0, "what is compared with is no TCP: {cubic:?}");
}

#[test]
fn the_path_own_loss_is_found_and_no_more() {
    let fair = alone(Path { loss_ppm: 10_000, ..PATH }, Sender::Fair);
    assert!((7_000..13_000).contains(&fair.loss_ppm), "{fair:?}");
    let none = alone(PATH, Sender::Fair);
    assert!(none.loss_ppm < 1_000, "{none:?}");
}

#[test]
fn aggressive_does_not_feed_on_its_own_drops() {
    for queue_percent in [10, 50, 200] {
        let outcome = alone(Path { queue_percent, ..PATH }, Sender::Aggressive);
        assert!(outcome.share > 90.0 && outcome.dropped < 5.0, "{outcome:?}");
    }
}

#[test]
fn fair_ones_share_alike() {
    for queue_percent in [50, 100, 200] {
        let outcomes = together(Path { queue_percent, seconds: 80, ..PATH }, &[Sender::Fair; 4]);
        let sum: f64 = outcomes.iter().map(|outcome| outcome.share).sum();
        let squares: f64 = outcomes.iter().map(|outcome| outcome.share.powi(2)).sum();
        let jain = sum * sum / (outcomes.len() as f64 * squares);
        assert!(jain > 0.95 && sum > 90.0, "Jain {jain}, sum {sum}: {outcomes:?}");
    }
}

#[test]
fn fair_shares_with_cubic() {
    // In a short queue CUBIC's bursts meet a full one more often than paced packets do.
    for (queue_percent, most) in [(50, 70.0), (100, 65.0), (200, 65.0)] {
        let outcomes = together(Path { queue_percent, seconds: 80, ..PATH }, &[Sender::Cubic, Sender::Fair]);
        assert!(outcomes[1].share > 35.0 && outcomes[1].share < most, "{outcomes:?}");
    }
}

#[test]
fn modest_keeps_the_queue_short_and_gives_way() {
    let outcome = alone(PATH, Sender::Modest);
    assert!(outcome.share > 90.0 && outcome.queue < 25.0, "{outcome:?}");
    let outcomes = together(Path { seconds: 60, ..PATH }, &[Sender::Cubic, Sender::Modest]);
    assert!(outcomes[1].share < 15.0 && outcomes[0].share > 75.0, "{outcomes:?}");
}
