use std::fs;

use super::*;

#[test]
fn names_are_unique_and_fit_for_a_command_line() {
    let names: Vec<&str> = registry().iter().map(|experiment| experiment.name).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len(), "{names:?}");
    for experiment in registry() {
        assert!(experiment.name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-'), "{}", experiment.name);
        assert!(!experiment.about.is_empty() && !experiment.about.ends_with('.'), "{}", experiment.about);
        assert!(!experiment.reproduces.is_empty());
        assert_eq!(find(experiment.name).expect("it is there").name, experiment.name);
    }
}

#[test]
fn a_wrong_name_is_answered_with_the_nearest() {
    let error = find("sharring").expect_err("nobody has it").to_string();
    assert!(
        error.contains("`sharring`") && error.contains("loss, rtt, startup") && error.contains("did you mean `sharing`?"),
        "{error}"
    );
    let error = find("zzz").expect_err("nobody has it").to_string();
    assert!(!error.contains("did you mean"), "{error}");
}

/// Runs one quickly, and looks at what it writes; what it says is for its own test.
fn quick(name: &str) -> Report {
    let simulate = find(name).expect("it is there").simulate.expect("it has a simulation");
    let report = simulate(Scale::Quick);
    let text = report.text();
    assert!(text.contains("simulated") && report.tables.iter().all(|table| !table.rows.is_empty()), "{text}");
    assert!(!report.charts.is_empty());
    let dir = std::env::temp_dir().join(format!("haul-experiment-{}-{name}", std::process::id()));
    let files = report.write(&dir).expect("it can be written");
    for end in [".svg", ".png", ".csv", ".json", ".txt"] {
        let found = files.iter().filter(|file| file.to_string_lossy().ends_with(end));
        assert!(found.clone().count() > 0, "no {end} in {files:?}");
        assert!(found.into_iter().all(|file| fs::metadata(file).is_ok_and(|file| file.len() > 50)));
    }
    let json = fs::read_to_string(dir.join("report.json")).expect("written");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["tables"].is_array() && !json["data"].is_null());
    fs::remove_dir_all(&dir).expect("it was ours");
    report
}

/// A cell as a number: what stands before the second half in brackets.
fn number(cell: &str) -> f64 {
    cell.split([' ', '%']).next().and_then(|cell| cell.parse().ok()).unwrap_or_else(|| panic!("`{cell}` is no number"))
}

/// The numbers of a table below a head, from the first row to the last.
fn column(table: &Table, head: &str) -> Vec<f64> {
    let index =
        table.columns.iter().position(|column| column == head).unwrap_or_else(|| panic!("no {head} in {:?}", table.columns));
    table.rows.iter().map(|row| number(&row[index])).collect()
}

#[test]
fn loss_takes_from_tcp_what_it_leaves_haul() {
    let report = quick("loss");
    let table = &report.tables[0];
    let ([clean, lossy], [cubic_clean, cubic_lossy]) =
        ([0, 1].map(|row| column(table, "haul")[row]), [0, 1].map(|row| column(table, "TCP CUBIC")[row]));
    assert_eq!(column(table, "loss %"), [0.0, 1.0]);
    assert!(lossy > 0.8 * clean, "{}", report.text());
    assert!(cubic_lossy < 0.3 * cubic_clean && cubic_lossy > 0.0, "{}", report.text());
}

#[test]
fn fattree() {
    let report = quick("fattree");
    let table = |name: &str| report.tables.iter().find(|table| table.name == name).expect("a table");
    let times = &table("times").rows;
    let mean = |who: &str, among: &str| {
        let row = times.iter().find(|row| row[1] == who && row[2] == among).expect("a row");
        row[5].parse::<f64>().expect("a mean")
    };
    // 70 KB at 100 Mbit/s are 6 ms alone, and more in company; the study's own figures stand beside.
    for who in ["TCP", "haul, fair"] {
        let (alone, in_company) = (mean(who, "nobody"), mean(who, "TCP"));
        assert!((6.0..12.0).contains(&alone) && in_company > alone, "{}", report.text());
    }
    assert!(mean("TCP, the study's", "MPTCP") > 90.0 && !table("longs").rows.is_empty(), "{}", report.text());
    assert!(report.heading.contains("short flows in"), "{}", report.heading);
    let flows: u64 =
        report.heading.split(" short flows").next().and_then(|text| text.rsplit(' ').next()?.parse().ok()).expect("a number");
    assert!(flows > 10, "{}", report.heading);
}

/// Frames that fill the gaps put every packet in its place, and timers do not.
#[test]
fn gaps() {
    let report = quick("gaps");
    assert!(!report.verdicts.is_empty() && report.verdicts.iter().all(|judged| judged.met == Some(true)), "{}", report.text());
}

#[test]
fn kernel() {
    let report = quick("kernel");
    assert!(!report.verdicts.is_empty() || report.tables[0].rows.len() == 1, "{}", report.text());
    assert!(column(&report.tables[0], "TCP CUBIC")[0] < column(&report.tables[0], "haul")[0], "{}", report.text());
    // The laboratory's bars: those of the table, at each loss.
    let laboratory = &report.charts.iter().find(|(name, _)| name == "laboratory").expect("it is drawn").1;
    let crate::plot::Data::Bars(bars) = &laboratory.charts[0].data else { panic!("{laboratory:?}") };
    assert_eq!(bars.groups, ["1 %"]);
    assert_eq!(bars.series.len(), report.tables[0].columns.len() - 2, "{bars:?}");
    let bar = |who: &str| bars.series.iter().find(|series| series.name == who).and_then(|series| series.values[0]);
    assert!(bar("TCP CUBIC").expect("a bar").mean < bar("haul").expect("a bar").mean, "{bars:?}");
}

