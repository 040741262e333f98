//! Experiments as a user finds and runs them; what they measure is tested where they are.

use std::fs;

use crate::support::{Bench, Run};

#[test]
fn what_is_listed_can_be_run() {
    let bench = Bench::new();
    let listed = bench.haul(["lab", "list", "--json"]).expect(0).text();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"startup") && names.contains(&"sharing"), "{names:?}");
    let text = bench.haul(["lab", "list"]).expect(0).text();
    assert!(names.iter().all(|name| text.contains(name)), "{text}");

    let out = bench.path("results");
    let mut args = vec!["lab", "run", "--quick", "--sim-only", "startup", "--out"];
    let place = out.to_string_lossy().into_owned();
    args.push(&place);
    let told = bench.haul(args).expect(0).text();
    assert!(told.contains("until 80 % [s]") && told.contains("haul"), "{told}");
    let made: Vec<String> = fs::read_dir(out.join("startup/simulated"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in ["report.txt", "report.json", "startup.csv", "rate.svg", "rate.png"] {
        assert!(made.iter().any(|file| file == name), "{name} is not in {made:?}");
    }
}

/// What is measured in hours is not lost with the disk behind standard output.
#[test]
fn results_are_written_where_their_text_finds_no_room() {
    let bench = Bench::new();
    let out = bench.path("results").to_string_lossy().into_owned();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let args = ["lab", "run", "--quick", "--sim-only", "startup", "--out", &out];
    let output = bench.command(args).stdout(full).output().unwrap();
    Run::from(output).expect(2).says(&["No space left on device", "Results are in "]);
    assert!(bench.path("results/startup/simulated/report.json").exists());
}
