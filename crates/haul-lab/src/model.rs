//! What the simulator's TCP makes of a link: the other half of a comparison with the kernel's.

use std::time::Duration;

use haul_sim::{EndpointId, FlowEnd as _, Network, Tcp, TcpConfig};
use haul_units::{BitRate, Bytes, Time};

use crate::options::LinkOptions;

/// The payload rate of a flow, once it is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRate {
    /// From the start on.
    pub whole: BitRate,
    /// In the second half.
    pub second_half: BitRate,
}

/// Runs flows from a to b that start at the same time, for `length` from when they are connected. The link's seed decides what is lost.
pub fn tcp_rates(link: &LinkOptions, tcp: TcpConfig, flows: usize, length: Duration) -> Vec<FlowRate> {
    let mut network = Network::new();
    let [there, back] = link.links().map(|config| network.add_link(config));
    for flow in 0..flows {
        let (sender, receiver) = (EndpointId(2 * flow), EndpointId(2 * flow + 1));
        network.add_endpoint(Tcp::sender(tcp, receiver, Time::ZERO, None));
        network.add_endpoint(Tcp::receiver(tcp, None));
        network.route(sender, receiver, &[there]);
        network.route(receiver, sender, &[back]);
    }
    let mut received_at = |time: Time| -> Vec<Bytes> {
        network.run(time);
        (0..flows).map(|flow| network.endpoint(EndpointId(2 * flow + 1)).received()).collect()
    };
    let start = Time::ZERO + link.rtt;
    let middle = received_at(start + length / 2);
    let end = received_at(start + length);
    let rate = |(middle, end): (Bytes, Bytes)| FlowRate {
        whole: BitRate::of(end, length),
        second_half: BitRate::of(end - middle, length / 2),
    };
    middle.into_iter().zip(end).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use haul_units::Ratio;

    use super::*;

    #[test]
    fn a_full_link_is_shared_and_a_lossy_one_is_not_full() {
        let link = LinkOptions { rate: BitRate::mbps(100), rtt: Duration::from_millis(20), ..LinkOptions::default() };
        let total = |link: &LinkOptions| -> f64 {
            let rates = tcp_rates(link, TcpConfig::RENO, 4, Duration::from_secs(20));
            assert!(rates.len() == 4 && rates.iter().all(|rate| rate.second_half > BitRate::mbps(1)), "{rates:?}");
            rates.iter().map(|rate| rate.second_half.as_bps() as f64 / 1e6).sum()
        };
        // 1448 of 1500 bytes.
        let full = total(&link);
        assert!((95.0..=96.6).contains(&full), "{full}");
        // Mathis: 1448 * 8 / 0.02 * sqrt(1.5 / 0.02) = 5 Mbit/s each, less for timeouts.
        let lossy = total(&LinkOptions { loss: Ratio::percent(2.0), ..link });
        assert!((10.0..22.0).contains(&lossy), "{lossy}");
    }
}
