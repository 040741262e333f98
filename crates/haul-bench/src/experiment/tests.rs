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

/// Runs one quickly, and looks at what it writes.
fn quick(name: &str) {
    let report = (find(name).expect("it is there").simulate)(Scale::Quick);
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
}

#[test]
fn loss() {
    quick("loss");
}

#[test]
fn fattree() {
    quick("fattree");
}

#[test]
fn gaps() {
    quick("gaps");
}

#[test]
fn kernel() {
    quick("kernel");
}

#[test]
fn kernel_sharing() {
    quick("kernel-sharing");
}

#[test]
fn rtt() {
    quick("rtt");
}

#[test]
fn startup() {
    quick("startup");
}

#[test]
fn sharing() {
    quick("sharing");
}

#[test]
fn pacing() {
    quick("pacing");
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
