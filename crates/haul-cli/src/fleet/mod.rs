//! `haul fleet`: one job, many storage servers.
//!
//! ```text
//!   hosts -> start (ssh, mpirun, srun, daemons) -> members -> get or put -> summary -> exit status
//!   name  -> a fleet that `up` has started (kept) ---^
//! ```

mod begun;
mod configured;
mod kept;
mod report;
mod start;
mod status;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use haul_copy::told::{Outcome, summary};
use haul_files::Why;
use haul_files::store::Scheme;
use haul_fleet::told::{events, text};
use haul_fleet::{
    Begin, GetJob, JobEvent, JobLimit, JobLog, JobObserver, JobReport, JobTitle, PlacementPolicy, Policy, PutJob, ReplicasBy,
    Settings,
};
use haul_units::Time;

use self::begun::{Begun, started};
use crate::args::{FleetArgs, FleetCommand, FleetGetArgs, FleetPutArgs, GetPolicyArg, JobArgs, PutPolicyArg, ReplicasByArg};
use crate::exit::{Exit, Failure};
use crate::output::{self, JobTally, Style};
use crate::{interrupt, logging, orders};

/// Runs the command.
pub fn run(args: FleetArgs, arguments: &[OsString]) -> Result<Exit, Failure> {
    match &configured::of(args.command, arguments)? {
        FleetCommand::Get(args) => get(args),
        FleetCommand::Put(args) => put(args),
        FleetCommand::Up(args) => kept::up(args),
        FleetCommand::Down(args) => kept::down(args),
        FleetCommand::List(args) => Ok(kept::list(args)),
        FleetCommand::Status(args) => status::run(args),
        FleetCommand::Report(args) => report::run(args),
    }
}

fn get(args: &FleetGetArgs) -> Result<Exit, Failure> {
    let style = begin(&args.job);
    let Some((target, sources)) = args.operands.split_last() else { return Err(Failure::new("nothing to copy")) };
    let policy = match args.policy {
        GetPolicyArg::Dynamic => Policy::Dynamic,
        GetPolicyArg::RoundRobin => Policy::RoundRobin,
    };
    let filter = args.job.files.filter()?;
    let begun = Begun::of(&args.kept, &args.hosts, &args.job, style)?;
    let limit = JobLimit::from(args.job.limit.map(|limit| limit.0));
    let job = GetJob {
        filter,
        replicas_by: match args.replicas_by {
            ReplicasByArg::Time => ReplicasBy::Time,
            ReplicasByArg::Hash => ReplicasBy::Hash,
        },
        begin: if args.wait_for_all { Begin::WhenAllAreHeard } else { Begin::AtOnce },
        options: args.job.files.options(),
        settings: Settings {
            policy,
            pause: args.job.pause(),
            start_at: Time::ZERO + args.job.start_after(),
            ..Settings::default()
        },
        limit: limit.clone(),
        ..GetJob::new(sources.iter().map(Into::into).collect(), target)
    };
    let Begun { members, names, coming, tally } = begun;
    let _orders = takes_orders("fleet get", &args.operands, (&tally, limit), style);
    let result = show(&args.job, style, &tally, ("get", &args.operands), names, |observer| {
        haul_fleet::get(members, &job, observer, interrupt::cancel()).map_err(Failure::from)
    });
    // What a server has that was never heard of nobody knows.
    let unheard = coming.end()?;
    let unheard = if interrupt::requested() { Vec::new() } else { unheard };
    conclude(&args.job, style, result?, unheard)
}

fn put(args: &FleetPutArgs) -> Result<Exit, Failure> {
    let style = begin(&args.job);
    let Some((target, sources)) = args.operands.split_last() else { return Err(Failure::new("nothing to copy")) };
    let policy = match args.policy {
        PutPolicyArg::Dynamic => PlacementPolicy::Dynamic,
        PutPolicyArg::RoundRobin => PlacementPolicy::RoundRobin,
        PutPolicyArg::Space => PlacementPolicy::Space,
    };
    let filter = args.job.files.filter()?;
    find_one(sources)?;
    let (fleet, tally) = started(&args.kept, &args.hosts, &args.job, style)?;
    let limit = JobLimit::from(args.job.limit.map(|limit| limit.0));
    let job = PutJob {
        filter,
        options: args.job.files.options(),
        replicas: args.replicas.into(),
        policy,
        limit: limit.clone(),
        pause: args.job.pause(),
        start_after: args.job.start_after(),
        ..PutJob::new(sources.iter().map(Into::into).collect(), target)
    };
    let names = fleet.members.iter().map(|member| member.name.clone()).collect();
    let _orders = takes_orders("fleet put", &args.operands, (&tally, limit), style);
    let result = show(&args.job, style, &tally, ("put", &args.operands), names, |observer| {
        haul_fleet::put(fleet.members, &job, observer, interrupt::cancel()).map_err(Failure::from)
    });
    // To send to, the others were enough.
    conclude(&args.job, style, result?, Vec::new())
}

