//! How fast a job could be done at best.
//!
//! Every set of files with the same holders must flow to its servers, each of which carries its rate times the time, and all of them together no
//! more than the client's link does. The shortest time in which that is possible is found by bisection over a maximum flow.

use pathfinding::directed::edmonds_karp::{SparseCapacity, edmonds_karp};

/// Seconds, for sets of bytes with their servers, the servers' rates and the client's in bytes per second.
pub fn seconds(sets: &[(u64, Vec<usize>)], rates: &[f64], client: f64) -> f64 {
    let total: u64 = sets.iter().map(|(bytes, _)| bytes).sum();
    let least = total as f64 / client.min(rates.iter().sum());
    let most =
        sets.iter().map(|(bytes, servers)| *bytes as f64 / servers.iter().map(|at| rates[*at]).fold(0.0, f64::max)).sum::<f64>();
    if fits(sets, rates, least) {
        return least;
    }
    let (mut low, mut high) = (least, most.max(least));
    while high - low > low * 1e-3 {
        let middle = f64::midpoint(low, high);
        if fits(sets, rates, middle) { high = middle } else { low = middle }
    }
    high
}

fn fits(sets: &[(u64, Vec<usize>)], rates: &[f64], seconds: f64) -> bool {
    // Hundred-thousandths of the whole job are fine enough, and keep the numbers small.
    let total: u64 = sets.iter().map(|(bytes, _)| bytes).sum();
    let grain = (total / 100_000).max(1);
    let vertices: Vec<usize> = (0..sets.len() + rates.len() + 2).collect();
    let (source, sink) = (sets.len() + rates.len(), sets.len() + rates.len() + 1);
    let mut edges: Vec<((usize, usize), i64)> = Vec::new();
    for (at, (bytes, servers)) in sets.iter().enumerate() {
        edges.push(((source, at), (bytes / grain) as i64));
        edges.extend(servers.iter().map(|server| ((at, sets.len() + server), (bytes / grain) as i64)));
    }
    for (at, rate) in rates.iter().enumerate() {
        edges.push(((sets.len() + at, sink), (rate * seconds / grain as f64).ceil() as i64));
    }
    let wanted: i64 = sets.iter().map(|(bytes, _)| (bytes / grain) as i64).sum();
    let (_, flow, _) = edmonds_karp::<usize, i64, _, SparseCapacity<i64>>(&vertices, &source, &sink, edges);
    flow >= wanted
}

#[test]
fn a_file_that_only_one_holds_decides() {
    let both = vec![0, 1];
    assert!((seconds(&[(100, vec![0]), (100, both.clone())], &[1.0, 1.0], 1e9) - 100.0).abs() < 1.0);
    assert!((seconds(&[(300, vec![0]), (100, both.clone())], &[1.0, 1.0], 1e9) - 300.0).abs() < 2.0);
    assert!((seconds(&[(400, both)], &[3.0, 1.0], 2.0) - 200.0).abs() < 1.0);
}
