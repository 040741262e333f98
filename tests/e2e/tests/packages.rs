//! What `scripts/package.sh` packs: the same bytes each time, what belongs in it, and nothing that a package does not say it depends on. The units of systemd, and the bill of materials.
//!
//! The program that is handed out, in roots made by debootstrap: `make packages`, which takes a release build.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Lab, Random, Running, eventually, haul_binary};

/// Exposure that `systemd-analyze security` may find at most, in tenths: 0 is best, 100 is worst.
const UNITS: [(&str, u32); 2] = [("haul-serve.service", 14), ("haul-tcp.service", 50)];

/// Why nothing is looked at in an RPM.
const NO_RPM: &str = "rpmbuild is not installed (make setup), and there is no RPM";

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tests/e2e is in it")
}

#[track_caller]
fn said(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}

/// Whether a program is there; if not the test says so, and fails in CI.
fn is_here(program: &str) -> bool {
    let here = Command::new(program).arg("--version").output().is_ok();
    if !here {
        skip::skip(format_args!("{program} is not installed (make setup)"));
    }
    here
}

/// A small program that runs the real one, which would take long to pack.
fn small(lab: &Lab) -> PathBuf {
    let (source, program) = (lab.scratch().join("small.c"), lab.scratch().join("small"));
    let real = haul_binary().display();
    fs::write(&source, format!("#include <unistd.h>\nint main(int n, char **words) {{ return execv(\"{real}\", words); }}\n"))
        .expect("room");
    said(Command::new("cc").arg("-o").arg(&program).arg(&source));
    program
}

/// The directory of a small library, which has one of the real one's functions, its name and its header; compiled by the tools whose names begin so.
fn small_library(lab: &Lab, tools: &str) -> PathBuf {
    let (source, built) = (lab.scratch().join("library.c"), lab.scratch().join("built"));
    fs::create_dir_all(&built).expect("a directory");
    fs::write(&source, "#include <haul.h>\nconst char *haul_version(void) { return \"packed\"; }\n").expect("room");
    let soname = concat!("-Wl,-soname,libhaul.so.", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    let script = "\"$4gcc\" -I crates/haul-ffi/include -shared -fPIC \"$1\" -o \"$2/libhaul_ffi.so\" \"$3\"
        \"$4gcc\" -I crates/haul-ffi/include -c -o \"$2/library.o\" \"$3\"
        \"$4ar\" rcsD \"$2/libhaul_ffi.a\" \"$2/library.o\"";
    let mut make = Command::new("bash");
    said(make.args(["-ec", script, "library", soname]).args([&built, &source]).arg(tools).current_dir(workspace()));
    built
}

/// Packs it, in surroundings of these words of the shell; what came of it, by name.
fn packed(lab: &Lab, program: &Path, out: &str, surroundings: &str) -> BTreeMap<String, PathBuf> {
    packed_by(lab, "", program, out, surroundings)
}

/// The same with the library that these tools make.
fn packed_by(lab: &Lab, tools: &str, program: &Path, out: &str, surroundings: &str) -> BTreeMap<String, PathBuf> {
    let out = lab.scratch().join(out);
    let script = format!("{surroundings}; SOURCE_DATE_EPOCH=1700000000 exec scripts/package.sh \"$@\"");
    let words = [program, program, &out, &small_library(lab, tools)];
    said(Command::new("bash").args(["-c", &script, "package"]).args(words).current_dir(workspace()));
    tree::names(&out).into_iter().map(|name| (name.clone(), out.join(name))).collect()
}

/// The program's.
fn ending<'a>(packages: &'a BTreeMap<String, PathBuf>, end: &str) -> Option<&'a Path> {
    named(packages, "haul", end)
}

fn named<'a>(packages: &'a BTreeMap<String, PathBuf>, start: &str, end: &str) -> Option<&'a Path> {
    packages.iter().find(|(name, _)| name.starts_with(start) && name.ends_with(end)).map(|(_, path)| path.as_path())
}

