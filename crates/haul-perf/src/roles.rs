//! The roles that one side plays in a measurement: each in a thread, with its flow and its meter.

use std::net::TcpStream;
use std::sync::mpsc::{self, Sender};
use std::thread;

use haul::{Connection, ConnectionError};

use super::flow::{Event, Flow, HaulReceiver, HaulSender, TcpReceiver, TcpSender};
use super::meter::Meter;
use super::plan::{Direction, Plan, Role};
use super::results::{Interval, Total};

/// What carries the data.
pub enum Carrier {
    /// Streams of the connection.
    Haul,
    /// TCP connections of each direction.
    Tcp {
        /// Client to server.
        up: Vec<TcpStream>,
        /// Server to client.
        down: Vec<TcpStream>,
    },
}

/// What a role tells while it is played.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// An interval has passed.
    Interval(Interval),
    /// It is over.
    Total(Total),
}

/// Roles being played.
#[derive(Debug, Default)]
pub struct Roles {
    events: Vec<Sender<Event>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Roles {
    /// Starts one for a direction; `tell` runs in its thread. A sender's clock starts at once, a receiver's with the first byte, or by [`begin`](Self::begin).
    pub fn start(
        &mut self,
        connection: &Connection,
        carrier: &mut Carrier,
        plan: &Plan,
        (direction, role): (Direction, Role),
        mut tell: impl FnMut(Told) + Send + 'static,
    ) -> Result<(), ConnectionError> {
        let (send, events) = mpsc::channel();
        let streams = match carrier {
            Carrier::Haul => None,
            Carrier::Tcp { up, down } => Some(std::mem::take(if direction == Direction::Up { up } else { down })),
        };
        let flow: Box<dyn Flow> = match (streams, role) {
            (None, Role::Sender) => Box::new(HaulSender::start(connection, plan, &send)?),
            (None, Role::Receiver) => Box::new(HaulReceiver::start(connection, plan, &send)),
            (Some(streams), Role::Sender) => Box::new(TcpSender::start(streams, plan, &send)),
            (Some(streams), Role::Receiver) => Box::new(TcpReceiver::start(streams, plan, &send)),
        };
        if role == Role::Sender {
            let _ = send.send(Event::Begin);
        }
        let plan = plan.clone();
        self.events.push(send);
        self.threads.push(thread::spawn(move || {
            let meter = Meter { direction, role, plan: &plan, flow: &*flow, events: &events };
            let total = meter.run(|interval| tell(Told::Interval(interval)));
            tell(Told::Total(total));
        }));
        Ok(())
    }

    /// Starts the clocks that do not run yet.
    pub fn begin(&self) {
        for events in &self.events {
            let _ = events.send(Event::Begin);
        }
    }

    /// Ends all before their time.
    pub fn stop(&self) {
        for events in &self.events {
            let _ = events.send(Event::Stop);
        }
    }

    /// Their threads: each ends when its role is over.
    pub fn take_threads(&mut self) -> Vec<thread::JoinHandle<()>> {
        std::mem::take(&mut self.threads)
    }
}
