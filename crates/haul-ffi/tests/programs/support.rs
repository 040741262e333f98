//! A place with the library as it is installed, and the system's compilers.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The shared library's name for programs that were linked with it; the second number counts until 1.0.
pub const SONAME: &str = concat!("libhaul.so.", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

/// Of this crate.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file that cargo has built beside this test.
pub fn built(name: &str) -> PathBuf {
    program(name).unwrap_or_else(|| panic!("{name} is not built"))
}

/// The same, where another crate's may be missing.
pub fn program(name: &str) -> Option<PathBuf> {
    let test = env::current_exe().expect("a test has a program");
    let candidates = test.ancestors().skip(1).take(2).map(|dir| dir.join(name));
    candidates.filter(|path| path.exists()).max_by_key(|path| modified(path))
}

fn modified(path: &Path) -> std::time::SystemTime {
    fs::metadata(path).and_then(|found| found.modified()).expect("a file has a time")
}

/// A directory with libhaul as an installation has it, and room for programs.
pub struct Workshop {
    dir: TempDir,
}

/// How a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    Plain,
    /// With the address and the undefined-behaviour sanitizer.
    Sanitized,
    /// With the library inside.
    Static,
    /// As it is, and run under valgrind.
    Watched,
}

/// As it is, with the sanitizers, and where valgrind is installed under it: the sanitizers look at the C side only, valgrind at the memory that the library itself uses wrongly or does not give
/// back. It knows every system call that the library makes. Its processor is one without AVX-512 and VAES, so the hashes and ciphers written for these are seen by nobody.
pub fn builds() -> Vec<Build> {
    if has("valgrind") {
        return vec![Build::Plain, Build::Sanitized, Build::Watched];
    }
    skip::skip("valgrind is not installed (make setup)");
    vec![Build::Plain, Build::Sanitized]
}

/// The same for copies, fleets and measurements: they give a server 5 s to answer, or it gives them 10 s to begin, and on a machine that is busy a handshake under valgrind takes longer. `HAUL_VALGRIND=all` has them run there too.
pub fn builds_with_servers() -> Vec<Build> {
    let watched = env::var_os("HAUL_VALGRIND").is_some_and(|which| which == "all");
    builds().into_iter().filter(|build| watched || *build != Build::Watched).collect()
}

/// What valgrind is to find: wrong reads, writes and jumps, and memory that nothing refers to at the end. All of it together takes some 70 s of a processor, bounded by the little that the programs
/// do there (their arguments in `main.rs`) and by the alarm of `check.h`.
const VALGRIND: [&str; 6] = [
    "--quiet",
    "--error-exitcode=99",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
    "--fair-sched=yes",
];

impl Workshop {
    pub fn open() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let library = built("libhaul_ffi.so");
        for name in ["libhaul.so", SONAME] {
            symlink(&library, dir.path().join(name)).expect("a link");
        }
        symlink(built("libhaul_ffi.a"), dir.path().join("libhaul.a")).expect("a link");
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Compiles a program of one source below this crate.
    pub fn compile(&self, source: &str, build: Build) -> PathBuf {
        let source = root().join(source);
        let cxx = source.extension().is_some_and(|end| end == "cpp");
        let program = self.path(&format!("{}-{build:?}", source.file_stem().expect("a name").display()));
        let mut compiler = if cxx { Command::new("c++") } else { Command::new("cc") };
        compiler.arg(if cxx { "-std=c++11" } else { "-std=c11" }).args(["-D_GNU_SOURCE", "-g", "-O1"]);
        compiler.args(["-Wall", "-Wextra", "-Wshadow", "-Wpedantic", "-Werror"]);
        compiler.arg("-I").arg(root().join("include")).arg("-o").arg(&program).arg(&source).args(["-pthread"]);
        match build {
            Build::Sanitized => {
                compiler.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]);
                compiler.arg("-L").arg(self.dir.path()).arg("-lhaul");
            }
            Build::Plain | Build::Watched => {
                compiler.arg("-L").arg(self.dir.path()).arg("-lhaul");
            }
            Build::Static => {
                compiler.arg(self.path("libhaul.a")).args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]);
            }
        }
        let output = compiler.output().expect("a compiler: scripts/setup.sh installs one");
        assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
        program
    }

    /// A program of one source below this crate, to be run as the build says.
    pub fn program(&self, source: &str, build: Build) -> Command {
        let program = self.compile(source, build);
        if build != Build::Watched {
            return self.command(&program);
        }
        let mut command = self.command("valgrind".as_ref());
        command.args(VALGRIND).arg(program);
        command
    }

    /// The program, to be run with the library of this place.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.dir.path()).env("RUST_BACKTRACE", "0");
        command
    }
}

/// Runs a program to its end, which must be a good one and without words of a sanitizer.
pub fn run(mut command: Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{}{errors}", output.status, String::from_utf8_lossy(&output.stdout));
    for words in ["Sanitizer", "runtime error", "panicked"] {
        assert!(!errors.contains(words), "{command:?}: {errors}");
    }
    output
}

/// Whether a program is there.
fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(program).exists())
}
