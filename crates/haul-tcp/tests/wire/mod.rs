//! Two network namespaces with a link between them.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Addresses of both ends, by family.
pub type Addresses = [[&'static str; 2]];

/// The names of the namespaces; in each, the link is `x`.
pub struct Wire {
    pub a: String,
    pub b: String,
}

impl Wire {
    pub fn lay(name: &str, addresses: &Addresses) -> Self {
        let [a, b] = ["a", "b"].map(|end| format!("haul-{name}-{end}{}", std::process::id()));
        let wire = Self { a, b };
        for name in [&wire.a, &wire.b] {
            ip(&["netns", "add", name]);
        }
        wire.join(addresses);
        wire
    }

    /// The link.
    pub fn join(&self, addresses: &Addresses) {
        ip(&["link", "add", "x", "netns", &self.a, "type", "veth", "peer", "name", "x", "netns", &self.b]);
        for (end, name) in [&self.a, &self.b].into_iter().enumerate() {
            for address in addresses {
                // Of an IPv6 address nobody asks first whether another one has it.
                let address: &[&str] = if address[end].contains(':') { &[address[end], "nodad"] } else { &[address[end]] };
                ip(&[&["-n", name, "address", "add"], address, &["dev", "x"]].concat());
            }
            ip(&["-n", name, "link", "set", "x", "up"]);
        }
    }

    pub fn cut(&self) {
        for name in [&self.a, &self.b] {
            // A test may have deleted one.
            told(&["netns", "delete", name]);
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.cut();
    }
}

/// Does something in a namespace, on a thread of its own.
pub fn inside<T: Send>(name: &str, act: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{name}")).expect("a namespace");
    thread::scope(|scope| {
        let enter = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("entered");
            act()
        };
        scope.spawn(enter).join().expect("done")
    })
}

/// What `ip` says.
pub fn told(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().expect("iproute2: `make setup` installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("iproute2: `make setup` installs it");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
