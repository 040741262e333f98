//! What is said while a fleet is started: a word of a command line to each member, one to the representative, and lines back.
//!
//! ```text
//!   client         -> representative   `haul remote WORD` (Summons::Lead), and on its standard input a line: Order
//!   starter        -> member           `haul remote WORD` (Summons::Serve): client's addresses, its key; nothing secret
//!   member         -> starter, client  HAUL-FLEET/1 {"here":{"member":..,"key":"SHA256:..", ..}}   on its standard output
//! ```
//!
//! Nothing here is a secret, so that whoever looks at the processes of a node, or listens between `mpirun` and its helpers, gains nothing: a member is invited by *its own key*, which it makes, and which the client
//! hears by the way that started the member. Who has only read the invitation has another key, and the client does not complete its handshake.
//!
//! Unknown fields are ignored, so that a later version can say more.

use std::io::{self, BufRead, Read as _};
use std::net::{IpAddr, SocketAddr};

use data_encoding::BASE64URL_NOPAD;
use haul_peer::{ClientHello, MAX_LINE, RemoteAnswer, RemoteHello, SshHost, find_answer};
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

/// Version of this exchange.
pub const FLEET: u32 = 1;
/// Application protocol of a member that calls back.
pub const PROTOCOL: &[u8] = b"haul-fleet/1";
/// What comes before each line back.
pub const MAGIC: &str = "HAUL-FLEET/1 ";
/// Bytes of an order: as many hosts as a fleet may have.
pub const MAX_ORDER: u64 = 4 << 20;
/// Bytes that may come on a start channel that are no lines of ours: greetings of shells.
const MAX_NOISE: u64 = 4 << 20;

/// What `haul remote` is started for by a fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Summons {
    /// To be a member.
    Serve(Box<Invitation>),
    /// To start the others; how is on standard input.
    Lead {
        /// Version of this exchange.
        fleet: u32,
        /// Version of the program, for messages.
        version: PeerText,
    },
}

/// To a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invitation {
    /// Version of this exchange.
    pub fleet: u32,
    /// What the client calls it; where that is not said, whoever starts it by Slurm has named the node.
    #[serde(default)]
    pub member: Option<PeerText>,
    /// The client's key, and how the connection is to behave.
    pub hello: ClientHello,
    /// Where the client can be called; empty: listen, and it dials.
    #[serde(default)]
    pub call: Vec<SocketAddr>,
    /// The address to call from.
    #[serde(default)]
    pub data: Option<IpAddr>,
    /// Seconds after which it gives up.
    pub patience_s: u32,
    /// It stays the process that was started: Slurm ends all others, and what was started apart is the right one already.
    #[serde(default)]
    pub stay: bool,
}

/// To whoever starts the members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// By which program.
    pub by: By,
    /// On which hosts; with [`By::Ssh`] the first is the one that reads this.
    pub hosts: Vec<OrderHost>,
    /// To each, with its name put in.
    pub invitation: Invitation,
    /// The port of the client that members call, if they do.
    #[serde(default)]
    pub port: Option<u16>,
    /// haul's path there, where PATH does not have it.
    #[serde(default)]
    pub haul: Option<String>,
    /// The program, where it is not found by its usual name.
    #[serde(default)]
    pub program: Option<String>,
    /// Its words before ours.
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// What starts the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// One ssh for each.
    Ssh,
    /// One mpirun for all.
    Mpirun,
    /// One srun for all.
    Srun,
}

/// One host of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderHost {
    /// What the client calls it.
    pub member: PeerText,
    /// Name or address.
    pub host: PeerText,
    /// Who logs in.
    #[serde(default)]
    pub user: Option<PeerText>,
    /// Port of its sshd.
    #[serde(default)]
    pub port: Option<u16>,
    /// The address that it is to call from.
    #[serde(default)]
    pub data: Option<IpAddr>,
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "one at a time, read and taken apart at once")]
pub enum Said {
    /// A member is there.
    Here(Here),
    /// It cannot serve.
    Failed {
        /// Which.
        member: PeerText,
        /// Why.
        error: PeerText,
        /// What to do about it.
        #[serde(default)]
        hint: Option<PeerText>,
    },
    /// What was to start it has ended before it had said anything.
    Ended {
        /// Which.
        member: PeerText,
        /// With this status, unless it was killed.
        status: Option<i32>,
        /// The last lines that it printed.
        #[serde(default)]
        printed: Vec<PeerText>,
    },
    /// Nothing can be started.
    Unable {
        /// Why.
        error: PeerText,
        /// What to do about it.
        #[serde(default)]
        hint: Option<PeerText>,
    },
}

/// A member that is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Here {
    /// Which.
    pub member: PeerText,
    /// Fingerprint of the key that it made.
    pub key: PeerText,
    /// Version of the program, for the log.
    pub version: PeerText,
    /// Its host, as that calls itself; for the log.
    pub host: PeerText,
    /// Its number among those that one program has started; for the log.
    #[serde(default)]
    pub rank: Option<u32>,
    /// Where it listens, if it does not call.
    #[serde(default)]
    pub listens: Option<RemoteHello>,
}

impl Summons {
    /// As a word of the command line, which no shell changes.
    pub fn to_word(&self) -> String {
        BASE64URL_NOPAD.encode(json(self).as_bytes())
    }

