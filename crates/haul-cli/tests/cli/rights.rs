//! What a key may do: rights in the line of `authorized_keys`, and whether that file can be believed.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use crate::support::{Bench, Daemon, Held, Run, noise, says};

/// A daemon with the roots `pub` (to read), `in` and `other` (to write), a file in each, and a client that may use all of it.
fn pair() -> (Bench, Bench, Daemon) {
    let (server, client) = (Bench::new(), Bench::new());
    let roots = [("pub", ""), ("in", ":rw"), ("other", ":rw")].map(|(name, how)| {
        server.file(&format!("{name}/file"), 1000);
        format!("{name}={}{how}", server.path(name).display())
    });
    let daemon = Daemon::start(&server, &client, &roots);
    client.file("mine", 1000);
    (server, client, daemon)
}

fn cp(client: &Bench, args: &[&str]) -> Run {
    client.haul([&["cp"], args].concat())
}

/// Authorises the client anew, for this.
pub fn authorize(server: &Bench, client: &Bench, options: &[&str]) -> String {
    let key = client.key();
    server.haul([&["key", "authorize", &key, "--name", "client"], options].concat()).expect(0).text()
}

fn keys_file(server: &Bench) -> std::path::PathBuf {
    server.path("config/haul/authorized_keys")
}

#[test]
fn a_key_sees_its_roots_and_no_others() {
    let (server, client, daemon) = pair();
    let said = authorize(&server, &client, &["--root", "pub", "--root", "in"]);
    assert!(said.contains("copies of pub, in"), "{said}");
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(0);
    cp(&client, &["mine", &daemon.url("in/")]).expect(0);
    // As one that does not exist: its name is not told.
    let hidden = cp(&client, &[&daemon.url("other/file"), "."]).expect(2);
    let missing = cp(&client, &[&daemon.url("missing/file"), "."]).expect(2);
    assert_eq!(hidden.stderr.replace("other", "missing"), missing.stderr);
    cp(&client, &["mine", &daemon.url("other/")]).expect(2);
    assert!(!server.path("other/mine").exists());
    // Roots are about copies: nothing else is allowed beside them.
    client.haul(["perf", "-t", "1", &daemon.url("")]).expect(2).says(&["not authorised for measuring"]);
}

#[test]
fn a_key_that_may_only_read_writes_nowhere() {
    let (server, client, daemon) = pair();
    authorize(&server, &client, &["--read-only"]);
    cp(&client, &[&daemon.url("in/file"), "."]).expect(0);
    cp(&client, &["mine", &daemon.url("in/")]).expect(2).says(&["read-only"]);
    assert!(!server.path("in/mine").exists());
}

#[test]
fn a_key_for_measuring_copies_nothing() {
    let (server, client, daemon) = pair();
    authorize(&server, &client, &["--only", "perf"]);
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(2).says(&["not authorised for copies", "haul key list"]);
    client.haul(["perf", "-t", "1", &daemon.url("")]).expect(0);
    // A pipe takes the same keys: this one it does not take.
    authorize(&server, &client, &["--only", "cp,perf"]);
    daemon.logs("not authorised for this");
}

#[test]
fn where_from_and_until_when() {
    let (server, client, daemon) = pair();
    authorize(&server, &client, &["--from", "192.0.2.0/24"]);
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(2).says(&["it may not come from 127.0.0.1"]);
    authorize(&server, &client, &["--from", "192.0.2.0/24", "--from", "127.0.0.0/8"]);
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(0);
    authorize(&server, &client, &["--expires", "2020-02-29"]);
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(2).says(&["its authorisation ended at 2020-02-29T00:00:00Z"]);
    authorize(&server, &client, &["--expires", "2999-01-01"]);
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(0);
}

#[test]
fn a_line_that_is_not_understood_lets_nobody_in_and_is_named() {
    let (server, client, daemon) = pair();
    let key = client.key();
    // A later version's option, a slip of the pen: both may have been meant to confine.
    fs::write(keys_file(&server), format!("# keys\nroot=pub,frobnicate {key} client\n{key}\n")).unwrap();
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(2).says(&["not authorised there"]);
    daemon.logs("line=2");
    let list = server.haul(["key", "list"]).expect(1).text();
    assert!(
        list.contains("refused     line 2 of ") && list.contains("`frobnicate`") && list.contains("refused     line 3 of "),
        "{list}"
    );
}

