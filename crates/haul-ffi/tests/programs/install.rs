//! What `make install` puts in place is what a program in C needs: a directory that is new, pkg-config, a compiler, and nothing of this tree.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{SONAME, Workshop, built, root, run};

fn must(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The flags that pkg-config gives for an installation below `dest`.
fn flags(dest: &Path, which: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.args(which).arg("haul").env("PKG_CONFIG_PATH", dest.join("opt/haul/lib/pkgconfig"));
    let output = must(command.env("PKG_CONFIG_SYSROOT_DIR", dest));
    String::from_utf8(output.stdout).expect("text").split_whitespace().map(str::to_owned).collect()
}

/// The first program in the guide.
fn smallest_program() -> String {
    let guide = fs::read_to_string(root().join("../../docs/reference/c.md")).expect("the guide");
    guide.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program").to_owned()
}

#[test]
fn a_program_is_compiled_against_an_installation() {
    let place = Workshop::open();
    let dest = place.path("dest");
    let from = built("libhaul_ffi.so");
    let mut install = Command::new("make");
    install.arg("-C").arg(root().join("../..")).args(["--no-print-directory", "install-library", "PREFIX=/opt/haul"]);
    let from = from.parent().expect("a directory");
    must(install.arg(format!("BUILT={}", from.display())).arg(format!("DESTDIR={}", dest.display())));

    let lib = dest.join("opt/haul/lib");
    assert_eq!(fs::read_link(lib.join("libhaul.so")).expect("a link"), Path::new(SONAME));
    assert_eq!(fs::read_link(lib.join(SONAME)).expect("a link"), Path::new(&format!("libhaul.so.{}", env!("CARGO_PKG_VERSION"))));
    assert!(dest.join("opt/haul/share/man/man3/haul_send.3").exists());
    let version = flags(&dest, &["--modversion"]);
    assert_eq!(version, [env!("CARGO_PKG_VERSION")]);

    let source = place.path("program.c");
    fs::write(&source, smallest_program()).expect("a file");
    let shared = place.path("shared");
    must(
        Command::new("cc").args(["-Wall", "-Werror", "-o"]).arg(&shared).arg(&source).args(flags(&dest, &["--cflags", "--libs"])),
    );
    let needed = must(Command::new("readelf").arg("-d").arg(&shared));
    assert!(String::from_utf8_lossy(&needed.stdout).contains(&format!("Shared library: [{SONAME}]")));
    let mut command = Command::new(&shared);
    command.env("LD_LIBRARY_PATH", &lib);
    assert_eq!(String::from_utf8(run(command).stdout).expect("text"), "hello\n");

    // And with nothing but the archive.
    let inside = place.path("inside");
    let mut compile = Command::new("cc");
    compile.arg("-o").arg(&inside).arg(&source).args(flags(&dest, &["--cflags"])).arg(lib.join("libhaul.a"));
    must(compile.args(flags(&dest, &["--static", "--libs-only-l"]).into_iter().filter(|flag| flag != "-lhaul")));
    assert_eq!(String::from_utf8(run(Command::new(&inside)).stdout).expect("text"), "hello\n");
}

/// Not below DESTDIR, and where the loader does not look: it says what programs will want to know.
#[test]
fn an_installation_that_the_loader_does_not_know() {
    let place = Workshop::open();
    let (prefix, from) = (place.path("prefix"), built("libhaul_ffi.so"));
    let mut install = Command::new("make");
    install.arg("-C").arg(root().join("../..")).args(["--no-print-directory", "install-library", "DESTDIR="]);
    install.arg(format!("BUILT={}", from.parent().expect("a directory").display())).arg(format!("PREFIX={}", prefix.display()));
    let said = String::from_utf8(must(&mut install).stdout).expect("text");
    let lib = prefix.join("lib");
    assert!(said.contains(&format!("LD_LIBRARY_PATH={} ", lib.display())), "{said}");
    let path = said.split_whitespace().find_map(|word| word.strip_prefix("PKG_CONFIG_PATH=")).expect("where pkg-config looks");
    must(Command::new("pkg-config").args(["--exists", "haul"]).env("PKG_CONFIG_PATH", path));
}