    /// From the word; nothing if it says something else.
    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_slice(&BASE64URL_NOPAD.decode(word.as_bytes()).ok()?).ok()
    }
}

impl Order {
    /// As the line on standard input.
    pub fn to_line(&self) -> String {
        json(self) + "\n"
    }

    /// From standard input.
    pub fn read(reader: impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        reader.take(MAX_ORDER).read_until(b'\n', &mut line)?;
        Ok(serde_json::from_slice(&line)?)
    }
}

impl OrderHost {
    /// As ssh takes it; nothing if its name would be an option.
    pub fn login(&self) -> Option<SshHost> {
        let user = self.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
        let host = SshHost::parse(format!("{user}{}", self.host).as_ref()).ok()?;
        Some(SshHost { port: self.port, ..host })
    }
}

impl Said {
    /// As the line that goes back; the newline before it ends whatever the shell left unfinished.
    pub fn to_line(&self) -> String {
        format!("\n{MAGIC}{}\n", json(self))
    }

    /// From a line, past what stands before it.
    fn from_line(line: &str) -> Option<Self> {
        if let Some((_, json)) = line.split_once(MAGIC) {
            return serde_json::from_str(json).ok();
        }
        // A version that knows no fleets takes the word for a greeting that it cannot understand, and says so.
        match find_answer(&mut line.as_bytes()) {
            Ok(RemoteAnswer::Failed { error, hint }) => Some(Self::Failed { member: PeerText::default(), error, hint }),
            _ => None,
        }
    }
}

/// A line of a start channel.
#[derive(Debug)]
pub enum Line {
    /// One of ours.
    Said(Box<Said>),
    /// Something else that was printed there.
    Printed(PeerText),
}

/// Reads a start channel to its end, which is also there where nothing but noise comes.
pub fn lines(mut reader: impl BufRead, mut each: impl FnMut(Line)) {
    let mut noise = 0_u64;
    loop {
        let mut line = Vec::new();
        let Ok(read @ 1..) = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line) else { return };
        let text = String::from_utf8_lossy(&line);
        if let Some(said) = Said::from_line(&text) {
            each(Line::Said(Box::new(said)));
            continue;
        }
        noise += read as u64;
        if noise > MAX_NOISE {
            return;
        }
        let text = text.trim();
        // Nor a rule of dashes.
        if text.contains(char::is_alphanumeric) {
            each(Line::Printed(PeerText::from(text)));
        }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("only strings and numbers, which JSON can hold")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn invitation() -> Invitation {
        let hello = ClientHello::from_line(br#"{"bootstrap":1,"version":"9","client":"SHA256:x"}"#).expect("a greeting");
        let call = vec!["10.0.0.1:7".parse().expect("an address")];
        Invitation { fleet: FLEET, member: Some("n1".into()), hello, call, data: None, patience_s: 30, stay: false }
    }

    #[test]
    fn a_summons_is_a_word_for_any_shell() {
        let summons = Summons::Serve(Box::new(invitation()));
        let word = summons.to_word();
        assert!(word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{word}");
        assert_eq!(Summons::from_word(&word), Some(summons));
        // What ssh starts for a copy is none, nor the other way round.
        let greeting = invitation().hello.to_word();
        assert_eq!(Summons::from_word(&greeting), None);
        assert_eq!(ClientHello::from_word(&word), None);
    }

    #[test]
    fn lines_are_found_among_others() {
        let said = Said::Failed { member: "n1".into(), error: "no port".into(), hint: None };
        let text = format!("Welcome!\nunfinished{}last words", said.to_line());
        let mut found = Vec::new();
        lines(text.as_bytes(), |line| found.push(line));
        let [Line::Printed(first), Line::Printed(second), Line::Said(third), Line::Printed(last)] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((first.as_str(), second.as_str(), last.as_str()), ("Welcome!", "unfinished", "last words"));
        assert_eq!(**third, said);
    }

    #[test]
    fn the_word_of_a_version_without_fleets_is_understood() {
        let answer = RemoteAnswer::Failed { error: "another version".into(), hint: None };
        let mut found = Vec::new();
        lines(answer.to_line().as_bytes(), |line| found.push(line));
        let [Line::Said(said)] = &found[..] else { panic!("{found:?}") };
        assert!(matches!(&**said, Said::Failed { error, .. } if error.as_str() == "another version"));
    }

    #[test]
    fn a_shell_that_never_stops_talking_is_left() {
        let endless = io::repeat(b'x');
        let mut read = 0_u64;
        lines(io::BufReader::new(endless), |line| {
            if let Line::Printed(text) = line {
                read += text.len() as u64;
            }
        });
        assert!(read <= MAX_NOISE + MAX_LINE, "{read}");
    }

    #[test]
    fn a_host_of_an_order_is_no_option() {
        let host = |host: &str| OrderHost { member: "a".into(), host: host.into(), user: None, port: Some(22), data: None };
        assert_eq!(host("-oProxyCommand=x").login(), None);
        assert_eq!(host("a").login().and_then(|login| login.port), Some(22));
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_harm(text in ".{0,200}") {
            lines(format!("{MAGIC}{text}\n").as_bytes(), |_| {});
            let _ = Summons::from_word(&text);
            let _ = Order::read(text.as_bytes());
        }
    }
}
