//! How much the clients of a listener may take.

use clap::Args;
use haul::Bytes;
use haul_peer::{GuestMemory, Guests, Limits};

/// Part of the machine's memory that clients may take, unless the user says otherwise: one of so many.
const PART: u64 = 2;

/// The bounds that `haul serve` and `haul proxy serve` have alike; how many clients there may be at once is each one's own.
#[derive(Debug, Args)]
pub struct GuestArgs {
    /// Connections at once with one key
    #[arg(long, value_name = "NUMBER", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_per_key: u16,
    /// Connections at once from one address
    #[arg(long, value_name = "NUMBER", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_per_address: u16,
    /// Memory that the connections of all clients may take together, in equal parts; a client that would get less than 14 MiB is told to try again later
    /// [default: half of the machine's]
    #[arg(long = "max-memory", value_name = "SIZE")]
    pub memory: Option<Bytes>,
}

impl GuestArgs {
    /// Places for so many clients within these bounds.
    pub fn places(&self, clients: u16) -> Guests {
        let limits = Limits { clients: clients.into(), of_key: self.max_per_key.into(), of_address: self.max_per_address.into() };
        Guests::new(limits, self.memory.map_or_else(|| GuestMemory::part_of_machine(PART), GuestMemory::Shared))
    }
}
