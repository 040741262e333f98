//! What the two sides tell each other over ssh before UDP starts: one line each way.
//!
//! ```text
//! local  -> remote   {"bootstrap":1, .. "client":"SHA256:.."}             in base64 as the word after `haul remote`, and on standard input
//! remote -> local    HAUL/1 {"ready":{"port":..,"server":"SHA256:..","token":..}}      or      HAUL/1 {"failed":{"error":..}}
//! ```
//!
//! ssh passes standard input on only once the far side's command runs, a round trip after the command itself. It counts where the word has not
//! arrived. Where the far side's keys allow a command of theirs only (`command="haul remote"`), sshd hands the word over in `SSH_ORIGINAL_COMMAND`.
//!
//! Both also carry what the two ends would tell each other first over UDP: TLS' first two flights (`opening`, `answer`), which saves a round trip.
//!
//! A login shell may print greetings before the answer: the prefix finds it. Unknown fields are ignored, so that a later version can say more.

use std::io::{self, BufRead, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use data_encoding::BASE64URL_NOPAD;
use haul::Endpoint;
use haul_units::PeerText;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::carried_far::CarrierPort;
use crate::memory::SavedPath;

/// Version of this exchange.
pub const BOOTSTRAP: u32 = 1;
/// Longest line that either side reads, in bytes.
pub const MAX_LINE: u64 = 64 << 10;

/// What comes before the answer.
const MAGIC: &str = "HAUL/1 ";
/// Lines of greeting that are kept, to show if no answer comes.
const KEPT_LINES: usize = 10;
/// Greeting, in bytes, after which no answer is expected any more.
const MAX_NOISE: u64 = 4 << 20;

/// Which addresses may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Either.
    #[default]
    Any,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
}

impl Family {
    /// From the two flags of the command line.
    pub const fn of(ipv4: bool, ipv6: bool) -> Self {
        match (ipv4, ipv6) {
            (true, _) => Self::Ipv4,
            (_, true) => Self::Ipv6,
            _ => Self::Any,
        }
    }

    /// Listens on every address that may be used; a machine without IPv6 serves IPv4 alone.
    pub fn listen<E>(self, on: impl Fn(IpAddr) -> Result<Endpoint, E>) -> Result<Endpoint, E> {
        let (v4, v6) = (IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED));
        match self {
            Self::Any => on(v6).or_else(|_| on(v4)),
            Self::Ipv4 => on(v4),
            Self::Ipv6 => on(v6),
        }
    }

    /// Whether an address may be used.
    pub const fn admits(self, ip: IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Ipv4 => ip.is_ipv4(),
            Self::Ipv6 => ip.is_ipv6(),
        }
    }
}

/// What the side that called ssh says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientHello {
    /// Version of this exchange.
    pub bootstrap: u32,
    /// Version of the program, for messages.
    pub version: PeerText,
    /// Fingerprint of the key that will connect.
    pub client: PeerText,
    /// Addresses to listen on.
    #[serde(default)]
    pub family: Family,
    /// Ports to listen on, both ends included; any where there are none.
    #[serde(default)]
    pub udp_ports: Option<(u16, u16)>,
    /// Congestion control of the far side: `cubic`, `fixed:RATE`.
    #[serde(default)]
    pub controller: Option<PeerText>,
    /// Bytes that a new ordered stream may run ahead of its reader, where many streams want less than usual.
    #[serde(default)]
    pub stream_window: Option<u64>,
    /// The silence after which the far side gives the connection up, in seconds, where it is not the usual one.
    #[serde(default)]
    pub dead_after_s: Option<u32>,
    /// Whether the far side may measure the way to the client before there is anything to send.
    #[serde(default)]
    pub filler: bool,
    /// What the client knows of the way from the far side to it, or the other way, whichever the copy takes.
    #[serde(default)]
    pub remembered: Option<SavedPath>,
    /// What opens the handshake (`haul::Opening`), in base64.
    #[serde(default)]
    pub opening: Option<String>,
    /// Whether the client knows the ways around UDP, and wants them opened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carries: bool,
    /// Whether it may say where to meet it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub meets: bool,
}

