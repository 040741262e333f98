//! What the handles of a connection hold together.

use std::sync::Arc;

use haul_units::Bytes;

use super::handle::Handle;
use super::link::Link;

/// Closes the connection when nobody holds it any more, and keeps its endpoint alive until then.
pub(crate) struct Open {
    link: Arc<Link>,
    endpoint: Arc<Handle>,
}

impl Open {
    /// Of a connection of this endpoint.
    pub(crate) fn new(link: Arc<Link>, endpoint: Arc<Handle>) -> Self {
        Self { link, endpoint }
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// The application admits the client.
    pub(crate) fn admit(&self, memory: Option<Bytes>) {
        self.endpoint.admit(&self.link, memory);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.link.look(|state| state.closed.is_none()) {
            self.link.close(0, b"");
        }
    }
}
