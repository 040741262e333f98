//! `haul rsh` in the place of ssh, for the programs that take a remote shell: each over the same emulated WAN (100 ms, 0.1 % loss each way) with ssh and with haul. What arrives is asserted, never
//! how long it took; `HAUL_SHELL_TIMES=FILE` has the times written there, and `HAUL_SHELL_MB` says how much is moved (docs/use/rsh.md).

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Finished, Random, Running, Sites, Stopwatch, eventually, haul_binary};
use haul_lab::LinkOptions;
use haul_units::{BitRate, Ratio};
use rustix::fs::{Mode, chmod};
use rustix::process::Signal;

/// For what moves little.
const PATIENCE: Duration = Duration::from_secs(180);

/// For a tool: with this loss TCP brings some 4 Mbit/s, and some tools move the large file twice.
fn patience() -> Duration {
    PATIENCE + Duration::from_secs(10) * u32::try_from(megabytes()).unwrap_or(u32::MAX)
}

/// The two remote shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shell {
    Ssh,
    Haul,
}

impl Shell {
    const BOTH: [Self; 2] = [Self::Ssh, Self::Haul];

    const fn name(self) -> &'static str {
        match self {
            Self::Ssh => "ssh",
            Self::Haul => "haul",
        }
    }
}

/// The hub is near, `site1` is far.
struct Wan {
    sites: Sites,
    seed: u64,
}

impl Wan {
    fn open(seed: u64) -> Option<Self> {
        let link = LinkOptions {
            rate: BitRate::mbps(500),
            rtt: Duration::from_millis(100),
            loss: Ratio::percent(0.1),
            seed,
            ..LinkOptions::default()
        };
        let sites = Sites::open(&[link])?;
        fs::create_dir_all(sites.scratch().join("home")).expect("a home");
        Some(Self { sites, seed })
    }

    /// The same, for a program that may not be installed: then the test says so.
    fn with(program: &str, seed: u64) -> Option<Self> {
        if !is_installed(program) {
            skip::skip(format_args!("{program} is not installed (make setup)"));
            return None;
        }
        Self::open(seed)
    }

    /// A remote shell as a program without words of its own: it knows the far side's name.
    fn program(&self, shell: Shell) -> PathBuf {
        let path = self.sites.scratch().join(format!("{}-shell", shell.name()));
        if !path.exists() {
            let config = self.sites.ssh_config();
            let line = match shell {
                Shell::Ssh => format!("exec /usr/bin/ssh -F {} \"$@\"", config.display()),
                // By its name on the PATH it would find itself.
                Shell::Haul => format!("exec {} rsh --ssh /usr/bin/ssh -F {} \"$@\"", haul_binary().display(), config.display()),
            };
            fs::write(&path, format!("#!/bin/sh\n{line}\n")).expect("a script");
            chmod(&path, Mode::from_raw_mode(0o755)).expect("its mode");
        }
        path
    }

    /// A command on the near host, with an environment of its own.
    fn near(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let home = self.sites.scratch().join("home");
        let mut command = self.sites.hub().command(program);
        command.env("HOME", &home).env("XDG_CONFIG_HOME", home.join("config")).env("XDG_STATE_HOME", home.join("config"));
        command.env("XDG_CACHE_HOME", home.join("cache")).env("RUST_BACKTRACE", "1");
        command
    }

    /// `haul rsh` itself, with these words behind its options.
    fn rsh(&self, words: &[&str]) -> Command {
        let mut command = self.near(self.program(Shell::Haul));
        command.args(words);
        command
    }

    /// An empty directory for one shell.
    fn place(&self, name: &str, shell: Shell) -> PathBuf {
        let path = self.sites.scratch().join(format!("{name}-{}", shell.name()));
        fs::create_dir_all(&path).expect("a directory");
        path
    }

    /// A tree with one large file and some small ones.
    fn source(&self) -> PathBuf {
        let path = self.sites.scratch().join("source");
        if !path.exists() {
            let mut random = Random::seeded(self.seed);
            tree::make_many(&path.join("many"), 40, &mut random);
            tree::write_random(&path.join("large"), megabytes() << 20, &mut random);
        }
        path
    }
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok()
}