/// What the far side answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RemoteAnswer {
    /// It listens.
    Ready(RemoteHello),
    /// It cannot.
    Failed {
        /// Why.
        error: PeerText,
        /// What to do about it.
        #[serde(default)]
        hint: Option<PeerText>,
    },
}

/// How to reach the far side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteHello {
    /// Version of the program, for messages.
    pub version: PeerText,
    /// The UDP port that it listens on.
    pub port: u16,
    /// Fingerprint of its key.
    pub server: PeerText,
    /// What proves that the client comes by way of ssh, in base64.
    pub token: PeerText,
    /// Addresses that it may be reached at, as ssh's connection shows them.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Advice about the far side's system, for instance small socket buffers.
    #[serde(default)]
    pub advice: Option<PeerText>,
    /// The answer to the client's opening, in base64; without one the handshake goes over UDP.
    #[serde(default)]
    pub answer: Option<String>,
    /// Where it takes TCP connections that carry what UDP does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<CarrierPort>,
    /// Whether frames of a carrier may follow on this channel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub channel: bool,
    /// Whether it comes to meetings that it is told of there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub meets: bool,
    /// What it took from its start to this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_us: Option<u64>,
}

/// Why no answer was found.
#[derive(Debug, Error)]
pub enum AnswerError {
    /// The far side ended without one; what it printed is kept.
    #[error("the far side ended without an answer")]
    Missing {
        /// The last lines that it printed.
        printed: Vec<PeerText>,
    },
    /// It does not make sense.
    #[error("the far side's answer cannot be understood")]
    Malformed(#[source] serde_json::Error),
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ClientHello {
    /// As the line that goes to the far side, newline included.
    pub fn to_line(&self) -> String {
        json_line("", self)
    }

    /// As a word of the command line, which no shell changes.
    pub fn to_word(&self) -> String {
        BASE64URL_NOPAD.encode(self.to_line().as_bytes())
    }

    /// From the word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::from_line(&BASE64URL_NOPAD.decode(word.as_bytes()).ok()?).ok()
    }

    /// From the line.
    pub fn from_line(line: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(line)
    }
}

impl RemoteAnswer {
    /// From what stands behind the prefix.
    pub(super) fn from_text(text: &str) -> Result<Self, AnswerError> {
        serde_json::from_str(text).map_err(AnswerError::Malformed)
    }

    /// As the line that goes back, newlines included: the first one ends whatever the shell left unfinished.
    pub fn to_line(&self) -> String {
        format!("\n{}", json_line(MAGIC, self))
    }
}

/// Reads until the answer, past whatever a shell prints before it.
pub fn find_answer(reader: &mut impl BufRead) -> Result<RemoteAnswer, AnswerError> {
    RemoteAnswer::from_text(&find_text(reader)?)
}

/// Reads until an answer's prefix, and gives what stands behind it.
pub(super) fn find_text(reader: &mut impl BufRead) -> Result<String, AnswerError> {
    let mut printed = Vec::new();
    let mut noise = 0;
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        noise += read as u64;
        if read == 0 || noise > MAX_NOISE {
            return Err(AnswerError::Missing { printed });
        }
        let line = String::from_utf8_lossy(&line);
        if let Some((_, text)) = line.split_once(MAGIC) {
            return Ok(text.to_owned());
        }
        let line = line.trim_end();
        if !line.is_empty() {
            if printed.len() == KEPT_LINES {
                printed.remove(0);
            }
            printed.push(PeerText::from(line));
        }
    }
}

fn json_line(prefix: &str, value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("only strings and numbers, which JSON can hold");
    format!("{prefix}{json}\n")
}

