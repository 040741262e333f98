//! The far side of a meeting: does what the near side says through ssh's channel.
//!
//! The near side has logged in, and yet may be confined to less than a login: what it can have sent from here is this many datagrams of 64 bytes to addresses that it names, and nothing that it chooses in them.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use haul::carrier::Carrier;
use haul::{Aside, Endpoint};
use haul_relay::{Key, Ticket};
use haul_units::Cancel;

use super::messages::{Meeting, Met};
use super::post::{Heard, PUNCH_INTERVAL, Post};
use crate::clock;

/// How long the relay may take to answer.
const REGISTER: Duration = Duration::from_millis(2500);
/// How long holes are punched to the near side.
const PUNCHING: Duration = Duration::from_secs(3);
/// Meetings of one client: it asks for one when UDP falls silent, and whoever wants more of them wants something else.
const MOST_MEETINGS: usize = 16;
/// How often is looked whether there is something to do.
const LOOK: Duration = Duration::from_secs(1);

/// Does so until it is over.
pub fn attend(endpoint: &Endpoint, carrier: Carrier, over: Cancel) {
    let mut aside = Some(endpoint.aside(haul_relay::MARK));
    let run = move || {
        let mut meetings = 0;
        let mut held: Option<Held> = None;
        while !over.is_cancelled() {
            let tick = if held.as_ref().is_some_and(Held::punches) { PUNCH_INTERVAL } else { LOOK };
            let looked = clock::now();
            let message = carrier.hear(tick).filter(|_| meetings < MOST_MEETINGS);
            let meeting = message.as_deref().and_then(Meeting::from_bytes);
            if let Some((secrets, meeting)) = meeting.and_then(|meeting| Some((meeting.secrets()?, meeting))) {
                meetings += 1;
                let free = held.take().map(Held::into_aside).or_else(|| aside.take());
                held = free.map(|free| Held::come_to(&meeting, secrets, free, &carrier));
            } else if let Some(left) = tick.checked_sub(looked.elapsed()) {
                // A channel that has ended brings nothing more, and is not waited for.
                thread::park_timeout(left);
            }
            if let Some(gone) = held.take_if(|held| !held.goes_on()) {
                aside = Some(gone.into_aside());
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("haul-meet".to_owned()).spawn(run) {
        tracing::debug!(%error, "no meetings");
    }
}

/// A meeting that was come to.
struct Held {
    post: Post,
    near: SocketAddr,
    until: Instant,
}

impl Held {
    /// Makes this side known to the relay, and says where it is seen.
    fn come_to(meeting: &Meeting, (ticket, punch): (Ticket, Key), aside: Aside, carrier: &Carrier) -> Self {
        let mut post = Post::new(aside, meeting.relay, ticket, punch);
        let seen = post.register(REGISTER);
        tracing::debug!(relay = %meeting.relay, ?seen, near = %meeting.seen, "a meeting");
        // What leaves first opens the NAT here, before the near side knows where to send.
        post.punch(meeting.seen);
        carrier.say(&Met { pair: meeting.pair(), seen }.to_bytes());
        Self { post, near: meeting.seen, until: clock::now() + PUNCHING }
    }

    fn punches(&self) -> bool {
        clock::now() < self.until
    }

    /// Punches, stays known; false where there is no more sense in it.
    fn goes_on(&mut self) -> bool {
        if self.punches() {
            self.post.punch(self.near);
        }
        while let Some(heard) = self.post.hear(Duration::ZERO) {
            if let Heard::Punched(from) = heard {
                // The near side may come from another port than the relay has seen.
                self.near = from;
            }
        }
        self.post.stay()
    }

    fn into_aside(self) -> Aside {
        self.post.into_aside()
    }
}
