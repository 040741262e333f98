//! A trace as qlog, the log format of QUIC's tools (draft-ietf-quic-qlog-main-schema-02, draft-ietf-quic-qlog-quic-events-01: version 0.3, which viewers read).
//!
//! haul is not QUIC: what both have is written under QUIC's names, `recovery:metrics_updated`, `recovery:congestion_state_updated`, `connectivity:connection_started` and
//! `.._closed`; what only haul counts, packets lost between two samples, under `haul:packets_lost`, which viewers pass over.

use serde_json::{Value, json};

use crate::{Connection, Event, Trace};

impl Trace {
    /// One document, a trace in it for each connection.
    pub fn qlog(&self) -> Value {
        json!({
            "qlog_version": "0.3",
            "qlog_format": "JSON",
            "title": "haul",
            "traces": self.connections.iter().map(trace).collect::<Vec<_>>(),
        })
    }
}

fn trace(connection: &Connection) -> Value {
    json!({
        "title": format!("connection {}", connection.id),
        "vantage_point": { "name": "haul", "type": "unknown" },
        "common_fields": { "protocol_type": ["haul"], "time_format": "relative", "reference_time": 0.0, "group_id": connection.id },
        "events": events(connection),
    })
}

fn events(connection: &Connection) -> Vec<Value> {
    let mut events = Vec::new();
    let (mut phase, mut lost, mut mtu) = (None::<&str>, 0, 0);
    for sample in &connection.samples {
        let mut event = |name: &str, data: Value| events.push(json!({ "time": sample.t * 1e3, "name": name, "data": data }));
        if sample.event == Event::Connected {
            event("connectivity:connection_started", json!({}));
        }
        if phase != Some(&*sample.phase) {
            event("recovery:congestion_state_updated", json!({ "old": phase, "new": sample.phase }));
            phase = Some(&sample.phase);
        }
        if sample.packet_bytes != mtu {
            event("recovery:mtu_updated", json!({ "old": mtu, "new": sample.packet_bytes }));
            mtu = sample.packet_bytes;
        }
        if sample.lost_pkts > lost {
            event("haul:packets_lost", json!({ "count": sample.lost_pkts - lost }));
            lost = sample.lost_pkts;
        }
        let mut metrics = json!({
            "min_rtt": sample.min_rtt_s * 1e3,
            "smoothed_rtt": sample.rtt_s * 1e3,
            "congestion_window": sample.window_bytes,
            "bytes_in_flight": sample.in_flight_bytes,
            "pacing_rate": sample.pacing_bps,
        });
        if let Some(ssthresh) = sample.ssthresh_bytes {
            metrics["ssthresh"] = json!(ssthresh);
        }
        event("recovery:metrics_updated", metrics);
        if sample.event == Event::Closed {
            event("connectivity:connection_closed", json!({}));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;

    #[test]
    fn changes_are_events_and_every_sample_has_its_metrics() {
        let sample = |n: u64, event, phase: &str| Sample {
            t: n as f64 * 0.02,
            event,
            phase: phase.into(),
            packet_bytes: if n < 2 { 1200 } else { 1472 },
            lost_pkts: n / 2 * 3,
            ..Sample::default()
        };
        let samples = vec![
            sample(0, Event::Connected, "startup"),
            sample(1, Event::Sample, "startup"),
            sample(2, Event::Sample, "drain"),
            sample(3, Event::Closed, "drain"),
        ];
        let trace = Trace { connections: vec![Connection { id: "2a".into(), samples }] };
        let qlog = trace.qlog();
        let events = qlog["traces"][0]["events"].as_array().expect("events");
        let named = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
        assert_eq!(named("recovery:metrics_updated").len(), 4);
        assert_eq!(named("recovery:congestion_state_updated").len(), 2);
        assert_eq!(named("recovery:congestion_state_updated")[1]["data"], json!({ "old": "startup", "new": "drain" }));
        assert_eq!(named("recovery:mtu_updated")[1]["data"], json!({ "old": 1200, "new": 1472 }));
        assert_eq!(named("haul:packets_lost")[0]["data"]["count"], 3);
        assert_eq!((named("connectivity:connection_started").len(), named("connectivity:connection_closed").len()), (1, 1));
        assert!(events.windows(2).all(|pair| pair[0]["time"].as_f64() <= pair[1]["time"].as_f64()));
    }
}
