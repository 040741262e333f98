//! `haul ctl`: orders for commands that run.

use std::path::Path;

use haul_control::{ControlDir, ControlError, Order, Status};
use haul_peer::Moment;
use haul_units::{BitRate, Bytes};

use crate::args::{CtlArgs, CtlCommand};
use crate::exit::{Exit, Failure, chain};
use crate::output;

/// The directory of this user's commands.
pub fn dir() -> Result<ControlDir, ControlError> {
    ControlDir::of_user(std::env::var_os("XDG_RUNTIME_DIR").as_deref().map(Path::new))
}

/// Runs the command.
pub fn run(args: &CtlArgs) -> Result<Exit, Failure> {
    let dir = dir().map_err(|error| Failure::new(chain(&error)))?;
    let (pid, order) = match args.command {
        CtlCommand::List { json } => return list(&dir, json),
        CtlCommand::Limit { pid, rate } => (pid, Order::Limit { bps: rate.0.map(|limit| limit.0.as_bps()) }),
        CtlCommand::Mode { pid, mode } => (pid, Order::Mode { name: mode.to_string().as_str().into() }),
        CtlCommand::Pause { pid } => (pid, Order::Pause),
        CtlCommand::Resume { pid } => (pid, Order::Resume),
        CtlCommand::Stop { pid } => (pid, Order::Stop),
    };
    let status = dir.tell(pid, &order).map_err(|error| Failure::new(chain(&error)).hint("`haul ctl list` shows what runs"))?;
    if let Some(why) = &status.refused {
        return Err(Failure::new(format!("process {pid}, haul {}: {why}", status.command)));
    }
    // One of an earlier version does not say that.
    if let (Order::Mode { name }, mode) = (&order, &status.mode)
        && mode.as_ref() != Some(name)
    {
        return Err(Failure::new(format!("the copy of process {pid} keeps its mode: it fetches, or knows no {name}")));
    }
    output::out_wrapped(&line(&status));
    Ok(Exit::Done)
}

fn list(dir: &ControlDir, json: bool) -> Result<Exit, Failure> {
    let copies = dir.list().map_err(|error| Failure::new(chain(&error)))?;
    if copies.is_empty() && !json {
        output::print_out("no command of this user that takes orders runs here");
    }
    for status in copies {
        if json {
            output::print_event(&event(&status));
        } else {
            output::out_wrapped(&line(&status));
        }
    }
    Ok(Exit::Done)
}

fn event(status: &Status) -> serde_json::Value {
    let mut event = serde_json::json!(status);
    // Commands that are no copies came later: what reads of copies knows this word for both.
    event["event"] = "copy".into();
    event
}

fn line(status: &Status) -> String {
    let limit = status.limit_bps.map_or_else(|| "no limit".to_owned(), |bps| format!("limit {}", BitRate::from_bps(bps)));
    let paused = if status.paused { "; paused" } else { "" };
    let mode = status.mode.as_ref().map(|mode| format!("; mode {mode}")).unwrap_or_default();
    let done = Bytes(status.bytes);
    let moved = match status.command.as_str() {
        "pipe" | "rsh" | "proxy" | "perf" => format!("{done} carried"),
        _ => format!("{done} of {}, {} files", Bytes(status.total), status.files),
    };
    let since = Moment::of_unix_seconds(status.began).in_full();
    format!("{}  {}: {moved}; {limit}{mode}{paused}; since {since}: {}", status.pid, status.command, status.what)
}
