//! Peers that mean harm: a server that names things outside the destination, a client that reaches outside an exported root.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use e2e::tree::{self, Exactness};
use e2e::{Daemon, Finished, Lab, Random, key};
use haul::{Connection, Endpoint, Identity, PeerTrust, ServerConfig};
use haul_files::WirePath;
use haul_files::block::{self, Piece};
use haul_files::protocol::{self, Entry, FileEnd, Hello, Kind, Message, ROOT, Stamp};

const EVIL: &[u8] = b"evil content";
const PATIENCE: Duration = Duration::from_secs(30);

/// What a hostile server sends after its hello.
#[derive(Default)]
struct Script {
    entries: Vec<Entry>,
    pieces: Vec<Piece>,
    ends: Vec<FileEnd>,
}

impl Script {
    fn entry(mut self, id: u64, parent: u64, name: &[u8], kind: Kind) -> Self {
        let mtime = Stamp { secs: 1_600_000_000, nanos: 0 };
        self.entries.push(Entry { id, parent, name: WirePath(name.to_vec()), mode: 0o777, mtime, uid: 0, gid: 0, kind });
        self
    }

    /// A file with its content in one piece.
    fn file(self, id: u64, parent: u64, name: &[u8]) -> Self {
        self.announced(id, parent, name, EVIL.len() as u64).piece(id, 0, true)
    }

    /// A file whose content is still to come.
    fn announced(self, id: u64, parent: u64, name: &[u8], size: u64) -> Self {
        self.entry(id, parent, name, Kind::File { size, data: size, version: 1, linked: false, replaces: None })
    }

    fn directory(self, id: u64, parent: u64, name: &[u8]) -> Self {
        self.entry(id, parent, name, Kind::Directory)
    }

    fn link(self, id: u64, parent: u64, name: &[u8], target: &Path) -> Self {
        let target = WirePath::from(target);
        self.entry(id, parent, name, Kind::Symlink { target })
    }

    fn piece(mut self, file: u64, offset: u64, whole: bool) -> Self {
        let hash = block::hash(EVIL, true);
        self.pieces.push(Piece { file, offset, length: EVIL.len() as u32, whole, hash });
        self
    }
}

/// Plays a script to one client.
struct HostileServer {
    endpoint: Endpoint,
    thread: Option<thread::JoinHandle<()>>,
}

