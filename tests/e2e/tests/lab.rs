//! The lab itself: what the other tests take for granted.

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use e2e::{Host, Lab, Running};

/// Whether a datagram from one host reaches the other.
fn datagram_arrives(from: &Host, to: &Host) -> bool {
    let receiver = to.run(|| UdpSocket::bind((to.address.as_str(), 9999))).expect("binding");
    receiver.set_read_timeout(Some(Duration::from_millis(300))).expect("setting a timeout");
    let sender = from.run(|| UdpSocket::bind("0.0.0.0:0")).expect("binding");
    let _ = sender.send_to(b"hello", (to.address.as_str(), 9999));
    receiver.recv_from(&mut [0; 16]).is_ok()
}

fn login(lab: &Lab, host: &str) -> Option<i32> {
    let mut command = lab.near.command("ssh");
    command.arg("-F").arg(lab.ssh_config()).args(["-o", "ConnectTimeout=3", host, "command -v haul && exit 7"]);
    Running::start(command).wait(Duration::from_secs(20)).code
}

#[test]
fn hosts_reach_each_other_until_told_otherwise() {
    let Some(mut lab) = Lab::open() else { return };
    assert_eq!(login(&lab, "far"), Some(7));
    assert_eq!(login(&lab, "far6"), Some(7));
    assert!(datagram_arrives(&lab.near, &lab.far));
    lab.renumber_near();
    assert!(datagram_arrives(&lab.near, &lab.far));
    assert!(datagram_arrives(&lab.far, &lab.near));
    lab.cut();
    assert!(!datagram_arrives(&lab.near, &lab.far));
    lab.mend();
    assert!(datagram_arrives(&lab.near, &lab.far));
    lab.block_udp();
    assert!(!datagram_arrives(&lab.near, &lab.far));
    assert!(!datagram_arrives(&lab.far, &lab.near));
    assert_eq!(login(&lab, "far"), Some(7), "TCP still works");
}

#[test]
fn bytes_are_counted_and_nothing_stays_behind() {
    let Some(lab) = Lab::open() else { return };
    let before = lab.bytes_carried();
    login(&lab, "far");
    assert!(lab.bytes_carried() > before + 1000);
    let (namespace, scratch) = (lab.far.namespace.clone(), lab.scratch().to_owned());
    drop(lab);
    let list = Command::new("ip").args(["netns", "list"]).output().expect("ip");
    assert!(!String::from_utf8_lossy(&list.stdout).contains(&namespace));
    assert!(!scratch.exists());
}
