//! What a far side serves of copies where nobody keeps it for several: one.

use haul::Connection;
use haul_copy::{Places, Purpose, ServerSession};
use haul_files::{Access, Cancel, Silent};
use haul_peer::{FarSide, Refusal};

/// Serves one copy.
pub struct Service {
    access: Access,
    places: Places,
    refusal: Option<Refusal>,
}

impl Service {
    /// Serves what this allows; nothing, where there is a refusal.
    pub const fn new(access: Access, places: Places, refusal: Option<Refusal>) -> Self {
        Self { access, places, refusal }
    }

    /// Serves one connection; false if nothing was said on it: it lost a race.
    pub fn serve_at(&self, _far: &FarSide, connection: Connection, cancel: &Cancel) -> bool {
        let Ok(session) = ServerSession::accept(connection).map(|session| session.choosing(self.places.clone())) else {
            return false;
        };
        if let Some(refusal) = &self.refusal {
            session.refuse(refusal);
            return true;
        }
        let farewell = match session.opening.purpose {
            Purpose::Keep => {
                session.refuse(&Refusal { error: "haul for Windows is no member of a fleet".into(), hint: None });
                return true;
            }
            Purpose::Status(_) => session.tell_status(&self.access, Vec::new(), cancel).1,
            _ => session.serve(&self.access, None, &Silent, cancel).1,
        };
        farewell.part(cancel);
        true
    }
}
