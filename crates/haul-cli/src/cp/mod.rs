//! `haul cp`: copies files and trees between this machine and others.
//!
//! ```text
//!   operands -> plan -> for each host: connect (ssh or daemon) -> session (the engine) -> outcome -> exit status
//! ```

mod connector;
mod failure;
mod hooks;
mod interrupted;
mod records;
mod traced;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul::ControllerChoice;
use haul_config::CommandLine;
use haul_copy::told::{Outcome, one_path_line, path_line, summary};
use haul_copy::{
    Copied, Copier, CopyControl, CopyWatch, Job, NotCopied, Parts, PathProbe, Plan, PlanError, Standard, Tally, roots,
};
use haul_files::{Change, Destination, Event, Filter, Observer, Report, SourceSpec, Wishes};
use haul_peer::{Again, DaemonHost, Host, OperandError};
use serde_json::json;

use self::connector::connector;
use self::records::{Records, chosen};
use self::traced::Traced;
use crate::args::{CpArgs, VerifyArg};
use crate::exit::{Exit, Failure, by_command};
use crate::output::{self, Style, Ticker, Watched};
use crate::{clock, interrupt, logging, orders};

/// Runs the command. What the copies have in common, the first host's arguments say; how each is reached, its own.
pub fn run(args: &CpArgs, line: &CommandLine) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Person, args.verbose.saturating_sub(1), args.quiet);
    if let Some(directory) = args.list_interrupted.as_ref().or(args.discard.as_ref()) {
        return interrupted::run(args, line, directory, args.discard.is_some());
    }
    if let Some(letter) = args.scp.refused() {
        return Err(Failure::new(format!("{letter} is about sftp, which is no part of a copy by haul")).hint("leave it out"));
    }
    let plan = match Plan::new(&args.operands) {
        Err(PlanError::Operand(OperandError::NoRoot(address))) => return Err(no_root(args, &address)),
        Err(PlanError::BothRemote { direct: Some(direct), is_here: false, source_name }) => {
            // The login is here and the copy there: each gets its own options.
            let of_copy =
                |arg: &clap::Arg| arg.get_help_heading().is_none() || matches!(arg.get_id().as_str(), "transport" | "relay");
            let command = direct.command(&args.ssh_options(), &line.options::<CpArgs>(of_copy));
            let error = PlanError::BothRemote { direct: None, is_here: false, source_name };
            return Err(Failure::new(error).hint(by_command(&command)));
        }
        plan => plan?,
    };
    let args = &line.of::<CpArgs>(plan.first_host())?;
    copy(args, line, plan).or_else(|failure| {
        // Whoever waits for the hook hears of a copy that did not begin, too.
        output::print_failure(&failure);
        let exit = if interrupt::requested() { Exit::Interrupted } else { Exit::Failed };
        Ok(hooks::run(args, &Outcome::default(), &[failure], exit))
    })
}

/// Copies by these arguments. What keeps the copying from beginning is a failure; how it went is told, and the hook for it run.
fn copy(args: &CpArgs, line: &CommandLine, mut plan: Plan) -> Result<Exit, Failure> {
    let mut filter = args.files.filter()?;
    if let Some(list) = &args.files_from {
        plan = plan.of_content()?;
        filter = filter.of(chosen(list, args.from0)?);
    }
    if args.delete && plan.hosts() > 1 {
        return Err(Failure::new("--delete takes sources of one host: what the first brought would go with the next")
            .hint("a directory of its own for each host, and a command each"));
    }
    let records = Records::open(args)?;
    if args.json && plan.writes_stdout() {
        return Err(Failure::new("--json and the target - both need standard output").hint("name a file as the target"));
    }
    if args.files.verify == VerifyArg::ReadBack && plan.writes_stdout() {
        return Err(Failure::new("standard output cannot be read back")
            .hint("name a file as the target, or leave out --verify read-back"));
    }
    if args.looks_only() && (plan.writes_stdout() || plan.reads_stdin()) {
        return Err(Failure::new("what comes from standard input, or goes to standard output, has no dry run"));
    }
    let traced = Traced::start(args)?;
    interrupt::watch_connecting();
    let style = match Style::choose(args.quiet, args.json) {
        // What is printed line by line is the result; and a bar would stand in the middle of what goes to standard output.
        Style::Bars if args.looks_only() || plan.writes_stdout() => Style::Lines,
        style => style,
    };
    if style == Style::Json {
        output::print_event(&start_event(args));
    }
    let mut copy = Copy { traced, ..Copy::new(args, line, style, records, matches!(plan, Plan::Push { .. }))? };
    // Without it nobody can tell it anything, and it copies all the same.
    let socket = orders::take(copy.shown.control.clone());
    let exit = copy.all(plan, &filter);
    drop(socket);
    let exit = copy.keep_records(exit);
    copy.conclude(exit);
    Ok(hooks::run(args, &copy.outcome, &copy.failures, exit))
}

