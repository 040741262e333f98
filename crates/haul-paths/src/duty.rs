//! What a path is for at present, as its client wants it and both ends keep to it.
//!
//! The client decides: it knows its interfaces. What it tells carries a number, so that of two the newer counts whichever comes first. // draft-ietf-quic-multipath 5.5, PATH_STATUS

use crate::allowance::Allowance;

/// What a path may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Data.
    #[default]
    Available,
    /// Data while no available path works.
    Backup,
    /// Nothing: the client cannot send or receive there.
    Away,
}

/// What the client tells the server of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Of two the larger counts.
    pub sequence: u64,
    /// What it may carry.
    pub standing: Standing,
    /// UDP payload that the server may send on it in all.
    pub cap: u64,
}

/// What a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duty {
    standing: Standing,
    sequence: u64,
    /// UDP payload that this end may send in all.
    cap: u64,
    /// A client's, of a metered path.
    allowance: Option<Allowance>,
}

impl Default for Duty {
    fn default() -> Self {
        Self { standing: Standing::Available, sequence: 0, cap: UNLIMITED, allowance: None }
    }
}

impl Duty {
    /// What it may carry.
    pub const fn standing(&self) -> Standing {
        self.standing
    }

    /// UDP payload that may still be sent, where so much was.
    pub const fn room(&self, sent: u64) -> u64 {
        match self.standing {
            Standing::Away => 0,
            Standing::Available | Standing::Backup => self.cap.saturating_sub(sent),
        }
    }

    /// Whether anything may be sent.
    pub const fn may_carry(&self, sent: u64) -> bool {
        self.room(sent) > 0
    }

    /// A client wants it so from now on, and within this limit of both directions; a limit that was there is kept. What to tell the server.
    pub fn set(&mut self, standing: Standing, limit: Option<u64>) -> Told {
        self.standing = standing;
        if self.allowance.is_none() {
            self.allowance = limit.map(Allowance::new);
        }
        self.tell()
    }

    /// A client's grant to the server may be due, where so much was sent and received.
    pub fn renew(&mut self, sent: u64, received: u64) -> Option<Told> {
        self.allowance.as_mut()?.renew(sent, received)?;
        Some(self.tell())
    }

    fn tell(&mut self) -> Told {
        self.sequence += 1;
        let (own, granted) = self.allowance.map_or((UNLIMITED, UNLIMITED), |allowance| (allowance.own(), allowance.granted()));
        self.cap = own;
        Told { sequence: self.sequence, standing: self.standing, cap: granted }
    }

    /// A server is told so. Whether it is news.
    pub const fn on_told(&mut self, told: &Told) -> bool {
        let is_news = told.sequence > self.sequence;
        if is_news {
            (self.standing, self.sequence, self.cap) = (told.standing, told.sequence, told.cap);
        }
        is_news
    }

    /// Whether this is the last that was told.
    pub const fn is_last(&self, told: &Told) -> bool {
        told.sequence == self.sequence
    }
}

/// What a number on the wire can say.
const UNLIMITED: u64 = (1 << 62) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_word_counts() {
        let (mut client, mut server) = (Duty::default(), Duty::default());
        let away = client.set(Standing::Away, None);
        let back = client.set(Standing::Backup, None);
        assert!(!client.is_last(&away) && client.is_last(&back));
        assert!(server.on_told(&back) && !server.on_told(&away) && !server.on_told(&back));
        assert_eq!((server.standing(), server.room(5)), (Standing::Backup, UNLIMITED - 5));
    }

    #[test]
    fn both_ends_together_keep_to_the_limit() {
        let (mut client, mut server) = (Duty::default(), Duty::default());
        let told = client.set(Standing::Backup, Some(1 << 20));
        server.on_told(&told);
        assert_eq!(client.room(0) + server.room(0), 1 << 20);
        let more = client.renew(1000, told.cap).expect("half of it has come");
        assert!(server.on_told(&more) && client.room(1000) + server.room(0) == (1 << 20) - 1000);
        assert!(client.may_carry(0) && !client.may_carry(1 << 20));
        let again = client.set(Standing::Available, Some(5 << 20));
        assert!(again.cap == more.cap, "the limit is the connection's");
        client.set(Standing::Away, None);
        assert!(!client.may_carry(0));
    }
}