/// How much the large file of a test has.
fn megabytes() -> u64 {
    std::env::var("HAUL_SHELL_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

/// Runs a command to its end, which must be a good one; notes how long it took.
#[track_caller]
fn run(what: &str, shell: Shell, command: Command) -> Finished {
    let watch = Stopwatch::start();
    let finished = Running::start(command).wait(patience()).expect(0);
    if let Some(path) = std::env::var_os("HAUL_SHELL_TIMES") {
        let mut times = File::options().append(true).create(true).open(path).expect("the file of times");
        let seconds = watch.elapsed().as_secs_f64();
        writeln!(times, "{what}\t{}\t{} MB\t{seconds:.2} s", shell.name(), megabytes()).expect("a line of times");
    }
    finished
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// What tools keep of a tree differs (directories' times, owners); here it is content and names.
#[track_caller]
fn assert_content(source: &Path, copy: &Path) {
    tree::assert_same(source, copy, Exactness::Content);
}

#[test]
fn git_clones_fetches_and_pushes() {
    let Some(wan) = Wan::with("git", 1) else { return };
    let git = |command: &mut Command, words: &[&str]| {
        let who = ["-c", "user.name=haul", "-c", "user.email=haul@example.org", "-c", "init.defaultBranch=main"];
        command.args(who).args(words);
    };
    for shell in Shell::BOTH {
        let far = wan.place("far", shell);
        let here = |words: &[&str]| {
            let mut command = wan.near("git");
            git(&mut command, words);
            Running::start(command).wait(PATIENCE).expect(0)
        };
        let work = far.join("work");
        here(&["init", "-q", &text(&work)]);
        tree::write_random(&work.join("large"), megabytes() << 20, &mut Random::seeded(2));
        let commit = |dir: &Path, message: &str| {
            here(&["-C", &text(dir), "add", "-A"]);
            here(&["-C", &text(dir), "commit", "-q", "-m", message]);
        };
        commit(&work, "one");
        here(&["clone", "-q", "--bare", &text(&work), &text(&far.join("bare.git"))]);

        let near = wan.place("near", shell);
        let copy = near.join("copy");
        let over = |what: &str, words: &[&str]| {
            let mut command = wan.near("git");
            command.arg("-c").arg(format!("core.sshCommand={}", wan.program(shell).display()));
            git(&mut command, words);
            run(what, shell, command)
        };
        let url = format!("ssh://site1{}", far.join("bare.git").display());
        over("git clone", &["clone", "-q", &url, &text(&copy)]);
        assert_eq!(tree::hash(&copy.join("large")), tree::hash(&work.join("large")));

        tree::write_random(&work.join("second"), 100_000, &mut Random::seeded(3));
        commit(&work, "two");
        here(&["-C", &text(&work), "push", "-q", &text(&far.join("bare.git")), "main"]);
        over("git fetch", &["-C", &text(&copy), "fetch", "-q"]);
        here(&["-C", &text(&copy), "merge", "-q", "origin/main"]);
        assert_eq!(tree::hash(&copy.join("second")), tree::hash(&work.join("second")));

        tree::write_random(&copy.join("third"), megabytes() << 20, &mut Random::seeded(4));
        commit(&copy, "three");
        // By the variable that names a program, too.
        let mut push = wan.near("git");
        push.env("GIT_SSH", wan.program(shell));
        git(&mut push, &["-C", &text(&copy), "push", "-q", "origin", "main"]);
        run("git push", shell, push);
        let tip = |dir: &Path| here(&["-C", &text(dir), "rev-parse", "main"]).stdout;
        assert_eq!(tip(&far.join("bare.git")), tip(&copy));
    }
}

#[test]
fn scp_and_sftp_copy_both_ways() {
    let Some(wan) = Wan::open(5) else { return };
    let source = wan.source();
    for shell in Shell::BOTH {
        let (up, down) = (wan.place("up", shell), wan.place("down", shell));
        let scp = |what: &str, words: &[&str]| {
            let mut command = wan.near("scp");
            command.arg("-S").arg(wan.program(shell)).args(["-q", "-r"]).args(words);
            run(what, shell, command);
        };
        scp("scp up", &[&text(&source), &format!("site1:{}/", text(&up))]);
        assert_content(&source, &up.join("source"));
        scp("scp down", &[&format!("site1:{}/source", text(&up)), &text(&down)]);
        assert_content(&source, &down.join("source"));
        // The old protocol, in which each end runs scp.
        scp("scp -O up", &["-O", &text(&source.join("large")), &format!("site1:{}/old", text(&up))]);
        assert_eq!(tree::hash(&up.join("old")), tree::hash(&source.join("large")));

        let batch = down.join("batch");
        let lines =
            format!("put {0}/large {1}/by-sftp\nget {1}/by-sftp {2}/by-sftp\nls -1 {1}\n", text(&source), text(&up), text(&down));
        fs::write(&batch, lines).expect("a batch");
        let mut sftp = wan.near("sftp");
        sftp.arg("-S").arg(wan.program(shell)).arg("-b").arg(&batch).arg("site1");
        let listed = run("sftp up and down", shell, sftp);
        assert_eq!(tree::hash(&down.join("by-sftp")), tree::hash(&source.join("large")));
        assert!(String::from_utf8_lossy(&listed.stdout).contains("by-sftp"), "{listed}");
    }
}

#[test]
fn rsync_takes_it() {
    let Some(wan) = Wan::with("rsync", 6) else { return };
    let source = wan.source();
    for shell in Shell::BOTH {
        let (up, down) = (wan.place("up", shell), wan.place("down", shell));
        let rsync = |what: &str, words: &[&str]| {
            let mut command = wan.near("rsync");
            command.arg("-a").arg("-e").arg(wan.program(shell)).args(words);
            run(what, shell, command);
        };
        rsync("rsync up", &[&format!("{}/", text(&source)), &format!("site1:{}/", text(&up))]);
        tree::assert_same(&source, &up, Exactness::Everything);
        rsync("rsync down", &[&format!("site1:{}/", text(&up)), &format!("{}/", text(&down))]);
        tree::assert_same(&source, &down, Exactness::Everything);
    }
}

#[test]
fn sshfs_mounts_and_copies() {
    let Some(wan) = Wan::with("sshfs", 7) else { return };
    if !Path::new("/dev/fuse").exists() {
        return skip::skip("there is no /dev/fuse");
    }
    let source = wan.source();
    for shell in Shell::BOTH {
        let (far, mount, back) = (wan.place("far", shell), wan.place("mount", shell), wan.place("back", shell));
        // In one shell: what is mounted is seen in the namespace of mounts that `ip netns exec` makes, and nowhere else.
        let script = r#"set -e
            sshfs -o ssh_command="$SHELL_PROGRAM" "site1:$FAR" "$MOUNT"
            trap 'fusermount -u "$MOUNT"' EXIT
            cp -r "$SOURCE" "$MOUNT/copy"
            cp -r "$MOUNT/copy/." "$BACK"
            mv "$MOUNT/copy" "$MOUNT/moved"; ls "$MOUNT""#;
        let mut command = wan.near("sh");
        command.args(["-c", script]).env("SHELL_PROGRAM", wan.program(shell));
        command.env("FAR", &far).env("MOUNT", &mount).env("SOURCE", &source).env("BACK", &back);
        run("sshfs", shell, command);
        assert_content(&source, &far.join("moved"));
        assert_content(&source, &back);
    }
}

#[test]
fn borg_backs_up_and_restores() {
    let Some(wan) = Wan::with("borg", 8) else { return };
    let source = wan.source();
    for shell in Shell::BOTH {
        let (far, back) = (wan.place("far", shell), wan.place("back", shell));
        let repository = format!("ssh://site1{}/repository", text(&far));
        let borg = |what: &str, dir: &Path, words: &[&str]| {
            let mut command = wan.near("borg");
            command.env("BORG_RSH", wan.program(shell)).env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes");
            command.current_dir(dir).args(words);
            run(what, shell, command);
        };
        borg("borg init", &back, &["init", "-e", "none", &repository]);
        borg("borg create", &source, &["create", &format!("{repository}::one"), "."]);
        borg("borg extract", &back, &["extract", &format!("{repository}::one")]);
        assert_content(&source, &back);
    }
}

#[test]
fn restic_backs_up_and_restores() {
    let Some(wan) = Wan::with("restic", 9) else { return };
    let source = wan.source();
    for shell in Shell::BOTH {
        let (far, back) = (wan.place("far", shell), wan.place("back", shell));
        let repository = format!("sftp:site1:{}/repository", text(&far));
        let restic = |what: &str, words: &[&str]| {
            let mut command = wan.near("restic");
            let shell_command = format!("sftp.command={} site1 -s sftp", wan.program(shell).display());
            command.args(["-q", "-r", &repository, "-o", &shell_command]).args(words).env("RESTIC_PASSWORD", "word");
            command.current_dir(&source);
            run(what, shell, command);
        };
        restic("restic init", &["init"]);
        restic("restic backup", &["backup", "."]);
        restic("restic restore", &["restore", "latest", "--target", &text(&back)]);
        assert_content(&source, &back);
    }
}

#[test]
fn unison_brings_two_trees_together() {
    // It knows neither --version with two dashes nor any other option that does nothing.
    let Some(wan) = Wan::with("unison", 10) else { return };
    let source = wan.source();
    for shell in Shell::BOTH {
        let (far, near) = (wan.place("far", shell), wan.place("near", shell));
        fs::write(far.join("theirs"), "of the far side").expect("a file");
        fs::copy(source.join("large"), near.join("ours")).expect("a copy");
        let mut command = wan.near("unison");
        command.env("UNISON", wan.place("unison", shell)).args(["-batch", "-auto", "-ui", "text", "-sshcmd"]);
        command.arg(wan.program(shell)).arg(&near).arg(format!("ssh://site1/{}", text(&far)));
        run("unison", shell, command);
        assert_content(&near, &far);
        assert!(near.join("theirs").exists() && tree::hash(&far.join("ours")) == tree::hash(&source.join("large")));
    }
}

#[test]
fn rdiff_backup_keeps_increments() {
    let Some(wan) = Wan::with("rdiff-backup", 11) else { return };
    let source = wan.source();
    for shell in Shell::BOTH {
        let (far, back) = (wan.place("far", shell), wan.place("back", shell));
        let backup = |what: &str, words: &[&str]| {
            let mut command = wan.near("rdiff-backup");
            let schema = format!("{} {{h}} rdiff-backup server", wan.program(shell).display());
            command.args(["--remote-schema", &schema]).args(words);
            run(what, shell, command);
        };
        let there = format!("site1::{}/backup", text(&far));
        backup("rdiff-backup backup", &["backup", &text(&source), &there]);
        backup("rdiff-backup restore", &["restore", &there, &text(&back.join("source"))]);
        assert_content(&source, &back.join("source"));
    }
}

#[test]
fn rclone_takes_it_where_it_takes_another_ssh() {
    // What `make setup` has put beside the builds, or that of the PATH.
    let own = haul_binary().ancestors().nth(2).expect("the directory of builds").join("tools/bin/rclone");
    let program = if own.exists() { text(&own) } else { "rclone".to_owned() };
    let Some(wan) = Wan::with(&program, 12) else { return };
    let flags = Command::new(&program).args(["help", "flags"]).output().expect("rclone's help");
    if !String::from_utf8_lossy(&flags.stdout).contains("--sftp-ssh") {
        return skip::skip("this rclone has no --sftp-ssh, as 1.64 has (make setup)");
    }
    let source = wan.source();
    for shell in Shell::BOTH {
        let (far, back) = (wan.place("far", shell), wan.place("back", shell));
        let rclone = |what: &str, from: &str, to: &str| {
            let mut command = wan.near(&program);
            // Without the hash that it would have from the far side of every file, by a command of its own, which is a login each. What arrives is compared below.
            command.args(["copy", "--sftp-disable-hashcheck", "--sftp-ssh", &format!("{} site1", wan.program(shell).display())]);
            command.args([from, to]);
            run(what, shell, command);
        };
        rclone("rclone up", &text(&source), &format!(":sftp:{}", text(&far)));
        assert_content(&source, &far);
        rclone("rclone down", &format!(":sftp:{}", text(&far)), &text(&back));
        assert_content(&source, &back);
    }
}

/// As `zfs send | ssh host zfs receive` has it: one program's output is another one's input over there.
#[test]
fn a_stream_goes_into_a_command() {
    let Some(wan) = Wan::open(13) else { return };
    let source = wan.source();
    for shell in Shell::BOTH {
        let far = wan.place("far", shell);
        let there = match shell {
            Shell::Ssh => format!("{} site1", wan.program(shell).display()),
            Shell::Haul => format!("{} pipe -F {} site1 --", haul_binary().display(), wan.sites.ssh_config().display()),
        };
        let mut command = wan.near("sh");
        command.args(["-c", &format!("tar -cC {} . | {there} tar -xC {}", text(&source), text(&far))]);
        run("tar stream (haul pipe)", shell, command);
        assert_content(&source, &far);
    }
}

#[test]
fn ansible_s_ssh_plug_in_takes_it() {
    let Some(wan) = Wan::with("ansible", 14) else { return };
    let source = wan.source();
    for shell in Shell::BOTH {
        let (far, back) = (wan.place("far", shell), wan.place("back", shell));
        let inventory = back.join("inventory");
        fs::write(&inventory, format!("site1 ansible_ssh_executable={}\n", wan.program(shell).display())).expect("an inventory");
        for (piped, module, words) in [
            ("smart", "command", "echo said".to_owned()),
            // Of its ways to move files this is the one that needs nothing but the remote shell.
            ("piped", "copy", format!("src={} dest={}/large", source.join("large").display(), text(&far))),
            ("piped", "fetch", format!("src={}/large dest={}/fetched flat=yes", text(&far), text(&back))),
        ] {
            let mut command = wan.near("ansible");
            command.env("ANSIBLE_SSH_TRANSFER_METHOD", piped).env("ANSIBLE_PYTHON_INTERPRETER", "/usr/bin/python3");
            command.env("ANSIBLE_LOCAL_TEMP", wan.place("ansible", shell)).arg("-i").arg(&inventory);
            command.args(["site1", "-m", module, "-a", &words]);
            let finished = run(&format!("ansible {module}"), shell, command);
            assert!(module != "command" || String::from_utf8_lossy(&finished.stdout).contains("said"), "{finished}");
        }
        assert_eq!(tree::hash(&back.join("fetched")), tree::hash(&source.join("large")));
    }
}

/// The client is docker's own; what answers behind `docker system dial-stdio` speaks as much of its HTTP as `docker ps`, `load` and `save` ask for, and gives an image that it got back once.
#[test]
fn docker_s_client_takes_the_ssh_of_the_path() {
    if !is_installed("docker") {
        return skip::skip_in_ci_too("docker's client is not installed, and Debian 12 has no package of it alone");
    }
    let Some(wan) = Wan::open(15) else { return };
    let daemon = r#"
import http.server, json, socketserver, sys
class Daemon(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    image = b""
    def answer(self, body):
        self.send_response(200)
        self.send_header("Api-Version", "1.41"); self.send_header("Ostype", "linux")
        self.send_header("Content-Type", "application/json"); self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(body)
    def do_HEAD(self): self.answer(b"OK")
    def do_GET(self):
        if self.path.endswith("/_ping"): return self.answer(b"OK")
        if self.path.endswith("/images/get?names=image-over-there"):
            image, Daemon.image = Daemon.image, b""
            return self.answer(image)
        box = {"Id": "cafe" * 16, "Image": "image-over-there", "Command": "true", "Created": 1, "Names": ["/box"], "State": "running", "Status": "Up"}
        self.answer(json.dumps([box]).encode())
    def do_POST(self):
        # What is loaded comes in chunks: its size in hexadecimal digits, and an empty line behind each.
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size)); self.rfile.readline()
        self.rfile.readline()
        Daemon.image = b"".join(chunks)
        self.answer(b'{"stream":"Loaded image: image-over-there\\n"}\n')
    def log_message(self, *words): pass
    def address_string(self): return "client"
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer): daemon_threads = True
Server(sys.argv[1], Daemon).serve_forever()
"#;
    let scratch = wan.sites.scratch();
    let socket = scratch.join("docker.sock");
    let mut command = wan.sites.site(1).command("python3");
    command.args(["-c", daemon]).arg(&socket);
    let _daemon = Running::start(command);
    assert!(eventually(PATIENCE, || socket.exists()), "the stand-in for a daemon does not start");
    // Those who log in find docker there, as where it is installed for all.
    let docker = ["/usr/local/bin/docker", "/usr/bin/docker"].into_iter().find(|path| Path::new(path).exists()).expect("docker");
    std::os::unix::fs::symlink(docker, scratch.join("bin/docker")).expect("a link");
    let home = scratch.join("home/.ssh");
    fs::create_dir_all(&home).expect("a directory");
    let image = wan.source().join("large");
    for shell in Shell::BOTH {
        // docker looks for `ssh` on the PATH and gives it no configuration: this one has it, and becomes whatever is meant.
        let bin = wan.place("path", shell);
        std::os::unix::fs::symlink(wan.program(shell), bin.join("ssh")).expect("a link");
        let over = |what: &str, words: &[&str]| {
            let mut command = wan.near(docker);
            command.env("PATH", format!("{}:/usr/bin:/bin", text(&bin)));
            command.args(["-H", &format!("ssh://site1{}", text(&socket))]).args(words);
            run(what, shell, command)
        };
        let finished = over("docker ps", &["ps", "--format", "{{.Image}}"]);
        assert_eq!(String::from_utf8_lossy(&finished.stdout), "image-over-there\n", "{finished}");
        let finished = over("docker load", &["load", "-i", &text(&image)]);
        assert_eq!(String::from_utf8_lossy(&finished.stdout), "Loaded image: image-over-there\n", "{finished}");
        let back = wan.place("back", shell).join("image");
        over("docker save", &["save", "-o", &text(&back), "image-over-there"]);
        assert_eq!(tree::hash(&back), tree::hash(&image));
    }
}

#[test]
fn a_link_called_ssh_is_haul_rsh_and_finds_the_real_one() {
    let Some(wan) = Wan::open(16) else { return };
    let bin = wan.place("path", Shell::Haul);
    std::os::unix::fs::symlink(haul_binary(), bin.join("ssh")).expect("a link");
    let config = wan.sites.ssh_config();
    let mut command = wan.near("ssh");
    command.env("PATH", format!("{}:/usr/bin:/bin", text(&bin))).arg("-F").arg(&config);
    command.args(["site1", "-T", "tr '\\0' ' ' </proc/$PPID/cmdline"]);
    let finished = Running::start(command).wait(PATIENCE).expect(0);
    // The command's parent is haul, not sshd.
    assert!(String::from_utf8_lossy(&finished.stdout).contains("haul remote"), "{finished}");
    // A script under that name finds itself, once.
    let circle = wan.place("circle", Shell::Haul).join("ssh");
    fs::write(&circle, format!("#!/bin/sh\nexec {} rsh -F {} \"$@\"\n", haul_binary().display(), config.display()))
        .expect("a script");
    chmod(&circle, Mode::from_raw_mode(0o755)).expect("its mode");
    for words in [&["site1", "true"][..], &["-G", "site1"]] {
        let mut command = wan.near("ssh");
        let path = format!("{}:/usr/bin:/bin", circle.parent().expect("its directory").display());
        command.env("PATH", path).args(words);
        let finished = Running::start(command).wait(PATIENCE).expect(255);
        assert!(finished.stderr.contains("leads back to haul rsh"), "{finished}");
    }
    // What is about ssh alone goes to ssh.
    let explained = Running::start(wan.rsh(&["-G", "-p", "77", "site1"])).wait(PATIENCE).expect(0);
    assert!(String::from_utf8_lossy(&explained.stdout).contains("port 77"), "{explained}");
}

#[test]
fn ports_stays_and_backgrounds() {
    let Some(wan) = Wan::open(17) else { return };
    // -W: a TCP port as the far side sees it, half-closed both ways.
    let server = wan.sites.site(1).run(|| TcpListener::bind("127.0.0.1:0")).expect("a port");
    let port = server.local_addr().expect("its address").port();
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().expect("a client");
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("all of it");
        all.reverse();
        stream.write_all(&all).expect("an answer");
    });
    let large = wan.source().join("large");
    let input = File::open(&large).expect("the file");
    let forward = wan.rsh(&["-W", &format!("127.0.0.1:{port}"), "site1"]);
    let finished = Running::start_with(forward, input.into()).wait(PATIENCE).expect(0);
    let mut expected = fs::read(&large).expect("the file");
    expected.reverse();
    assert!(finished.stdout == expected, "{} bytes came back", finished.stdout.len());
    echo.join().expect("no panic");
    let nobody = Running::start(wan.rsh(&["-W", "127.0.0.1:1", "site1"])).wait(PATIENCE).expect(255);
    assert!(nobody.stderr.contains("127.0.0.1:1: Connection refused"), "{nobody}");

    // -N: nothing runs, and nothing ends until somebody ends it.
    let mut stays = Running::start(wan.rsh(&["-N", "site1"]));
    let there = || !wan.sites.site(1).processes(&["haul remote"]).is_empty();
    assert!(eventually(PATIENCE, there), "nobody logs in");
    e2e::pause(Duration::from_secs(2));
    assert!(stays.runs());
    stays.signal(Signal::TERM);
    stays.wait(PATIENCE);
    assert!(eventually(PATIENCE, || !there()), "the far side stays");

    // -f: back as soon as the login is over, while the command goes on.
    let done = wan.place("done", Shell::Haul).join("file");
    let line = format!("sleep 3; echo over >{}", text(&done));
    let mut command = wan.rsh(&["-f", "site1", &line]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("haul").success());
    assert!(!done.exists(), "it waited for the command");
    assert!(eventually(PATIENCE, || done.exists()), "the command was lost");
    let refused = Running::start(wan.rsh(&["-f", "nobody.invalid", "true"])).wait(PATIENCE).expect(255);
    assert!(refused.stderr.contains("ssh could not log in"), "{refused}");
}

