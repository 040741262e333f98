//! An sshd that only its own clients know: keys made for one measurement, and both configurations, in one directory.

/// What is to be there.
pub struct SshSetup<'a> {
    /// Gets `host_key`, `user_key`, `sshd_config`, `ssh_config` and `known_hosts`.
    pub dir: &'a str,
    /// Where sshd listens.
    pub port: u16,
    /// The server's name in `known_hosts`.
    pub known_as: &'a str,
    /// Further lines of `sshd_config`.
    pub server: &'a [String],
    /// Hosts of `ssh_config`, each with lines of its own.
    pub client: &'a [(&'a str, String)],
}

impl SshSetup<'_> {
    /// Lines of a shell that make it.
    pub fn script(&self) -> String {
        let Self { dir, port, known_as, .. } = self;
        let server = self.server.join("\n");
        let hosts: Vec<String> = self.client.iter().map(|(host, lines)| format!("Host {host}\n{lines}\n")).collect();
        let hosts = hosts.concat();
        format!(
            "cd {dir}
ssh-keygen -q -t ed25519 -N '' -f host_key
ssh-keygen -q -t ed25519 -N '' -f user_key
mkdir -p /run/sshd
cat >sshd_config <<CONFIG
Port {port}
HostKey {dir}/host_key
AuthorizedKeysFile {dir}/user_key.pub
StrictModes no
PidFile none
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
UseDNS no
Subsystem sftp internal-sftp
{server}
CONFIG
echo \"{known_as} $(cat host_key.pub)\" >known_hosts
cat >ssh_config <<CONFIG
{hosts}Host *
Port {port}
User $(id -un)
IdentityFile {dir}/user_key
IdentitiesOnly yes
UserKnownHostsFile {dir}/known_hosts
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
BatchMode yes
ControlPath none
Compression no
CONFIG
"
        )
    }
}