/// A daemon's address without a root: which there are is for the daemon to say, if it knows this client.
fn no_root(args: &CpArgs, address: &str) -> Failure {
    let failure = Failure::from(OperandError::NoRoot(address.to_owned()));
    let Some(Ok(host)) = address.strip_prefix("haul://").map(|rest| DaemonHost::parse(rest.trim_end_matches('/'))) else {
        return failure;
    };
    interrupt::watch_connecting();
    let connector = match connector(args) {
        Ok(connector) => connector,
        Err(failure) => return failure,
    };
    match connector.connect(&Host::Daemon(host.clone())).map(|connected| roots(connected.connection.clone())) {
        Ok(Ok(roots)) if !roots.is_empty() => {
            let roots: Vec<String> = roots.iter().map(|root| format!("haul://{host}/{root}")).collect();
            failure.hint(format!("there are {}", roots.join(", ")))
        }
        Ok(_) => failure.hint("it has none for this key"),
        Err(error) => failure.hint(error),
    }
}

/// The copies of one command.
struct Copy<'a> {
    args: &'a CpArgs,
    line: &'a CommandLine,
    style: Style,
    copier: Copier,
    shown: Shown,
    outcome: Outcome,
    /// Hosts whose copy failed as a whole, and how.
    failures: Vec<Failure>,
    /// Advice on the systems of both sides.
    advice: Vec<String>,
    /// Where the time went, if that is asked for.
    traced: Option<Traced>,
}

impl<'a> Copy<'a> {
    fn new(args: &'a CpArgs, line: &'a CommandLine, style: Style, records: Records, sends: bool) -> Result<Self, Failure> {
        let operands: Vec<_> = args.operands.iter().map(|operand| operand.to_string_lossy()).collect();
        let mode = sends.then_some(args.mode);
        let names = args.verbose > 0 || matches!(style, Style::Bars | Style::Json);
        let tally = Arc::new(Tally::new(names));
        Ok(Self {
            args,
            line,
            style,
            copier: copier(args)?,
            shown: Shown {
                style,
                verbose: args.verbose > 0,
                control: Arc::new(CopyControl::new(operands.join(" "), Arc::clone(&tally), args.limit(), mode, interrupt::ask)),
                tally,
                records,
                monitor: Mutex::default(),
                connected: Mutex::default(),
                would_update: AtomicBool::new(false),
            },
            outcome: Outcome { is_dry: args.looks_only(), ..Outcome::default() },
            failures: Vec::new(),
            advice: Vec::new(),
            traced: None,
        })
    }