#[test]
fn rights_are_listed_in_words_and_revoked_by_name() {
    let (server, client, daemon) = pair();
    authorize(&server, &client, &["--root", "pub", "--read-only", "--from", "127.0.0.1", "--max-rate", "1G"]);
    let list = server.haul(["key", "list"]).expect(0).text();
    assert!(list.contains("client  copies of pub, read only; from 127.0.0.1; at 1.00 Gbit/s at most\n"), "{list}");
    // A new name widens nothing.
    server.haul(["key", "authorize", &client.key(), "--name", "her"]).expect(0);
    assert!(
        fs::read_to_string(keys_file(&server))
            .unwrap()
            .starts_with("root=pub,ro,from=127.0.0.1,max-rate=1000000000bit/s SHA256:")
    );
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(0);
    server.haul(["key", "revoke", "her"]).expect(0);
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(2).says(&["not authorised"]);
    server.haul(["key", "revoke", "her"]).expect(2).says(&["neither an authorised key nor a trusted host"]);
}

#[test]
fn files_that_others_could_have_written_are_refused() {
    let (server, client, daemon) = pair();
    let file = keys_file(&server);
    let set = |mode| fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    set(0o666);
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(2).says(&["not authorised there"]);
    daemon.logs("others may write to it (mode 0666)");
    let chmod = format!("hint: chmod go-w {}", file.display());
    server.haul(["key", "list"]).expect(2).says(&["error: ", "others may write to it", &chmod, "--no-strict-modes"]);
    server.haul(["key", "--no-strict-modes", "list"]).expect(0);
    set(0o600);
    cp(&client, &[&daemon.url("pub/file"), "."]).expect(0);
    // The client's side, and the directory.
    let directory = client.path("config/haul");
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    let run = cp(&client, &[&daemon.url("pub/file"), "."]).expect(2);
    run.says(&["others may write to it (mode 0777)", &format!("chmod go-w {}", directory.display())]);
    client.haul(["cp", "--no-strict-modes", &daemon.url("pub/file"), "."]).expect(0);
}

#[test]
fn a_pipe_takes_only_keys_that_are_for_pipes() {
    let (server, client) = (Bench::new(), Bench::new());
    let listen = |options: &[&str]| {
        authorize(&server, &client, options);
        let mut command = server.command(["pipe", "-l", "-d", "-s", "127.0.0.1"]);
        let mut child = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap())).map_while(Result::ok);
        let line = lines.next().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let key = words[words.iter().position(|word| *word == "--key").unwrap() + 1];
        let run = client.haul_with_input(["pipe", "--key", key, "127.0.0.1", words.last().unwrap()], b"hello");
        std::thread::spawn(move || lines.for_each(drop));
        (run, child)
    };
    let (run, mut child) = listen(&["--only", "cp,perf"]);
    run.expect(2).says(&["not authorised for this pipe"]);
    let _ = child.kill();
    let _ = child.wait();
    let (run, child) = listen(&["--only", "pipe"]);
    run.expect(0);
    assert_eq!(child.wait_with_output().unwrap().stdout, b"hello");
}

/// A rate, and what it carries in 3 s.
const RATE: &str = "16M";
const BYTES: usize = 6_000_000;
/// The rate bounds headers too, and a pacer may begin with a burst: less than 3 s, and far more than what has no bound takes.
const AT_LEAST: Duration = Duration::from_millis(2700);

/// How long something takes.
#[expect(clippy::disallowed_methods, reason = "a rate of real sockets takes real time")]
fn time<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = what();
    (done, begun.elapsed())
}

