//! Paths that leave by interfaces and addresses that are named.

use haul::udp::Options;
use haul::{Class, ConnectError, Endpoint, PathWay, Via};

use crate::blocks::transfer;
use crate::support::{configs, pair_with};

fn via(text: &str) -> Vec<Via> {
    text.split(',').map(|way| way.parse().expect("a way")).collect()
}

#[test]
fn a_connection_leaves_by_the_interface_or_the_address_that_is_named() {
    for named in ["lo", "127.0.0.1", "all", "lo:backup"] {
        let pair = pair_with("127.0.0.1:0", Options::default(), |client, _| client.transport.via = via(named));
        transfer(&pair.near, &pair.far, 4);
        transfer(&pair.far, &pair.near, 4);
        let class = if named == "lo:backup" { Class::Backup } else { Class::Normal };
        let way = PathWay { interface: "lo".to_owned(), address: [127, 0, 0, 1].into(), class, is_up: true };
        assert_eq!(pair.near.path_ways(), [way], "{named}");
        assert_eq!((pair.near.paths().len(), pair.far.path_ways().len()), (1, 0), "{named}");
        assert_ne!(pair.far.remote_addr(), pair.client.local_addr(), "{named}: a socket of its own");
    }
}

#[test]
fn what_is_not_there_is_said_before_anything_is_sent() {
    let (client_config, server_config) = configs();
    let server = Endpoint::listen("127.0.0.1:0".parse().expect("an address"), server_config).expect("binds");
    let client = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
    for (named, words) in [
        ("nosuch0", "no interface is called nosuch0: there are lo"),
        ("192.0.2.99", "192.0.2.99 is no address of this machine"),
        ("::1", "one is IPv4, the other IPv6"),
    ] {
        let mut config = client_config.clone();
        config.transport.via = via(named);
        let refused = client.connect(server.local_addr(), config).expect_err("not there");
        assert!(matches!(refused, ConnectError::Leave(_)) && refused.to_string().contains(words), "{named}: {refused}");
    }
}
