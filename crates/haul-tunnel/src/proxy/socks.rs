//! SOCKS5 (RFC 1928): a client names its target, by address or by name. No authentication; CONNECT only.

use std::io;
use std::net::IpAddr;

use haul_peer::{Target, TargetHost};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::wire::parse_name;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
/// RFC 1928 6.
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_NOT_SUPPORTED: u8 = 8;

/// Reads what a client wants. It hears of an error before it is returned.
pub async fn read_request(client: &mut TcpStream) -> io::Result<Target> {
    let [version, count] = read(client).await?;
    if version != VERSION {
        return Err(invalid("it does not speak SOCKS5"));
    }
    let mut methods = vec![0; usize::from(count)];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(invalid("it insists on a user and a password, which this SOCKS5 server does not take"));
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, _reserved, kind] = read(client).await?;
    if version != VERSION {
        return Err(invalid("its request is not of SOCKS5"));
    }
    let host = match kind {
        1 => TargetHost::Address(IpAddr::from(read::<4>(client).await?)),
        4 => TargetHost::Address(IpAddr::from(read::<16>(client).await?).to_canonical()),
        3 => {
            let [length] = read(client).await?;
            let mut name = vec![0; usize::from(length)];
            client.read_exact(&mut name).await?;
            parse_name(name)?
        }
        _ => {
            reply(client, ADDRESS_NOT_SUPPORTED).await?;
            return Err(invalid("it names its target in an unknown way"));
        }
    };
    let target = Target { host, port: u16::from_be_bytes(read(client).await?) };
    if command != CONNECT {
        reply(client, COMMAND_NOT_SUPPORTED).await?;
        return Err(invalid("it asks for another command than CONNECT"));
    }
    Ok(target)
}

/// Tells a client how it went: 0 is success.
pub async fn reply(client: &mut TcpStream, code: u8) -> io::Result<()> {
    // The address that the connection was made from is the other side's, and of no use here.
    client.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}

async fn read<const N: usize>(client: &mut TcpStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
