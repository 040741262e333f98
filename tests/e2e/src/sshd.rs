//! A real sshd on the far host, with keys and configuration of its own; nothing of the machine's ssh is touched.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::clock::eventually;
use crate::net::Host;

/// Where it listens.
pub const PORT: u16 = 2222;

/// Below a Gfarm's directory, what its clients need to know.
pub const GFARM_CONFIG: &str = "etc/gfarm2.conf";

/// Where the Gfarm of the far host is, whether it runs or not: those who log in have this in their environment. In memory, for it syncs what it is given, and a busy disk takes longer for that than Gfarm waits.
pub fn gfarm_dir(scratch: &Path) -> PathBuf {
    Path::new("/dev/shm").join(scratch.strip_prefix(std::env::temp_dir()).unwrap_or(scratch))
}

/// What this machine's owner has a login do is none of a test's: a login that is killed in the middle of it may leave a lock that all others wait for. The host has mounts of its own
/// (ip netns exec).
const WITHOUT_STARTUP_FILES: &str = r#"for file in ~root/.bashrc ~root/.bash_profile ~root/.profile; do
    [ -f "$file" ] && mount --bind /dev/null "$file"
done
exec "$0" "$@""#;

/// Has what follows run on a machine that calls itself so: the name of this one would be that of all hosts, and Open MPI tells them apart by it.
const ON_A_MACHINE_CALLED: &str = r#"echo "$0" >/proc/sys/kernel/hostname && exec "$@""#;

/// The daemon and what a client needs to log in.
#[derive(Debug)]
pub struct Sshd {
    child: Child,
    /// For `ssh -F`: knows the hosts `far` and `far6`.
    pub client_config: PathBuf,
}

impl Sshd {
    /// Starts it on `far`, with its files in `dir`. `path` is what its sessions find programs in, `name` what the machine calls itself in them, if that is not this one's name.
    pub fn start(far: &Host, dir: &Path, path: &str, name: Option<&str>) -> Self {
        let (host_key, user_key) = (dir.join("host_key"), dir.join("user_key"));
        make_key(&host_key);
        make_key(&user_key);
        fs::copy(user_key.with_extension("pub"), dir.join("authorized_keys")).expect("copying the public key");
        // The daemon's unprivileged half wants this directory, which the distribution's start script makes.
        fs::create_dir_all("/run/sshd").expect("/run/sshd");
        let config = dir.join("sshd_config");
        fs::write(&config, server_config(far, dir, path)).expect("writing sshd_config");
        let log = fs::File::create(dir.join("sshd.log")).expect("sshd.log");
        // sshd wants to be called by its full path: it calls itself again for each session.
        let mut command = match name {
            Some(name) => {
                let mut command = far.command("unshare");
                command.args(["--uts", "sh", "-c", ON_A_MACHINE_CALLED, name, "sh"]);
                command
            }
            None => far.command("sh"),
        };
        let child = command
            .args(["-c", WITHOUT_STARTUP_FILES, find_sshd(), "-D", "-e", "-f"])
            .arg(&config)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("starting sshd");
        let client_config = dir.join("ssh_config");
        fs::write(&client_config, client_configuration(far, dir)).expect("writing ssh_config");
        let sshd = Self { child, client_config };
        let log = || fs::read_to_string(dir.join("sshd.log")).unwrap_or_default();
        assert!(eventually(Duration::from_secs(10), || listens(far)), "sshd did not start: {}", log());
        sshd
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find_sshd() -> &'static str {
    let places = ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd", "/sbin/sshd"];
    places.into_iter().find(|place| Path::new(place).exists()).expect("sshd is installed (make setup)")
}

fn make_key(path: &Path) {
    let status = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "haul-e2e", "-f"]).arg(path).status();
    assert!(status.expect("ssh-keygen").success());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("mode of the key");
}

fn server_config(far: &Host, dir: &Path, path: &str) -> String {
    let gfarm = gfarm_dir(dir).join(GFARM_CONFIG);
    let dir = dir.display();
    format!(
        "Port {PORT}\nListenAddress {}\nListenAddress {}\nHostKey {dir}/host_key\nAuthorizedKeysFile {dir}/authorized_keys\n\
         StrictModes no\nPidFile none\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nUseDNS no\n\
         MaxStartups 100\nSubsystem sftp internal-sftp\nSetEnv PATH={path} XDG_CACHE_HOME={dir}/far-cache XDG_CONFIG_HOME={dir}/far-config XDG_STATE_HOME={dir}/far-state RUST_BACKTRACE=1 GFARM_CONFIG_FILE={gfarm}\n",
        far.address,
        far.address6,
        gfarm = gfarm.display()
    )
}

fn client_configuration(far: &Host, dir: &Path) -> String {
    let host_key = fs::read_to_string(dir.join("host_key.pub")).expect("the host key that was made above");
    let known = dir.join("known_hosts");
    let lines = [&far.address, &far.address6].map(|address| format!("[{address}]:{PORT} {host_key}"));
    fs::write(&known, lines.concat()).expect("writing known_hosts");
    let host = |name: &str, address: &str| {
        format!(
            "Host {name}\n HostName {address}\n Port {PORT}\n User root\n IdentityFile {dir}/user_key\n IdentitiesOnly yes\n \
             UserKnownHostsFile {known}\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n BatchMode yes\n ControlPath none\n",
            dir = dir.display(),
            known = known.display()
        )
    };
    host("far", &far.address) + &host("far6", &far.address6)
}

fn listens(far: &Host) -> bool {
    let output = far.command("ss").args(["-Hltn", &format!("sport = :{PORT}")]).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().count() >= 2)
}
