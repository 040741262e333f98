//! The proxy on a gateway: a host behind it connects to where it likes, and knows of nothing.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Command;

use e2e::{Host, Modes, Running};

use crate::rig::*;

/// Hosts of the other site; nothing but the proxy leads to them.
const TARGETS: [&str; 2] = ["10.2.0.5", "fd02::5"];

/// The rules of docs/use/proxy.md, for both families.
const RULES: &str = "\
ip rule add fwmark 0x68 lookup 104
ip route add local 0.0.0.0/0 dev lo table 104
ip -6 rule add fwmark 0x68 lookup 104
ip -6 route add local ::/0 dev lo table 104
nft add table inet haul
nft add chain inet haul pre { type filter hook prerouting priority mangle; }
nft add rule inet haul pre iifname lan0 ip daddr 10.2.0.0/16 tcp dport 1-65535 meta mark set 0x68 tproxy ip to :3129
nft add rule inet haul pre iifname lan0 ip6 daddr fd02::/64 tcp dport 1-65535 meta mark set 0x68 tproxy ip6 to :3129";

fn has_nft() -> bool {
    if Command::new("nft").arg("--version").output().is_ok() {
        return true;
    }
    skip::skip("nft is not installed (make setup)");
    false
}

fn on(host: &Host, line: &str) {
    let mut words = line.split_whitespace();
    let mut command = host.command(words.next().expect("a program"));
    command.args(words);
    Running::start(command).wait(PATIENCE).expect(0);
}

fn reach(host: &Host, address: SocketAddr) -> TcpStream {
    let client = host.run(|| TcpStream::connect_timeout(&address, PATIENCE)).expect("the gateway accepts");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    client
}

#[test]
fn a_host_behind_the_gateway_reaches_the_other_site() {
    if !has_nft() {
        return;
    }
    let Some(mut sites) = two() else { return };
    let inner = sites.behind(1);
    for rule in RULES.lines() {
        on(sites.site(1), rule);
    }
    on(sites.site(2), "ip address add 10.2.0.5/32 dev lo");
    on(sites.site(2), "ip address add fd02::5/128 dev lo nodad");
    let serving = serve(&sites, "--allow 10.2.0.0/16:* --allow [fd02::5]:*");
    let connected = connect(&sites, "--transparent 3129", 3129);
    for target in TARGETS {
        let ip = target.parse().expect("an address");
        // The server says by what address it was reached, and then all that it got.
        let port = server(sites.site(2), &SocketAddr::new(ip, 0).to_string(), |mut client| {
            let mut all = Vec::new();
            client.read_to_end(&mut all)?;
            client.write_all(format!("{}\n", client.local_addr()?).as_bytes())?;
            client.write_all(&all)
        });
        let address = SocketAddr::new(ip, port);
        let sent: Vec<u8> = (0..2_000_000_u32).map(|at| (at % 251) as u8).collect();
        let mut client = reach(&inner, address);
        client.write_all(&sent).expect("writing");
        client.shutdown(Shutdown::Write).expect("its end");
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("an answer");
        assert!(got == [format!("{address}\n").as_bytes(), &sent].concat(), "{} bytes", got.len());
        // Nobody listens there.
        assert_reset(&mut reach(&inner, SocketAddr::new(ip, 1)));
    }
    // In the network whose connections are handed over, and not allowed there.
    assert_reset(&mut reach(&inner, "[fd02::6]:80".parse().expect("an address")));
    // The gateway itself.
    let gateway = "10.92.1.1:3129".parse().expect("an address");
    // It is closed as soon as it is accepted, perhaps before this side has looked.
    let to_gateway = inner.run(|| TcpStream::connect_timeout(&gateway, PATIENCE));
    assert!(!to_gateway.and_then(|mut client| client.read(&mut [0])).is_ok_and(|read| read > 0), "it is closed");
    let there = stop(serving);
    assert_eq!(events(&there, "open").len(), 2, "{there}");
    let codes: Vec<_> = events(&stop(connected), "refused").iter().map(|event| event["code"].as_u64()).collect();
    assert_eq!(codes, [Some(5), Some(5), Some(2)]);
}

/// What the system says of a host's connections with a port of the other side's.
fn connections(host: &Host, port: u16) -> String {
    let output = host.command("ss").args(["-Htin", &format!("dport = :{port}")]).output().expect("ss");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The accelerator box of docs/use/tcp.md.
#[test]
fn two_gateways_with_a_mode_of_tcp_carry_what_hosts_say_that_know_of_nothing() {
    if !has_nft() {
        return;
    }
    let Some(_modes) = Modes::alone() else { return };
    let Some(mut sites) = two() else { return };
    let (near, far) = (sites.behind(1), sites.behind(2));
    for site in [1, 2] {
        Modes::haul(&["on", "fair", "--netns", &sites.site(site).namespace]);
    }
    for rule in RULES.replace("10.2.0.0/16", "10.92.2.0/24").replace("fd02::/64", "fd92:2::/64").lines() {
        on(sites.site(1), rule);
    }
    let serving = serve(&sites, "--allow 10.92.2.0/24:* --allow [fd92:2::2]:*");
    let connected = connect(&sites, "--transparent 3129", 3129);
    for ip in [&far.address, &far.address6] {
        let ip = ip.parse().expect("an address");
        let port = server(&far, &SocketAddr::new(ip, 0).to_string(), echo);
        let mut client = reach(&near, SocketAddr::new(ip, port));
        assert_eq!(ask(&mut client, b"hello"), b"hello");
        let (of_host, of_gateway) = (connections(&near, port), connections(sites.site(2), port));
        assert!(of_gateway.contains("haul_fair"), "{of_gateway}");
        assert!(!of_host.is_empty() && !of_host.contains("haul_"), "{of_host}");

        let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        let (mut writer, said) = (client.try_clone().expect("another handle"), sent.clone());
        let writing = std::thread::spawn(move || {
            writer.write_all(&said).expect("writing");
            writer.shutdown(Shutdown::Write).expect("its end");
        });
        let mut got = Vec::new();
        client.read_to_end(&mut got).expect("all of it, and its end");
        writing.join().expect("no panic");
        assert!(got == sent, "{} bytes", got.len());
    }
    assert_eq!(events(&stop(serving), "open").len(), 2);
    assert_eq!(events(&stop(connected), "refused").len(), 0);
}

#[test]
fn without_the_right_to_it_a_transparent_port_is_refused() {
    let Some(sites) = two() else { return };
    let mut command = sites.site(1).command("setpriv");
    command.args(["--bounding-set=-net_admin,-net_raw", "--inh-caps=-net_admin,-net_raw"]);
    let haul = haul(&sites, 1, &format!("proxy connect {} --transparent 3129", sites.site(2).address));
    // The words behind `ip netns exec NAME`.
    command.args(haul.get_args().skip(3));
    command.envs(haul.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let refused = Running::start(command).wait(PATIENCE).expect(2);
    assert!(refused.stderr.contains("CAP_NET_ADMIN"), "{refused}");
}
