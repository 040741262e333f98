//! `haul lab wan status`: counts and rates of each direction.

use std::fmt::Write as _;

use haul_units::{BitRate, Bytes};
use serde_json::{Value, json};

use super::args::StatusArgs;
use super::control::{Request, ask};
use super::{print, wan_name};
use crate::exit::{Exit, Failure};

/// Prints it.
pub fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let status = measured(&wan_name(&args.name))?;
    let text = if args.json { format!("{status}\n") } else { table(&status) };
    print(&text)
}

/// The counts, with rates over a moment.
pub fn measured(name: &str) -> Result<Value, Failure> {
    let (before, _) = ask(name, &Request::Status)?;
    let moment = rustix::event::Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
    // A signal makes it shorter, which the clock of the counts knows.
    let _ = rustix::event::poll(&mut [], Some(&moment));
    let (mut after, _) = ask(name, &Request::Status)?;
    let directions = after["directions"].as_array_mut().into_iter().flatten();
    for (direction, before) in directions.zip(before["directions"].as_array().into_iter().flatten()) {
        let (sent, delivered) = (rate(before, direction, "sent_bytes"), rate(before, direction, "delivered_bytes"));
        let seconds = number(direction, "at_s") - number(before, "at_s");
        let cpu = (number(direction, "cpu_s") - number(before, "cpu_s")) / seconds.max(1e-9);
        direction["sending_bps"] = json!(sent);
        direction["delivering_bps"] = json!(delivered);
        direction["cpu_of_one"] = json!(cpu);
    }
    Ok(after)
}

/// A number of a JSON object; zero where it is missing.
pub fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

fn rate(before: &Value, after: &Value, key: &str) -> u64 {
    let seconds = number(after, "at_s") - number(before, "at_s");
    ((number(after, key) - number(before, key)) * 8.0 / seconds.max(1e-9)) as u64
}

fn table(status: &Value) -> String {
    let mut text = format!(
        "WAN `{}`: RTT {} ms, loss {} %, MTU {}\n",
        status["name"].as_str().unwrap_or_default(),
        number(status, "rtt_s") * 1e3,
        number(status, "loss") * 100.0,
        status["mtu"]
    );
    for direction in status["directions"].as_array().into_iter().flatten() {
        direction_text(&mut text, direction);
    }
    let drops = &status["device_drops"];
    if drops["a"] != 0 || drops["b"] != 0 {
        let _ = writeln!(text, "dropped before the emulator could read them: {} from a, {} from b", drops["a"], drops["b"]);
    }
    text
}

fn direction_text(text: &mut String, direction: &Value) {
    let rate = |key: &str| BitRate::from_bps(number(direction, key) as u64);
    let bytes = |key: &str| Bytes(number(direction, key) as u64);
    let (from, to) = (direction["from"].as_str().unwrap_or_default(), direction["to"].as_str().unwrap_or_default());
    let _ = writeln!(text, "link {} {from} -> {to}: {} of {}", direction["link"], rate("delivering_bps"), rate("rate_bps"));
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<14}{value}");
    };
    line("sent", format!("{} packets, {}", direction["sent_pkts"], bytes("sent_bytes")));
    line("delivered", format!("{} packets, {}", direction["delivered_pkts"], bytes("delivered_bytes")));
    line("queue", format!("{} of {}, at most {} so far", bytes("queued_bytes"), bytes("queue_bytes"), bytes("max_queued_bytes")));
    line("dropped", format!("{} at the queue, {} lost on the way", direction["queue_drops_pkts"], direction["lost_pkts"]));
    if number(direction, "duplicated_pkts") + number(direction, "marked_pkts") > 0.0 {
        line("besides", format!("{} duplicated, {} marked", direction["duplicated_pkts"], direction["marked_pkts"]));
    }
    if number(direction, "unroutable_pkts") + number(direction, "failed_writes") > 0.0 {
        line("refused", format!("{} for nobody, {} by the receiver", direction["unroutable_pkts"], direction["failed_writes"]));
    }
    let added = (number(direction, "added_delay_mean_us"), number(direction, "added_delay_max_us"));
    let cpu = number(direction, "cpu_of_one") * 100.0;
    line("emulator", format!("{cpu:.0} % of a processor, adds {:.0} us on average, {:.0} us at worst", added.0, added.1));
}