impl HostileServer {
    fn start(lab: &Lab, script: Script) -> Self {
        let identity = Identity::generate();
        let fingerprint = identity.public_key().fingerprint().to_string();
        let config = ServerConfig { protocols: vec![b"haul-cp/1".to_vec()], ..ServerConfig::new(identity, PeerTrust::Anyone) };
        let address = format!("{}:7700", lab.far.address).parse().expect("an address");
        let endpoint = lab.far.run(|| Endpoint::listen(address, config)).expect("listening");
        key(lab, &lab.near, &["trust", &lab.far.address, &fingerprint, "--replace"]);
        let accepting = endpoint.clone();
        let play = move || {
            if let Ok(Some(connection)) = accepting.accept_timeout(PATIENCE) {
                // The client may hang up at any point: that is what it is for.
                let _ = perform(&connection, &script);
                connection.closed();
            }
        };
        Self { endpoint, thread: Some(thread::spawn(play)) }
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.endpoint.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn perform(connection: &Connection, script: &Script) -> io::Result<()> {
    let (mut send, receive) = connection.accept_bi().map_err(io::Error::other)?;
    let mut receive = BufReader::new(receive);
    receive.read_until(b'\n', &mut Vec::new())?;
    send.write_all(b"{\"served\":{\"version\":\"0\"}}\n")?;
    let mut frames = Vec::new();
    let mut say = |message: &Message| protocol::encode(message, &mut frames).map_err(io::Error::other);
    say(&Message::Hello(Hello::ours()))?;
    say(&Message::Entries(script.entries.clone()))?;
    say(&Message::ScanDone)?;
    for end in &script.ends {
        say(&Message::FileEnd(end.clone()))?;
    }
    send.write_all(&frames)?;
    // What the client asks for does not matter.
    thread::spawn(move || io::copy(&mut receive, &mut io::sink()));
    let blocks = connection.open_blocks().map_err(io::Error::other)?;
    for piece in &script.pieces {
        let mut content = EVIL.to_vec();
        block::seal(&mut content, std::slice::from_ref(piece));
        blocks.send(content).map_err(io::Error::other)?;
    }
    blocks.finish().map_err(io::Error::other)?;
    frames_to(&mut send, &Message::AllSent(haul_files::Waits::default()))?;
    send.finish().map_err(io::Error::other)
}

fn frames_to(send: &mut impl Write, message: &Message) -> io::Result<()> {
    let mut frame = Vec::new();
    protocol::encode(message, &mut frame).map_err(io::Error::other)?;
    send.write_all(&frame)
}

/// Directories that a hostile peer wants to write to, and one where the copy belongs.
struct Grounds {
    outside: PathBuf,
    untouched: PathBuf,
    inside: PathBuf,
}

impl Grounds {
    fn lay_out(lab: &Lab) -> Self {
        let [outside, untouched, inside] = ["outside", "outside", "inside"].map(|name| lab.place(name));
        for place in [&outside, &untouched] {
            fs::write(place.join("precious"), "do not touch").expect("writing");
            fs::create_dir(place.join("dir")).expect("making a directory");
        }
        Self { outside, untouched, inside }
    }

    /// Panics if anything is outside that was not there, or is not what it was.
    #[track_caller]
    fn assert_untouched(&self, what: &str, finished: &Finished) {
        println!("{what}: exit status {:?}: {}", finished.code, finished.stderr.trim());
        tree::assert_same(&self.untouched, &self.outside, Exactness::Content);
        assert_eq!(tree::names(self.inside.parent().expect("a place has a parent")), ["inside"], "{what}");
        assert!(!finished.stderr.contains("panicked"), "{what}: {finished}");
        assert!(matches!(finished.code, Some(0..=2)), "{what}: {finished}");
    }
}

/// Copies from a server that plays `script`, and panics if anything comes to lie outside the destination.
#[track_caller]
fn attack(what: &str, script: impl FnOnce(Script, &Path) -> Script) -> Option<(Finished, Vec<String>)> {
    let lab = Lab::open()?;
    let grounds = Grounds::lay_out(&lab);
    let server = HostileServer::start(&lab, script(Script::default(), &grounds.outside));
    let url = format!("haul://{}/data/tree", lab.far.address);
    let finished = lab.run_cp([OsString::from("-rp"), url.into(), grounds.inside.clone().into()]);
    drop(server);
    grounds.assert_untouched(what, &finished);
    lab.assert_no_process_left(Duration::from_secs(5));
    Some((finished, tree::names(&grounds.inside)))
}

/// An attack that the client must name as one: it does not end with success.
#[track_caller]
fn attack_is_refused(what: &str, script: impl FnOnce(Script, &Path) -> Script) {
    let Some((finished, _)) = attack(what, script) else { return };
    assert!(matches!(finished.code, Some(1 | 2)), "{what}: {finished}");
    assert!(finished.stderr.contains("error"), "{what}: {finished}");
}

#[test]
fn a_server_that_behaves_is_copied_from() {
    let Some((finished, names)) = attack("no attack", |script, _| script.directory(1, ROOT, b"tree").file(2, 1, b"file")) else {
        return;
    };
    assert_eq!(finished.code, Some(0), "this must work for the attacks to mean anything: {finished}");
    assert_eq!(names, ["tree"]);
}

#[test]
fn names_that_are_paths_are_refused() {
    let names: [&[u8]; 10] =
        [b"../outside/evil", b"..", b".", b"/tmp/haul-e2e-evil", b"a/b", b"a/../../evil", b"", b"nul\0byte", b"/", &[b'x'; 300]];
    for name in names {
        let what = String::from_utf8_lossy(name).into_owned();
        attack_is_refused(&what, |script, _| script.directory(1, ROOT, b"tree").file(2, 1, name));
        assert!(!Path::new("/tmp/haul-e2e-evil").exists());
    }
}

#[test]
fn names_at_the_top_that_are_paths_are_refused() {
    for name in [&b"../evil"[..], b"..", b"/tmp/haul-e2e-evil", b"tree/../../evil"] {
        let what = String::from_utf8_lossy(name).into_owned();
        attack_is_refused(&what, |script, _| script.file(1, ROOT, name));
        attack_is_refused(&what, |script, _| script.directory(1, ROOT, name).file(2, 1, b"evil"));
    }
}

#[test]
fn a_link_is_not_a_way_out() {
    attack_is_refused("a file in a link", |script, outside| {
        script.directory(1, ROOT, b"tree").link(2, 1, b"out", outside).file(3, 2, b"evil")
    });
    attack("a directory of the name of a link", |script, outside| {
        script.directory(1, ROOT, b"tree").link(2, 1, b"out", outside).directory(3, 1, b"out").file(4, 3, b"evil")
    });
    attack("a link of the name of a directory", |script, outside| {
        script.directory(1, ROOT, b"tree").directory(2, 1, b"out").link(3, 1, b"out", outside).file(4, 2, b"evil")
    });
    attack("a file of the name of a link to a file", |script, outside| {
        script.directory(1, ROOT, b"tree").link(2, 1, b"precious", &outside.join("precious")).file(3, 1, b"precious")
    });
    attack("a link at the top, then a directory of its name", |script, outside| {
        script.link(1, ROOT, b"tree", outside).directory(2, ROOT, b"tree").file(3, 2, b"evil")
    });
}

#[test]
fn hard_links_to_what_was_not_copied_are_refused() {
    attack_is_refused("to nothing", |script, _| {
        script.directory(1, ROOT, b"tree").entry(2, 1, b"evil", Kind::HardLink { to: 99 })
    });
    attack_is_refused("to a link out", |script, outside| {
        script.directory(1, ROOT, b"tree").link(2, 1, b"out", &outside.join("precious")).entry(
            3,
            1,
            b"evil",
            Kind::HardLink { to: 2 },
        )
    });
}

#[test]
fn nonsense_ends_the_copy() {
    attack_is_refused("a parent that is not there", |script, _| script.file(1, 77, b"evil"));
    attack_is_refused("the same id twice", |script, _| script.file(1, ROOT, b"a").file(1, ROOT, b"b"));
    attack_is_refused("content of no file", |script, _| script.directory(1, ROOT, b"tree").piece(5, 0, true));
    for offset in [1 << 20, 1 << 40, i64::MAX as u64 - 100] {
        attack_is_refused("content beyond the end", |script, _| {
            script.announced(1, ROOT, b"tree", 1 << 20).piece(1, offset, false)
        });
    }
    attack_is_refused("less than was announced", |script, _| script.announced(1, ROOT, b"tree", 1 << 20).piece(1, 0, true));
    attack("more of a file that is complete", |script, _| script.file(1, ROOT, b"tree").piece(1, 1 << 40, false));
    attack_is_refused("a wrong hash", |mut script, _| {
        script = script.file(1, ROOT, b"tree");
        script.pieces[0].hash = [1; 32];
        script
    });
}

#[test]
fn nothing_outside_an_exported_root_can_be_reached() {
    let Some(lab) = Lab::open() else { return };
    let (root, secret, here) = (lab.place("root"), lab.place("secret"), lab.place("here"));
    fs::write(secret.join("file"), "secret").expect("writing");
    fs::write(root.join("public"), "public").expect("writing");
    symlink(&secret, root.join("way out")).expect("linking");
    symlink(secret.join("file"), root.join("link to file")).expect("linking");
    tree::write_random(&here.join("evil"), 1000, &mut Random::seeded(80));
    let daemon = Daemon::start(&lab, &root);
    let up = "../".repeat(12);
    let paths = [
        "way out/file".to_owned(),
        "link to file".to_owned(),
        "../../secret/file".to_owned(),
        format!("{up}etc/passwd"),
        "/etc/passwd".to_owned(),
    ];
    for path in &paths {
        let target = lab.place("target");
        let finished = lab.run_cp([OsString::from(daemon.url(path)), target.clone().into()]);
        assert!(matches!(finished.code, Some(1 | 2)), "{finished}");
        assert!(tree::names(&target).is_empty(), "{path}: {:?}", tree::names(&target));
    }
    for path in ["way out/evil", "../evil", "link to file", "../../secret/evil"] {
        let finished = lab.run_cp([OsString::from(here.join("evil")), daemon.url(path).into()]);
        assert!(path == "link to file" || matches!(finished.code, Some(1 | 2)), "{finished}");
    }
    assert_eq!(tree::names(&secret), ["file"]);
    assert_eq!(fs::read(secret.join("file")).expect("still there"), b"secret");
    assert_eq!(tree::names(root.parent().expect("a place has a parent")), ["root"]);
    daemon.stop();
}

#[test]
fn a_client_that_nobody_authorised_is_refused_and_told_why() {
    let Some(lab) = Lab::open() else { return };
    let (root, target) = (lab.place("root"), lab.place("target"));
    fs::write(root.join("public"), "public").expect("writing");
    let daemon = Daemon::start(&lab, &root);
    let ours = e2e::own_key(&lab, &lab.near);
    key(&lab, &lab.far, &["revoke", &ours]);
    let finished = lab.run_cp([OsString::from(daemon.url("public")), target.clone().into()]).expect(2);
    assert!(
        finished.stderr.contains("error:") && finished.stderr.contains("hint:") && finished.stderr.contains("authori"),
        "{finished}"
    );
    assert!(tree::names(&target).is_empty());
}

#[test]
fn a_daemon_whose_key_has_changed_is_refused() {
    let Some(lab) = Lab::open() else { return };
    let target = lab.place("target");
    let server = HostileServer::start(&lab, Script::default().file(1, ROOT, b"file"));
    let other = Identity::generate().public_key().fingerprint().to_string();
    key(&lab, &lab.near, &["trust", &lab.far.address, &other, "--replace"]);
    let url = OsString::from(format!("haul://{}/data/file", lab.far.address));
    let finished = lab.run_cp([url, target.clone().into()]).expect(2);
    assert!(finished.stderr.contains("error:") && finished.stderr.contains("hint:"), "{finished}");
    assert!(tree::names(&target).is_empty());
    drop(server);
}