#[test]
fn the_same_files_give_the_same_packages_with_all_that_belongs_in() {
    let Some(lab) = Lab::open() else { return };
    if !is_here("dpkg-deb") {
        return;
    }
    let program = small(&lab);
    let first = packed(&lab, &program, "one", "umask 022; export TZ=UTC");
    let second = packed(&lab, &program, "two", "umask 077; export TZ=Asia/Tokyo LC_ALL=C.UTF-8 HOME=/nonexistent");
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, path) in &first {
        assert!(fs::read(path).expect("it") == fs::read(&second[name]).expect("the other"), "{name} differs");
    }

    let lists = [
        (ending(&first, ".deb"), "dpkg-deb --contents"),
        (ending(&first, ".rpm"), "rpm --query --list --package"),
        (ending(&first, "-static.tar.gz"), "tar --list --file"),
    ];
    for (package, how) in lists {
        let Some(package) = package else {
            skip::skip(NO_RPM);
            continue;
        };
        let mut words = how.split(' ');
        let list = said(Command::new(words.next().expect("a program")).args(words).arg(package));
        for part in [
            "/bin/haul\n",
            "/bin/hcp",
            "/share/man/man1/haul-cp.1.gz\n",
            "/share/bash-completion/completions/haul\n",
            "/share/zsh/site-functions/_haul\n",
            "/share/fish/vendor_completions.d/haul.fish\n",
            "/lib/systemd/system/haul-serve.service\n",
            "/lib/systemd/system/haul-tcp.service\n",
            "/lib/sysusers.d/haul.conf\n",
            "/share/doc/haul/LICENSE-MIT\n",
            "/share/doc/haul/docs/use/install.md\n",
        ] {
            assert!(list.contains(part), "no {part:?} in {}:\n{list}", package.display());
        }
    }
    let list = said(Command::new("dpkg-deb").arg("--contents").arg(ending(&first, ".deb").expect("a package")));
    assert!(list.contains("/usr/lib/haul/static/haul-"), "a program for far sides: {list}");
    for line in list.lines() {
        let (mode, rest) = line.split_at(10);
        let is_writable = mode.as_bytes()[5] == b'w' || mode.as_bytes()[8] == b'w';
        assert!(rest.contains("root/root") && (!is_writable || mode.starts_with('l')), "{line}");
    }
}

/// What a file of ELF is for: its number for the machine.
fn machine_of(path: &Path) -> u16 {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    u16::from_le_bytes([bytes[18], bytes[19]])
}

/// Nothing of it can run here: what a package has besides is written by the program that can.
#[test]
fn packages_are_made_for_another_machine() {
    let Some(lab) = Lab::open() else { return };
    let [x86, arm] = [("x86_64", "amd64", 62), ("aarch64", "arm64", 183)];
    let (this, other) = if std::env::consts::ARCH == arm.0 { (arm, x86) } else { (x86, arm) };
    let tools = format!("{}-linux-gnu-", other.0);
    if !is_here("dpkg-deb") || !is_here(&format!("{tools}gcc")) {
        return;
    }
    let here = lab.scratch().join(format!("haul-{}-linux", this.0));
    fs::copy(small(&lab), &here).expect("room");
    let (source, there) = (lab.scratch().join("there.c"), lab.scratch().join("there"));
    fs::write(&source, "int main(void) { return 0; }\n").expect("room");
    said(Command::new(format!("{tools}gcc")).arg("-o").arg(&there).arg(&source));
    let surroundings = format!("export MACHINE={} WRITER=\"$OTHERS\"", other.0);
    let surroundings = format!("export OTHERS='{}'; {surroundings}", here.display());
    let packages = packed_by(&lab, &tools, &there, "there-packed", &surroundings);

    let root = lab.scratch().join("there-root");
    for package in packages.values().filter(|path| path.extension().is_some_and(|end| end == "deb")) {
        assert_eq!(said(Command::new("dpkg-deb").arg("-f").arg(package).arg("Architecture")).trim(), other.1);
        said(Command::new("dpkg-deb").arg("-x").arg(package).arg(&root));
    }
    let statics = root.join("usr/lib/haul/static");
    let library = root.join(format!("usr/lib/{}-linux-gnu/libhaul.so", other.0));
    let own = format!("haul-{}-linux", other.0);
    for (path, machine) in [
        (root.join("usr/bin/haul"), other.2),
        (library, other.2),
        (statics.join(own), other.2),
        (statics.join(here.file_name().expect("a name")), this.2),
    ] {
        assert_eq!(machine_of(&path), machine, "{}", path.display());
    }
    for page in ["man1/haul-cp.1.gz", "man3/haul_connect.3.gz"] {
        assert!(root.join("usr/share/man").join(page).exists(), "{page}");
    }
    let rpms: Vec<_> = packages.values().filter(|path| path.extension().is_some_and(|end| end == "rpm")).collect();
    if rpms.is_empty() {
        return skip::skip(NO_RPM);
    }
    for rpm in rpms {
        let of = said(Command::new("rpm").args(["--query", "--queryformat", "%{ARCH}", "--package"]).arg(rpm));
        assert!(of == other.0 && rpm.to_string_lossy().ends_with(&format!(".{}.rpm", other.0)), "{of} {}", rpm.display());
    }
}

