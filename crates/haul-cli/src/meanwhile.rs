//! What libraries tell while they work, shown; what they ask, asked.

use std::io::{BufRead as _, Write};

use haul::Fingerprint;
use haul_copy::told::outage_words;
use haul_peer::{Answer, Bootstrap, DaemonHost, GoesOver, Outage, Program, Sending, SshHost, Tell};

use crate::bootstrap;
use crate::interrupt;
use crate::output::{self, PeerOutput};
use crate::terminal;

/// Tells the user on standard error, and asks on the terminal.
#[derive(Debug, Clone, Copy)]
pub struct User;

impl Tell for User {
    fn ssh_says(&self) -> Box<dyn Write + Send> {
        Box::new(PeerOutput::default())
    }

    fn outage(&self, outage: Outage) {
        output::print_line(&outage_words(outage));
    }

    fn goes_over(&self, over: &GoesOver) {
        output::print_line(&over.to_string());
    }

    fn logs_in_again(&self, host: &str, logins: usize) {
        output::print_line(&format!("through {logins} logins of ssh to {host}, for one alone is slower"));
    }

    fn relay_fails(&self, relay: &DaemonHost, why: &str) {
        output::print_line(&format!("no help by relay {relay}: {why}"));
    }

    /// Asks the user, if there is a terminal to ask on.
    fn trusts(&self, host: &DaemonHost, key: Fingerprint) -> Option<bool> {
        let (mut lines, mut terminal) = terminal::to_ask_on().ok()?;
        let question = format!(
            "The key of haul://{host} is not known yet.\nIts fingerprint is {key}.\nThe same must be printed by `haul key show` on that host. Trust it from now on (yes/no)? "
        );
        terminal.write_all(question.as_bytes()).ok()?;
        loop {
            let mut answer = String::new();
            if lines.read_line(&mut answer).ok()? == 0 || interrupt::requested() {
                return Some(false);
            }
            match answer.trim() {
                "yes" => return Some(true),
                "no" => return Some(false),
                fingerprint if fingerprint == key.to_string() => return Some(true),
                _ => terminal.write_all(b"Type yes, no, or the fingerprint: ").ok()?,
            }
        }
    }

    /// Asks the user, if there is a terminal to ask on, and something to send.
    fn bootstraps(&self, _host: &SshHost, why: &str) -> Option<Bootstrap> {
        let programs = Program::at_hand();
        if programs.is_empty() || interrupt::requested() {
            return None;
        }
        let (mut lines, mut terminal) = terminal::to_ask_on().ok()?;
        let mut question = haul_peer::question(&output::shown(why), &programs);
        loop {
            terminal.write_all(question.as_bytes()).ok()?;
            let mut answer = String::new();
            if lines.read_line(&mut answer).ok()? == 0 || interrupt::requested() {
                return None;
            }
            match haul_peer::answer(&answer) {
                Answer::Send(stay) => return Some(bootstrap::bootstrap(programs, stay)),
                Answer::Leave => return None,
                Answer::Unclear => "Type yes, once or no: ".clone_into(&mut question),
            }
        }
    }

    fn sends(&self, sending: &Sending<'_>) {
        output::print_note(&haul_peer::sending_words(sending));
    }
}
