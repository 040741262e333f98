//! The first stream of a connection: what the client wants, and whether it is served.

use std::io;
use std::time::Duration;

use haul::Connection;
use haul_peer::Refusal;
use tokio::time::timeout;

use super::error::ClientError;
use super::relay::Streams;
use super::wire::{Answer, Opening, read_line, write_line};

/// How long the other side may take for its first words, or to hear ours.
const PATIENCE: Duration = Duration::from_secs(20);
/// Close code: everything is over, as it should be.
pub const CLOSE_DONE: u64 = 0;
/// Close code: not served.
pub const CLOSE_REFUSED: u64 = 2;

/// A session; its stream stays open as long.
pub struct Session {
    _control: Streams,
    /// The far side's ports that are listened on.
    pub listening: Vec<u16>,
}

/// The client's part: says what it wants, and hears whether it is served.
pub async fn greet(connection: &Connection, opening: &Opening, host: &str) -> Result<Session, ClientError> {
    let talk = async {
        let mut control = connection.open_bi_async().await?;
        write_line(&mut control.0, opening).await?;
        let answer = read_line(&mut control.1).await?;
        io::Result::Ok((control, answer))
    };
    let heard = timeout(PATIENCE, talk).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match heard.map_err(|source| ClientError::Unheard { host: host.to_owned(), source })? {
        (control, Answer::Served { version, listening }) => {
            tracing::debug!(%version, "the other side answers");
            Ok(Session { _control: control, listening })
        }
        (_, Answer::Refused(refusal)) => Err(ClientError::Refused { host: host.to_owned(), refusal }),
    }
}

/// The server's part: hears what the client wants.
pub async fn hear(connection: &Connection) -> io::Result<(Streams, Opening)> {
    let talk = async {
        let mut control = connection.accept_bi_async().await?;
        let opening = read_line(&mut control.1).await?;
        Ok((control, opening))
    };
    timeout(PATIENCE, talk).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Says yes.
pub async fn serve(mut control: Streams, listening: Vec<u16>) -> io::Result<Session> {
    let version = env!("CARGO_PKG_VERSION").into();
    write_line(&mut control.0, &Answer::Served { version, listening: listening.clone() }).await?;
    Ok(Session { _control: control, listening })
}

/// Says no, and closes once the client has heard it.
pub async fn refuse(connection: &Connection, mut control: Streams, refusal: Refusal) {
    let reason = refusal.error.clone();
    let say = async {
        write_line(&mut control.0, &Answer::Refused(refusal)).await?;
        control.0.finish()?;
        // The client reads the line and closes.
        connection.closed_async().await;
        io::Result::Ok(())
    };
    let _ = timeout(PATIENCE, say).await;
    connection.close(CLOSE_REFUSED, &reason);
}
