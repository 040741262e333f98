//! What happens when time passes.

use haul_units::Time;

use super::{Connection, Event, Phase};
use crate::path::Path;

impl Connection {
    /// When to call [`Connection::handle_timeout`] and [`Connection::poll_transmit`] next, if nothing happens before; [`Time::NEVER`] if there is
    /// nothing to wait for.
    pub fn poll_timeout(&self) -> Time {
        self.poll_timeout_besides_report().min(self.report_due())
    }

    /// When the next report is due: [`Connection::poll_transmit`] then gives it. For a driver whose receiving thread sends them.
    pub fn report_due(&self) -> Time {
        if self.phase == Phase::Established {
            // As in `report_due_on`: where a report cannot leave, it waits for what comes, and not for a time.
            let main_is_held = self.paths.get(self.main_path()).is_some_and(|path| path.peer.is_held());
            let may_report = |path: &&Path| if path.is_home() { !path.peer.is_held() } else { !main_is_held };
            self.paths.iter().filter(may_report).map(|path| path.reporter.due()).min().unwrap_or(Time::NEVER)
        } else {
            Time::NEVER
        }
    }

    /// Whether it is time alone that makes reports due: what arrives before [`Connection::report_due`] may wait where it is until then, if it is known when it came
    /// ([`Origin::at`](super::Origin::at)).
    pub fn reports_by_time(&self) -> bool {
        self.paths.iter().all(|path| path.reporter.is_by_time())
    }

    /// Reports that are due before long leave now: for a driver that sends those of several connections when it wakes up.
    pub fn hasten_reports(&mut self, now: Time) {
        self.paths.iter_mut().for_each(|path| path.reporter.hasten(now));
    }

    /// As [`Connection::poll_timeout`], but for reports.
    pub fn poll_timeout_besides_report(&self) -> Time {
        let handshake = self.handshake.as_ref().and_then(|handshake| handshake.poll_timeout()).unwrap_or(Time::NEVER);
        match self.phase {
            Phase::Handshaking => handshake.min(self.admission_timer()),
            Phase::Established => self.established_timer().min(handshake),
            Phase::Closing(until) | Phase::Draining(until) => until,
            Phase::Drained => Time::NEVER,
        }
    }

    fn established_timer(&self) -> Time {
        let takes_frames = self.paths.get(self.main_path()).is_some_and(Path::may_send);
        if !self.control.is_empty() && takes_frames || !self.responses.is_empty() {
            return Time::ZERO;
        }
        let mut next = (self.heard_at + self.idle_timeout).min(self.admission_timer()).min(self.quiet_due());
        let silent = self.silent_paths();
        for (index, path) in self.paths.iter().enumerate() {
            next = next.min(path.recovery_timer(silent));
            if !self.may_leave_on(index) {
                continue;
            }
            if path.ping_due && !path.peer.is_held() {
                return Time::ZERO;
            }
            next = next.min(path.peer.timer()).min(path.paced_until).min(self.keep_alive_due(path)).min(path.floor_timer());
        }
        next
    }

    /// Each path has its own entry in a NAT, to be kept.
    fn keep_alive_due(&self, path: &Path) -> Time {
        let interval = self.config.keep_alive.filter(|_| path.peer.is_open() && !path.peer.is_held());
        interval.map_or(Time::NEVER, |interval| path.sent_at + interval)
    }

    /// Time has passed. What is due to be sent leaves with the next [`Connection::poll_transmit`].
    pub fn handle_timeout(&mut self, now: Time) {
        match self.handshake.as_mut().map(|handshake| handshake.handle_timeout(now)) {
            Some(Ok(true)) => self.candidates.ask_all(),
            Some(Err(error)) => self.fail_handshake(now, error),
            _ => {}
        }
        if now >= self.admission_timer() {
            // What it says leaves before the end.
            return self.dismiss(now, b"no request came in time");
        }
        match self.phase {
            Phase::Handshaking | Phase::Drained => {}
            Phase::Established => self.handle_established_timeout(now),
            Phase::Closing(until) | Phase::Draining(until) => {
                if now >= until {
                    self.phase = Phase::Drained;
                    self.events.push_back(Event::Drained);
                }
            }
        }
    }

    fn handle_established_timeout(&mut self, now: Time) {
        if now >= self.heard_at + self.idle_timeout {
            self.on_idle_timeout(now);
            return;
        }
        let silent = self.silent_paths();
        for index in 0..self.paths.len() {
            if now < self.paths[index].recovery_timer(silent) {
                continue;
            }
            self.detect_losses(now);
            let path = &self.paths[index];
            if path.sent.in_flight() > 0 && now >= path.probe_timer(silent) {
                self.on_probe_timeout(now, index);
            }
        }
        self.ask_if_quiet(now);
        for index in 0..self.paths.len() {
            if self.may_leave_on(index) && now >= self.keep_alive_due(&self.paths[index]) {
                self.paths[index].ping_due = true;
            }
        }
    }
}
