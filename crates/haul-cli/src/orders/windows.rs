//! Nobody gives any.

use std::sync::Arc;

use haul_control::Controlled;

/// There are none.
pub struct Orders;

/// Takes none.
pub fn take(_controlled: Arc<dyn Controlled>) -> Option<Orders> {
    None
}
