//! `HAUL_SOAK_MINUTES` (1 unless set) of the soak by `HAUL_SOAK_SEED`. From ten minutes on its figures are judged too; in less, on a machine that does other things, only what was
//! copied and what is left. `HAUL_SOAK_MBPS`: what the clients share, 100 unless set.

use std::time::Duration;

use haul_units::BitRate;
use torture::soak::{Plan, assert_steady, soak};
use torture::{minutes, number, seed};

#[test]
fn a_daemon_serves_honest_clients_whatever_else_comes() {
    let minutes = minutes("HAUL_SOAK_MINUTES");
    let long = minutes >= 10.0;
    let plan = Plan {
        seed: seed("HAUL_SOAK_SEED"),
        time: Duration::from_secs_f64(minutes * 60.0),
        rate: BitRate::mbps(number("HAUL_SOAK_MBPS", 100)),
        clients: if long { 50 } else { 8 },
        window: Duration::from_secs(if long { 30 } else { 8 }),
        strangers: if long { 400 } else { 40 },
    };
    let Some(outcome) = soak(&plan) else { return };
    let table = outcome.table(&plan);
    println!("{table}");
    if let Some(path) = std::env::var_os("HAUL_SOAK_RESULT") {
        std::fs::write(path, &table).expect("writing the result");
    }
    assert!(outcome.copies >= plan.clients as u64, "each client has copied: {outcome:?}");
    if long {
        assert_steady(&outcome);
    }
}