/// Nobody logs in for sources of which none is there; of several, those that are there go.
fn find_one(sources: &[OsString]) -> Result<(), Failure> {
    let why = |source: &OsString| {
        if Scheme::split(source.as_bytes()).0 != Scheme::Local {
            // What is in another store that store says itself.
            return None;
        }
        let error = fs::symlink_metadata(source).err()?;
        Some(format!("{}: {}", source.display(), Why::from_io(&error)))
    };
    let missing: Vec<String> = sources.iter().map_while(why).collect();
    if missing.len() < sources.len() { Ok(()) } else { Err(Failure::new(missing.join("\n"))) }
}

fn begin(args: &JobArgs) -> Style {
    logging::start(logging::Audience::Person, args.verbose.saturating_sub(1), args.quiet);
    interrupt::watch_connecting();
    Style::choose(args.quiet, args.json)
}

/// Orders from `haul ctl`, as long as what is given back is there.
fn takes_orders(
    command: &'static str,
    operands: &[OsString],
    (tally, limit): (&Arc<JobTally>, JobLimit),
    style: Style,
) -> impl Sized {
    let tells = !matches!(style, Style::Quiet | Style::Json);
    orders::take(Arc::new(orders::Job::new(command, operands, Arc::clone(tally), limit, tells)))
}

/// Runs a job of this kind about these operands, and shows it.
fn show(
    args: &JobArgs,
    style: Style,
    tally: &Arc<JobTally>,
    (kind, operands): (&str, &[OsString]),
    members: Vec<String>,
    job: impl FnOnce(&dyn JobObserver) -> Result<JobReport, Failure>,
) -> Result<Result<JobReport, Failure>, Failure> {
    let log = args.log.as_ref().map(|dir| {
        let about = operands.iter().map(|operand| operand.to_string_lossy().into_owned()).collect();
        JobLog::create(dir, JobTitle { kind: kind.to_owned(), about, members })
    });
    let log = log.transpose()?;
    let monitor = output::show_job(style, Arc::clone(tally), interrupt::cancel().clone());
    let observer = Both { tally, log: log.as_ref() };
    let result = job(&observer);
    monitor.finish();
    if let Some(log) = log.as_ref().filter(|_| args.verbose > 0) {
        output::print_line(&format!("the log is in {}", log.dir().display()));
    }
    Ok(result)
}

/// What is shown, and what is written down.
struct Both<'a> {
    tally: &'a JobTally,
    log: Option<&'a JobLog>,
}

impl JobObserver for Both<'_> {
    fn event(&self, event: &JobEvent<'_>) {
        self.tally.event(event);
        if let Some(log) = self.log {
            log.event(event);
        }
    }
}

/// Says what came of a job, and ends as it did.
///
/// `unheard`: servers that have not said what they have.
fn conclude(args: &JobArgs, style: Style, result: Result<JobReport, Failure>, mut unheard: Vec<String>) -> Result<Exit, Failure> {
    let report = match result {
        Ok(report) => report,
        Err(_) if interrupt::requested() => {
            if style == Style::Json {
                output::print_event(&Outcome::default().to_json(Exit::Interrupted.code(), None));
            } else if style != Style::Quiet {
                let kept = if args.files.no_resume { "" } else { output::KEPT };
                output::print_line(&format!("interrupted{kept}"));
            }
            return Ok(Exit::Interrupted);
        }
        Err(failure) => {
            if style == Style::Json {
                output::print_event(&Outcome::default().to_json(Exit::Failed.code(), Some(&failure.message)));
            }
            return Err(failure);
        }
    };
    let outcome = Outcome { report: report.files.clone(), ..Outcome::default() };
    unheard.extend(report.members.iter().filter(|member| !member.is_listed).map(|member| member.name.clone()));
    let exit = match (outcome.report.problem_count, args.files.is_enough(report.files.verified), unheard.len()) {
        (0, true, 0) => Exit::Done,
        _ => Exit::Partial,
    };
    if style == Style::Json {
        let mut summary = outcome.to_json(exit.code(), None);
        summary["members"] = events::members(&report);
        summary["bytes_wasted"] = report.wasted.as_u64().into();
        summary["unheard"] = unheard.clone().into();
        output::print_event(&summary);
    } else if style != Style::Quiet {
        for line in &summary(&outcome) {
            output::print_wrapped(line);
        }
        for line in &text::summary(&report) {
            output::print_line(line);
        }
    }
    if style != Style::Json {
        output::print_not_copied(outcome.report.problem_count);
    }
    if !unheard.is_empty() {
        output::print_error(&format!("files that only {} may have are missing", unheard.join(", ")));
    }
    Ok(exit)
}
