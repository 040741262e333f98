//! Scenarios as data: a topology, flows, and what must hold.
//!
//! A [`Plan`] can be a constant. It does not know what its flows are made of: whoever runs it says by a function how the two ends of a
//! flow of each kind are built, so the TCP model, real connections and both side by side run the same plans.

mod check;
mod judge;
mod outcome;
mod plan;

use haul_units::Time;

pub use self::check::Check;
pub use self::judge::Failure;
pub use self::outcome::Outcome;
use self::outcome::Recorder;
pub use self::plan::{Flow, FlowEnd, FlowSpec, Plan, Scene};

impl<K: Clone> Plan<K> {
    /// Runs the plan from its beginning.
    pub fn run<E: FlowEnd>(&self, ends: impl FnMut(&FlowSpec<'_, K>) -> (E, E)) -> Outcome {
        self.play(&mut self.build(ends))
    }

    /// Runs a scene that this plan has built, which stays to be looked at.
    pub fn play<E: FlowEnd>(&self, scene: &mut Scene<E>) -> Outcome {
        let mut recorder = Recorder::new(self, scene);
        let end = Time::ZERO + self.length;
        while scene.network.now() < end {
            let next = (scene.network.now() + recorder.bin()).min(end);
            scene.network.run(next);
            if recorder.sample(scene) {
                break;
            }
        }
        recorder.finish(self, scene)
    }
}
