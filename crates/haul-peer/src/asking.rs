//! The words of a program that is offered to a far side: the question, what its answers mean, and the line that says that it goes.

use haul::Bytes;

use crate::bootstrap::{Sending, Stay};
use crate::programs::Program;

/// The line that says that a program is sent.
pub fn sending_words(sending: &Sending<'_>) -> String {
    let Sending { host, machine, bytes, stay } = sending;
    let stays = match stay {
        Stay::Keep => "it stays in ~/.cache/haul",
        Stay::Once => "nothing of it stays",
    };
    format!("{host} has no haul {}: sending it, {} for {machine}; {stays}", env!("CARGO_PKG_VERSION"), Bytes(*bytes))
}

/// The question whether to send one.
pub fn question(why: &str, programs: &[Program]) -> String {
    let largest = programs.iter().map(|program| program.bytes).max().unwrap_or_default();
    format!(
        "{why}\nSend haul {} there, {} over ssh? yes: it stays in ~/.cache/haul there; once: nothing of it stays (yes/once/no) ",
        env!("CARGO_PKG_VERSION"),
        Bytes(largest)
    )
}

/// An answer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Send it.
    Send(Stay),
    /// Do not.
    Leave,
    /// No answer.
    Unclear,
}

/// What an answer means.
pub fn answer(text: &str) -> Answer {
    match text.trim() {
        "yes" | "y" => Answer::Send(Stay::Keep),
        "once" => Answer::Send(Stay::Once),
        "no" | "n" => Answer::Leave,
        _ => Answer::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_words() {
        for (text, meaning) in [
            ("yes\n", Answer::Send(Stay::Keep)),
            ("y", Answer::Send(Stay::Keep)),
            ("once ", Answer::Send(Stay::Once)),
            ("n", Answer::Leave),
            ("perhaps", Answer::Unclear),
        ] {
            assert_eq!(answer(text), meaning, "{text}");
        }
    }
}