/// The greeting's word in what a client wanted to have run: `haul remote GREETING`, haul by whatever path. Where sshd runs haul whatever the client asks for (`command=` of
/// a key, `ForceCommand`), that is in `SSH_ORIGINAL_COMMAND`: its last word counts, nothing else of it is looked at, and nothing of it is run.
pub fn greeting_in(command: &str) -> Option<&str> {
    let (before, word) = command.rsplit_once(' ')?;
    before.ends_with(" remote").then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> RemoteAnswer {
        RemoteAnswer::Ready(RemoteHello {
            version: "1.2.3".into(),
            port: 4000,
            server: "SHA256:abc".into(),
            token: "AAAA".into(),
            addresses: vec![IpAddr::from([10, 0, 0, 1])],
            advice: None,
            answer: None,
            tcp: None,
            channel: false,
            meets: false,
            start_us: None,
        })
    }

    #[test]
    fn the_answer_is_found_behind_a_shell_s_greetings() {
        for greeting in ["", "Welcome to far\n\n", "no newline at the end", "\x1b[1mcolour\x1b[0m HAUL/2 {}\n"] {
            let printed = format!("{greeting}{}", ready().to_line());
            assert_eq!(find_answer(&mut printed.as_bytes()).expect(greeting), ready());
        }
    }

    #[test]
    fn without_an_answer_what_was_printed_is_kept() {
        let error = find_answer(&mut &b"one\n\nThis account is not available.\n"[..]).expect_err("no answer");
        let AnswerError::Missing { printed } = error else { panic!("{error}") };
        assert_eq!(printed, ["one", "This account is not available."]);
    }

    #[test]
    fn endless_noise_ends() {
        let noise = vec![b'x'; (MAX_NOISE + MAX_LINE) as usize];
        assert!(matches!(find_answer(&mut &noise[..]), Err(AnswerError::Missing { .. })));
    }

    #[test]
    fn nonsense_behind_the_prefix_is_an_error() {
        for line in ["HAUL/1 {}\n", "HAUL/1 \n", "HAUL/1 {\"ready\":{\"port\":70000}}\n"] {
            assert!(matches!(find_answer(&mut line.as_bytes()), Err(AnswerError::Malformed(_))), "{line}");
        }
    }

    #[test]
    fn the_hello_is_one_word_for_any_shell() {
        let hello = ClientHello::from_line(br#"{"bootstrap":1,"version":"9","client":"SHA256:x/+y"}"#).expect("a hello");
        let word = hello.to_word();
        assert!(word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)), "{word}");
        assert_eq!(ClientHello::from_word(&word), Some(hello));
        assert_eq!(ClientHello::from_word("e30"), None);
        assert_eq!(ClientHello::from_word("'"), None);
    }

    #[test]
    fn a_later_version_may_say_more() {
        let line = br#"{"bootstrap":1,"version":"9","client":"SHA256:x","colour":"blue"}"#;
        let hello = ClientHello::from_line(line).expect("unknown fields are ignored");
        assert_eq!((hello.family, hello.udp_ports, hello.controller), (Family::Any, None, None));
    }

    #[test]
    fn of_the_client_s_command_only_the_greeting_counts() {
        let hello = ClientHello::from_line(br#"{"bootstrap":1,"version":"9","client":"SHA256:x"}"#).expect("a hello");
        let word = hello.to_word();
        let heard = |command: &str| ClientHello::from_word(greeting_in(command)?);
        for command in [format!("haul remote {word}"), format!("'/opt/my haul/bin' remote {word}")] {
            assert_eq!(heard(&command).as_ref(), Some(&hello), "{command}");
        }
        for command in [
            String::new(),
            "ls".into(),
            "haul remote".into(),
            word.clone(),
            format!("rm -rf {word}"),
            format!("haul remote {word} ; ls"),
            format!("haul remote {word}x!"),
            "haul remote e30".into(),
            format!("remote {word}"),
        ] {
            assert_eq!(heard(&command), None, "{command}");
        }
    }
}