#[test]
fn a_key_gets_no_more_than_its_rate() {
    let (server, client, daemon) = pair();
    let original = fs::read(server.file("pub/large", BYTES)).unwrap();
    let fetch = || {
        let (run, took) = time(|| cp(&client, &["--json", &daemon.url("pub/large"), "large"]));
        run.expect(0);
        assert!(fs::read(client.path("large")).unwrap() == original);
        took
    };
    // What the client asks for changes nothing: the lower rate counts.
    authorize(&server, &client, &["--max-rate", RATE]);
    let bounded = fetch();
    assert!(bounded >= AT_LEAST, "{BYTES} bytes at {RATE}bit/s in {bounded:?}");
    let (run, took) = time(|| cp(&client, &["-l", "1G", &daemon.url("pub/large"), "large"]));
    run.expect(0);
    assert!(took >= AT_LEAST, "with a rate of its own in {took:?}");
    // The rate of the key, not the path's.
    authorize(&server, &client, &["--root", "pub"]);
    let free = fetch();
    assert!(free < bounded, "{free:?} without a bound, {bounded:?} with one");
    // Measuring is bounded by the same line.
    authorize(&server, &client, &["--only", "perf", "--max-rate", RATE]);
    let bytes = BYTES.to_string();
    let (run, took) = time(|| client.haul(["perf", "-R", "-n", &bytes, &daemon.url("")]));
    run.expect(0);
    assert!(took >= AT_LEAST, "{BYTES} bytes measured in {took:?}");
}

/// A server of TCP that says this to everyone.
fn speaking(words: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|mut client| drop(client.write_all(&words))));
    address
}

/// What a server of TCP says; nothing where the connection is reset.
fn heard(port: SocketAddr) -> Vec<u8> {
    let mut said = Vec::new();
    let _ = TcpStream::connect(port).unwrap().read_to_end(&mut said);
    said
}

/// `haul proxy serve` for two targets, and what a client reaches through it: the proxy's own first target, and each of them by its address.
struct Proxied {
    server: Bench,
    client: Bench,
    targets: [String; 2],
    address: String,
    key: String,
    _serving: Held,
}

impl Proxied {
    fn start(words: [Vec<u8>; 2]) -> Self {
        let (server, client) = (Bench::new(), Bench::new());
        let targets = words.map(|words| speaking(words).to_string());
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (port, key) = (address.port().to_string(), server.key());
        let serve = ["proxy", "serve", "-B", "127.0.0.1", "-p", &port, "--to", &targets[0], "--allow", &targets[1]];
        let (serving, _) = says(&server, &serve, "listening");
        Self { server, client, targets, address: address.to_string(), key, _serving: serving }
    }

    /// What is heard at the three ports of a client whose key has these rights.
    fn reached(&self, rights: &[&str]) -> [Vec<u8>; 3] {
        authorize(&self.server, &self.client, rights);
        let ports = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
        let [first, one, other] = ports.map(|port| port.to_string());
        let (one, other) = (format!("{one}:{}", self.targets[0]), format!("{other}:{}", self.targets[1]));
        let connect = ["proxy", "connect", &self.address, "--key", &self.key, "--listen", &first, "-L", &one, "-L", &other];
        let (_connected, _log) = says(&self.client, &connect, "connected");
        ports.map(heard)
    }
}

#[test]
fn a_key_for_one_target_reaches_no_other_through_a_proxy() {
    let proxied = Proxied::start([b"one".to_vec(), b"other".to_vec()]);
    let [one, other] = [&*proxied.targets[0], &*proxied.targets[1]];
    let none: &[u8] = b"";
    assert_eq!(proxied.reached(&[]), [&b"one"[..], b"one", b"other"]);
    // The first target of the proxy, which names none, is no way around it.
    assert_eq!(proxied.reached(&["--proxy", other]), [none, none, b"other"]);
    assert_eq!(proxied.reached(&["--proxy", one]), [&b"one"[..], b"one", none]);
    // What the proxy itself does not allow no key allows.
    let foreign = speaking(b"foreign".to_vec()).to_string();
    assert_eq!(proxied.reached(&["--proxy", &foreign]), [none; 3]);
    // A key for something else is not let in.
    authorize(&proxied.server, &proxied.client, &["--only", "cp,perf,pipe"]);
    let connect = ["proxy", "connect", &proxied.address, "--key", &proxied.key, "--listen", "127.0.0.1:0"];
    says(&proxied.client, &connect, "not authorised for");
}

#[test]
fn a_key_gets_no_more_than_its_rate_through_a_proxy() {
    let large = noise(BYTES);
    let proxied = Proxied::start([large.clone(), Vec::new()]);
    let ([first, second, _], took) = time(|| proxied.reached(&["--max-rate", RATE]));
    assert!(first == large && second == large);
    assert!(took >= 2 * AT_LEAST, "twice {BYTES} bytes at {RATE}bit/s in {took:?}");
}
