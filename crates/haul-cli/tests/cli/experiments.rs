//! Experiments as a user finds and runs them; what they measure is tested where they are.

use std::fs;

use crate::support::Bench;

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
