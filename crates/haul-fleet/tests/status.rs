//! Members tell how they are.

use std::io;

use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};
use haul_copy::{PROTOCOL, ServerSession};
use haul_files::{Access, Cancel, Silent};
use haul_fleet::{Member, status};

#[test]
fn each_member_tells_of_its_room_and_one_that_has_gone_of_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut servers = Vec::new();
    let mut members = Vec::new();
    for number in 0..3 {
        let config =
            ServerConfig { protocols: vec![PROTOCOL.to_vec()], ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone) };
        let server = Endpoint::listen("127.0.0.1:0".parse().expect("an address"), config).expect("a port");
        let config = ClientConfig { protocols: vec![PROTOCOL.to_vec()], ..ClientConfig::new(PeerTrust::Anyone) };
        let client = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
        let connection = client.connect(server.local_addr(), config).expect("a connection");
        let home = dir.path().to_owned();
        servers.push(std::thread::spawn(move || {
            let accepted = server.accept().expect("a client");
            if number == 2 {
                return accepted.close(1, "has other things to do");
            }
            let session = ServerSession::accept(accepted).expect("an opening");
            let (result, farewell) = session.serve(&Access::Account { home }, None, &Silent, &Cancel::new());
            result.expect("told");
            farewell.part(&Cancel::new());
        }));
        members.push(Member::called_back(format!("s{number}"), connection));
    }
    let told = status(members, &Cancel::new());
    for server in servers {
        server.join().expect("served");
    }
    let names: Vec<_> = told.iter().map(|status| &*status.name).collect();
    assert_eq!(names, ["s0", "s1", "s2"]);
    for status in &told[..2] {
        let report = status.report.as_ref().expect("told");
        assert!(report.places[0].total_bytes > Some(0) && report.machine.processors > 0, "{report:?}");
    }
    assert!(told[2].report.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Other), "{:?}", told[2].report);
}
