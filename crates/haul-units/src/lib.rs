//! What all of haul speaks in: quantities ([`Bytes`], [`BitRate`], [`Time`], [`Ratio`]), how many of them there were ([`Distribution`]), how evenly they came ([`GapMeter`]), [`Network`], addresses that begin alike, [`PeerText`], the words of somebody else, [`ProcessorTicks`], what a machine's processors did, sets of numbers as [`Ranges`], of bytes of one block as [`BlockRanges`], [`Cancel`], the wish to stop, and tables of it all ([`aligned()`]).
//!
//! The unit is the type. Sizes are bytes and print with binary prefixes (`KiB`, `MiB`, ..); rates are bits per second and
//! print with decimal prefixes (`kbit/s`, `Mbit/s`, ..). Parsing takes what people type (`10G`, `1.5 Gbit/s`, `64KiB`) and refuses the
//! rest with an error that names the text and says what is understood.

mod aligned;
mod bit_rate;
mod block_ranges;
mod bytes;
mod cancel;
mod distribution;
mod gap_meter;
mod network;
mod parse;
mod peer_text;
mod processor_ticks;
mod ranges;
mod ratio;
mod round_trip;
mod shown;
mod span;
mod time;
mod wrapped;

pub use aligned::aligned;
pub use bit_rate::BitRate;
pub use block_ranges::BlockRanges;
pub use bytes::Bytes;
pub use cancel::{Cancel, CancelHook};
pub use distribution::Distribution;
pub use gap_meter::GapMeter;
pub use network::{Network, NetworkError};
pub use parse::ParseQuantityError;
pub use peer_text::{PeerText, is_unprintable, push_printable};
pub use processor_ticks::ProcessorTicks;
pub use ranges::Ranges;
pub use ratio::{PartError, Ratio, part};
pub use round_trip::milliseconds;
pub use shown::{PeerStream, SET_IN, shown, shown_json};
pub use span::{Span, SpanError};
pub use time::{Time, parse_duration};
pub use wrapped::wrapped;