/// Each case has a row for each of its flows' rates, and each goal a verdict: a value, not "not measured".
fn sharing_of(name: &str) {
    let report = quick(name);
    assert!(report.verdicts.len() >= report.tables[0].rows.len() / 2, "{}", report.text());
    assert!(
        report.verdicts.iter().filter(|judged| judged.met.is_none()).count() * 4 < report.verdicts.len(),
        "{}",
        report.text()
    );
    assert!(report.verdicts.iter().any(|judged| judged.who.starts_with("2 ")), "{}", report.text());
}

#[test]
fn kernel_sharing() {
    sharing_of("kernel-sharing");
}

#[test]
fn rtt_takes_from_tcp_what_it_leaves_haul() {
    let report = quick("rtt");
    let table = &report.tables[0];
    assert_eq!(column(table, "RTT ms"), [10.0, 100.0]);
    let (haul, cubic) = (column(table, "haul"), column(table, "TCP CUBIC"));
    assert!(haul[1] > 0.7 * haul[0] && haul[1] > cubic[1], "{}", report.text());
    let genome = &report.tables[1];
    assert!(genome.rows.iter().any(|row| row[0] == "haul" && row[1].contains('h')), "{}", report.text());
}

#[test]
fn startup() {
    let report = quick("startup");
    let (names, rounds) = (&report.tables[0].rows, column(&report.tables[0], "in round trips"));
    let of = |name: &str| rounds[names.iter().position(|row| row[0] == name).expect("it took part")];
    assert!(of("haul, quickstart") < of("haul") && of("haul") < 15.0, "{}", report.text());
}

#[test]
fn sharing() {
    sharing_of("sharing");
}

/// What leaves in bursts loses more than what is spread out: the other way round, the flag would not reach the sender.
#[test]
fn pacing() {
    let report = quick("pacing");
    let table = &report.tables[0];
    let mean = |how: &str| -> f64 {
        let of = table.rows.iter().filter(|row| row[1] == how);
        of.map(|row| number(&row[2])).sum()
    };
    assert!(mean("with") > mean("without") && mean("without") > 0.0, "{}", report.text());
}

/// Both links carry more than either, and every goal has a verdict.
#[test]
fn paths() {
    let report = quick("paths");
    let table = &report.tables[0];
    let rates = column(table, "Mbit/s");
    for (sent, row) in ["blocks", "an ordered stream"].iter().zip([4, 5]) {
        assert_eq!((table.rows[row][1].as_str(), table.rows[row][2].as_str()), (*sent, "both"));
        assert!(rates[row] > 1.5 * rates[0] && rates[row] > 1.5 * rates[2], "{}", report.text());
    }
    assert!(report.verdicts.len() == 4 && report.verdicts.iter().all(|judged| judged.met.is_some()), "{}", report.text());
}

/// Four paths beside a flow: what they take is compared with what one takes.
#[test]
fn company() {
    let report = quick("company");
    let taken = column(&report.tables[0], "Mbit/s");
    assert!(taken.len() == 2 && taken.iter().all(|mbps| *mbps > 20.0), "{}", report.text());
    assert!(report.verdicts.len() == 1 && report.verdicts[0].met.is_some(), "{}", report.text());
}

#[test]
fn tables_are_read_by_people_and_programs() {
    let mut table = Table::new("t", "A table", &["who", "rate"]);
    table.rows = vec![vec!["haul, fair".into(), "9.5".into()], vec!["\"TCP\"".into(), "100".into()]];
    let facts = [("kernel".to_owned(), "a new one".to_owned())].into();
    let report = Report { heading: "Heading".into(), tables: vec![table], facts, ..Report::default() };
    assert!(report.text().contains("  haul, fair   9.5\n  \"TCP\"        100\n"), "{}", report.text());
    assert!(report.text().ends_with("\nMachine\n  kernel                      a new one\n"), "{}", report.text());
    let dir = std::env::temp_dir().join(format!("haul-table-{}", std::process::id()));
    report.write(&dir).expect("it can be written");
    let csv = fs::read_to_string(dir.join("t.csv")).expect("written");
    assert_eq!(csv, "who,rate\n\"haul, fair\",9.5\n\"\"\"TCP\"\"\",100\n");
    fs::remove_dir_all(&dir).expect("it was ours");
}

#[test]
fn servers_with_files_of_their_own_end_together_and_fill_the_link() {
    for (files, least_mbps) in [(8, 740), (12, 900)] {
        let ended = over_transport::play(&over_transport::Job::of(4, files, 1), |_| {});
        assert!(ended.steady.as_bps() > least_mbps * 1_000_000, "{files}: {ended:?}");
    }
}

#[test]
fn the_death_of_one_of_two_holders_costs_little() {
    let job = over_transport::Job { twice: true, ..over_transport::Job::of(13, 12, 2) };
    let killed = over_transport::Job { killed: Some(std::time::Duration::from_secs(6)), ..job.clone() };
    let (alive, killed) = (over_transport::play(&job, |_| {}), over_transport::play(&killed, |_| {}));
    assert!(killed.seconds < alive.seconds * 1.15, "{killed:?} beside {alive:?}");
}
