//! Those of `haul tcp`.

pub use haul_tcp::Choice as TcpMode;