    /// One copy a host, in the order of the operands; a host that fails does not keep the others from being tried.
    fn all(&mut self, plan: Plan, filter: &Filter) -> Exit {
        let mut done = 0;
        let standard = Standard { input: SourceSpec::stream(io::stdin()), output: Destination::stream(io::stdout()) };
        for (host, job) in plan.jobs(self.args.options(), filter, &standard) {
            if interrupt::requested() {
                return Exit::Interrupted;
            }
            match self.one(&host, &job) {
                Ok(()) => done += 1,
                Err(_) if interrupt::requested() => return Exit::Interrupted,
                Err(Ended::ReaderGone) => {
                    self.style = Style::Quiet;
                    return Exit::Partial;
                }
                Err(Ended::Failed(failure)) => {
                    output::print_failure(&failure);
                    self.failures.push(failure);
                }
            }
        }
        match (done, self.failures.len(), self.outcome.report.problem_count) {
            (0, _, _) => Exit::Failed,
            _ if self.args.compare && self.outcome.would_change() => Exit::Partial,
            (_, 0, 0) if self.args.files.is_enough(self.outcome.report.verified) => Exit::Done,
            _ => Exit::Partial,
        }
    }

    fn one(&mut self, host: &Host, job: &Job) -> Result<(), Ended> {
        let begun = clock::now();
        self.copier = copier_to(host, self.line).map_err(Ended::Failed)?;
        let result = self.copier.copy(host, job, &self.shown);
        self.shown.tally.next_copy();
        if let Some(connected) = self.shown.connected.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.outcome.login += connected - begun;
        }
        let no_resume = self.args.files.no_resume;
        if matches!(&result, Err(NotCopied::Copy(error)) if failure::is_reader_gone(error)) {
            return Err(Ended::ReaderGone);
        }
        let copied = result.map_err(|error| match error {
            NotCopied::Reach(error) | NotCopied::Connection(error) => error.into(),
            NotCopied::Copy(error) => failure::explain(host, &error, no_resume),
            broken => failure::resumable(format!("{host}: {broken}"), no_resume),
        });
        let Copied { report, path, paths, verdict, carried, mut advice, parts } = copied.map_err(Ended::Failed)?;
        if let (Some(parts), Some(traced)) = (parts, &mut self.traced) {
            traced.copied(begun, parts);
            self.outcome.parts.get_or_insert_default().add(&parts);
        }
        self.advice.append(&mut advice);
        (self.outcome.verdict, self.outcome.path, self.outcome.paths) = (verdict, path, paths);
        self.outcome.carried = Some(carried);
        self.account(&report);
        Ok(())
    }

    fn account(&mut self, report: &Report) {
        self.outcome.report.add(report);
        self.outcome.would_update = self.shown.would_update.load(Ordering::Relaxed);
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

    /// Writes what is to be kept of the copy; what cannot be written is not said to be done.
    fn keep_records(&mut self, exit: Exit) -> Exit {
        let traced = self.traced.as_ref().filter(|_| exit != Exit::Failed).map_or(Ok(()), Traced::write);
        match self.shown.records.close(&self.outcome, self.args.manifest_hash.into(), exit).and(traced) {
            Ok(()) => exit,
            Err(failure) => {
                output::print_failure(&failure);
                self.failures.push(failure);
                if exit == Exit::Done { Exit::Partial } else { exit }
            }
        }
    }

    fn conclude(&self, exit: Exit) {
        match self.style {
            Style::Json => {
                let error = self.failures.first().map(|failure| failure.message.clone());
                output::print_event(&self.outcome.to_json(exit.code(), error.as_deref()));
            }
            Style::Bars | Style::Lines if exit == Exit::Interrupted => {
                let kept = match (interrupt::is_under_way(), self.args.files.no_resume) {
                    (false, _) => ": nothing has arrived this time",
                    (true, true) => "",
                    (true, false) => output::KEPT,
                };
                output::print_line(&format!("interrupted{kept}"));
            }
            Style::Bars | Style::Lines if exit != Exit::Failed => self.print_summary(),
            _ => {}
        }
    }

    fn print_summary(&self) {
        for line in summary(&self.outcome) {
            output::print_wrapped(&line);
        }
        if let Some(path) = self.outcome.path.filter(|_| self.args.verbose > 0) {
            output::print_wrapped(&path_line(&path));
        }
        if self.args.verbose > 0 || !self.args.via.is_empty() {
            self.outcome.paths.iter().for_each(|path| output::print_wrapped(&one_path_line(path)));
        }
        if self.args.verbose > 0 || self.outcome.wants_advice() {
            self.advice.iter().for_each(|advice| output::print_hint(advice));
        }
        self.outcome.parts.iter().flat_map(Parts::lines).for_each(|line| output::print_line(&line));
        output::print_not_copied(self.outcome.report.problem_count);
    }
}

