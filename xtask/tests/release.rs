//! `scripts/release.sh --dry-run` on a clone of this repository: what it makes, what it leaves alone, what it refuses. And what
//! `scripts/strip.sh` leaves of a program.
//!
//! The release is skipped where this is no checkout: a source archive has no history.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A clone, and a stand-in for the program: building the real one is not what is tested.
struct Clone {
    dir: PathBuf,
    program: PathBuf,
}

impl Clone {
    fn make(test: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        if !root.join(".git").exists() {
            assert!(std::env::var_os("CI").is_none(), "no checkout");
            return None;
        }
        let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("release-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(&base).expect("a directory");
        let clone = Self { dir: base.join("haul"), program: base.join("program") };
        let cloned = Command::new("git").args(["clone", "-q", "--no-hardlinks"]).arg(root).arg(&clone.dir).status();
        assert!(cloned.expect("git").success());
        // The script as it is here, committed or not.
        for name in ["scripts/release.sh", "scripts/strip.sh", "Makefile", "CHANGELOG.md"] {
            fs::copy(root.join(name), clone.dir.join(name)).expect("a copy");
        }
        clone.git(&["add", "-A"]);
        clone.git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "as it is here"]);
        clone.make_program();
        Some(clone)
    }

    /// A linked program, for the release takes its symbols out.
    fn make_program(&self) {
        let source = r#"
            #include <stdio.h>
            #include <string.h>
            int main(int count, char **words) {
                if (count > 2 && strcmp(words[1], "man") == 0) {
                    char path[4096];
                    snprintf(path, sizeof path, "%s/haul.1", words[2]);
                    FILE *page = fopen(path, "w");
                    return page == NULL || fputs("page\n", page) < 0 || fclose(page) != 0;
                }
                return count > 1 && strcmp(words[1], "completions") == 0 && puts("words") < 0;
            }"#;
        let text = self.program.with_extension("c");
        fs::write(&text, source).expect("room");
        let compiled = Command::new("cc").arg("-o").arg(&self.program).arg(&text).status();
        assert!(compiled.expect("cc").success());
    }

    fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git").arg("-C").arg(&self.dir).args(args).output().expect("git");
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn release(&self, args: &[&str]) -> Output {
        let mut command = Command::new("bash");
        command.arg(self.dir.join("scripts/release.sh")).args(args).env("HAUL", &self.program).current_dir(&self.dir);
        command.output().expect("bash")
    }

    #[track_caller]
    fn assert_refused(&self, args: &[&str], why: &str) {
        let output = self.release(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
    }
}

impl Drop for Clone {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.dir.parent().expect("it has one"));
    }
}

#[test]
fn a_dry_run_makes_everything_and_changes_nothing() {
    let Some(clone) = Clone::make("dry") else { return };
    let before = (clone.git(&["rev-parse", "HEAD"]), clone.git(&["tag"]));
    let output = clone.release(&["--dry-run", "99.0.0"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "-> 99.0.0",
        "release: 99.0.0",
        " Cargo.lock ",
        " fuzz/Cargo.lock ",
        " CHANGELOG.md ",
        "release: dist/haul-99.0.0.tar.gz",
        "./usr/bin/haul\n",
        "./usr/bin/hcp\n",
        "./usr/share/man/man1/haul.1\n",
        "./usr/share/bash-completion/completions/hperf\n",
        "./usr/share/zsh/site-functions/_haul\n",
        "./usr/share/fish/vendor_completions.d/hcp.fish\n",
        "./usr/share/doc/haul/LICENSE-MIT\n",
    ] {
        assert!(said.contains(part), "no {part:?} in:\n{said}");
    }
    assert_eq!((clone.git(&["rev-parse", "HEAD"]), clone.git(&["tag"])), before);
    assert_eq!(clone.git(&["status", "--porcelain"]), "");
    assert!(!clone.dir.join("dist").exists());
}

#[test]
fn what_is_not_ready_is_not_released() {
    let Some(clone) = Clone::make("refused") else { return };
    clone.assert_refused(&["--dry-run"], "usage");
    clone.assert_refused(&["--dry-run", "1.0"], "is no version");
    clone.assert_refused(&["--dry-run", "0.0.1"], "is not newer");
    clone.git(&["tag", "v99.0.0"]);
    clone.assert_refused(&["--dry-run", "99.0.0"], "there is a tag v99.0.0");
    fs::write(clone.dir.join("README.md"), "changed").expect("room");
    clone.assert_refused(&["--dry-run", "99.0.1"], "the tree has changes");
    clone.git(&["checkout", "-q", "README.md"]);
    fs::write(clone.dir.join("stray.txt"), "new").expect("room");
    clone.assert_refused(&["99.0.1"], "the tree has changes");
}

/// The names of a file's sections.
fn sections(file: &Path) -> Vec<String> {
    let output = Command::new("readelf").args(["--section-headers", "--wide"]).arg(file).output().expect("readelf");
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter(|word| word.starts_with('.')).map(str::to_owned).collect()
}

#[test]
fn what_only_a_debugger_reads_is_kept_beside_the_program_and_not_in_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("strip-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a directory");
    let (text, program, symbols) = (dir.join("program.c"), dir.join("program"), dir.join("beside/program.debug"));
    for kept in [true, false] {
        fs::write(&text, "int main(void) { return 7; }").expect("room");
        assert!(Command::new("cc").arg("-g").arg("-o").arg(&program).arg(&text).status().expect("cc").success());
        let has =
            |file: &Path| [".symtab", ".debug_info", ".gnu_debuglink"].map(|name| sections(file).iter().any(|it| it == name));
        assert_eq!(has(&program), [true, true, false], "as it was linked");
        let mut strip = Command::new("bash");
        strip.arg(root.join("scripts/strip.sh")).arg(&program).args(kept.then_some(&symbols));
        assert!(strip.status().expect("bash").success());
        assert_eq!(has(&program), [false, false, kept], "kept beside: {kept}");
        assert_eq!(Command::new(&program).status().expect("a program").code(), Some(7));
        if kept {
            assert_eq!(has(&symbols), [true, true, false]);
            fs::remove_file(&symbols).expect("it was made");
        }
    }
    assert!(!symbols.exists(), "nobody asked for it");
    fs::remove_dir_all(&dir).expect("it was ours");
}
