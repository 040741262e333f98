//! How two strangers become a connection: TLS 1.3 over our own datagrams.
//!
//! ```text
//! client                                            server
//!   ClientHello, 2 datagrams of 1200   -->          no state: Acceptor answers
//!                                      <--  RETRY   a cookie bound to address, time and attempt
//!   ClientHello with the cookie        -->          state: Handshake::server
//!                                      <--          ServerHello; then, encrypted, parameters, key, signature, Finished
//!   Finished                           -->          both export one secret: DataKeys
//!                                      <--          acknowledgement
//! ```
//! - [`Acceptor`] is the endpoint's stateless front: cookies, admission tokens, version negotiation.
//! - [`Handshake`] is one connection's handshake, at the level of datagrams: feed `handle_datagram` and `handle_timeout`, drain
//!   `poll_transmit`, obey `poll_timeout`, take the result by `take_complete`. Where the two sides have another channel already, its round trip can be
//!   spared: the first two flights are carried there ([`CarriedOpening`], [`CarriedAnswer`]).
//! - `TlsSession` is rustls below it; [`TransportParams`] is what each side tells the other, authenticated by TLS.
//! - [`wire`] is the format.
//!
//! Whatever is not authentic is dropped silently: only what a peer really said, or time, ends a handshake.

mod accept;
mod carried;
mod error;
mod flight;
mod params;
mod reliable;
mod session;
mod tls;
mod verify;
pub mod wire;

pub use accept::{Accept, Acceptor, ParsedInitial};
pub use carried::{CarriedAnswer, CarriedOpening};
pub use error::{Fault, HandshakeError, Misbehaviour};
pub use flight::{ClientParams, Established, Handshake, ServerParams};
pub use haul_strangers::{Bound, CookieJar, Proof};
pub use params::{ParamsError, TransportParams, feature};
pub use session::Level;
pub use tls::{ClientTls, ServerTls, TlsConfigError};
