//! Compiles the programs for the kernel where clang is there; the workspace builds without it too, and `haul tcp` says then what is missing.

use std::path::Path;
use std::process::Command;

use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;

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
        let compiled = clang.and_then(|clang| compile(clang, object, &Path::new(&out).join(format!("{object}.bpf.o"))));
        // An object without bytes is what the crate takes for "built without clang".
        let packed =
            compiled.map_or_else(Vec::new, |compiled| zstd::bulk::compress(&compiled, 19).expect("memory holds it twice"));
        std::fs::write(Path::new(&out).join(format!("{object}.bpf.o.zst")), packed).expect("OUT_DIR can be written to");
    }
}

/// Whether this clang is there and knows the target.
fn works(clang: &str) -> bool {
    let output = Command::new(clang).args(["-print-targets"]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("bpf"))
}

fn compile(clang: &str, object: &str, to: &Path) -> Option<Vec<u8>> {
    // The third instruction set: every kernel that has struct_ops with four arguments of cong_control runs it.
    let options = ["-O2", "-g", "-fno-addrsig", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Wno-unused-parameter", "-c"];
    let output = Command::new(clang).args(options).arg(format!("bpf/{object}.bpf.c")).arg("-o").arg(to).output();
    match output {
        Ok(output) if output.status.success() => {
            let compiled = std::fs::read(to).expect("clang has written it");
            Some(stripped(&compiled).expect("clang writes ELF"))
        }
        Ok(output) => {
            println!("cargo::warning=haul tcp will be missing: {clang} cannot compile bpf/{object}.bpf.c");
            for line in String::from_utf8_lossy(&output.stderr).lines().take(20) {
                println!("cargo::warning={line}");
            }
            None
        }
        Err(_) => None,
    }
}

/// Without what a debugger wants, which is half of it. The types and lines that the kernel wants are elsewhere (`.BTF`, `.BTF.ext`), come of `-g` too, and have nothing in them that is moved.
fn stripped(object: &[u8]) -> object::build::Result<Vec<u8>> {
    let mut builder = Builder::read(object)?;
    for section in &mut builder.sections {
        section.delete |= [&b".debug"[..], b".rel.debug", b".rel.BTF"].iter().any(|begin| section.name.starts_with(begin));
    }
    builder.delete_orphans();
    // clang keeps the names of sections with those of symbols.
    let names = builder.sections.add();
    (names.name, names.sh_type, names.data) = (b".shstrtab".as_slice().into(), SHT_STRTAB, SectionData::SectionString);
    let mut stripped = Vec::new();
    builder.write(&mut stripped)?;
    Ok(stripped)
}
