//! Nobody gives any.

use std::sync::Arc;

use haul_copy::CopyControl;

/// There are none.
pub struct Orders;

/// Takes none.
pub fn take(_control: Arc<CopyControl>) -> Option<Orders> {
    None
}
