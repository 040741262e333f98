//! Types of functions in Rust and in C, spelled one way: the header is written by hand, and the compiler does not compare the two.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::header::Function;

/// What is given, and what is taken.
pub type Signature = (String, Vec<String>);

/// The functions below a directory of sources that C may call.
pub fn of_calls(dir: &Path) -> BTreeMap<String, Signature> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.append(&mut of_calls(&path));
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        for exported in text.split("#[unsafe(no_mangle)]").skip(1) {
            let head = exported.split(" {\n").next().expect("a head").split_once("fn ").expect("a function").1;
            let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
            let (name, rest) = head.split_once('(').expect("arguments");
            let (arguments, returns) = rest.rsplit_once(')').expect("the arguments' end");
            let arguments =
                arguments.split(", ").filter_map(|argument| Some(in_c(argument.split_once(": ")?.1.trim_end_matches(','))));
            let signature = (in_c(returns.trim().trim_start_matches("-> ")), arguments.collect());
            found.insert(name.to_owned(), signature);
        }
    }
    found
}

pub fn of_prototype(function: &Function) -> Signature {
    (without_alias(&function.returns), function.arguments.iter().map(|argument| without_alias(argument)).collect())
}

/// `haul_t` is a number.
fn without_alias(kind: &str) -> String {
    if kind == "haul_t" { "int64_t".into() } else { kind.into() }
}

/// A type of Rust's as C spells it.
fn in_c(kind: &str) -> String {
    if let Some(to) = kind.strip_prefix("*const ") {
        return format!("const {} *", in_c(to)).replace("* *", "**");
    }
    if let Some(to) = kind.strip_prefix("*mut ") {
        return format!("{} *", in_c(to)).replace("* *", "**");
    }
    match kind {
        "c_int" => "int",
        "i64" => "int64_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "c_char" => "char",
        "c_void" => "void",
        "sockaddr" => "struct sockaddr",
        "socklen_t" => "socklen_t",
        "HaulBlock" => "struct haul_block",
        "HaulStatistics" => "struct haul_statistics",
        "HaulPollfd" => "struct haul_pollfd",
        "HaulCopyRequest" => "struct haul_copy_request",
        "HaulPerfRequest" => "struct haul_perf_request",
        "HaulPerfResult" => "struct haul_perf_result",
        "HaulFleetRequest" => "struct haul_fleet_request",
        "HaulFleetJob" => "struct haul_fleet_job",
        "Option<StatusFn>" => "haul_fleet_status_fn",
        "HaulCopyResult" => "struct haul_copy_result",
        "Option<TrustFn>" => "haul_trust_fn",
        "Option<ProgressFn>" => "haul_progress_fn",
        other => panic!("{other}: how does C spell it?"),
    }
    .to_owned()
}
