//! Every law loads, carries a transfer, and goes.

use haul_tcp::Law;

use crate::rig::{Rig, own};

#[test]
fn every_law_loads_and_carries() {
    let Some(rig) = Rig::open() else { return };
    let before = rig.transfer();
    for law in Law::ALL {
        rig.tcp.on(&own(law), &rig.scope()).unwrap_or_else(|error| panic!("{}: {error}", law.name()));
        assert_eq!(rig.transfer(), own(law));
    }
    let totals = rig.tcp.totals().expect("counters");
    assert!(totals.iter().all(|of| of.begun >= 1), "{totals:?}");
    let rules = rig.tcp.off(None).expect("off");
    assert_eq!(rules.len(), 1, "one scope has one rule: {rules:?}");
    assert_eq!(rig.transfer(), before, "the default is what it was");
    rig.expect_nothing_left();
}