/// Why a copy with a host did not come to its end.
enum Ended {
    /// Who reads standard output has read enough: nobody's fault, and nothing to say.
    ReaderGone,
    Failed(Failure),
}

/// What a copy tells, and the thread that shows it while there is a connection.
struct Shown {
    style: Style,
    verbose: bool,
    tally: Arc<Tally>,
    records: Records,
    control: Arc<CopyControl>,
    monitor: Mutex<Option<Ticker>>,
    /// When the connection of the copy under way first was there.
    connected: Mutex<Option<Instant>>,
    /// A dry run has found something that only has other attributes.
    would_update: AtomicBool,
}

impl Observer for Shown {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Would(would) => {
                self.would_update.fetch_or(would.change == Change::Attributes, Ordering::Relaxed);
                output::print_would(self.style, would);
            }
            Event::Removed(path) if self.verbose && self.style != Style::Json => output::print_line(&format!("deleted {path}")),
            _ => {}
        }
        self.records.event(&event);
        self.tally.event(event);
    }

    fn wants_files(&self) -> bool {
        self.tally.wants_files() || self.records.log.is_some()
    }

    fn wishes(&self) -> Option<Wishes> {
        Some(self.control.wishes())
    }

    fn wants_content(&self) -> bool {
        self.records.manifest.is_some()
    }
}

impl CopyWatch for Shown {
    fn connected(&self, path: PathProbe) {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(clock::now);
        let watched = Watched { tally: Arc::clone(&self.tally), path, control: Arc::clone(&self.control) };
        let monitor = output::monitor(self.style, self.verbose, watched);
        *self.monitor.lock().unwrap_or_else(PoisonError::into_inner) = Some(monitor);
    }

    fn mode(&self) -> Option<ControllerChoice> {
        self.control.mode()
    }

    fn ended(&self) {
        let monitor = self.monitor.lock().unwrap_or_else(PoisonError::into_inner).take();
        monitor.into_iter().for_each(Ticker::finish);
    }

    fn retries(&self, error: &NotCopied, wait: Duration) {
        self.tally.over_again();
        if self.style != Style::Quiet {
            output::print_note(&format!("{error}: trying again in {} s", wait.as_secs()));
        }
    }

    fn again(&self, again: &Again<'_>) {
        self.tally.over_again();
        if self.style != Style::Quiet {
            output::print_hint(&again.to_string());
        }
    }
}

/// For a host, as its own tables have it.
fn copier_to(host: &Host, line: &CommandLine) -> Result<Copier, Failure> {
    copier(&line.of(Some(host))?)
}

fn copier(args: &CpArgs) -> Result<Copier, Failure> {
    Ok(Copier {
        connector: connector(args)?,
        limit: args.limit().now(),
        reconnect: args.reconnect(),
        retries: args.retries,
        packs: args.packs.is_some(),
        hear_ssh: args.verbose > 1,
        traces: args.trace.is_some(),
    })
}

fn start_event(args: &CpArgs) -> serde_json::Value {
    let names: Vec<_> = args.operands.iter().map(|operand| operand.to_string_lossy()).collect();
    let (target, sources) =
        names.split_last().map_or_else(|| ("".into(), &[][..]), |(target, sources)| (target.clone(), sources));
    json!({ "event": "start", "version": env!("CARGO_PKG_VERSION"), "sources": sources, "target": target })
}
