//! Compiles the programs for the kernel where clang is there; the workspace builds without it too, and `haul tcp` says then what is missing.

use std::path::Path;
use std::process::Command;

/// Debian's unversioned name, then those that have been seen beside it; `CLANG` names another.
const CLANGS: &[&str] = &["clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];
const OBJECTS: &[&str] = &["laws", "choose", "pace", "queue", "departure"];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-env-changed=PATH");
    let out = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let named = std::env::var("CLANG").ok();
    let clang = named.iter().map(String::as_str).chain(CLANGS.iter().copied()).find(|name| works(name));
    for object in OBJECTS {
        let to = Path::new(&out).join(format!("{object}.bpf.o"));
        // An object without bytes is what the crate takes for "built without clang".
        if !clang.is_some_and(|clang| compile(clang, object, &to)) {
            std::fs::write(&to, []).expect("OUT_DIR can be written to");
        }
    }
}

/// Whether this clang is there and knows the target.
fn works(clang: &str) -> bool {
    let output = Command::new(clang).args(["-print-targets"]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("bpf"))
}

fn compile(clang: &str, object: &str, to: &Path) -> bool {
    // The third instruction set: every kernel that has struct_ops with four arguments of cong_control runs it.
    let options = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Wno-unused-parameter", "-c"];
    let output = Command::new(clang).args(options).arg(format!("bpf/{object}.bpf.c")).arg("-o").arg(to).output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            println!("cargo::warning=haul tcp will be missing: {clang} cannot compile bpf/{object}.bpf.c");
            for line in String::from_utf8_lossy(&output.stderr).lines().take(20) {
                println!("cargo::warning={line}");
            }
            false
        }
        Err(_) => false,
    }
}