#[test]
fn words_statuses_and_streams_are_ssh_s() {
    let Some(wan) = Wan::open(18) else { return };
    let shell = |words: &[&str], input: &str| {
        let file = wan.sites.scratch().join("input");
        fs::write(&file, input).expect("a file");
        Running::start_with(wan.rsh(words), File::open(&file).expect("it").into()).wait(PATIENCE)
    };
    // Standard error is binary-clean, apart, and the status comes back.
    let finished = shell(&["site1", "cat; printf 'a\\033[1mb\\r\\n' >&2; exit 9"], "in").expect(9);
    assert_eq!((finished.stdout.as_slice(), finished.stderr.as_str()), (&b"in"[..], "a\u{1b}[1mb\r\n"));
    // Without a command: the login shell reads its lines from standard input.
    assert_eq!(shell(&["-T", "site1"], "echo one\nexit 4\n").expect(4).stdout, b"one\n");
    for (words, says) in [
        (&["-A", "site1", "true"][..], "does not forward agents"),
        (&["-L", "1:localhost:2", "site1"], "haul proxy"),
        (&["-s", "site1", "dance"], "the subsystem dance is not known"),
        (&["-o", "RemoteForward=1", "site1", "true"], "haul proxy"),
        (&[], "no host is named"),
        (&["--pigeon", "site1", "true"], "unexpected argument"),
    ] {
        let refused = shell(words, "").expect(255);
        assert!(refused.stderr.contains(says), "{refused}");
    }
    // -E takes the errors away; SIGINT that was ignored stays ignored, as borg wants it.
    let log = wan.sites.scratch().join("log");
    let quiet = shell(&["-E", &text(&log), "site1", "echo lost >&2"], "").expect(0);
    assert_eq!((quiet.stderr.as_str(), fs::read_to_string(&log).expect("the log").as_str()), ("", "lost\n"));
    let mut command = wan.near("sh");
    let line = format!("trap '' INT; exec {} site1 'sleep 4; echo whole'", wan.program(Shell::Haul).display());
    let running = Running::start({
        command.args(["-c", &line]);
        command
    });
    assert!(eventually(PATIENCE, || !wan.sites.site(1).processes(&["sleep 4"]).is_empty()), "the command does not start");
    running.signal(Signal::INT);
    assert_eq!(running.wait(PATIENCE).expect(0).stdout, b"whole\n");
}
