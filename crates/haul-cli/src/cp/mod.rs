//! `haul cp`: copies files and trees between this machine and others.
//!
//! ```text
//!   operands -> plan -> for each host: connect (ssh or daemon) -> session (the engine) -> outcome -> exit status
//! ```

mod connector;
mod failure;
mod interrupted;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use haul::ControllerChoice;
use haul_copy::{ClientSession, Conditions, Job, PathView, Plan, ProcessorWatch, Standard, verdict};
use haul_files::{Cancel, CopyError, Destination, Filter, Report, SourceSpec};
use haul_peer::{Connected, Connector, Host, Memory, Refusal, StateDir, Way, is_stalled};
use haul_units::BitRate;
use serde_json::json;

use self::connector::connector;
use crate::again::Again;
use crate::args::{CpArgs, VerifyArg};
use crate::exit::{Exit, Failure, RESUME, explained};
use crate::output::{self, Outcome, Style, Tally, Watched};
use crate::{clock, interrupt, logging};

/// Runs the command.
pub fn run(args: &CpArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Person, args.verbose.saturating_sub(1), args.quiet);
    if let Some(directory) = args.list_interrupted.as_ref().or(args.discard.as_ref()) {
        return interrupted::run(args, directory, args.discard.is_some());
    }
    let plan = Plan::new(&args.operands)?;
    let filter = args.files.filter()?;
    if args.json && plan.writes_stdout() {
        return Err(Failure::new("--json and the target - both need standard output").hint("name a file as the target"));
    }
    if args.files.verify == VerifyArg::ReadBack && plan.writes_stdout() {
        return Err(Failure::new("standard output cannot be read back")
            .hint("name a file as the target, or leave out --verify read-back"));
    }
    interrupt::watch_connecting();
    let style = Style::choose(args.quiet, args.json);
    if style == Style::Json {
        output::print_event(&start_event(args));
    }
    let mut copy = Copy::new(args, style);
    let exit = copy.all(plan, &filter);
    Ok(copy.conclude(exit))
}

/// The copies of one command.
struct Copy<'a> {
    args: &'a CpArgs,
    style: Style,
    connector: Connector,
    tally: Arc<Tally>,
    /// How long connecting took, last.
    login: Duration,
    outcome: Outcome,
    /// Hosts whose copy failed as a whole, and how.
    failures: Vec<Failure>,
    /// Advice on the systems of both sides.
    advice: Vec<String>,
}

impl<'a> Copy<'a> {
    fn new(args: &'a CpArgs, style: Style) -> Self {
        let names = args.verbose > 0 || matches!(style, Style::Bars | Style::Json);
        Self {
            args,
            style,
            connector: connector(args),
            tally: Arc::new(Tally::new(names)),
            login: Duration::ZERO,
            outcome: Outcome::new(),
            failures: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// One copy a host, in the order of the operands; a host that fails does not keep the others from being tried.
    fn all(&mut self, plan: Plan, filter: &Filter) -> Exit {
        let mut done = 0;
        let standard = Standard { input: SourceSpec::stream(io::stdin()), output: Destination::stream(io::stdout()) };
        for (host, job) in plan.jobs(self.args.files.options(), filter, &standard) {
            if interrupt::requested() {
                return Exit::Interrupted;
            }
            match self.one(&host, &job) {
                Ok(()) => done += 1,
                Err(_) if interrupt::requested() => return Exit::Interrupted,
                Err(failure) => {
                    output::print_failure(&failure);
                    self.failures.push(failure);
                }
            }
        }
        match (done, self.failures.len(), self.outcome.problems) {
            (0, _, _) => Exit::Failed,
            (_, 0, 0) if self.args.files.is_enough(self.outcome.verified) => Exit::Done,
            _ => Exit::Partial,
        }
    }

    /// A copy, over as many connections as it takes.
    fn one(&mut self, host: &Host, job: &Job) -> Result<(), Failure> {
        let memory = self.memory(host, job);
        self.connector.transport.remembered = memory.as_ref().and_then(|(memory, name, way)| memory.look_up(name, *way));
        let begun = clock::now();
        let mut connected = self.connector.connect(host)?;
        self.login = clock::now() - begun;
        while let Some(again) = self.over(connected, host, job)? {
            if self.style != Style::Quiet {
                output::print_hint(&again.announcement());
            }
            connected = self.connector.connect_by(again.host, again.deadline)?;
        }
        Ok(())
    }

    /// A copy over one connection; gives the daemon where it can go on over another one.
    fn over<'h>(&mut self, mut connected: Connected, host: &'h Host, job: &Job) -> Result<Option<Again<'h>>, Failure> {
        let memory = self.memory(host, job);
        self.advice.append(&mut connected.advice);
        let session = ClientSession::new(connected.connection.clone(), job);
        let cancel = Cancel::new();
        let watched = Watched {
            tally: Arc::clone(&self.tally),
            path: Box::new(session.path()),
            alive: Box::new({
                let lifeline = connected.lifeline();
                move || lifeline.holds()
            }),
            cancel: cancel.clone(),
        };
        let monitor = output::monitor(self.style, self.args.verbose > 0, watched);
        let processor = ProcessorWatch::start();
        let result = session.run(job, self.limit(), &*self.tally, &cancel);
        monitor.finish();
        let (path, own_busiest) = ((session.path())(), processor.busiest());
        self.tally.next_copy();
        if let (Some((memory, name, way)), Some(learned)) = (memory, path.learned) {
            memory.keep(&name, way, learned);
        }
        let report = match result {
            Ok(report) => report,
            Err(error) => {
                let connection = &connected.connection;
                let again =
                    job.can_go_on(&error, connection).then(|| Again::to(host, connection, self.args.reconnect())).flatten();
                if again.is_some() && !interrupt::requested() {
                    return Ok(again);
                }
                return Err(explained(&connected, self.explained(host, &error, &connected, &path)));
            }
        };
        let (sender_busiest, receiver_busiest) = match job {
            Job::Push(_) => (own_busiest, path.server_busiest),
            Job::Pull(_) => (path.server_busiest, own_busiest),
        };
        let conditions = Conditions {
            report: &report,
            path: path.sender.as_ref(),
            limit: self.limit(),
            sender_busiest,
            receiver_busiest,
            login: self.login,
        };
        self.outcome.verdict = verdict(&conditions);
        self.outcome.path = path.sender;
        self.account(&report);
        connected.part(self.args.verbose > 1);
        Ok(None)
    }