/// A program is compiled with what the package for that has, and runs with what the library's has.
#[test]
fn the_library_is_in_packages_of_its_own() {
    let Some(lab) = Lab::open() else { return };
    if !is_here("dpkg-deb") || !is_here("pkg-config") {
        return;
    }
    let packages = packed(&lab, &small(&lab), "packed", ":");
    let number = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    let runtime = named(&packages, &format!("libhaul{number}_"), ".deb").expect("the library's");
    let dev = named(&packages, "libhaul-dev_", ".deb").expect("what is compiled with it");
    let depends = said(Command::new("dpkg-deb").arg("-f").arg(dev).arg("Depends"));
    assert_eq!(depends.trim(), format!("libhaul{number} (= {})", env!("CARGO_PKG_VERSION")));

    let (both, alone) = (lab.scratch().join("both"), lab.scratch().join("alone"));
    for (package, root) in [(runtime, &both), (dev, &both), (runtime, &alone)] {
        said(Command::new("dpkg-deb").arg("-x").arg(package).arg(root));
    }
    let source = lab.scratch().join("program.c");
    fs::write(&source, "#include <haul.h>\n#include <stdio.h>\nint main(void) { return puts(haul_version()) < 0; }\n")
        .expect("room");
    let script = "cc -o \"$3/program\" \"$4\" $(PKG_CONFIG_SYSROOT_DIR=\"$1\" PKG_CONFIG_LIBDIR=$(echo \"$1\"/usr/lib/*/pkgconfig) pkg-config --cflags --libs haul)
        LD_LIBRARY_PATH=$(echo \"$2\"/usr/lib/*-linux-gnu) \"$3/program\"; ls \"$2\"/usr/include \"$2\"/usr/share/man 2>/dev/null | wc -l
        ls \"$1\"/usr/share/man/man3/haul_connect.3.gz";
    let mut compile = Command::new("bash");
    let told = said(compile.args(["-ec", script, "compile"]).args([&both, &alone, &lab.scratch().to_owned(), &source]));
    assert!(told.starts_with("packed\n0\n") && told.contains("haul_connect.3.gz"), "{told}");

    let Some(rpm) = named(&packages, "libhaul-devel-", ".rpm") else {
        return skip::skip(NO_RPM);
    };
    let list = |package: &Path| said(Command::new("rpm").args(["--query", "--list", "--package"]).arg(package));
    let devel = list(rpm);
    for part in ["/usr/include/haul.h\n", "/usr/lib64/libhaul.so\n", "/usr/lib64/libhaul.a\n", "/usr/lib64/pkgconfig/haul.pc\n"] {
        assert!(devel.contains(part), "{devel}");
    }
    let library = list(named(&packages, "libhaul-0", ".rpm").or_else(|| named(&packages, "libhaul-1", ".rpm")).expect("an RPM"));
    assert!(library.contains(&format!("/usr/lib64/libhaul.so.{number}\n")) && !library.contains("haul.h"), "{library}");
}

/// The files of the package, and those of the packages that it depends on as this machine has them; nothing else, not even a shell.
fn root_of(lab: &Lab, package: &Path) -> PathBuf {
    let root = lab.scratch().join("root");
    for dir in ["usr/lib", "usr/lib64", "usr/bin", "usr/sbin", "root", "data"] {
        fs::create_dir_all(root.join(dir)).expect("a directory");
    }
    for name in ["lib", "lib64", "bin", "sbin"] {
        if let Ok(target) = fs::read_link(Path::new("/").join(name)) {
            symlink(target, root.join(name)).expect("a link as this machine has it");
        }
    }
    let unpacked = "dpkg-deb --fsys-tarfile \"$1\" | tar -C \"$2\" -x --keep-directory-symlink
        for name in $(dpkg-deb -f \"$1\" Depends | sed 's/([^)]*)//g; s/,/ /g'); do dpkg -L \"$name\"; done | grep -E '^/(usr/)?lib' | \
        while read -r path; do { [ -L \"$path\" ] || [ -f \"$path\" ]; } && echo \"$path\"; done | tar -C / -c -T - 2>/dev/null | tar -C \"$2\" -x --keep-directory-symlink";
    said(Command::new("bash").args(["-ec", unpacked, "root"]).args([package, &root]));
    fs::copy(haul_binary(), root.join("usr/bin/haul")).expect("the program itself");
    root
}

#[test]
fn the_program_needs_what_its_package_depends_on_and_nothing_else() {
    let Some(lab) = Lab::open() else { return };
    if !is_here("dpkg-deb") {
        return;
    }
    if !Path::new("/var/lib/dpkg/status").exists() {
        return skip::skip("this system's packages are not dpkg's");
    }
    let packages = packed(&lab, &small(&lab), "packed", ":");
    let root = root_of(&lab, ending(&packages, ".deb").expect("a package"));
    let haul = |words: &[&str]| {
        let mut command = lab.near.command("chroot");
        command.arg(&root).arg("/usr/bin/haul").args(words).env_clear().env("HOME", "/root").env("PATH", "/usr/sbin:/usr/bin");
        command
    };
    let key = said(&mut haul(&["key", "show", "--state", "/state"])).trim().to_owned();
    let own = said(&mut haul(&["key", "show"])).trim().to_owned();
    let address = format!("{}:7700", lab.near.address);
    said(&mut haul(&["key", "authorize", "--state", "/state", &own, "--name", "own"]));
    said(&mut haul(&["key", "trust", &address, &key]));
    let _daemon = Running::start(haul(&["serve", "--state", "/state", "--root", "data=/data:rw", "--listen", &address]));
    let source = root.join("tree");
    fs::create_dir(&source).expect("a directory");
    tree::make_many(&source, 50, &mut Random::seeded(93));
    let there = format!("haul://{address}/data/tree");
    let goes = || haul(&["cp", "-rq", "/tree", &there]).status().is_ok_and(|status| status.success());
    assert!(eventually(Duration::from_secs(30), goes));
    said(&mut haul(&["cp", "-rq", &there, "/back"]));
    tree::assert_same(&source, &root.join("data/tree"), Exactness::Content);
    tree::assert_same(&source, &root.join("back"), Exactness::Content);
}

#[test]
fn the_units_are_whole_and_locked_down() {
    if !is_here("systemd-analyze") {
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let place = |path: &str| {
        let path = scratch.path().join(path);
        fs::create_dir_all(path.parent().expect("its directory")).expect("a directory");
        path
    };
    for path in ["usr/bin/haul", "bin/kill"] {
        fs::copy("/bin/true", place(path)).expect("a program");
    }
    for target in ["sysinit", "basic", "network-online", "shutdown", "multi-user"] {
        let path = place(&format!("etc/systemd/system/{target}.target"));
        fs::write(path, "[Unit]\nDefaultDependencies=no\n").expect("room");
    }
    let units = workspace().join("packaging/systemd");
    for (unit, exposure) in UNITS {
        fs::copy(units.join(unit), place(&format!("etc/systemd/system/{unit}"))).expect("the unit");
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", &format!("--root={}", scratch.path().display()), unit]);
        let output = verify.output().expect("it starts");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !words.contains(unit), "{words}");
        let threshold = format!("--threshold={exposure}");
        said(
            Command::new("systemd-analyze").args(["security", "--offline=true", "--no-pager", &threshold]).arg(units.join(unit)),
        );
    }
}

#[test]
fn the_bill_of_materials_has_what_is_in_the_program() {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let text = said(Command::new("python3").args(["scripts/sbom.py", &target]).current_dir(workspace()));
    assert_eq!(text, said(Command::new("python3").args(["scripts/sbom.py", &target]).current_dir(workspace())));
    let bill: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["metadata"]["component"]["name"], "haul");
    let components = bill["components"].as_array().expect("a list");
    let has = |name: &str| components.iter().any(|component| component["name"] == name);
    for name in ["rustls", "aws-lc-sys", "blake3", "haul-proto"] {
        assert!(has(name), "{name}");
    }
    for name in ["proptest", "tempfile", "e2e", "windows-sys"] {
        assert!(!has(name), "{name} is not in the program");
    }
    for component in components {
        assert!(component["licenses"].is_array(), "{component}");
        let is_own = component["name"].as_str().is_some_and(|name| name == "haul" || name.starts_with("haul-"));
        assert!(is_own || component["hashes"].is_array(), "{component}");
    }
}
