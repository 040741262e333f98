//! What arrives, told every tenth of a second: `interval END_SECONDS BYTES`, as the drivers of UDT and SRT do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::{Plan, now};

/// Counts bytes.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Starts to tell. The program ends when the plan's time is over or its bytes are there.
    pub fn start(plan: Plan) -> Self {
        let meter = Self::default();
        let counted = meter.clone();
        thread::spawn(move || counted.tell(plan));
        meter
    }

    /// These arrived.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn tell(&self, plan: Plan) {
        let start = now();
        let mut told = 0;
        for tick in 1.. {
            let due = (INTERVAL * tick).min(plan.time);
            #[expect(clippy::disallowed_methods, reason = "a measurement at fixed times")]
            thread::sleep(due.saturating_sub(now() - start));
            let arrived = self.0.load(Ordering::Relaxed);
            println!("interval {:.4} {}", (now() - start).as_secs_f64(), arrived - told);
            told = arrived;
            if due >= plan.time || arrived >= plan.total_bytes {
                std::process::exit(0);
            }
        }
    }
}

const INTERVAL: Duration = Duration::from_millis(100);
