//! Strangers: those whom a listener has not admitted yet, and what tells them from others.
//!
//! | file | idea |
//! |---|---|
//! | `places` | places for so many of them: who goes when there is none |
//! | `cookie` | what shows that one receives at its address, was invited or has been here, without anything being kept of it |
//! | `returning` | which of the tokens that were given out have been used, and what a client keeps of its servers |

mod cookie;
mod places;
mod returning;

pub use cookie::{Bound, CookieJar, Proof, RETURN_BYTES};
pub use places::Strangers;
pub use returning::{GivenTokens, KeptTokens, RETURN_LIFETIME, ReturnToken};
