//! Where the time of a copy went: its parts, one behind the other, which sum up to the whole.
//!
//! ```text
//!   begun   answered   connected   first block   80 % of the rate   last block sent    .. written         finished   over
//!     | login  | handshake |  hello   |    start-up      |     bulk      |   last block    | sync, rename |  closing  |
//! ```
//!
//! All on the clock of the side that was started by hand. What happens at the other side counts here when news of it can be here: that side tells, in its last report, how long before its end each moment
//! was ([`Told`]), and its end is known here by its last word. What went on beside the bulk, a sync of files that had come for instance, is a part of the bulk: nobody has waited for it.
//!
//! A moment that never came has no part, and its time is the next part's.

mod course;
mod marks;
mod rate;
mod times;

pub(crate) use course::Both;
pub(crate) use marks::{Marks, Noted, Noting, Told};
pub(crate) use rate::{EVERY, Series};
pub use times::{Part, Parts};
