//! None: the system's TCP takes no laws.

use std::convert::Infallible;
use std::str::FromStr;

/// There is none.
#[derive(Debug, Clone)]
pub struct TcpMode(Infallible);

impl FromStr for TcpMode {
    type Err = &'static str;

    fn from_str(_: &str) -> Result<Self, Self::Err> {
        Err("TCP has no laws of haul's on Windows")
    }
}

impl TcpMode {
    /// What the kernel calls it.
    pub fn kernel_name(&self) -> String {
        match self.0 {}
    }
}
