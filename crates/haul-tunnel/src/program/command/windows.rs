//! Commands are not run for clients here, who are told so.

use std::io;

use haul::{Connection, RecvStream, SendStream};
use haul_peer::ControlOut;

use crate::program::READER_GONE;
use crate::program::exchange::arrived;
use crate::program::frame::{Frame, Status};

/// Says that it does not, as a command that reads nothing and writes nothing else.
pub fn serve(
    _line: &[u8],
    _connection: Connection,
    streams: (SendStream, RecvStream),
    mut control: ControlOut,
) -> io::Result<()> {
    let (mut send, mut receive) = streams;
    receive.stop(READER_GONE);
    send.finish()?;
    Frame::Error(b"haul: commands are not run on Windows\n".to_vec()).write_to(&mut control)?;
    Frame::Exit(Status::Code(127)).write_to(&mut control)?;
    control.finish()?;
    let _ = arrived(&mut send);
    Ok(())
}
