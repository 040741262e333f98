//! Random operations in bad weather, on one to three paths, then the sun comes out: every stream that was finished and neither reset nor stopped arrives whole, and both ends forget it.

use std::collections::BTreeMap;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_proto::{StreamId, StreamKind, TransportConfig};
use haul_scenarios::{End, pattern};
use haul_sim::{EndpointId, LinkId, LossModel, Network};
use haul_units::{BitRate, Bytes, Ratio};
use proptest::prelude::*;

use crate::harness::{CLIENT, Path, SERVER, connected, ms, pair};

#[derive(Debug, Clone)]
enum Operation {
    Open { server: bool, bidirectional: bool },
    Write { stream: usize, bytes: u16 },
    Finish { stream: usize },
    Reset { stream: usize },
    Stop { stream: usize },
    Priority { stream: usize, priority: u8 },
    Move,
    Loss { percent: u8 },
    Limit { mbps: u8 },
    Run { ms: u8 },
}

fn operation() -> impl Strategy<Value = Operation> {
    let stream = 0..40usize;
    prop_oneof![
        3 => (any::<bool>(), any::<bool>()).prop_map(|(server, bidirectional)| Operation::Open { server, bidirectional }),
        6 => (stream.clone(), any::<u16>()).prop_map(|(stream, bytes)| Operation::Write { stream, bytes }),
        3 => stream.clone().prop_map(|stream| Operation::Finish { stream }),
        1 => stream.clone().prop_map(|stream| Operation::Reset { stream }),
        1 => stream.clone().prop_map(|stream| Operation::Stop { stream }),
        1 => (stream, any::<u8>()).prop_map(|(stream, priority)| Operation::Priority { stream, priority }),
        1 => Just(Operation::Move),
        1 => (0..40u8).prop_map(|percent| Operation::Loss { percent }),
        1 => (1..=255u8).prop_map(|mbps| Operation::Limit { mbps }),
        4 => any::<u8>().prop_map(|ms| Operation::Run { ms }),
    ]
}

#[derive(Debug, Default)]
struct Written {
    from: usize,
    bytes: u64,
    finished: bool,
    abandoned: bool,
}

struct Run {
    network: Network<End>,
    streams: Vec<StreamId>,
    written: BTreeMap<StreamId, Written>,
    moves: u16,
}

impl Run {
    fn nth(&self, stream: usize) -> Option<StreamId> {
        self.streams.get(stream % self.streams.len().max(1)).copied()
    }

    fn writer(&mut self, id: StreamId) -> &mut End {
        let from = self.written[&id].from;
        self.network.endpoint_mut(EndpointId(from))
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Open { server, bidirectional } => {
                let kind = if bidirectional { StreamKind::Bidirectional } else { StreamKind::Unidirectional };
                let from = if server { SERVER } else { CLIENT };
                if let Ok(id) = self.network.endpoint_mut(from).connection().open(kind) {
                    self.streams.push(id);
                    self.written.insert(id, Written { from: from.0, ..Written::default() });
                }
            }
            Operation::Write { stream, bytes } => {
                let Some(id) = self.nth(stream) else { return };
                let start = self.written[&id].bytes;
                let data: Vec<u8> = (start..start + u64::from(bytes)).map(pattern).collect();
                if let Ok(len) = self.writer(id).connection().write(id, &data) {
                    self.written.get_mut(&id).unwrap().bytes += len as u64;
                }
            }
            Operation::Finish { stream } => {
                let Some(id) = self.nth(stream) else { return };
                let done = self.writer(id).connection().finish(id).is_ok();
                self.written.get_mut(&id).unwrap().finished |= done;
            }
            Operation::Reset { stream } => {
                let Some(id) = self.nth(stream) else { return };
                self.writer(id).connection().reset(id, 5);
                self.written.get_mut(&id).unwrap().abandoned = true;
            }
            Operation::Stop { stream } => {
                let Some(id) = self.nth(stream) else { return };
                let reader = EndpointId(1 - self.written[&id].from);
                self.network.endpoint_mut(reader).connection().stop(id, 6);
                self.written.get_mut(&id).unwrap().abandoned = true;
            }
            Operation::Priority { stream, priority } => {
                let Some(id) = self.nth(stream) else { return };
                self.writer(id).connection().set_priority(id, priority);
            }
            Operation::Move => {
                self.moves += 1;
                let address = format!("10.0.0.1:{}", 1000 + self.moves).parse().unwrap();
                self.network.endpoint_mut(CLIENT).address = address;
            }
            Operation::Loss { percent } => self.loss(f64::from(percent) / 100.0),
            Operation::Limit { mbps } => {
                let limit = Some(BitRate::mbps(mbps.into()));
                self.network.endpoint_mut(CLIENT).connection().set_rate_limit(limit);
            }
            Operation::Run { ms: time } => {
                let until = self.network.now() + ms(time.into());
                self.network.run(until);
            }
        }
    }

    fn loss(&mut self, loss: f64) {
        let now = self.network.now();
        for link in [LinkId(0), LinkId(1)] {
            self.network.link_mut(link).set_loss(now, LossModel::Random(Ratio::new(loss)));
        }
    }

    /// Every stream to its end.
    fn wind_up(&mut self) {
        self.loss(0.0);
        for id in self.streams.clone() {
            let done = self.writer(id).connection().finish(id).is_ok();
            self.written.get_mut(&id).unwrap().finished |= done;
        }
        let until = self.network.now() + Duration::from_secs(30);
        self.network.run(until);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_was_finished_arrives(operations in prop::collection::vec(operation(), 1..120), seed in 1..1000u64, paths in 1..4u8, rough: bool) {
        let trouble = if rough { 0.03 } else { 0.0 };
        let path = Path { reorder: trouble, duplicate: trouble, corrupt: trouble, seed, ..Path::new(BitRate::mbps(100), ms(30)) };
        let transport = TransportConfig {
            controller: ControllerChoice::Cubic,
            max_packet: 1472,
            max_streams: 16,
            paths,
            memory: Bytes::mib(2),
            packets_per_key: 40,
            ..TransportConfig::default()
        };
        let mut network = pair(path, &transport);
        connected(&mut network);
        let mut run = Run { network, streams: Vec::new(), written: BTreeMap::new(), moves: 0 };
        for operation in &operations {
            run.apply(operation);
        }
        run.wind_up();
        for end in [CLIENT, SERVER] {
            prop_assert_eq!(&run.network.endpoint(end).closed, &None);
            prop_assert_eq!(run.network.endpoint(end).wrong, 0);
        }
        for (id, written) in run.written.iter().filter(|(_, written)| written.finished && !written.abandoned) {
            let reader = run.network.endpoint(EndpointId(1 - written.from));
            let got = reader.read.iter().find(|(other, ..)| other == id);
            // A stream without a byte shows only by its end.
            prop_assert_eq!(got.map(|&(_, at, ended)| (at, ended)), Some((written.bytes, true)), "{}", id);
        }
    }
}
