//! Controllers that change while data flows.

use std::thread;

use haul::ControllerChoice;
use haul_units::BitRate;

use crate::support::{bytes, eventually, pair_with};

#[test]
fn the_controller_changes_while_blocks_flow() {
    let pair = pair_with("127.0.0.1:0", haul::udp::Options::default(), |client, _| {
        client.transport.controller = ControllerChoice::Quickstart;
    });
    let (near, sender) = (pair.near.clone(), pair.near.open_blocks().expect("a stream"));
    let choices: Vec<_> = ControllerChoice::NAMED.iter().copied().chain([ControllerChoice::Fixed(BitRate::gbps(1))]).collect();
    let count = choices.len() as u64 * 8;
    let sending = thread::spawn(move || {
        for (index, choice) in choices.into_iter().enumerate() {
            near.set_controller(choice);
            assert_eq!(near.stats().controller.algorithm, choice.name());
            for part in 0..8 {
                sender.send(bytes(index as u64 * 8 + part, 300_000)).expect("sends");
            }
        }
        sender.finish().expect("all arrive");
    });
    let receiver = pair.far.accept_blocks().expect("a stream");
    let mut seen = 0;
    while let Some(block) = receiver.recv().expect("receives") {
        assert!(block[..] == bytes(block.index(), 300_000), "block {}", block.index());
        seen += 1;
    }
    assert_eq!(seen, count);
    sending.join().expect("no panic");
    eventually("the path is known", || pair.near.learned().is_some_and(|learned| learned.bandwidth > BitRate::ZERO));
    assert_eq!(pair.far.learned(), None, "who sent nothing but credit knows nothing");
}
