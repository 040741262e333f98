//! `haul lab constant`: constant UDP traffic, for experiments. Its receiver prints JSON.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use clap::{Args, Subcommand};
use haul_lab::{CbrConfig, receive_constant, send_constant};
use haul_units::{BitRate, Bytes, Span};

use super::print::print;
use crate::exit::{Exit, Failure};

/// Which end.
#[derive(Debug, Subcommand)]
pub enum ConstantCommand {
    /// Send it
    Send(SendArgs),
    /// Take it until nothing has come for two seconds, and tell loss and jitter
    Receive(ReceiveArgs),
}

#[derive(Debug, Args)]
pub struct SendArgs {
    /// Address and port of the receiver
    #[arg(long, value_name = "ADDR:PORT")]
    pub to: SocketAddr,
    /// Rate of IP bytes
    #[arg(long, value_name = "RATE")]
    pub rate: BitRate,
    /// For how long
    #[arg(long, value_name = "TIME")]
    pub time: Span,
    /// Size of an IP packet
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = clap::value_parser!(u16).range(64..))]
    pub packet: u16,
}

#[derive(Debug, Args)]
pub struct ReceiveArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: SocketAddr,
}

pub fn run(command: &ConstantCommand) -> Result<Exit, Failure> {
    match command {
        ConstantCommand::Send(args) => {
            if args.rate == BitRate::ZERO {
                return Err(Failure::new("nothing would ever be sent at a rate of zero"));
            }
            let config = CbrConfig { rate: args.rate, packet: Bytes(args.packet.into()), lasts: Some(args.time.0) };
            send_constant(args.to, &config).map_err(|error| Failure::new(format!("cannot send to {}: {error}", args.to)))?;
            Ok(Exit::Done)
        }
        ConstantCommand::Receive(args) => {
            let failed = |error| Failure::new(format!("cannot listen on {}: {error}", args.listen));
            let socket = UdpSocket::bind(args.listen).map_err(failed)?;
            let report = receive_constant(&socket, SILENCE).map_err(failed)?;
            print(&(serde_json::to_string(&report).map_err(Failure::new)? + "\n"))
        }
    }
}

const SILENCE: Duration = Duration::from_secs(2);