    /// Where a start that can use it finds what earlier copies learned.
    fn memory(&self, host: &Host, job: &Job) -> Option<(Memory, String, Way)> {
        let state =
            (self.args.mode == ControllerChoice::Quickstart).then(|| StateDir::find(self.args.state.as_deref()).ok())??;
        let way = match job {
            Job::Push(_) => Way::To,
            Job::Pull(_) => Way::From,
        };
        // Without a directory the copy does without.
        let _ = state.create();
        Some((Memory::new(&state, clock::unix_seconds()), host.to_string(), way))
    }

    fn account(&mut self, report: &Report) {
        self.outcome.add(report);
        let untold = report.problem_count.saturating_sub(report.problems.len() as u64);
        if untold > 0 {
            output::print_error(&format!(
                "{} problems in all; the first {} are kept",
                report.problem_count,
                report.problems.len()
            ));
        }
        if let Some(hint) = failure::problems_hint(&report.problems).filter(|_| !self.args.quiet) {
            output::print_hint(hint);
        }
    }

    /// The engine's error with the host's name; ssh's end explains a connection that broke, never a reason that the far side gave.
    fn explained(&self, host: &Host, error: &CopyError, connected: &Connected, path: &PathView) -> Failure {
        let unexplained = match error {
            // One that refuses ends as soon as it has said so, and its ssh with it.
            CopyError::Connection(source) => source.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()).is_none(),
            error => matches!(error, CopyError::Cancelled),
        };
        let Some(ended_for) = connected.ssh_ended_for().filter(|_| unexplained) else {
            return failure::explain(host, error, self.args.files.no_resume);
        };
        // The far side gives a connection up as this one does, and ssh ends with it: that is not the cause. Where ssh ended while the far side was still heard, it is.
        let before = path.silence.saturating_sub(ended_for);
        let why = if is_stalled(before, Duration::from_micros(path.rtt_us)) {
            format!("nothing has come over UDP for {} s, and the far side has given up", path.silence.as_secs())
        } else {
            "ssh ended in the middle of the copy".to_owned()
        };
        let failure = Failure::new(format!("{host}: {why}"));
        if self.args.files.no_resume { failure } else { failure.hint(RESUME) }
    }

    fn conclude(self, exit: Exit) -> Exit {
        match self.style {
            Style::Json => {
                let error = self.failures.first().map(|failure| failure.message.clone());
                output::print_event(&self.outcome.to_json(exit.code(), error.as_deref()));
            }
            Style::Bars | Style::Lines if exit == Exit::Interrupted => {
                let kept = match (interrupt::is_under_way(), self.args.files.no_resume) {
                    (false, _) => ": nothing had arrived yet",
                    (true, true) => "",
                    (true, false) => output::KEPT,
                };
                output::print_line(&format!("interrupted{kept}"));
            }
            Style::Bars | Style::Lines if exit != Exit::Failed => self.print_summary(),
            _ => {}
        }
        exit
    }

    fn print_summary(&self) {
        for line in output::summary(&self.outcome) {
            output::print_line(&line);
        }
        if let Some(path) = self.outcome.path.filter(|_| self.args.verbose > 0) {
            output::print_line(&output::path_line(&path));
        }
        if self.args.verbose > 0 || self.outcome.wants_advice() {
            self.advice.iter().for_each(|advice| output::print_hint(advice));
        }
        output::print_not_copied(self.outcome.problems);
    }

    fn limit(&self) -> Option<BitRate> {
        self.args.limit.map(|limit| limit.0)
    }
}

fn start_event(args: &CpArgs) -> serde_json::Value {
    let names: Vec<_> = args.operands.iter().map(|operand| operand.to_string_lossy()).collect();
    let (target, sources) =
        names.split_last().map_or_else(|| ("".into(), &[][..]), |(target, sources)| (target.clone(), sources));
    json!({ "event": "start", "version": env!("CARGO_PKG_VERSION"), "sources": sources, "target": target })
}
