//! Buffers that are too small for the paths of connections that are open are named, each with the command that mends it.

use std::cell::Cell;
use std::fs;
use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

use haul_tcp::Law;

use crate::line::Line;
use crate::rig::{Rig, own};
use crate::stage::Stage;
use crate::wire::inside;

/// 2000 packets of 1000 bytes a second, 20 ms away: 40 kB are on the way, for which four times as much is asked.
#[test]
fn a_send_buffer_that_is_too_small_is_named_with_what_mends_it() {
    let Some(rig) = Rig::open() else { return };
    rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
    let stage = Stage::set(&rig);
    let mut flows = [stage.connect(Law::Fair, Duration::from_millis(20))];
    assert_eq!(rig.tcp.lacks(&rig.namespace()).expect("asked"), [], "nothing is known of it yet");
    let mut line = Line::new(&stage, 2_000, Duration::from_millis(20));
    let packets = Cell::new(0);
    let count = |_: &_, _| {
        packets.set(packets.get() + 1);
        false
    };
    line.carry(&mut flows, |_| packets.get() < 1_000, count);
    assert_eq!(rig.tcp.lacks(&rig.namespace()).expect("asked"), [], "16 MB are enough");
    let set = |most: &str| inside(&rig.wire.a, || fs::write("/proc/sys/net/ipv4/tcp_wmem", format!("4096 16384 {most}")));
    set("100000").expect("written");
    let lacks = rig.tcp.lacks(&rig.namespace()).expect("asked");
    let [lack] = lacks.as_slice() else { panic!("{lacks:?}: {:?}", rig.tcp.connections(&rig.namespace())) };
    assert!((140_000..260_000).contains(&lack.limit.needs.0), "{lack:?}");
    let words = lack.words();
    assert!(
        words.starts_with("net.ipv4.tcp_wmem: ") && words.contains("is too small for what is sent to 10.93.0.2:9"),
        "{words}"
    );
    let command = lack.command();
    assert!(command.starts_with(&format!("ip netns exec {} sysctl -w net.ipv4.tcp_wmem=\"4096 16384 ", rig.wire.a)), "{command}");
    let status = haul_tcp::status::text(&rig.tcp, &rig.namespace()).expect("told");
    assert!(status.contains(&words) && status.contains(&command), "{status}");
    assert!(Command::new("sh").args(["-c", &command]).output().expect("a shell").status.success());
    assert_eq!(rig.tcp.lacks(&rig.namespace()).expect("asked"), [], "`{command}` mends it");
}

/// At the end that receives it is the other buffer.
#[test]
fn a_receive_buffer_that_is_too_small_is_named() {
    let Some(rig) = Rig::open() else { return };
    rig.tcp.on(&own(Law::Fair), &rig.scope()).expect("on");
    let (mut near, mut far) = rig.connection();
    let sent = std::thread::spawn(move || far.write_all(&vec![7; 8 << 20]).map(|()| far));
    near.read_exact(&mut vec![0; 8 << 20]).expect("it comes");
    let _far = sent.join().expect("sent").expect("sent");
    inside(&rig.wire.a, || fs::write("/proc/sys/net/ipv4/tcp_rmem", "4096 8192 16384")).expect("written");
    let lacks = rig.tcp.lacks(&rig.namespace()).expect("asked");
    let of_receiving = lacks.iter().find(|lack| lack.limit.key == "net.ipv4.tcp_rmem").expect("it is named");
    assert!(of_receiving.words().contains("what is received from 10.9.0.2:"), "{}", of_receiving.words());
}
