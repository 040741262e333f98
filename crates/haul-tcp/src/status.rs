//! How it stands: what is loaded, who gets what, and the connections.

use std::fmt::Write as _;
use std::time::Duration;

use haul_units::BitRate;
use serde_json::{Value, json};

use crate::connection::Connection;
use crate::error::TcpError;
use crate::kernel::netns::Namespace;
use crate::tcp::{Rule, Tcp, Totals, Way, default_of};

/// What is loaded, who gets what, and the connections of a network namespace, for people.
pub fn text(tcp: &Tcp, namespace: &Namespace) -> Result<String, TcpError> {
    let mut text = String::new();
    let rules = tcp.rules()?;
    let loaded = if tcp.is_loaded() { "loaded" } else { "not loaded" };
    let _ = writeln!(text, "haul's congestion control is {loaded}; default in {namespace}: {}", default_of(namespace)?);
    for rule in &rules {
        let _ = writeln!(text, "  {}", rule_words(rule));
    }
    for of in used(tcp)? {
        let jumps = if of.jumps > 0 { format!(", {} of them with what was remembered", of.jumps) } else { String::new() };
        let open = of.begun.saturating_sub(of.ended);
        let _ = writeln!(
            text,
            "  {}: {} connections so far{jumps}, {open} open, {} reductions by those that are closed",
            of.law.name(),
            of.begun,
            of.reductions
        );
    }
    let connections = match tcp.connections(namespace) {
        Err(TcpError::NothingOn) => return Ok(text),
        connections => connections?,
    };
    let _ = writeln!(text, "{} connections in {namespace}", connections.len());
    if !connections.is_empty() {
        let _ = writeln!(text, "{HEAD}");
    }
    for connection in &connections {
        let _ = writeln!(text, "{}", row(connection));
    }
    for lack in tcp.lacks(namespace)? {
        let _ = writeln!(text, "{}\n  {}", lack.words(), lack.command());
    }
    Ok(text)
}

/// What a rule gives, to whom, and how.
pub fn rule_words(rule: &Rule) -> String {
    let way = match &rule.way {
        Way::Default => "its default".to_owned(),
        Way::Routes(1) => "by its route".to_owned(),
        Way::Routes(number) => format!("by its {number} routes"),
        Way::Cgroup(dir) => format!("by a program at {}", dir.display()),
    };
    format!("{}: {}, {way}", rule.law, rule.whose)
}

/// Above rows of connections.
pub const HEAD: &str =
    "peer                    mode        phase   window  rate           round trip  queue     own loss  lost      reductions";

/// A connection in a row.
pub fn row(connection: &Connection) -> String {
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let mut row = format!("{:<23} {:<11} ", connection.peer.to_string(), connection.law.to_string());
    let path = connection.path.as_ref();
    let (phase, queue) = path.map_or(("", String::new()), |path| (path.phase.name(), millis(path.queue)));
    let own_loss = path.map_or_else(String::new, |path| format!("{:.2} %", f64::from(path.random_loss_ppm) / 1e4));
    let reductions = path.map_or_else(String::new, |path| path.reductions.to_string());
    let rate = path.map_or(connection.delivery, |path| path.rate).to_string();
    let round_trip = millis(connection.round_trip);
    let lost = f64::from(connection.lost_packets) * 100.0
        / (f64::from(connection.lost_packets) + f64::from(connection.delivered_packets)).max(1.0);
    let _ = write!(
        row,
        "{phase:<7} {:<7} {rate:<14} {round_trip:<11} {queue:<9} {own_loss:<9} {:<9} {reductions}",
        connection.window_packets,
        format!("{lost:.2} %")
    );
    row.trim_end().to_owned()
}

fn used(tcp: &Tcp) -> Result<Vec<Totals>, TcpError> {
    Ok(tcp.totals()?.into_iter().filter(|of| of.begun > 0).collect())
}

/// The same for programs.
pub fn json(tcp: &Tcp, namespace: &Namespace) -> Result<Value, TcpError> {
    let rules: Vec<Value> = tcp
        .rules()?
        .iter()
        .map(|rule| {
            let way = match &rule.way {
                Way::Default => "default",
                Way::Routes(_) => "route",
                Way::Cgroup(_) => "cgroup",
            };
            let cgroup = match &rule.way {
                Way::Cgroup(dir) => Some(dir.display().to_string()),
                _ => None,
            };
            json!({ "mode": rule.law.to_string(), "connections": rule.whose, "way": way, "cgroup": cgroup })
        })
        .collect();
    let connections = match tcp.connections(namespace) {
        Err(TcpError::NothingOn) => Vec::new(),
        connections => connections?,
    };
    let totals = used(tcp)?;
    let totals: Vec<Value> = totals
        .iter()
        .map(|of| json!({ "mode": of.law.name(), "begun": of.begun, "ended": of.ended, "reductions": of.reductions, "jumps": of.jumps }))
        .collect();
    let lacks: Vec<Value> = tcp
        .lacks(namespace)?
        .iter()
        .map(|lack| {
            json!({
                "limit": lack.limit.key,
                "most_bytes": lack.limit.has[2],
                "needs_bytes": lack.limit.needs.0,
                "peer": lack.peer.to_string(),
                "command": lack.command(),
            })
        })
        .collect();
    let settings = tcp.settings()?.into_iter().map(|(knob, value)| (knob.key.to_owned(), Value::from(value)));
    Ok(json!({
        "loaded": tcp.is_loaded(),
        "namespace": namespace.to_string(),
        "default": default_of(namespace)?.to_string(),
        "rules": rules,
        "totals": totals,
        "settings": settings.collect::<serde_json::Map<_, _>>(),
        "lacks": lacks,
        "connections": connections.iter().map(connection_json).collect::<Vec<_>>(),
    }))
}

fn connection_json(connection: &Connection) -> Value {
    let path = connection.path.as_ref().map(|path| {
        json!({
            "phase": path.phase.name(),
            "rate_bps": path.rate.as_bps(),
            "base_rtt_us": path.base.as_micros() as u64,
            "queue_us": path.queue.as_micros() as u64,
            "random_loss_ppm": path.random_loss_ppm,
            "reductions": path.reductions,
            "ignored_losses": path.ignored_losses,
            "timeouts": path.timeouts,
        })
    });
    json!({
        "peer": connection.peer.to_string(),
        "own_port": connection.own_port,
        "mode": connection.law.to_string(),
        "window_packets": connection.window_packets,
        "rtt_us": connection.round_trip.as_micros() as u64,
        "pacing_bps": connection.pacing.map(BitRate::as_bps),
        "delivery_bps": connection.delivery.as_bps(),
        "acknowledged_bytes": connection.acknowledged_bytes,
        "delivered_packets": connection.delivered_packets,
        "lost_packets": connection.lost_packets,
        "received_in_round_bytes": connection.received_in_round.0,
        "path": path,
    })
}
