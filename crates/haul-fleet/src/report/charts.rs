//! Charts of a job, and of several.

use haul_plot::{Axis, Chart, Figure, Line};

use super::record::{ClientPoint, JobRecord, MemberPoint};

/// Members with a line of their own, those with the most bytes: more lines cannot be told apart.
const LINES: usize = 16;
/// Points of a line; of more every second one, or fewer, is drawn.
const POINTS: usize = 1000;
/// Longest name in a legend.
const NAME: usize = 24;

pub(super) fn all(jobs: &[JobRecord]) -> Vec<(String, Figure)> {
    let mut charts = Vec::new();
    for job in jobs {
        let about = super::tables::summary(job);
        let figure = |title: &str, unit: (&str, &str), lines: Vec<Line>| {
            let chart = Chart::lines(Axis::linear("time", "s"), Axis::linear(unit.0, unit.1), lines);
            Figure::single(format!("{}: {title}", job.name), about.clone(), chart)
        };
        let rates = lines(job, |point| Some(point.rate_bps / 1e6), |point| Some(point.rate_bps / 1e6));
        charts.push((format!("{}-rate", job.name), figure("rate, in total and of each member", ("rate", "Mbit/s"), rates)));
        let cpu = lines(job, |point| Some(point.cpu * 100.0), |point| point.cpu.map(|cpu| cpu * 100.0));
        charts.push((format!("{}-cpu", job.name), figure("processor time", ("of one processor", "%"), cpu)));
        let memory = lines(job, |point| Some(point.memory_bytes / MIB), |point| point.memory_bytes.map(|bytes| bytes / MIB));
        charts.push((format!("{}-memory", job.name), figure("memory", ("resident", "MiB"), memory)));
    }
    if jobs.len() > 1 {
        let mut points: Vec<(f64, f64)> = jobs.iter().map(|job| (job.working() as f64, job.rate_bps() / 1e6)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let chart = Chart::lines(Axis::linear("members", ""), Axis::linear("rate", "Mbit/s"), vec![Line::through("job", points)]);
        charts.push(("members".into(), Figure::single("rate against number of members", "", chart)));
    }
    // What has no data is no chart.
    charts.retain(|(_, figure)| figure.svg().is_ok());
    charts
}

/// The client first, then members.
fn lines(
    job: &JobRecord,
    client: impl Fn(&ClientPoint) -> Option<f64>,
    member: impl Fn(&MemberPoint) -> Option<f64>,
) -> Vec<Line> {
    let own = job.points.iter().filter_map(|point| Some((point.t, client(point)?)));
    let mut lines = vec![line("client", own.collect())];
    let mut members: Vec<_> = job.members.iter().collect();
    members.sort_by(|a, b| b.delivered().total_cmp(&a.delivered()));
    for one in members.into_iter().take(LINES) {
        let points: Vec<(f64, f64)> = one.points.iter().filter_map(|point| Some((point.t, member(point)?))).collect();
        lines.push(line(&one.name, points));
    }
    lines.retain(|line| !line.points.is_empty());
    lines
}

fn line(name: &str, points: Vec<(f64, f64)>) -> Line {
    let step = points.len().div_ceil(POINTS).max(1);
    Line::through(name.chars().take(NAME).collect::<String>(), points.into_iter().step_by(step)).plain()
}

const MIB: f64 = (1 << 20) as f64;
