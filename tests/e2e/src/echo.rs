//! Who says what he hears, at the end of a proxy, and who listens there.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::net::Host;

/// For an answer.
const PATIENCE: Duration = Duration::from_secs(90);

/// Says what it hears, on a port of its own.
pub fn echo(host: &Host) -> u16 {
    let listener = host.run(|| TcpListener::bind("127.0.0.1:0")).expect("listening");
    let port = listener.local_addr().expect("its address").port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut reader = client.try_clone().expect("a second handle");
                let _ = io::copy(&mut reader, &mut &client);
                let _ = client.shutdown(Shutdown::Write);
            });
        }
    });
    port
}

/// Whether the other end of a connection says the same bytes.
pub fn is_echoed(host: &Host, port: u16, bytes: &[u8]) -> io::Result<bool> {
    let mut client = host.run(|| TcpStream::connect(("127.0.0.1", port)))?;
    client.set_read_timeout(Some(PATIENCE))?;
    let mut writer = client.try_clone()?;
    thread::scope(|scope| {
        let writing = scope.spawn(move || writer.write_all(bytes).and_then(|()| writer.shutdown(Shutdown::Write)));
        let mut answer = Vec::new();
        client.read_to_end(&mut answer)?;
        writing.join().expect("no panic").map(|()| answer == bytes)
    })
}

/// Whether somebody listens at a TCP port of a host.
pub fn listens_on(host: &Host, port: u16) -> bool {
    let output = host.command("ss").args(["-Hltn", &format!("sport = :{port}")]).output();
    output.is_ok_and(|output| !output.stdout.is_empty())
}
